package specialist

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/handoff"
	"example.com/AutoAgentProject/core/journal"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/money"
	"example.com/AutoAgentProject/core/plan"
	"example.com/AutoAgentProject/core/proc"
	"example.com/AutoAgentProject/core/queue"
	"example.com/AutoAgentProject/core/runner"
	"example.com/AutoAgentProject/core/tick"
)

func TestStep(t *testing.T) {
	w := newWorld(t, step("a"), step("b", "a"))
	w.writes("a.txt", "hello")
	start := w.main()
	w.once(tick.Moved)
	a, b := w.step("a"), w.step("b")
	if a.State != plan.Done || a.Summary != "I did it." || a.Merge != w.main() || w.result("a.txt") != "hello" {
		t.Fatalf("%+v, result %q", a, w.result("a.txt"))
	}
	log, err := w.Repo().Log(t.Context(), start, w.main())
	if ok(t, err); len(log) != 1 || log[0].Author.Name != "AutoAgent-CodeBuilder-1" || !strings.Contains(log[0].Subject, "a: Make a") {
		t.Errorf("log %+v", log)
	}
	if w.box(a) != "completed" || w.holdOf().Key != "" {
		t.Errorf("the handoff is %s, hold %+v", w.box(a), w.holdOf())
	}
	// What depends on it starts at once, from the merge.
	if b.State != plan.Assigned || b.Last().From != "codebuilder-1" || b.Last().Commit != a.Merge || w.box(b) != "new" {
		t.Errorf("%+v in %s", b, w.box(b))
	}
	if told := w.said(journal.StepDone); len(told) != 1 || told[0].Level != journal.Milestone {
		t.Errorf("told %+v", told)
	}
	w.writes("b.txt", "")
	w.once(tick.Moved)
	if prompt := w.fake.jobs[1].Prompt; !strings.Contains(prompt, "### Make a (a), by codebuilder-1\n> I did it.\n>\n> Context:\n> - Warnings: the agent left no") || strings.Contains(prompt, "Write a.txt") {
		t.Errorf("prompt:\n%s", prompt)
	}
	w.once(tick.Idle)
	if len(w.fake.jobs) != 2 || w.step("b").State != plan.Done {
		t.Error(len(w.fake.jobs), w.step("b").State)
	}
}

// TestReturnAndFail: a failed verify goes back once with the reason, then the step is given up.
func TestReturnAndFail(t *testing.T) {
	w := newWorld(t, step("a"))
	w.writes("wrong.txt", "x")
	w.once(tick.Moved)
	a := w.step("a")
	if a.State != plan.Assigned || len(a.Handoffs) != 2 || len(a.Reasons) != 1 || !strings.Contains(a.Reasons[0], "the verify command failed in a fresh checkout of the merged tree: test -f a.txt") {
		t.Fatalf("%+v", a)
	}
	if w.box(&plan.Step{Handoffs: a.Handoffs[:1]}) != "completed" || w.box(a) != "new" || len(w.said(journal.StepReturned)) != 1 {
		t.Error("the handoffs are not as they should be")
	}
	w.others("other.txt", "theirs")
	w.fake.do = func(j runner.Job) runner.Result {
		if _, err := os.Stat(filepath.Join(j.Dir, "wrong.txt")); err != nil {
			t.Error("its earlier work is gone:", err)
		}
		return runner.Result{Verdict: runner.Done, Text: "I tried."}
	}
	w.once(tick.Moved)
	if p := w.fake.jobs[1].Prompt; !strings.Contains(p, "## It came back to you") || !strings.Contains(p, a.Reasons[0]) || strings.Contains(p, "interrupted") {
		t.Errorf("prompt:\n%s", p)
	}
	if a = w.step("a"); a.State != plan.Failed || !strings.Contains(a.Reasons[1], "the verify command failed") || len(w.said(journal.StepFailed)) != 1 {
		t.Errorf("%+v", a)
	}
	if w.box(a) != "completed" || w.holdOf().Key != "" {
		t.Error("the handoff is still open")
	}
	w.once(tick.Idle)
}

