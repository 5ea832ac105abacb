package queue

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/AutoAgentProject/core/handoff"
	"example.com/AutoAgentProject/core/proc"
)

func holder(owner proc.ID) Holder { return Holder{Owner: owner} }

func nextAs(t testing.TB, q Queue, mode Mode, by Holder) (*handoff.Unit, []string) {
	t.Helper()
	u, dead, err := q.Next("coder", mode, by, noon)
	ok(t, err)
	return u, dead
}

// names are the tasks of a unit by their files.
func names(u *handoff.Unit) string {
	if u == nil {
		return "nothing"
	}
	var out []string
	for _, i := range u.Items {
		out = append(out, filepath.Base(i.Path))
	}
	return strings.Join(out, " ")
}

// three sends three handoffs to coder, one of them with another priority.
func three(t testing.TB, q Queue) {
	t.Helper()
	for _, id := range []string{"a", "b", "c"} {
		name, e := note("manager", "coder", id)
		if id == "b" {
			name = "60" + name[2:]
			e.Set("priority", "60")
		}
		ok(t, q.Send("manager", name, e))
	}
	deliver(t, q, "manager")
}

// TestBatchIsOneUnit: held, resumed, given up and completed as a whole; what comes meanwhile waits.
func TestBatchIsOneUnit(t *testing.T) {
	q := fresh(t)
	three(t, q)
	u, _ := nextAs(t, q, Batch, holder(dead(t, 1)))
	if names(u) != "50_a.handoff 50_c.handoff" || filepath.Base(u.Batch) != "batch_20260301T120000Z_000001" {
		t.Fatalf("%s in %s", names(u), u.Batch)
	}
	sent(t, q, "manager", "coder", "d")
	deliver(t, q, "manager")
	for n := 2; n <= MaxAttempts; n++ {
		u, gone := nextAs(t, q, Batch, holder(dead(t, n)))
		if c, err := peekClaim(u.Batch); names(u) != "50_a.handoff 50_c.handoff" || gone != nil || err != nil || c.Attempt != n {
			t.Fatalf("attempt %d: %s, %q, %+v, %v", n, names(u), gone, c, err)
		}
	}
	first := filepath.Base(u.Batch)
	u, gone := nextAs(t, q, Batch, holder(self(t)))
	if names(u) != "50_d.handoff" || strings.Join(gone, " ") != first {
		t.Fatalf("after the third death: %s, %q", names(u), gone)
	}
	holds(t, q, "coder", "inbox/new/60_b.handoff", "inbox/in_process/"+filepath.Base(u.Batch), "inbox/in_process/"+filepath.Base(u.Batch)+".claim",
		"inbox/failed/"+first, "inbox/failed/"+first+".error")
	if d, err := q.Depth("coder"); err != nil || d.New != 1 || d.InProcess != 1 || d.Failed != 2 {
		t.Errorf("%+v, %v", d, err)
	}
	f, err := q.Done("coder", Batch, holder(self(t)), nil, noon)
	if err != nil || f.Batch != filepath.Join(q.inbox("coder", "completed"), filepath.Base(u.Batch)) || len(f.Paths) != 1 {
		t.Errorf("%+v, %v", f, err)
	}
	back, err := q.Requeue("coder", first)
	if err != nil || len(back) != 2 {
		t.Errorf("%q, %v", back, err)
	}
	holds(t, q, "coder", "inbox/new/50_a.handoff", "inbox/new/50_c.handoff", "inbox/new/60_b.handoff", "inbox/completed/"+filepath.Base(u.Batch))
	if got := content(t, back[0]); strings.Contains(got, "dequeued_at") {
		t.Error(got)
	}
	if q.Where("coder", "50_a.handoff") != "new" {
		t.Error(q.Where("coder", "50_a.handoff"))
	}
}

// TestBatchesOfOneSecond have names of their own also when one is completed before the next is taken.
func TestBatchesOfOneSecond(t *testing.T) {
	q := fresh(t)
	three(t, q)
	for range 2 {
		nextAs(t, q, Batch, holder(self(t)))
		if _, err := q.Done("coder", Batch, holder(self(t)), nil, noon); err != nil {
			t.Fatal(err)
		}
	}
	holds(t, q, "coder", "inbox/completed/batch_20260301T120000Z_000001", "inbox/completed/batch_20260301T120001Z_000001")
}

