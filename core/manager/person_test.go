package manager

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/ledger"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/money"
	"example.com/AutoAgentProject/core/plan"
	"example.com/AutoAgentProject/core/runner"
	"example.com/AutoAgentProject/core/store"
	"example.com/AutoAgentProject/core/tick"
)

func (w *world) approval(n int) store.Asked {
	w.t.Helper()
	a, err := w.Store.Approval(n)
	ok(w.t, err)
	return a
}

func (w *world) tells(text string) {
	w.t.Helper()
	notes, err := w.Store.Notes()
	ok(w.t, err)
	_, err = w.Store.AddNote(store.Note{Key: fmt.Sprint("k", len(notes)), At: noon, By: "person", Text: text})
	ok(w.t, err)
}

func (w *world) set1(id string, s plan.State) {
	w.t.Helper()
	ok(w.t, w.Store.ChangePlan(w.t.Context(), func(p *plan.Plan) (bool, error) { p.Step(id).State = s; return true, nil }))
}

const three = `{"steps":[{"id":"a","title":"Make a","brief":"B","profession":"codebuilder","depends_on":[],"verify":"true","acceptance":["x"]},` +
	`{"id":"b","title":"Make b","brief":"B","profession":"codebuilder","depends_on":["a"],"verify":"true","acceptance":["y"]},` +
	`{"id":"c","title":"Make c","brief":"B","profession":"codebuilder","depends_on":["b"],"verify":"true","acceptance":["z"]}]}`

// usedUp brings a mission to the end of its tries: the first plan's step b failed in the last round.
func usedUpWorld(t *testing.T) *world {
	w := newWorld(t, "g", "")
	w.Mission.AskErrors = true
	w.fake.answers = []string{three}
	w.once(tick.Moved)
	ok(t, w.Store.ChangePlan(t.Context(), func(p *plan.Plan) (bool, error) {
		p.Round = plan.MaxRounds
		p.Step("a").State, p.Step("b").State, p.Step("b").Reasons = plan.Done, plan.Failed, []string{"no compiler"}
		return true, nil
	}))
	w.once(tick.Later)
	if a := w.approval(1); a.Kind != mission.Fault || !a.MaySkip || !strings.Contains(a.Text, "no compiler") || w.stop().Cause != "" {
		t.Fatalf("%+v, %+v", a, w.stop())
	}
	w.waits()
	return w
}

// TestUsedUpGoesOn: a yes is one more plan, with the note in its prompt; the next failure is asked anew.
func TestUsedUpGoesOn(t *testing.T) {
	w := usedUpWorld(t)
	w.decide(1, mission.Approved, "use the other compiler")
	w.once(tick.Moved)
	w.fake.answers, w.fake.given = []string{strings.NewReplacer(`"x"`, `"y"`, `"a"`, `"d"`).Replace(good)}, 0
	w.fake.answers[0] = strings.Replace(w.fake.answers[0], `["y"]`, `["y","z"]`, 1)
	w.once(tick.Moved)
	if p := w.plan(); p.Round != plan.MaxRounds+1 || p.Granted != 1 || p.Step("d") == nil || !strings.Contains(w.fake.jobs[1].Prompt, "use the other compiler") {
		t.Fatalf("%+v\n%s", p, w.fake.jobs[1].Prompt)
	}
	w.set1("d", plan.Failed)
	w.once(tick.Later)
	if a := w.approval(2); a.Decision != nil || len(w.fake.jobs) != 2 {
		t.Errorf("one yes was taken for two: %+v, %d runs", a, len(w.fake.jobs))
	}
}

// TestUsedUpSkips: what failed is left out, and what builds on it goes on; no model is asked.
func TestUsedUpSkips(t *testing.T) {
	w := usedUpWorld(t)
	w.decide(1, mission.Skipped, "")
	w.once(tick.Moved)
	p := w.plan()
	if p.Step("b") != nil || len(p.Skipped) != 1 || p.Step("c").State != plan.Assigned || len(w.fake.jobs) != 1 || len(p.Acceptance) != 2 {
		t.Errorf("%+v, %d runs", p, len(w.fake.jobs))
	}
}

// TestUsedUpEnds: a no ends the mission by a person's word; silence ends it as failed.
func TestUsedUpEnds(t *testing.T) {
	w := usedUpWorld(t)
	w.decide(1, mission.Rejected, "not worth it")
	w.once(tick.Over)
	if s := w.stop(); s.Cause != mission.Aborted || !strings.Contains(s.Reason, "a person ended it: not worth it") {
		t.Errorf("%+v", s)
	}
	w = usedUpWorld(t)
	w.Tick.Now = func() time.Time { return noon.Add(mission.ApprovalWait + time.Minute) }
	w.once(tick.Over)
	if s := w.stop(); s.Cause != mission.FailedEnd || !strings.Contains(s.Reason, "nobody answered") {
		t.Errorf("%+v", s)
	}
}