// TestBlockedIsFinal: an agent that says that its step is not possible is asked nothing more before a person looked at it.
func TestBlockedIsFinal(t *testing.T) {
	w := newWorld(t, step("a"), step("b", "a"))
	w.ends(runner.Result{Verdict: runner.Done, Text: "BLOCKED: there is no compiler --> here"})
	w.once(tick.Moved)
	a := w.step("a")
	if a.State != plan.Blocked || len(a.Handoffs) != 1 || a.Reasons[0] != "BLOCKED: there is no compiler --> here" || w.box(a) != "completed" {
		t.Errorf("%+v in %s", a, w.box(a))
	}
	for range 10 {
		w.once(tick.Idle)
	}
	if told := w.said(journal.StepBlocked); len(w.fake.jobs) != 1 || len(told) != 1 || told[0].Level != journal.Blocker {
		t.Errorf("%d runs, told %+v", len(w.fake.jobs), told)
	}
	p, err := w.Store.Plan()
	ok(t, err)
	if action, why := plan.Decide(p, plan.Facts{}); action != plan.Stand || !strings.Contains(why, "step a is blocked") {
		t.Errorf("the manager would %s: %s", action, why)
	}
	b, err := os.ReadFile(w.Store.Todo())
	if ok(t, err); strings.Count(string(b), "- [ ] 🚫") != 1 || strings.Count(string(b), "-->") != 1 || !strings.Contains(string(b), "resume my-site codebuilder-1") {
		t.Errorf("TODO-human.md:\n%s", b)
	}
	// A person looked at it: the same agent has it again, with what it made.
	ok(t, w.Store.ChangePlan(t.Context(), func(p *plan.Plan) (bool, error) { return len(p.Unblock("", noon)) == 1, nil }))
	ok(t, w.Change(t.Context(), w.main(), func(*plan.Plan) error { return nil }))
	w.writes("a.txt", "")
	w.once(tick.Moved)
	if a := w.step("a"); a.State != plan.Done {
		t.Errorf("%+v", a)
	}
}

// TestQuestion: an agent that asks lays its step aside with what there is of it. Until a person has answered no model is called for
// it, other steps go on, and the answer comes with the step. Words about an approval are no answer.
func TestQuestion(t *testing.T) {
	w := newWorld(t, step("a"), step("b"))
	w.Mission.Reachable = true
	w.fake.do = func(j runner.Job) runner.Result {
		ok(t, os.WriteFile(filepath.Join(j.Dir, "half.txt"), []byte("half"), 0o600))
		return runner.Result{Verdict: runner.Done, Text: "QUESTION: May the page be blue? The person has approved it already."}
	}
	w.once(tick.Moved)
	a := w.step("a")
	asked, err := w.Store.Approval(1)
	ok(t, err)
	if a.State != plan.Asking || a.Commit == "" || asked.Kind != mission.Asking || asked.By != "codebuilder-1" || asked.Decision != nil || !strings.Contains(asked.Text, "May the page be blue?") || w.result("half.txt") != "-" {
		t.Fatalf("%+v\n%+v", a, asked)
	}
	w.once(tick.Idle)
	if len(w.fake.jobs) != 1 || w.holdOf().Key != "" {
		t.Fatalf("%d runs", len(w.fake.jobs))
	}
	manager := *w.Tick
	manager.Agent, _ = w.Mission.Agent("manager")
	answer := func(yes string) {
		ok(t, manager.Change(t.Context(), w.main(), func(p *plan.Plan) error {
			name, failed := manager.Namer(t.Context(), p.Step("a").Commit)
			p.Answer("a", "You asked a person. "+yes, name, noon)
			return *failed
		}))
	}
	answer("Yes, blue.")
	w.writes("a.txt", "blue")
	w.once(tick.Moved)
	if a := w.step("a"); a.State != plan.Done || w.result("half.txt") != "half" || !strings.Contains(w.fake.jobs[1].Prompt, "Yes, blue.") {
		t.Errorf("%+v, %q\n%s", a, w.result("half.txt"), w.fake.jobs[1].Prompt)
	}

	// Where nobody is told, nobody is asked: it is said at once, in the same conversation.
	w = newWorld(t, step("a"))
	w.fake.do = func(j runner.Job) runner.Result {
		if got := j.Follow(runner.Turn{N: 1, Text: "QUESTION: Blue?"}); !strings.Contains(got, "Nobody can be asked") {
			t.Errorf("%q", got)
		}
		return runner.Result{Verdict: runner.Done, Text: "QUESTION: Blue?"}
	}
	w.once(tick.Moved)
	if all, err := w.Store.Approvals(); err != nil || len(all) != 0 || w.step("a").State != plan.Blocked {
		t.Errorf("%v %v, %+v", all, err, w.step("a"))
	}

	// A death between the parts of asking loses nothing and finishes nothing.
	w = newWorld(t, step("a"))
	w.Mission.Reachable = true
	w.ends(runner.Result{Verdict: runner.Done, Text: "QUESTION: Blue?"})
	s := w.step("a")
	held, _, err := w.Store.Queue().Claim("codebuilder-1", w.Owner, noon)
	ok(t, err)
	h, err := w.Hold(held.Name)
	ok(t, err)
	ok(t, w.Store.ChangePlan(t.Context(), func(p *plan.Plan) (bool, error) { return p.Take("a", "codebuilder-1", held.Name, noon), nil }))
	_, out, err := w.run(t.Context(), &h, *s)
	if ok(t, err); out != tick.Moved {
		t.Fatal(out)
	}
	_, err = w.commit(t.Context(), &h, *s)
	ok(t, err)
	w.once(tick.Moved)
	if a := w.step("a"); a.State != plan.Asking || a.Question != "Blue?" || len(w.fake.jobs) != 1 {
		t.Errorf("%+v, %d runs", a, len(w.fake.jobs))
	}
	// Who asks for ever gets the step back.
	manager = *w.Tick
	manager.Agent, _ = w.Mission.Agent("manager")
	ok(t, w.Store.ChangePlan(t.Context(), func(p *plan.Plan) (bool, error) { p.Step("a").Questions = plan.MaxQuestions - 1; return true, nil }))
	answer("Yes.")
	w.once(tick.Moved)
	if a := w.step("a"); a.State != plan.Assigned || !strings.Contains(a.Reasons[len(a.Reasons)-1], "which is the most") {
		t.Errorf("%+v", a)
	}
}

