package tick

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/journal"
	"example.com/AutoAgentProject/core/money"
	"example.com/AutoAgentProject/core/plan"
)

func steps(ids ...string) func(*plan.Plan) error {
	return func(p *plan.Plan) error {
		for _, id := range ids {
			p.Steps = append(p.Steps, plan.Step{ID: id, Title: "Make " + id, Profession: "codebuilder", State: plan.Waiting})
		}
		return nil
	}
}

// inboxes are the names of what lies in new/ of each specialist.
func (w *world) inboxes() map[string][]string {
	w.t.Helper()
	in := map[string][]string{}
	for _, a := range []string{"codebuilder-1", "codebuilder-2", "codebuilder-3"} {
		paths, _ := filepath.Glob(filepath.Join(w.Store.Agent(a), "inbox", "new", "*.handoff"))
		for _, p := range paths {
			in[a] = append(in[a], filepath.Base(p))
		}
	}
	return in
}

func TestChange(t *testing.T) {
	w := newWorld(t, money.NanoUSD)
	head := w.repo()
	w.Tick = w.as("manager")
	ok(t, w.Change(t.Context(), head, steps("a", "b"), journal.Event{Kind: journal.PlanAccepted, Text: "one"}, journal.Event{Kind: journal.StepDone, Text: "two"}))
	var order []string
	for _, e := range w.said() {
		order = append(order, e.Kind+" "+e.Step)
		if e.Agent != "manager" || !e.At.Equal(noon) {
			t.Errorf("%+v", e)
		}
	}
	if got := strings.Join(order, ", "); got != "plan_accepted , step_done , step_assigned a, step_assigned b" {
		t.Error(got)
	}
	in := w.inboxes()
	if len(in["codebuilder-1"]) != 1 || len(in["codebuilder-2"]) != 1 || len(in["codebuilder-3"]) != 0 {
		t.Fatal(in)
	}
	p, err := w.Store.Plan()
	ok(t, err)
	text, err := os.ReadFile(filepath.Join(w.Store.Agent("codebuilder-1"), "inbox", "new", in["codebuilder-1"][0]))
	ok(t, err)
	for _, want := range []string{"id: " + p.Step("a").Last().ID + "\n", "task: a\n", "commit: " + head[:10], "from: manager\n", "recipient: codebuilder-1\n"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
	if p.Step("a").Last().Name != in["codebuilder-1"][0] || p.Step("a").Last().Commit != head {
		t.Errorf("%+v", p.Step("a"))
	}
	// A change that fails leaves everything as it was.
	broken := errors.New("broken")
	if err := w.Change(t.Context(), head, func(p *plan.Plan) error { p.Steps = nil; return broken }, journal.Event{Kind: journal.StepDone}); !errors.Is(err, broken) {
		t.Error(err)
	}
	if p, _ := w.Store.Plan(); len(p.Steps) != 2 || len(w.said()) != 4 {
		t.Error("a failed change changed something")
	}
}

// TestDeliverAfterADeath: the plan says that it was handed over, and its tick died before it was sent. Whoever ticks
// next sends it, once.
func TestDeliverAfterADeath(t *testing.T) {
	w := newWorld(t, money.NanoUSD)
	head := w.repo()
	m := w.as("manager")
	ok(t, w.Store.ChangePlan(t.Context(), func(p *plan.Plan) (bool, error) {
		_ = steps("a", "b")(p)
		name, failed := m.Namer(t.Context(), head)
		p.Assign(w.Mission.Roster, name, noon)
		return true, *failed
	}))
	if in := w.inboxes(); len(in) != 0 {
		t.Fatal(in)
	}
	w.at = noon.Add(time.Hour)
	for _, agent := range []string{"codebuilder-3", "manager", "codebuilder-3", "codebuilder-1"} {
		ok(t, w.as(agent).Deliver(t.Context()))
	}
	in := w.inboxes()
	p, _ := w.Store.Plan()
	for id, agent := range map[string]string{"a": "codebuilder-1", "b": "codebuilder-2"} {
		if len(in[agent]) != 1 || in[agent][0] != p.Step(id).Last().Name {
			t.Errorf("%s: %v, want %s", agent, in[agent], p.Step(id).Last().Name)
		}
	}
	// What its agent has finished meanwhile is not sent again, wherever it lies.
	q := w.Store.Queue()
	w.begin()
	held, _, err := q.Claim("codebuilder-1", w.Owner, noon)
	if ok(t, err); held == nil {
		t.Fatal("nothing to claim")
	}
	ok(t, w.Deliver(t.Context()))
	ok(t, q.Complete("codebuilder-1", held.Name, noon))
	ok(t, w.Deliver(t.Context()))
	if in := w.inboxes(); len(in["codebuilder-1"]) != 0 || len(in["codebuilder-2"]) != 1 {
		t.Error("sent again:", in)
	}
}

// TestDeliverHoldsUpNobody: an outbox that is broken is told, and others arrive.
func TestDeliverHoldsUpNobody(t *testing.T) {
	for range 8 { // outboxes come in any order
		w := newWorld(t, money.NanoUSD)
		head := w.repo()
		ok(t, w.Store.ChangePlan(t.Context(), func(p *plan.Plan) (bool, error) {
			for i, from := range []string{"manager", "codebuilder-2"} {
				_ = steps(string(rune('a' + i)))(p)
				name, failed := w.as(from).Namer(t.Context(), head)
				p.Assign(w.Mission.Roster, name, noon)
				ok(t, *failed)
			}
			return true, nil
		}))
		sent := filepath.Join(w.Store.Agent("manager"), "outbox", "sent")
		ok(t, os.Remove(sent))
		ok(t, os.WriteFile(sent, nil, 0o600))
		if err := w.Deliver(t.Context()); err == nil || !strings.Contains(err.Error(), "outbox of manager") {
			t.Error(err)
		}
		if in := w.inboxes(); len(in["codebuilder-2"]) != 1 {
			t.Fatal(in)
		}
	}
}

func TestNamerNeverRepeats(t *testing.T) {
	w := newWorld(t, money.NanoUSD)
	name, failed := w.Namer(t.Context(), "c")
	a, b := name(plan.Step{ID: "a"}, "codebuilder-2"), name(plan.Step{ID: "a"}, "codebuilder-2")
	if a.Name == b.Name || a.ID == b.ID || *failed != nil || a.From != "codebuilder-1" {
		t.Error(a, b, *failed)
	}
	ok(t, os.WriteFile(filepath.Join(w.Store.Agent("codebuilder-1"), "sequence"), []byte("x"), 0o600))
	if name(plan.Step{ID: "a"}, "codebuilder-2"); *failed == nil {
		t.Error("a damaged sequence is no error")
	}
	if err := w.Change(t.Context(), "c", steps("a")); err == nil {
		t.Error("a plan was written without its envelopes")
	}
	if p, _ := w.Store.Plan(); len(p.Steps) != 0 {
		t.Error("it is on the disk")
	}
}

func TestCheck(t *testing.T) {
	need(t, "bwrap")
	w := newWorld(t, money.NanoUSD)
	dir := w.Store.Clone("codebuilder-1")
	ok(t, os.MkdirAll(dir, 0o700))
	secret := filepath.Join(w.Store.Dir(), "mission.json")
	for _, c := range []struct {
		command, output string
		ok              bool
	}{
		{"echo hello; touch made", "hello", true},
		{"echo no >&2; exit 3", "no\n(exit status 3)", false},
		{"cat " + secret, "(exit status 1)", false},
		{"test \"$CI\" = true && test -z \"$ANTHROPIC_API_KEY\" && touch $HOME/x $TMPDIR/x", "", true},
		{"kill -9 $$", "", false},
	} {
		is, output, err := w.Check(t.Context(), dir, c.command)
		if is != c.ok || err != nil || !strings.Contains(output, c.output) {
			t.Errorf("%s: %v, %q, %v", c.command, is, output, err)
		}
	}
	if !exists(filepath.Join(dir, "made")) {
		t.Error("it could not write its folder")
	}
	w.Limits.Verify = 50 * time.Millisecond
	if is, output, err := w.Check(t.Context(), dir, "echo begun; sleep 600"); is || err != nil || !strings.Contains(output, "ended after 50ms") {
		t.Error(is, output, err)
	}
	w.Limits.Verify = time.Minute
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(ErrStopped)
	if _, _, err := w.Check(ctx, dir, "true"); !errors.Is(err, ErrStopped) {
		t.Error(err)
	}
	if left, _ := os.ReadDir(w.Store.Cells("codebuilder-1")); len(left) > 0 {
		t.Error("scratch folders were left:", left)
	}
}

func TestCheckout(t *testing.T) {
	w := newWorld(t, money.NanoUSD)
	head := w.repo()
	dir, remove, err := w.Checkout(t.Context(), head)
	ok(t, err)
	if !exists(dir) {
		t.Error("there is no folder")
	}
	remove()
	if _, _, err := w.Checkout(t.Context(), strings.Repeat("0", 40)); err == nil {
		t.Error("a commit that is not there")
	}
	if left, _ := os.ReadDir(w.Store.Cells("codebuilder-1")); len(left) > 0 {
		t.Error("scratch folders were left:", left)
	}
}