// TestDeliveredOnce: whoever got a handoff gets it never again, also after it was completed in a batch, and also under
// another name.
func TestDeliveredOnce(t *testing.T) {
	q := fresh(t)
	three(t, q)
	nextAs(t, q, Batch, holder(self(t)))
	for _, state := range []string{"in process", "completed"} {
		_, e := note("manager", "coder", "a")
		for _, name := range []string{"50_a.handoff", "40_other.handoff"} { // as if they were not sent yet
			ok(t, os.WriteFile(filepath.Join(q.outbox("manager", "new"), name), e.Bytes(), 0o600))
		}
		if got := deliver(t, q, "manager"); got != "coder" {
			t.Errorf("%s: woken: %q", state, got)
		}
		if list, err := list(q.inbox("coder", "new")); err != nil || strings.Join(list, " ") != "60_b.handoff" {
			t.Errorf("%s: new holds %q, %v", state, list, err)
		}
		if state == "in process" {
			_, err := q.Done("coder", Batch, holder(self(t)), nil, noon)
			ok(t, err)
		}
	}
	ok(t, os.RemoveAll(batches(q.inbox("coder", "completed"))[0])) // it lies nowhere any more
	sentAgain := filepath.Join(q.outbox("manager", "new"), "40_other.handoff")
	_, e := note("manager", "coder", "a")
	ok(t, os.WriteFile(sentAgain, e.Bytes(), 0o600))
	deliver(t, q, "manager")
	holds(t, q, "coder", "inbox/new/40_other.handoff", "inbox/new/60_b.handoff")
}