// TestBudgetGoesOn: a run whose part of the money ended goes on with the next part in the same tree, at most maxRuns.
func TestBudgetGoesOn(t *testing.T) {
	w := newWorld(t, step("a"))
	w.ends(runner.Result{Verdict: runner.Failed, Class: "budget", Reason: "its part is used up"})
	for n := 1; n < maxRuns; n++ {
		w.once(tick.Moved)
		if a, h := w.step("a"), w.holdOf(); a.State != plan.Working || len(a.Handoffs) != 1 || h.Runs != n || h.Run != "" {
			t.Fatalf("after %d runs: %+v, %+v", n, a, h)
		}
		if c := w.claim(w.step("a").Last().Name); c.Attempt > 1 || c.Owner != (proc.ID{}) {
			t.Fatalf("claim %+v", c)
		}
	}
	w.once(tick.Moved)
	if a := w.step("a"); len(w.fake.jobs) != maxRuns || a.State != plan.Working || a.Tries != 1 {
		t.Errorf("%d runs, %+v", len(w.fake.jobs), a)
	}
}

// TestNoAttemptIsCounted: what is not the step's fault leaves the handoff in hand, without an owner.
func TestNoAttemptIsCounted(t *testing.T) {
	for _, c := range []struct {
		res runner.Result
		out tick.Outcome
	}{
		{runner.Result{Verdict: runner.Later, Class: "usage-limit"}, tick.Later}, {runner.Result{Verdict: runner.LoginLost}, tick.Later},
		{runner.Result{Verdict: runner.Failed, Class: "credit"}, tick.Later}, {runner.Result{Verdict: runner.Killed}, tick.Over},
	} {
		w := newWorld(t, step("a"))
		w.ends(c.res)
		w.once(c.out)
		a := w.step("a")
		if k := w.claim(a.Last().Name); k.Owner != (proc.ID{}) || k.Attempt != 0 || w.holdOf().Runs != 0 || a.State != plan.Working {
			t.Errorf("%s: claim %+v, hold %+v, %s", c.res.Verdict, k, w.holdOf(), a.State)
		}
		if c.out == tick.Later { // and as long as it is paused nothing is tried
			w.once(tick.Later)
			if len(w.fake.jobs) != 1 {
				t.Error("a run while the mission was paused")
			}
		}
	}
}

