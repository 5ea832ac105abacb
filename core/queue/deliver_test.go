package queue

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/AutoAgentProject/core/handoff"
	"time"
)

func TestSendAndDeliver(t *testing.T) {
	q := fresh(t)
	name, _, e := handoff.NewWork(handoff.Work{From: "manager", To: "coder", Priority: 50, Task: "t", Commit: "0123456789", Seq: 1, At: noon})
	for range 3 {
		ok(t, q.Send("manager", name, e))
	}
	holds(t, q, "manager", "outbox/new/"+name)
	if got := content(t, filepath.Join(q.outbox("manager", "new"), name)); got != string(e.Bytes()) {
		t.Error(got)
	}
	if got := deliver(t, q, "manager"); got != "coder" {
		t.Errorf("woken: %s", got)
	}
	if got := content(t, filepath.Join(q.inbox("coder", "new"), name)); got != string(e.ForRecipient("coder", noon).Bytes()) {
		t.Error(got)
	}
	// Both again, at each place where the copy can be.
	for _, box := range []string{"new", "in_process", "completed", "failed"} {
		if box != "new" {
			from := map[string]string{"in_process": "new", "completed": "in_process", "failed": "completed"}[box]
			ok(t, os.Rename(filepath.Join(q.inbox("coder", from), name), filepath.Join(q.inbox("coder", box), name)))
		}
		ok(t, q.Send("manager", name, e))
		if got := deliver(t, q, "manager"); got != "" {
			t.Errorf("%s: woken %s", box, got)
		}
		holds(t, q, "manager", "outbox/sent/"+name, "outbox/sent/"+name+".receipts")
		holds(t, q, "coder", "inbox/"+box+"/"+name)
		if q.Where("coder", name) != box || !q.Find(name, "reviewer", "coder") || q.Find(name, "reviewer") {
			t.Errorf("%s: %q", box, q.Where("coder", name))
		}
	}
}

// receipts says who has a receipt for a sent envelope, in order.
func receipts(t testing.TB, q Queue, from, box, name string) string {
	t.Helper()
	r, err := readReceipts(filepath.Join(q.outbox(from, box), name))
	ok(t, err)
	var out []string
	for _, x := range r {
		if x.At.IsZero() {
			t.Errorf("the receipt of %s has no time", x.Recipient)
		}
		out = append(out, x.Recipient)
	}
	return strings.Join(out, " ")
}

func TestBroadcast(t *testing.T) {
	q := fresh(t)
	name := sent(t, q, "manager", "coder,manager,reviewer", "b")
	if got := deliver(t, q, "manager"); got != "coder reviewer" {
		t.Errorf("woken: %s; mail to oneself wakes nobody", got)
	}
	holds(t, q, "manager", "inbox/new/"+name, "outbox/sent/"+name, "outbox/sent/"+name+".receipts")
	holds(t, q, "coder", "inbox/new/"+name)
	holds(t, q, "reviewer", "inbox/new/"+name)
	if got := receipts(t, q, "manager", "sent", name); got != "coder manager reviewer" {
		t.Error(got)
	}
	for _, a := range []string{"coder", "manager", "reviewer"} {
		if e, err := read(filepath.Join(q.inbox(a, "new"), name)); err != nil || e.Get("recipient") != a {
			t.Errorf("%s: %q, %v", a, e.Get("recipient"), err)
		}
	}
}

// TestAllRecipientsFirst: one that does not exist, and nobody gets anything.
func TestAllRecipientsFirst(t *testing.T) {
	for _, to := range []string{"coder,nosuch", "nosuch,coder", "coder,", ",coder", "coder,,reviewer", "coder,Reviewer", "coder, reviewer", "coder,..", "coder,../agents/reviewer", "coder,."} {
		q := fresh(t)
		bad := sent(t, q, "manager", to, "bad")
		good := sent(t, q, "manager", "reviewer", "good")
		if got := deliver(t, q, "manager"); got != "reviewer" {
			t.Errorf("%s: woken %s", to, got)
		}
		holds(t, q, "coder")
		holds(t, q, "reviewer", "inbox/new/"+good)
		holds(t, q, "manager", "outbox/sent/"+good, "outbox/sent/"+good+".receipts", "outbox/failed/"+bad, "outbox/failed/"+bad+".error")
		if why := content(t, filepath.Join(q.outbox("manager", "failed"), bad+".error")); !strings.Contains(why, "no recipient") {
			t.Errorf("%s: %s", to, why)
		}
	}
}