// TestGatheringDied: a batch that a killed process was gathering is not lost, and no item is in two places.
func TestGatheringDied(t *testing.T) {
	q := fresh(t)
	three(t, q)
	dir := q.inbox("coder", "in_process")
	hidden := filepath.Join(dir, ".batch_20260301T115959Z_000001")
	ok(t, os.Mkdir(hidden, 0o700))
	ok(t, os.Mkdir(filepath.Join(dir, ".batch_20260301T115958Z_000001"), 0o700)) // one that did not get so far
	ok(t, os.Rename(filepath.Join(q.inbox("coder", "new"), "50_a.handoff"), filepath.Join(hidden, "50_a.handoff")))
	u, gone := nextAs(t, q, Batch, holder(self(t)))
	if names(u) != "50_a.handoff" || gone != nil {
		t.Fatalf("%s, %q", names(u), gone)
	}
	_, err := q.Done("coder", Batch, holder(self(t)), nil, noon)
	ok(t, err)
	if u, _ := nextAs(t, q, Batch, holder(self(t))); names(u) != "50_c.handoff" {
		t.Error(names(u))
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 2 {
		t.Errorf("%v", entries)
	}
}

// TestStates: what Next and Done refuse, and that they change nothing then.
func TestStates(t *testing.T) {
	single := func(n string) func(*testing.T, Queue) {
		return func(t *testing.T, q Queue) {
			_, e := note("manager", "coder", n)
			ok(t, os.WriteFile(filepath.Join(q.inbox("coder", "in_process"), "50_"+n+".handoff"), e.Bytes(), 0o600))
		}
	}
	batch := func(n string, items ...string) func(*testing.T, Queue) {
		return func(t *testing.T, q Queue) {
			dir := filepath.Join(q.inbox("coder", "in_process"), "batch_"+n)
			ok(t, os.Mkdir(dir, 0o700))
			for _, i := range items {
				_, e := note("manager", "coder", i)
				ok(t, os.WriteFile(filepath.Join(dir, "50_"+i+".handoff"), e.Bytes(), 0o600))
			}
		}
	}
	for name, c := range map[string]struct {
		given      []func(*testing.T, Queue)
		mode       Mode
		next, done string
	}{
		"nothing, task":     {nil, Task, "", "NO_CURRENT_TASK"},
		"nothing, batch":    {nil, Batch, "", "NO_CURRENT_BATCH"},
		"two tasks":         {[]func(*testing.T, Queue){single("a"), single("b")}, Task, ambiguous, ambiguous},
		"two batches":       {[]func(*testing.T, Queue){batch("a", "x"), batch("b", "y")}, Batch, ambiguous, ambiguous},
		"empty batch":       {[]func(*testing.T, Queue){batch("a")}, Batch, ambiguous, ambiguous},
		"a batch as a task": {[]func(*testing.T, Queue){batch("a", "x")}, Task, "TASK_IN_PROCESS_IS_BATCH", "CURRENT_WORK_IS_BATCH"},
		"a task as a batch": {[]func(*testing.T, Queue){single("a")}, Batch, "TASK_IN_PROCESS_IS_SINGLE", "CURRENT_WORK_IS_SINGLE_TASK"},
	} {
		q := fresh(t)
		for _, put := range c.given {
			put(t, q)
		}
		before := tree(t, q, "coder")
		_, _, err := q.Next("coder", c.mode, holder(self(t)), noon)
		token(t, name+", next", err, c.next)
		_, err = q.Done("coder", c.mode, holder(self(t)), nil, noon)
		token(t, name+", done", err, c.done)
		holds(t, q, "coder", before...)
	}
}

func token(t *testing.T, where string, err error, want string) {
	t.Helper()
	var s *StateError
	if got := errors.As(err, &s); got != (want != "") || got && (s.Token != want || s.Empty != strings.HasPrefix(want, "NO_")) {
		t.Errorf("%s: %v, want %q", where, err, want)
	}
}

// TestDoneIsForTheHolder: while it lives, nobody else finishes its work; check is asked first.
func TestDoneIsForTheHolder(t *testing.T) {
	q := fresh(t)
	sent(t, q, "manager", "coder", "a")
	deliver(t, q, "manager")
	init, err := proc.Of(os.Getppid())
	ok(t, err)
	nextAs(t, q, Task, Holder{Owner: init, Run: "r1"})
	if _, err := q.Done("coder", Task, holder(self(t)), nil, noon); !errors.Is(err, ErrBusy) {
		t.Error(err)
	}
	if _, _, err := q.Next("coder", Task, holder(self(t)), noon); !errors.Is(err, ErrBusy) {
		t.Error(err)
	}
	if _, _, err := q.Claim("coder", self(t), noon); !errors.Is(err, ErrBusy) {
		t.Error(err)
	}
	no := errors.New("not yet")
	same := Holder{Owner: self(t), Run: "r1"} // the run goes on in another process
	if _, err := q.Done("coder", Task, same, func(u handoff.Unit) error { return no }, noon); !errors.Is(err, no) {
		t.Error(err)
	}
	holds(t, q, "coder", "inbox/in_process/50_a.handoff", "inbox/in_process/50_a.handoff.claim")
	if u, _ := nextAs(t, q, Task, same); names(u) != "50_a.handoff" {
		t.Error(names(u))
	}
	if c, err := peekClaim(filepath.Join(q.inbox("coder", "in_process"), "50_a.handoff")); err != nil || c.Attempt != 1 {
		t.Errorf("%+v, %v", c, err)
	}
	_, err = q.Done("coder", Task, same, nil, noon)
	ok(t, err)
	holds(t, q, "coder", "inbox/completed/50_a.handoff")
}

// TestSaidDoneAndDied: what was stamped and not moved is not worked on again.
func TestSaidDoneAndDied(t *testing.T) {
	q := fresh(t)
	three(t, q)
	u, _ := nextAs(t, q, Task, holder(dead(t, 1)))
	_, err := q.stamp(u.Items[0].Path, "completed_at", noon)
	ok(t, err)
	u, gone := nextAs(t, q, Task, holder(self(t)))
	if names(u) != "50_c.handoff" || gone != nil {
		t.Errorf("%s, %q", names(u), gone)
	}
	holds(t, q, "coder", "inbox/new/60_b.handoff", "inbox/in_process/50_c.handoff", "inbox/in_process/50_c.handoff.claim", "inbox/completed/50_a.handoff")
}

// TestPoisonAndNext: once into failed/, also out of a batch; a batch of nothing else goes.
func TestPoisonAndNext(t *testing.T) {
	for _, mode := range []Mode{Task, Batch} {
		q := fresh(t)
		bad := poison(t, q.inbox("coder", "new"))
		good := sent(t, q, "manager", "coder", "good")
		deliver(t, q, "manager")
		u, gone := nextAs(t, q, mode, holder(self(t)))
		if names(u) != good || len(gone) != len(bad) {
			t.Fatalf("%s: %s, %d of %d", mode, names(u), len(gone), len(bad))
		}
		if n := errorsIn(t, q.inbox("coder", "failed")); n != len(bad) {
			t.Errorf("%s: %d in failed/", mode, n)
		}
		if u, gone := nextAs(t, q, mode, holder(self(t))); names(u) != good || gone != nil {
			t.Errorf("%s: %s, %q", mode, names(u), gone)
		}
		if mode == Batch {
			ok(t, os.WriteFile(u.Items[0].Path, []byte("{"), 0o600))
			if u, _ := nextAs(t, q, mode, holder(self(t))); u != nil {
				t.Error(names(u))
			}
			if entries, _ := os.ReadDir(q.inbox("coder", "in_process")); len(entries) != 0 {
				t.Errorf("%v", entries)
			}
		}
	}
}

// TestSwarmReadsAsItsHelpers: links, folders and pipes are not there, and nothing but the handoff changes.
func TestSwarmReadsAsItsHelpers(t *testing.T) {
	q := Queue{Swarm: map[string]string{"coder": t.TempDir()}}
	ok(t, q.makeInbox("coder", "new"))
	for _, name := range poison(t, q.inbox("coder", "new")) {
		if !strings.HasPrefix(name, "2") || strings.HasPrefix(name, "28") {
			ok(t, os.Remove(filepath.Join(q.inbox("coder", "new"), name)))
		}
	}
	ok(t, os.WriteFile(filepath.Join(q.inbox("coder", "new"), "60_new\nline.handoff"), nil, 0o600))
	ok(t, os.WriteFile(filepath.Join(q.inbox("coder", "new"), "99_empty.handoff"), nil, 0o600))
	u, gone := nextAs(t, q, Task, holder(self(t)))
	if names(u) != "99_empty.handoff" || u.Items[0].Text != "dequeued_at: 2026-03-01T12:00:00Z\n\n" || strings.Join(gone, "") != "60_new\nline.handoff" {
		t.Fatalf("%s %q, %q", names(u), u.Items[0].Text, gone)
	}
	if entries, err := os.ReadDir(q.inbox("coder", "new")); err != nil || len(entries) != 8 {
		t.Errorf("%v, %v", entries, err)
	}
	if entries, err := os.ReadDir(q.inbox("coder", "failed")); err != nil || len(entries) != 2 {
		t.Errorf("%v, %v", entries, err)
	}
}

// TestMailboxBehindALink: a folder that leads elsewhere is no mailbox.
func TestMailboxBehindALink(t *testing.T) {
	for _, where := range []string{"coder/inbox", "coder/inbox/new"} {
		q := fresh(t)
		sent(t, q, "manager", "coder,reviewer", "a")
		path := filepath.Join(q.Agents, where)
		other := filepath.Join(q.Agents, strings.Replace(where, "coder", "tester", 1))
		ok(t, os.RemoveAll(path))
		ok(t, os.Symlink(other, path))
		if woken, err := q.Deliver("manager", noon); err == nil || woken != nil {
			t.Errorf("%s: woken %q, %v", where, woken, err)
		}
		if _, _, err := q.Next("coder", Task, holder(self(t)), noon); err == nil {
			t.Errorf("%s: taken", where)
		}
		if _, _, err := q.Claim("coder", self(t), noon); err == nil {
			t.Errorf("%s: claimed", where)
		}
		for _, agent := range []string{"tester", "reviewer"} {
			holds(t, q, agent)
		}
	}
	q := fresh(t)
	sent(t, q, "manager", "coder", "a")
	ok(t, os.RemoveAll(q.outbox("coder", "new")))
	ok(t, os.Symlink(q.outbox("manager", "new"), q.outbox("coder", "new")))
	if _, err := q.Deliver("coder", noon); err == nil {
		t.Error("a link was taken for an outbox")
	}
}