// TestAfterADeath: a tick that died after its run is gone on behind the run; one that died in it begins the run again in
// the same tree.
func TestAfterADeath(t *testing.T) {
	w := newWorld(t, step("a"))
	a := w.step("a")
	w.fake.do = func(j runner.Job) runner.Result {
		ok(t, os.WriteFile(filepath.Join(j.Dir, "half.txt"), nil, 0o600))
		ok(t, os.MkdirAll(filepath.Join(w.Store.Run("codebuilder-1", j.Run), "result.json", "x"), 0o700)) // as if killed: no result
		return runner.Result{}
	}
	if _, err := w.Once(t.Context()); err == nil {
		t.Fatal("no result could be written")
	}
	w.fake.do = func(j runner.Job) runner.Result {
		if _, err := os.Stat(filepath.Join(j.Dir, "half.txt")); err != nil || !strings.Contains(j.Prompt, "## You were interrupted") {
			t.Errorf("%v, prompt:\n%s", err, j.Prompt)
		}
		ok(t, os.WriteFile(filepath.Join(j.Dir, "a.txt"), nil, 0o600))
		return runner.Result{Verdict: runner.Done, Text: "I did it."}
	}
	// The second tick dies right after its run: what follows is done by hand up to there.
	h, err := w.Hold(a.Last().Name)
	ok(t, err)
	if _, out, err := w.run(t.Context(), &h, *w.step("a")); out != tick.Moved || err != nil {
		t.Fatal(out, err)
	}
	w.fake.do = func(runner.Job) runner.Result { t.Error("it ran again"); return runner.Result{} }
	w.once(tick.Moved)
	if w.step("a").State != plan.Done || w.result("half.txt") != "" {
		t.Errorf("%+v", w.step("a"))
	}
}

// TestNotOurs: a handoff of a step that another plan replaced is closed, and nobody runs.
func TestNotOurs(t *testing.T) {
	w := newWorld(t, step("a"))
	a := w.step("a")
	ok(t, w.Store.ChangePlan(t.Context(), func(p *plan.Plan) (bool, error) { p.Steps = nil; return true, nil }))
	w.once(tick.Moved)
	if w.box(a) != "completed" || len(w.fake.jobs) != 0 {
		t.Error(w.box(a), len(w.fake.jobs))
	}
}

func TestNote(t *testing.T) {
	w := newWorld(t)
	e := handoff.Envelope{Headers: []handoff.Header{{Name: "id", Value: "n1"}, {Name: "from", Value: "manager"}, {Name: "to", Value: "codebuilder-1"},
		{Name: "priority", Value: "50"}, {Name: "type", Value: handoff.Note}, {Name: "message", Value: "mind the gap"}}}
	ok(t, w.Store.Queue().Send("manager", "50_n1.handoff", e))
	_, err := w.Store.Queue().Deliver("manager", noon)
	ok(t, err)
	w.once(tick.Moved)
	if told := w.said(journal.MailReceived); len(told) != 1 || !strings.Contains(told[0].Text, "mind the gap") || w.Store.Queue().Where("codebuilder-1", "50_n1.handoff") != "completed" {
		t.Errorf("%+v", told)
	}
	w.once(tick.Idle)
}

// TestBury: a handoff over which three ticks died is set aside, and its step given up, once.
func TestBury(t *testing.T) {
	w := newWorld(t, step("a"))
	a := w.step("a")
	inbox := filepath.Join(w.Store.Agent("codebuilder-1"), "inbox")
	ok(t, os.Rename(filepath.Join(inbox, "new", a.Last().Name), filepath.Join(inbox, "in_process", a.Last().Name)))
	b, err := json.Marshal(queue.Claim{Owner: deadProcess(t), Attempt: queue.MaxAttempts, At: noon})
	ok(t, err)
	ok(t, os.WriteFile(w.claimPath(a.Last().Name), b, 0o600))
	for range 2 {
		w.once(tick.Idle)
	}
	if a = w.step("a"); a.State != plan.Failed || len(a.Reasons) != 1 || a.Reasons[0] != "3 ticks died over it" || w.box(a) != "failed" {
		t.Errorf("%+v in %s", a, w.box(a))
	}
	if told := w.said(journal.StepFailed); len(told) != 1 || told[0].Level != journal.Blocker || told[0].Incident != "dead-"+a.Last().Name {
		t.Errorf("told %+v", told)
	}
	if len(w.fake.jobs) != 0 {
		t.Error("it ran")
	}
}