// TestNoUsablePlanIsAsked: runs that gave no plan are an error as well; a yes gives as many again.
func TestNoUsablePlanIsAsked(t *testing.T) {
	w := newWorld(t, "g", "")
	w.Mission.AskErrors = true
	w.fake.answers = []string{bad}
	for n := 1; n < MaxRuns; n++ {
		w.once(tick.Moved)
	}
	w.once(tick.Later)
	w.waits()
	if a := w.approval(1); a.MaySkip || !strings.Contains(a.Text, "pilot") {
		t.Errorf("%+v", a)
	}
	w.decide(1, mission.Approved, "")
	w.once(tick.Moved)
	w.fake.answers, w.fake.given = []string{good}, 0
	w.once(tick.Moved)
	if w.plan().Round != 1 || len(w.fake.jobs) != MaxRuns+1 {
		t.Errorf("%+v, %d runs", w.plan(), len(w.fake.jobs))
	}
}

// TestBlockedIsAsked: where one can be asked, a person says how it goes on with what is blocked. Each try is a question of its own,
// and silence leaves it to stand, not to fail.
func TestBlockedIsAsked(t *testing.T) {
	block := func(w *world) {
		w.set1("a", plan.Working)
		ok(t, w.Store.ChangePlan(t.Context(), func(p *plan.Plan) (bool, error) { p.Block("a", "BLOCKED: no flour", noon); return true, nil }))
	}
	for verdict, then := range map[mission.Verdict]func(w *world){
		mission.Approved: func(w *world) {
			w.once(tick.Moved)
			if a := w.plan().Step("a"); a.State != plan.Assigned {
				t.Errorf("it is not tried again: %+v", a)
			}
			block(w)
			w.once(tick.Later)
			if a := w.approval(2); a.Decision != nil {
				t.Errorf("the old answer counts again: %+v", a)
			}
		},
		mission.Skipped: func(w *world) {
			w.once(tick.Moved)
			if p := w.plan(); p.Step("a") != nil || len(p.Skipped) != 1 || p.Step("b").State != plan.Assigned {
				t.Errorf("%+v", p)
			}
		},
		mission.Expired: func(w *world) {
			w.once(tick.Idle)
			if pauses, _ := w.Store.Pauses(noon); !slices.ContainsFunc(pauses, func(c mission.Pause) bool { return c.Cause == tick.BlockedCause }) {
				t.Errorf("it does not stand: %+v", pauses)
			}
		},
		mission.Rejected: func(w *world) {
			w.once(tick.Over)
			if s := w.stop(); s.Cause != mission.Aborted {
				t.Errorf("%+v", s)
			}
		},
	} {
		w := newWorld(t, "g", "")
		w.Mission.AskErrors = true
		w.fake.answers = []string{three}
		w.once(tick.Moved)
		block(w)
		w.once(tick.Later)
		w.waits()
		if a := w.approval(1); a.Kind != mission.Fault || !a.MaySkip || !strings.Contains(a.Text, "no flour") {
			t.Errorf("%+v", a)
		}
		_, _, err := w.Store.Decide(1, mission.Decision{Verdict: verdict, Note: "because", Key: "k"}, noon)
		ok(t, err)
		then(w)
	}
}

// TestAnswersGoBackToTheirAgents: the step goes to who asked, with the answer; others went on meanwhile, and the mission's time
// stood still only while nobody could.
func TestAnswersGoBackToTheirAgents(t *testing.T) {
	for said, d := range map[string]mission.Decision{
		"yes: blue":              {Verdict: mission.Approved, Note: "blue", Key: "k"},
		"no":                     {Verdict: mission.Rejected, Key: "k"},
		"there is none, nobody ": {Verdict: mission.Expired, Key: "k"},
	} {
		w := newWorld(t, "g", "")
		w.fake.answers = []string{strings.Replace(three, `"depends_on":["a"]`, `"depends_on":[]`, 1)}
		w.once(tick.Moved) // a and b are given out, c waits for b
		w.set1("a", plan.Working)
		asker := w.plan().Step("a").Agent
		ok(t, w.Store.ChangePlan(t.Context(), func(p *plan.Plan) (bool, error) { return p.Ask("a", "Blue?", "", noon), nil }))
		w.once(tick.Idle)
		if a := w.approval(1); a.Kind != mission.Asking || a.By != asker || !strings.Contains(a.Text, "Blue?") {
			t.Fatalf("%+v", a)
		}
		if pauses, _ := w.Store.Pauses(noon); len(pauses) > 0 {
			t.Errorf("others could go on: %v", pauses)
		}
		w.set1("b", plan.Done)
		w.once(tick.Moved) // c follows
		w.set1("c", plan.Done)
		w.once(tick.Idle)
		w.once(tick.Idle)
		if pauses, _ := w.Store.Pauses(noon); len(pauses) != 1 || pauses[0].Cause != tick.WaitCause {
			t.Errorf("its time goes on: %v", pauses)
		}
		_, _, err := w.Store.Decide(1, d, noon)
		ok(t, err)
		w.once(tick.Idle)
		a := w.plan().Step("a")
		if a.State != plan.Assigned || a.Agent != asker || a.Questions != 1 || !strings.Contains(a.Reasons[0], "Blue?") || !strings.Contains(a.Reasons[0], "The answer: "+said) {
			t.Errorf("%+v", a)
		}
		if pauses, _ := w.Store.Pauses(noon); len(pauses) > 0 || len(w.fake.jobs) != 1 {
			t.Errorf("%v, %d runs", pauses, len(w.fake.jobs))
		}
	}
}