// breakInbox makes an agent's inbox undeliverable, for root too; mend makes it good again.
func breakInbox(t *testing.T, q Queue, agent string) (mend func()) {
	t.Helper()
	dir := q.inbox(agent, "new")
	if os.Getuid() != 0 {
		ok(t, os.Chmod(dir, 0o555))
		return func() { ok(t, os.Chmod(dir, 0o755)) }
	}
	ok(t, os.Remove(dir))
	ok(t, os.WriteFile(dir, nil, 0o600))
	return func() {
		ok(t, os.Remove(dir))
		ok(t, os.Mkdir(dir, 0o700))
	}
}

// TestHalfDelivered: what one recipient cannot take now holds up no other one and no other envelope, and is delivered
// later, to the rest only.
func TestHalfDelivered(t *testing.T) {
	q := fresh(t)
	first := sent(t, q, "manager", "coder,reviewer,tester", "a")
	second := sent(t, q, "manager", "coder", "b")
	mend := breakInbox(t, q, "reviewer")
	for n, want := range []string{"coder tester", "", ""} {
		got, err := q.Deliver("manager", noon)
		if err == nil || !strings.Contains(err.Error(), "reviewer") {
			t.Fatalf("delivery %d: %v", n, err)
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("delivery %d woke %q", n, s)
		}
	}
	if got := receipts(t, q, "manager", "new", first); got != "coder tester" {
		t.Errorf("receipts of %s", got)
	}
	// Meanwhile one has finished it, and another has thrown it away.
	held, _ := claim(t, q, "coder")
	ok(t, q.Complete("coder", held.Name, noon))
	ok(t, os.Remove(filepath.Join(q.inbox("tester", "new"), first)))
	mend()
	if got := deliver(t, q, "manager"); got != "reviewer" {
		t.Errorf("woken: %s", got)
	}
	holds(t, q, "coder", "inbox/new/"+second, "inbox/completed/"+first)
	holds(t, q, "reviewer", "inbox/new/"+first)
	holds(t, q, "tester")
	holds(t, q, "manager", "outbox/sent/"+first, "outbox/sent/"+first+".receipts", "outbox/sent/"+second, "outbox/sent/"+second+".receipts")
	if got := receipts(t, q, "manager", "sent", first); got != "coder tester reviewer" {
		t.Errorf("receipts of %s", got)
	}
}

// TestForgedSender: the folder says who sends.
func TestForgedSender(t *testing.T) {
	q := fresh(t)
	for _, from := range []string{"human", "manager", "Coder"} {
		name, e := note(from, "reviewer", "as-"+from)
		ok(t, q.Send("coder", name, e))
		if got := deliver(t, q, "coder"); got != "" {
			t.Errorf("woken: %s", got)
		}
		if why := content(t, filepath.Join(q.outbox("coder", "failed"), name+".error")); !strings.Contains(why, from) {
			t.Error(why)
		}
	}
	holds(t, q, "reviewer")
}

// TestSendRefuses: what would not be read back as it is is never written.
func TestSendRefuses(t *testing.T) {
	q := fresh(t)
	good, _ := note("coder", "reviewer", "x")
	set := func(name, value string) handoff.Envelope {
		_, e := note("coder", "reviewer", "x")
		e.Set(name, value)
		return e
	}
	for what, c := range map[string]struct {
		name string
		e    handoff.Envelope
	}{
		"a header in a value":     {good, set("message", "hi\nhop: 9")},
		"a sender in a value":     {good, set("message", "hi\nfrom: human")},
		"a body in a value":       {good, set("message", "hi\n\nbody")},
		"an empty value":          {good, set("message", "")},
		"a NUL":                   {good, set("message", "a\x00")},
		"a name of a header":      {good, set("a b", "x")},
		"nothing":                 {good, handoff.Envelope{}},
		"a path":                  {"../" + good, set("message", "m")},
		"no suffix":               {"x.txt", set("message", "m")},
		"a hidden name":           {"." + good, set("message", "m")},
		"a name with a line":      {"a\n" + good, set("message", "m")},
		"a name that is too long": {strings.Repeat("x", 200) + handoff.Suffix, set("message", "m")},
	} {
		if err := q.Send("coder", c.name, c.e); err == nil {
			t.Errorf("%s: sent", what)
		}
	}
	holds(t, q, "coder")
}

// TestLongestName: a name as long as it may be goes all the way.
func TestLongestName(t *testing.T) {
	q := fresh(t)
	_, e := note("manager", "coder", "x")
	name := strings.Repeat("n", handoff.MaxName-len(handoff.Suffix)) + handoff.Suffix
	ok(t, q.Send("manager", name, e))
	if got := deliver(t, q, "manager"); got != "coder" {
		t.Fatalf("woken: %s", got)
	}
	held, _ := claim(t, q, "coder")
	ok(t, q.Release("coder", held.Name))
	held, _ = claim(t, q, "coder")
	ok(t, q.Complete("coder", held.Name, noon))
	holds(t, q, "coder", "inbox/completed/"+name)
}