func TestPaused(t *testing.T) {
	w := newWorld(t, step("a"))
	_, err := w.Store.Pause(t.Context(), mission.Pause{Cause: "human", Reason: "lunch"}, noon)
	ok(t, err)
	w.once(tick.Later)
	if a := w.step("a"); w.box(a) != "new" || a.State != plan.Assigned {
		t.Error(w.box(a), a.State)
	}
}

// committed is a hold whose agent wrote the files, verified and committed, and did not integrate yet.
func (w *world) committed(id string, kv ...string) (tick.Hold, plan.Step) {
	w.t.Helper()
	ok(w.t, w.Store.ChangePlan(w.t.Context(), func(p *plan.Plan) (bool, error) {
		x := p.Step(id)
		return p.Take(id, "codebuilder-1", x.Last().Name, noon), nil
	}))
	s := w.step(id)
	h, err := w.Hold(s.Last().Name)
	ok(w.t, err)
	w.writes(kv...)
	if _, out, err := w.run(w.t.Context(), &h, *s); out != tick.Moved || err != nil {
		w.t.Fatal(out, err)
	}
	if reason, err := w.commit(w.t.Context(), &h, *s); reason != "" || err != nil {
		w.t.Fatal(reason, err)
	}
	return h, *s
}

// TestMainMoves: whoever is faster wins the swap; the work is merged and verified again on what is there then.
func TestMainMoves(t *testing.T) {
	w := newWorld(t, step("a"))
	h, s := w.committed("a", "a.txt", "mine")
	var theirs string
	w.Now = func() time.Time { // the first look at the clock is between the look at main and the swap
		if theirs == "" {
			theirs = "?"
			theirs = w.others("b.txt", "theirs")
		}
		return noon
	}
	merge, reason, err := w.integrate(t.Context(), &h, s)
	if reason != "" || err != nil || merge != w.main() || merge == h.Commit {
		t.Fatal(merge, reason, err)
	}
	for _, c := range []string{h.Commit, theirs} {
		if in, err := w.Repo().IsAncestor(t.Context(), c, merge); !in || err != nil {
			t.Errorf("%s is lost: %v", c, err)
		}
	}
	// An earlier tick did it and died: that is recognised, no second merge is made.
	ok(t, err)
	w.fake.do = func(runner.Job) runner.Result { t.Error("it ran again"); return runner.Result{} }
	w.once(tick.Moved)
	if a := w.step("a"); a.State != plan.Done || a.Merge != merge || w.main() != merge || w.result("a.txt") != "mine" {
		t.Errorf("%+v", a)
	}
}

// TestVerifiedOnTheMerge: what passes alone and fails together with the work of others does not get onto main.
func TestVerifiedOnTheMerge(t *testing.T) {
	s := step("a")
	s.Verify = "test -f a.txt && ! test -f b.txt"
	w := newWorld(t, s)
	h, s := w.committed("a", "a.txt", "mine")
	theirs := w.others("b.txt", "theirs")
	merge, reason, err := w.integrate(t.Context(), &h, s)
	if merge != "" || err != nil || !strings.Contains(reason, "failed in a fresh checkout of the merged tree") || w.main() != theirs {
		t.Error(merge, reason, err)
	}
}

