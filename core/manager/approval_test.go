package manager

import (
	"strings"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/plan"
	"example.com/AutoAgentProject/core/runner"
	"example.com/AutoAgentProject/core/store"
	"example.com/AutoAgentProject/core/tick"
)

// leaving is a plan that drops what the first one promised.
var leaving = strings.NewReplacer(`"a"`, `"b"`, `"x"`, `"something else"`).Replace(good)

// leavingWorld brings a mission to a manager whose model wants to leave the goal.
func leavingWorld(t *testing.T) (*world, store.Asked) {
	t.Helper()
	w := newWorld(t, "g", "")
	w.once(tick.Moved)
	w.set(plan.Failed)
	w.fake.answers, w.fake.given = []string{leaving}, 0
	w.once(tick.Later)
	all, err := w.Store.Approvals()
	ok(t, err)
	if len(all) != 1 || all[0].Kind != mission.Deviation || !strings.Contains(all[0].Text, `"x" of the first plan is dropped`) || all[0].By != "manager" {
		t.Fatalf("%+v", all)
	}
	if len(w.fake.asked) != 1 || !strings.Contains(w.fake.asked[0], "answer with the same plan again") {
		t.Errorf("the model was not asked to keep to the goal: %q", w.fake.asked)
	}
	return w, all[0]
}

// waits checks that ticks change nothing, ask no model and count no time.
func (w *world) waits() {
	w.t.Helper()
	jobs, round := len(w.fake.jobs), w.plan().Round
	for range 3 {
		w.once(tick.Later)
	}
	pauses, err := w.Store.Pauses(w.Now())
	ok(w.t, err)
	if len(w.fake.jobs) != jobs || w.plan().Round != round || len(pauses) != 1 || pauses[0].Cause != tick.WaitCause {
		w.t.Errorf("%d runs, round %d, pauses %v", len(w.fake.jobs)-jobs, w.plan().Round, pauses)
	}
}

func (w *world) decide(n int, v mission.Verdict, note string) {
	w.t.Helper()
	_, mine, err := w.Store.Decide(n, mission.Decision{Verdict: v, Note: note, Key: "test"}, w.Now())
	if ok(w.t, err); !mine {
		w.t.Fatal("not mine")
	}
}

// TestLeavingTheGoalApproved: nothing happens until a person says yes; then the plan holds and is the new measure.
func TestLeavingTheGoalApproved(t *testing.T) {
	w, asked := leavingWorld(t)
	w.waits()
	w.decide(asked.N, mission.Approved, "")
	w.once(tick.Moved)
	p := w.plan()
	if p.Round != 2 || p.Step("b") == nil || len(p.Acceptance) != 1 || p.Acceptance[0] != "something else" || len(w.fake.jobs) != 2 {
		t.Errorf("%+v, %d runs", p, len(w.fake.jobs))
	}
}

// TestLeavingTheGoalRejected: the note reaches the model, which is asked again; the same plan is not asked for twice.
func TestLeavingTheGoalRejected(t *testing.T) {
	w, asked := leavingWorld(t)
	w.decide(asked.N, mission.Rejected, "keep the page, drop nothing")
	w.once(tick.Moved)
	if w.plan().Round != 1 {
		t.Fatal("the plan holds")
	}
	w.once(tick.Moved) // the same again: refused without asking
	if p := w.fake.jobs[len(w.fake.jobs)-1].Prompt; !strings.Contains(p, "keep the page, drop nothing") {
		t.Errorf("the model does not learn the note: %s", p)
	}
	if all, err := w.Store.Approvals(); err != nil || len(all) != 1 {
		t.Errorf("%v, %v", all, err)
	}
	w.fake.answers, w.fake.given = []string{strings.Replace(good, `"a"`, `"c"`, 1)}, 0
	w.once(tick.Moved)
	if p := w.plan(); p.Round != 2 || p.Step("c") == nil {
		t.Errorf("%+v", p)
	}
}

// TestSilenceIsNoYes: after the time for an answer the plan is refused.
func TestSilenceIsNoYes(t *testing.T) {
	w, asked := leavingWorld(t)
	w.Tick.Now = func() time.Time { return noon.Add(mission.ApprovalWait + time.Minute) }
	w.once(tick.Moved)
	if w.plan().Round != 1 {
		t.Fatal("silence was a yes")
	}
	a, err := w.Store.Approval(asked.N)
	ok(t, err)
	if a.Decision == nil || a.Decision.Verdict != mission.Expired {
		t.Errorf("%+v", a.Decision)
	}
	if _, mine, err := w.Store.Decide(asked.N, mission.Decision{Verdict: mission.Approved, Key: "late"}, w.Now()); mine || err != nil {
		t.Error(mine, err)
	}
	w.once(tick.Moved)
	if w.plan().Round != 1 {
		t.Error("a late yes counted")
	}
}

// TestAnotherPlanThanApproved: a yes is for exactly the plan that was shown.
func TestAnotherPlanThanApproved(t *testing.T) {
	w, asked := leavingWorld(t)
	w.decide(asked.N, mission.Approved, "")
	h, err := w.Hold("plan-2")
	ok(t, err)
	res, found, err := w.Result(h.Run)
	if err != nil || !found {
		t.Fatal(found, err)
	}
	other := strings.Replace(string(res.Structured), "Make a", "Make b", 1)
	prop, _ := w.read(runnerResult(other), w.plan(), false)
	if _, out, err := w.mayLeave(t.Context(), w.plan(), prop, plan.Deviations(prop, w.plan())); out != tick.Later || err != nil {
		t.Error(out, err)
	}
	if all, _ := w.Store.Approvals(); len(all) != 2 {
		t.Errorf("%d approvals", len(all))
	}
}

// TestNotes: what the person tells is in the next prompt.
func TestNotes(t *testing.T) {
	w := newWorld(t, "g", "")
	for range 2 {
		_, err := w.Store.AddNote(store.Note{Key: "k1", At: noon, By: "person", Text: "please in blue\n# not a heading"})
		ok(t, err)
	}
	w.once(tick.Moved)
	if p := w.fake.jobs[0].Prompt; strings.Count(p, "please in blue\n  # not a heading") != 1 {
		t.Errorf("%s", p)
	}
}

func runnerResult(structured string) runner.Result {
	return runner.Result{Verdict: runner.Done, Structured: []byte(structured)}
}