// TestNoteIsHeardSoon: what a person says leads to one look at the plan while others work, and to none when nothing was said.
func TestNoteIsHeardSoon(t *testing.T) {
	w := newWorld(t, "g", "")
	w.fake.answers = []string{three}
	w.once(tick.Moved)
	w.set1("a", plan.Working)
	for range 3 {
		w.once(tick.Idle)
	}
	w.tells("use blue")
	w.fake.answers, w.fake.given = []string{`{"steps":[]}`}, 0
	w.once(tick.Moved)
	for range 3 {
		w.once(tick.Idle)
	}
	p, j := w.plan(), w.fake.jobs
	if len(j) != 2 || !strings.Contains(j[1].Prompt, "use blue") || !strings.Contains(j[1].Prompt, "told you something") || p.Round != 1 || p.Heard != 1 || p.Hearing != 0 || p.Step("b").State != plan.Waiting {
		t.Fatalf("%d runs, %+v", len(j), p)
	}
	// Another one changes what nobody has begun; what ends meanwhile is given on after that.
	w.tells("no c, but d")
	w.fake.answers, w.fake.given = []string{strings.NewReplacer(`"a"`, `"d"`, `["x"]`, `["y","z"]`).Replace(good)}, 0
	w.once(tick.Moved)
	p = w.plan()
	if p.Round != 2 || p.Step("a").State != plan.Working || p.Step("b") != nil || p.Step("d").State != plan.Assigned || p.Granted != 1 {
		t.Errorf("%+v", p)
	}
	// A plan that cannot be used takes nothing away.
	w.tells("fly")
	w.fake.answers, w.fake.given = []string{bad}, 0
	for range MaxRuns {
		w.once(tick.Moved)
	}
	w.once(tick.Idle)
	if p := w.plan(); p.Round != 2 || p.Heard != 3 || p.Hearing != 0 || w.stop().Cause != "" {
		t.Errorf("%+v %+v", p, w.stop())
	}
}

// TestDamagedNote: it holds up no work that is under way, and no model is asked without it.
func TestDamagedNote(t *testing.T) {
	w := newWorld(t, "g", "")
	w.once(tick.Moved)
	w.set(plan.Working)
	w.tells("x")
	ok(t, os.WriteFile(filepath.Join(w.Store.Dir(), "notes", "k0.json"), []byte("\x00\x00"), 0o600))
	w.once(tick.Idle)
	w.set(plan.Failed)
	if out, err := w.Once(t.Context()); err == nil || len(w.fake.jobs) != 1 {
		t.Errorf("%v, %v, %d runs", out, err, len(w.fake.jobs))
	}
}

// TestNoteHoldsBackWhatMayBeReplaced: while a plan is being made with a note, a finished step's followers are not given out, and
// what fails is not lost.
func TestNoteHoldsBackWhatMayBeReplaced(t *testing.T) {
	w := newWorld(t, "g", "")
	w.fake.answers = []string{three}
	w.once(tick.Moved)
	ok(t, w.Store.ChangePlan(t.Context(), func(p *plan.Plan) (bool, error) { p.Hear(1); return true, nil }))
	w.set1("a", plan.Working)
	ok(t, w.Change(t.Context(), w.plan().Step("a").Last().Commit, func(p *plan.Plan) error { p.Finish("a", "c", "m", "", noon); return nil }))
	if p := w.plan(); p.Step("b").State != plan.Waiting {
		t.Errorf("%+v", p)
	}
	w.tells("x")
	w.fake.answers, w.fake.given = []string{`{"steps":[]}`}, 0
	w.once(tick.Moved)
	if p := w.plan(); p.Step("b").State != plan.Assigned {
		t.Errorf("%+v", p)
	}
	p := &plan.Plan{Round: 1, Hearing: 1, Steps: []plan.Step{{ID: "a", State: plan.Failed}, {ID: "b", State: plan.Waiting}}}
	p.Listen(plan.Proposal{Steps: []plan.ProposedStep{{ID: "d"}}}, noon)
	if p.Step("a") == nil || p.Step("b") != nil || p.Step("d") == nil {
		t.Errorf("%+v", p)
	}
}