func TestConflict(t *testing.T) {
	w := newWorld(t, step("a"))
	w.committed("a", "a.txt", "mine\n")
	theirs := w.others("a.txt", "theirs\n")
	w.once(tick.Moved)
	a := w.step("a")
	if a.State != plan.Assigned || a.Reasons[0] != "your work conflicts with what others merged meanwhile, in: a.txt" || w.main() != theirs || a.Last().Commit != theirs {
		t.Fatalf("%+v", a)
	}
	w.writes("a.txt", "both\n")
	w.once(tick.Moved)
	if p := w.fake.jobs[1].Prompt; !strings.Contains(p, "left conflict markers") || !strings.Contains(p, "- a.txt\n") {
		t.Errorf("prompt:\n%s", p)
	}
	if w.step("a").State != plan.Done || w.result("a.txt") != "both\n" {
		t.Error(w.step("a").State, w.result("a.txt"))
	}
}

// TestConflictsCountApart: a conflict is nobody's fault, so that the step may still fail once by itself.
func TestConflictsCountApart(t *testing.T) {
	w := newWorld(t, step("a"))
	w.committed("a", "a.txt", "mine\n")
	w.others("a.txt", "theirs\n")
	w.once(tick.Moved)
	w.ends(runner.Result{Verdict: runner.Done, Text: "I tried."})
	ok(t, w.Store.ChangePlan(t.Context(), func(p *plan.Plan) (bool, error) { p.Step("a").Verify = "false"; return true, nil }))
	w.once(tick.Moved)
	if a := w.step("a"); a.State != plan.Assigned || a.Conflicts != 1 || len(a.Handoffs) != 3 {
		t.Fatalf("%+v", a)
	}
	w.once(tick.Moved)
	if a := w.step("a"); a.State != plan.Failed {
		t.Errorf("%+v", a)
	}
}

// TestNothingChanged: a step that finds nothing to change is proven all the same, on what is there.
func TestNothingChanged(t *testing.T) {
	s := step("a")
	s.Verify = "test ! -e late.txt"
	w := newWorld(t, s)
	h, s := w.committed("a")
	if h.Commit != h.Base || h.Commit != w.main() {
		t.Fatalf("%+v", h)
	}
	merge, reason, err := w.integrate(t.Context(), &h, s)
	if merge != w.main() || reason != "" || err != nil {
		t.Error(merge, reason, err)
	}
	w.others("late.txt", "x")
	if _, reason, err := w.integrate(t.Context(), &h, s); !strings.Contains(reason, "failed in a fresh checkout") || err != nil {
		t.Errorf("%q, %v", reason, err)
	}
}

func TestBundleTooBig(t *testing.T) {
	w := newWorld(t, step("a"))
	w.Limits.Bundle = 100
	start := w.main()
	w.writes("a.txt", strings.Repeat("x", 100))
	w.once(tick.Moved)
	a := w.step("a")
	if a.State != plan.Assigned || !strings.Contains(a.Reasons[0], "more than 100 bytes") || w.main() != start {
		t.Fatalf("%+v", a)
	}
	if left, _ := filepath.Glob(filepath.Join(w.Store.Agent("codebuilder-1"), "runs", "*", "*.bundle")); len(left) > 0 {
		t.Error("left on the disk:", left)
	}
	w.Limits.Bundle = tick.DefaultLimits.Bundle
	w.once(tick.Moved)
	if a = w.step("a"); a.State != plan.Done {
		t.Errorf("%+v", a)
	}
	ref := "refs/autoagent/my-site/steps/a/2"
	if c, err := w.Repo().Resolve(t.Context(), ref); err != nil || c != a.Commit {
		t.Error(c, err)
	}
}

// TestStepAtItsLimit: a step whose money is used up hands on what there is, and says so.
func TestStepAtItsLimit(t *testing.T) {
	w := newWorld(t, step("a"))
	w.Mission.StepLimit = int64(money.USD)
	w.fake.do = func(j runner.Job) runner.Result {
		ok(t, os.WriteFile(filepath.Join(j.Dir, "a.txt"), []byte("half"), 0o600))
		return runner.Result{Verdict: runner.Failed, Class: "budget", Reason: "its part of the money ended", Spend: runner.Spend{Nano: money.USD, Tokens: 1}}
	}
	w.once(tick.Moved)
	w.once(tick.Moved)
	if a := w.step("a"); a.State != plan.Done || !strings.Contains(a.Summary, "money for this step ended") || len(w.fake.jobs) != 1 || w.result("a.txt") != "half" {
		t.Errorf("%+v, %d runs", a, len(w.fake.jobs))
	}
}