func TestOthersInTheFoldersAreIgnored(t *testing.T) {
	q := fresh(t)
	for _, dir := range []string{q.inbox("coder", "new"), q.inbox("coder", "in_process"), q.outbox("coder", "new")} {
		for _, name := range []string{".x.handoff", "x.handoff.tmp", "x.txt", "handoff", "x.HANDOFF"} {
			ok(t, os.WriteFile(filepath.Join(dir, name), []byte("junk"), 0o600))
		}
	}
	before := tree(t, q, "coder")
	if held, dead := claim(t, q, "coder"); held != nil || dead != nil {
		t.Errorf("%v, %q", held, dead)
	}
	if got := deliver(t, q, "coder"); got != "" {
		t.Errorf("woken: %s", got)
	}
	if p, err := q.Pending("coder"); p || err != nil {
		t.Error(p, err)
	}
	if d, err := q.Depth("coder"); err != nil || d != (Depth{}) {
		t.Errorf("%+v, %v", d, err)
	}
	holds(t, q, "coder", before...)
}

func TestDepthAndPending(t *testing.T) {
	q := fresh(t)
	for _, id := range []string{"a", "b", "c"} {
		sent(t, q, "manager", "coder", id)
	}
	if p, _ := q.Pending("manager"); !p {
		t.Error("what lies in the outbox is nothing to do")
	}
	deliver(t, q, "manager")
	if p, _ := q.Pending("manager"); p {
		t.Error("the outbox is empty, and there is something to do")
	}
	old := noon.Add(-time.Hour)
	ok(t, os.Chtimes(filepath.Join(q.inbox("coder", "new"), "50_b"+handoff.Suffix), old, old))
	claim(t, q, "coder")
	ok(t, q.Fail("coder", "50_a"+handoff.Suffix, "no"))
	claim(t, q, "coder")
	d, err := q.Depth("coder")
	if err != nil || d.New != 1 || d.InProcess != 1 || d.Failed != 1 || d.Oldest.IsZero() || d.Oldest.Equal(old) {
		t.Errorf("%+v, %v", d, err)
	}
	if p, err := q.Pending("coder"); !p || err != nil {
		t.Error(p, err)
	}
	for _, do := range []func() error{
		func() error { _, err := q.Depth("nosuch"); return err },
		func() error { _, err := q.Pending("nosuch"); return err },
		func() error { _, err := q.Deliver("nosuch", noon); return err },
		func() error { _, _, err := q.Claim("nosuch", self(t), noon); return err },
		func() error { n, e := note("nosuch", "coder", "x"); return q.Send("nosuch", n, e) },
	} {
		if do() == nil {
			t.Error("somebody who is not there has mailboxes")
		}
	}
}

func TestSequence(t *testing.T) {
	q := fresh(t)
	for want := 1; want < 4; want++ {
		if n, err := q.Sequence(t.Context(), "coder"); n != want || err != nil {
			t.Errorf("%d, %v", n, err)
		}
	}
	path := filepath.Join(q.Agents, "coder", "sequence")
	if got := content(t, path); got != "000003\n" {
		t.Errorf("%q", got)
	}
	for _, damage := range []string{"", "\x00\x00\x00\x00\x00\x00\x00", "x\n"} {
		ok(t, os.WriteFile(path, []byte(damage), 0o600))
		if n, err := q.Sequence(t.Context(), "coder"); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%q: %d, %v", damage, n, err)
		}
		if got := content(t, path); got != damage {
			t.Errorf("%q became %q", damage, got)
		}
	}
}

// TestDiedBeforeTheReceipt: the copy was made, its recipient moved it on, and no receipt tells.
func TestDiedBeforeTheReceipt(t *testing.T) {
	for _, box := range []string{"new", "in_process", "completed", "failed"} {
		q := fresh(t)
		name, e := note("manager", "coder,reviewer", "a")
		ok(t, q.Send("manager", name, e))
		ok(t, os.WriteFile(filepath.Join(q.inbox("coder", box), name), e.ForRecipient("coder", noon).Bytes(), 0o600))
		ok(t, os.WriteFile(filepath.Join(q.outbox("manager", "new"), name+".receipts"), []byte(`{"recipient":"co`), 0o600))
		deliver(t, q, "manager")
		holds(t, q, "coder", "inbox/"+box+"/"+name)
		holds(t, q, "reviewer", "inbox/new/"+name)
		if got := receipts(t, q, "manager", "sent", name); got != "coder reviewer" {
			t.Errorf("%s: receipts of %s", box, got)
		}
	}
}