// TestGate: a gate of a flow is for exactly its content. Another content asks again, and the older question is closed.
func TestGate(t *testing.T) {
	w := newWorld(t, "g", "")
	gate := func(content string) *mission.Decision {
		t.Helper()
		d, err := w.AskPerson(t.Context(), tick.Question{Kind: mission.Gate, Name: "review/page", Subject: []byte(content), Title: "review of page", Text: "Look at it.", Diff: "+" + content})
		ok(t, err)
		return d
	}
	for range 3 {
		if d := gate("one"); d != nil {
			t.Fatal(d)
		}
	}
	if gate("two") != nil {
		t.Fatal("a gate opened by itself")
	}
	if all, _ := w.Store.Approvals(); len(all) != 2 || all[0].Decision.Verdict != mission.Replaced || all[1].Decision != nil || all[1].Diff != "+two" {
		t.Errorf("%+v", all)
	}
	if _, mine, err := w.Store.Decide(1, mission.Decision{Verdict: mission.Approved, Key: "late"}, noon); mine || err != nil {
		t.Error("a replaced question was answered", err)
	}
	w.decide(2, mission.Approved, "fine")
	if d := gate("two"); d == nil || d.Verdict != mission.Approved || d.Note != "fine" {
		t.Errorf("%+v", d)
	}
	if gate("three") != nil || gate("one") != nil {
		t.Error("a yes was taken for another content")
	}
	if pauses, _ := w.Store.Pauses(noon); len(pauses) > 0 {
		t.Errorf("others are held up: %v", pauses)
	}
}

// TestSummarise: one run of the cheapest model for a message that wants it; none where money is short, a plan is in hand, or nothing
// is wanted, and none twice.
func TestSummarise(t *testing.T) {
	begin := func(key string) *world {
		w := newWorld(t, "g", "")
		w.Mission.Summaries, w.Mission.CheapModel = true, "model-cheap"
		w.once(tick.Moved)
		w.set(plan.Working)
		if key != "" {
			ok(t, w.Store.SetSummary(store.Summary{Key: key, Text: "1 of 3 steps done", At: noon}))
		}
		w.fake.answers, w.fake.given = []string{`{"sentence":"The page \u001b[31mstands.\nReally."}`}, 0
		return w
	}
	w := begin("7")
	for range 3 {
		w.once(tick.Idle)
	}
	s, err := w.Store.Summary()
	ok(t, err)
	if !s.Done || s.Sentence != "The page stands. Really." || len(w.fake.jobs) != 2 {
		t.Fatalf("%+v, %d runs", s, len(w.fake.jobs))
	}
	if j := w.fake.jobs[1]; j.Model != "model-cheap" || len(j.Tools) != 0 || !strings.Contains(j.Prompt, "1 of 3 steps done") {
		t.Errorf("%+v", j)
	}
	for name, change := range map[string]func(w *world){
		"nothing is wanted": func(w *world) {},
		"money is short": func(w *world) {
			ok(t, w.Store.SetSummary(store.Summary{Key: "7", At: noon}))
			ok(t, w.Store.Ledger().Spend(t.Context(), "x", ledger.Spent{Nano: 70 * money.USD, Source: "stream", Agent: "manager"}, noon))
		},
		"a plan is in hand": func(w *world) {
			ok(t, w.Store.SetSummary(store.Summary{Key: "7", At: noon}))
			ok(t, w.Keep(tick.Hold{Version: mission.Version, Key: "plan-2"}))
		},
		"it is late": func(w *world) { ok(t, w.Store.SetSummary(store.Summary{Key: "7", At: noon.Add(-time.Hour)})) },
		"a tick died": func(w *world) {
			ok(t, w.Store.SetSummary(store.Summary{Key: "7", At: noon}))
			ok(t, w.Keep(tick.Hold{Version: mission.Version, Key: "summary-7", Run: "gone", Runs: 1}))
		},
		"nobody wishes": func(w *world) { w.Mission.Summaries = false },
	} {
		w := begin("")
		change(w)
		w.once(tick.Idle)
		if s, _ := w.Store.Summary(); len(w.fake.jobs) != 1 || s.Key != "" && (!s.Done || s.Sentence != "") {
			t.Errorf("%s: %d runs, %+v", name, len(w.fake.jobs), s)
		}
	}
	w = begin("8")
	w.fake.answers, w.fake.verdict = []string{`{"sentence":"x"}`}, runner.Failed
	w.once(tick.Idle)
	if s, _ := w.Store.Summary(); !s.Done || s.Sentence != "" || w.stop().Cause != "" {
		t.Errorf("%+v, %+v", s, w.stop())
	}
}
