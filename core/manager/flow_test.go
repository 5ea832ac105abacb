package manager

import (
	"os"
	"strings"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/conductor"
	"example.com/AutoAgentProject/core/flow"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/plan"
	"example.com/AutoAgentProject/core/profession"
	"example.com/AutoAgentProject/core/tick"
)

// flowWorld is a mission that follows a shipped flow.
func flowWorld(t *testing.T, id, mode, verify string) *world {
	t.Helper()
	w := newWorld(t, "goal", verify)
	dir := os.DirFS("../../prompts")
	profs, err := profession.Load(dir)
	ok(t, err)
	flows, err := flow.Load(profs, profession.Layer{Name: profession.BuiltIn, Files: dir})
	ok(t, err)
	f, _ := flows.Get(id)
	w.Flow, w.Professions, w.Mission.Flow, w.Mission.Mode = &f, profs, id, mode
	w.Mission.Roster = []mission.Agent{{Name: "manager", Role: mission.Manager, Profession: "manager"}}
	for _, p := range f.Professions() {
		a := mission.Agent{Name: p + "-1", Role: mission.Specialist, Profession: p}
		w.Mission.Roster = append(w.Mission.Roster, a)
		ok(t, w.Store.Queue().Make(a.Name))
	}
	return w
}

// ends makes something become of the visit that holds the baton, as its agent's tick would.
func (w *world) ends(state plan.State, with func(*plan.Step)) {
	w.t.Helper()
	ok(w.t, w.Store.ChangePlan(w.t.Context(), func(p *plan.Plan) (bool, error) {
		s := p.Step(p.Baton.VisitID())
		if s == nil || s.State != plan.Assigned {
			w.t.Fatalf("nobody holds the baton: %+v", p.Baton)
		}
		s.State = state
		if with != nil {
			with(s)
		}
		return true, nil
	}))
}

// at is where the baton is after the manager has done what is due.
func (w *world) at() string {
	w.t.Helper()
	for range 10 {
		out, err := w.Once(w.t.Context())
		ok(w.t, err)
		if out != tick.Moved {
			break
		}
	}
	b := w.plan().Baton
	if b.Status == conductor.Running {
		return b.VisitID()
	}
	return string(b.Status)
}

func (w *world) is(want string) {
	w.t.Helper()
	if got := w.at(); got != want {
		w.t.Fatalf("the baton is at %s, want %s", got, want)
	}
}

func accept(s *plan.Step) { s.Visit.Answer, s.Visit.Said = "accept", "fine" }

// TestConductWithoutAModel: from the first step to the end, and the manager asks no model.
func TestConductWithoutAModel(t *testing.T) {
	w := flowWorld(t, "fix", "gsd", "")
	w.is("reproduce-1")
	p := w.plan()
	if s := p.Steps[0]; s.Agent != "tester-1" || w.Store.Queue().Where("tester-1", s.Last().Name) != "new" {
		t.Fatalf("%+v", p.Steps)
	}
	w.is("reproduce-1") // nothing changed, nothing happens
	w.ends(plan.Done, nil)
	w.is("mend-2")
	if s := w.plan().Step("mend-2"); s.Agent != "coder-1" || len(s.DependsOn) != 1 || s.DependsOn[0] != "reproduce-1" {
		t.Errorf("%+v", s)
	}
	w.ends(plan.Failed, func(s *plan.Step) { s.Reasons = []string{"red"}; s.Commit = w.head() })
	w.is("mend-3")
	if v := w.plan().Step("mend-3").Visit; v.Note != "red" || v.From != w.head() || v.Raised != 1 {
		t.Errorf("%+v", v)
	}
	w.ends(plan.Done, nil)
	w.is("review-4")
	w.ends(plan.Done, accept)
	w.is("complete")
	if w.stop().Cause != mission.Completed || len(w.fake.jobs) != 0 {
		t.Errorf("%+v, %d runs", w.stop(), len(w.fake.jobs))
	}
}

func (w *world) head() string {
	w.t.Helper()
	h, err := w.Repo().Resolve(w.t.Context(), "refs/heads/main")
	ok(w.t, err)
	return h
}

