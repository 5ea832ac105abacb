package specialist

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/AutoAgentProject/core/journal"
	"example.com/AutoAgentProject/core/plan"
	"example.com/AutoAgentProject/core/tick"
)

// TestMend: what a crash or a hand in the files leaves of an agent's steps is repaired by its next tick, once, and told.
func TestMend(t *testing.T) {
	for name, harm := range map[string]func(w *world){
		"the handoff is gone":            func(w *world) { ok(w.t, os.Remove(w.letter("new"))) },
		"the handoff was closed":         func(w *world) { ok(w.t, os.Rename(w.letter("new"), w.letter("completed"))) },
		"the handoff is gone, step held": func(w *world) { w.take(); ok(w.t, os.Remove(w.letter("new"))) },
	} {
		w := newWorld(t, step("a"))
		harm(w)
		ok(t, w.Mend(t.Context()))
		ok(t, w.Mend(t.Context()))
		if told := w.said(journal.Repaired); len(told) != 1 || !strings.Contains(told[0].Text, "it was handed over again") {
			t.Errorf("%s: told %+v", name, told)
		}
		w.writes("a.txt", "x")
		w.once(tick.Moved)
		if s := w.step("a"); s.State != plan.Done || len(s.Handoffs) != 1 || len(w.fake.jobs) != 1 {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

// TestMendBlocked: a tick that died between blocking a step and telling a person is made up for, once.
func TestMendBlocked(t *testing.T) {
	w := newWorld(t, step("a"))
	w.take()
	ok(t, w.Store.ChangePlan(t.Context(), func(p *plan.Plan) (bool, error) { p.Block("a", "no key", noon); return true, nil }))
	for range 3 {
		w.once(tick.Moved)
		if w.box(w.step("a")) == "completed" {
			break
		}
	}
	for range 3 {
		w.once(tick.Idle)
	}
	if told := w.said(journal.StepBlocked); len(told) != 1 {
		t.Errorf("told %+v", told)
	}
	if b, err := os.ReadFile(w.Store.Todo()); err != nil || strings.Count(string(b), "- [ ]") != 1 {
		t.Errorf("%s, %v", b, err)
	}
}

// TestStaleLine: a tick that died at work leaves a line that says so; the next one corrects it.
func TestStaleLine(t *testing.T) {
	w := newWorld(t)
	w.Line(t.Context(), "working", "a", "run-1", "works on a")
	w.once(tick.Idle)
	if st, err := w.Store.State(); err != nil || st.Agents["codebuilder-1"].Doing != "idle" {
		t.Errorf("%+v, %v", st.Agents["codebuilder-1"], err)
	}
}

// letter is the file of the handoff of step a in a box.
func (w *world) letter(box string) string {
	return filepath.Join(w.Store.Agent("codebuilder-1"), "inbox", box, w.step("a").Last().Name)
}

func (w *world) take() {
	w.t.Helper()
	ok(w.t, w.Store.ChangePlan(w.t.Context(), func(p *plan.Plan) (bool, error) {
		return p.Take("a", "codebuilder-1", p.Step("a").Last().Name, noon), nil
	}))
}