// TestGateWaits: in mode check a person looks; days without an answer are none, cost nothing, and are no yes.
func TestGateWaits(t *testing.T) {
	w := flowWorld(t, "fix", "check", "")
	w.is("reproduce-1")
	w.ends(plan.Done, nil)
	w.is("mend-2")
	w.ends(plan.Done, func(s *plan.Step) { s.Summary = "mended it" })
	w.is("asking")
	a := w.approval(1)
	if a.Kind != mission.Gate || a.Name != "code/mend" || !strings.Contains(a.Text, "mended it") {
		t.Errorf("%+v", a)
	}
	pauses, err := w.Store.Pauses(w.Now())
	ok(t, err)
	if len(pauses) != 1 || pauses[0].Cause != tick.WaitCause {
		t.Errorf("the mission's time runs: %+v", pauses)
	}
	for range 3 {
		w.once(tick.Later)
	}
	now := noon
	w.Tick.Now = func() time.Time { return now }
	for days := range 3 { // nobody is there
		now = now.Add(mission.ApprovalWait + time.Minute)
		w.is("asking")
		if n := w.openApprovals(); n != 1 {
			t.Fatalf("day %d: %d approvals are open", days, n)
		}
	}
	all, err := w.Store.Approvals()
	ok(t, err)
	w.decide(all[len(all)-1].N, mission.Rejected, "smaller, please")
	w.is("mend-3")
	if v := w.plan().Step("mend-3").Visit; !strings.Contains(v.Note, "smaller, please") {
		t.Errorf("%+v", v)
	}
	w.ends(plan.Done, nil)
	w.is("asking")
	all, err = w.Store.Approvals()
	ok(t, err)
	w.decide(all[len(all)-1].N, mission.Approved, "")
	w.is("review-4")
}

func (w *world) openApprovals() (n int) {
	w.t.Helper()
	all, err := w.Store.Approvals()
	ok(w.t, err)
	for _, a := range all {
		if a.Open(w.Now()) {
			n++
		}
	}
	return n
}

// TestExhaustedAsks, and a no ends the mission.
func TestExhaustedAsks(t *testing.T) {
	w := flowWorld(t, "fix", "gsd", "")
	w.is("reproduce-1")
	for n := range 3 {
		w.ends(plan.Failed, func(s *plan.Step) { s.Reasons = []string{"it does not fail"} })
		if at := w.at(); (at == "asking") != (n == 2) {
			t.Fatalf("after %d failures: %s", n+1, at)
		}
	}
	if a := w.approval(1); a.Kind != mission.Fault || !strings.Contains(a.Text, "it does not fail") {
		t.Errorf("%+v", a)
	}
	w.decide(1, mission.Rejected, "forget it")
	w.at()
	if s := w.stop(); s.Cause != mission.FailedEnd || !strings.Contains(s.Reason, "forget it") {
		t.Errorf("%+v", s)
	}
}

// TestUndone: a flow whose result does not pass the mission's own command asks a person instead of ending well.
func TestUndone(t *testing.T) {
	w := flowWorld(t, "fix", "gsd", "test -f never")
	w.is("reproduce-1")
	w.ends(plan.Done, nil)
	w.is("mend-2")
	w.ends(plan.Done, nil)
	w.is("review-3")
	w.ends(plan.Done, accept)
	w.is("asking")
	if a := w.approval(1); a.Kind != mission.Fault || !strings.Contains(a.Text, "verify failed") || w.stop().Cause != "" {
		t.Errorf("%+v", a)
	}
	w.decide(1, mission.Approved, "")
	w.is("mend-4")
}

// TestBlockedGoesToTheOwner: what a coder cannot build as it is specified goes to whoever owns the design.
func TestBlockedGoesToTheOwner(t *testing.T) {
	w := flowWorld(t, "feature", "gsd", "")
	w.is("intake-1")
	w.ends(plan.Done, func(s *plan.Step) { s.Visit.Answer = "DIRECT" })
	w.is("code-2")
	w.ends(plan.Failed, func(s *plan.Step) { s.Reasons, s.Visit.Final = []string{"BLOCKED: D3 contradicts D4"}, true })
	w.is("design-3")
	if s := w.plan().Step("design-3"); s.Agent != "architect-1" || !strings.Contains(s.Visit.Note, "D3 contradicts D4") {
		t.Errorf("%+v", s)
	}
}

// TestQuestionEndsIt: an answer is all there was to do; the mission's command is not asked about what nobody changed.
func TestQuestionEndsIt(t *testing.T) {
	w := flowWorld(t, "feature", "gsd", "test -f never")
	w.is("intake-1")
	w.ends(plan.Done, func(s *plan.Step) { s.Visit.Answer, s.Visit.Said = "QUESTION", "Because." })
	w.is("stopped")
	if s := w.stop(); s.Cause != mission.Completed || s.Reason != "Because." {
		t.Errorf("%+v", w.stop())
	}
}
