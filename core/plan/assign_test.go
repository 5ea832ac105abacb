package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/mission"
)

// name is a Namer whose names tell the step and how often it was handed over.
func name(s Step, to string) Handoff {
	return Handoff{Name: fmt.Sprintf("%s-%d", s.ID, len(s.Handoffs)), From: "manager", Commit: "c0", At: noon}
}

// accepted is a plan of these steps.
func accepted(t testing.TB, s ...ProposedStep) *Plan {
	t.Helper()
	if bad := Check(steps(s...), crew(t), nil); len(bad) > 0 {
		t.Fatal(bad)
	}
	p := &Plan{}
	p.Accept(steps(s...), noon)
	return p
}

// who says who has what: "a:codebuilder-1 b:codebuilder-2".
func who(given []*Step) string {
	var out []string
	for _, s := range given {
		out = append(out, s.ID+":"+s.Agent)
	}
	return strings.Join(out, " ")
}

func ids(s []*Step) string {
	var out []string
	for _, x := range s {
		out = append(out, x.ID)
	}
	return strings.Join(out, " ")
}

func TestAssign(t *testing.T) {
	design := step("d")
	design.Profession = "designer"
	p := accepted(t, step("a"), step("b"), design, step("c"), step("e", "a"), step("f"))
	if got := who(p.Assign(crew(t), name, noon)); got != "a:codebuilder-1 b:codebuilder-2 d:designer-1 c:codebuilder-1 f:codebuilder-2" {
		t.Error(got)
	}
	if s := p.Step("a"); s.State != Assigned || s.Last().Name != "a-0" || len(s.Handoffs) != 1 || !s.Since.Equal(noon) {
		t.Errorf("%+v", s)
	}
	if got := p.Assign(crew(t), name, noon); got != nil {
		t.Errorf("given twice: %s", who(got))
	}
	// codebuilder-1 holds a and c, codebuilder-2 only f: work under way counts, finished work does not.
	p.Take("a", "codebuilder-1", "a-0", noon)
	p.Take("b", "codebuilder-2", "b-0", noon)
	p.Finish("b", "x", "y", "", noon)
	p.Step("a").State = Done
	p.Step("a").State = Working
	p.Finish("a", "x", "y", "", noon)
	p.Steps = append(p.Steps, Step{ID: "g", Profession: "codebuilder", State: Waiting}, Step{ID: "h", Profession: "codebuilder", State: Waiting})
	if got := who(p.Assign(crew(t), name, noon)); got != "e:codebuilder-1 g:codebuilder-2 h:codebuilder-1" {
		t.Error(got)
	}
}

func TestAssignTakesTheLeastLoaded(t *testing.T) {
	p := accepted(t, step("a"), step("b"), step("c"))
	p.Steps[0].State, p.Steps[0].Agent = Working, "codebuilder-1"
	p.Steps[1].State, p.Steps[1].Agent = Assigned, "codebuilder-1"
	if got := who(p.Assign(crew(t), name, noon)); got != "c:codebuilder-2" {
		t.Error(got)
	}
	p = accepted(t, step("a"))
	if got := p.Assign([]mission.Agent{{Name: "manager", Role: mission.Manager, Profession: "codebuilder"}}, name, noon); got != nil {
		t.Errorf("given to no specialist: %s", who(got))
	}
	if p.Step("a").State != Waiting {
		t.Error(p.Step("a").State)
	}
}

func TestReady(t *testing.T) {
	p := accepted(t, step("d", "b", "c"), step("c", "a"), step("b", "a"), step("a"))
	for _, c := range []struct{ done, ready string }{{"", "a"}, {"a", "c b"}, {"c", "b"}, {"b", "d"}, {"d", ""}} {
		if s := p.Step(c.done); s != nil {
			s.State = Done
		}
		if got := ids(p.Ready()); got != c.ready {
			t.Errorf("%s done: %q, want %q", c.done, got, c.ready)
		}
	}
	p = accepted(t, step("a"), step("b", "a"))
	for _, st := range []State{Assigned, Working, Failed} {
		if p.Step("a").State = st; len(p.Ready()) != 0 {
			t.Errorf("%s: %s", st, ids(p.Ready()))
		}
	}
	p = &Plan{Steps: []Step{{ID: "a", State: Waiting, DependsOn: []string{"gone"}}}}
	if len(p.Ready()) != 0 {
		t.Error("it does not wait for what is not there")
	}
}

func TestTake(t *testing.T) {
	p := accepted(t, step("a"))
	p.Assign(crew(t), name, noon)
	later := noon.Add(time.Minute)
	for _, c := range []struct{ id, agent, handoff string }{
		{"a", "codebuilder-2", "a-0"}, {"a", "codebuilder-1", "a-1"}, {"a", "codebuilder-1", ""}, {"b", "codebuilder-1", "a-0"}, {"a", "", "a-0"},
	} {
		if p.Take(c.id, c.agent, c.handoff, later) || p.Step("a").State != Assigned {
			t.Errorf("%+v took it", c)
		}
	}
	for n := range 2 { // again after its tick died
		if !p.Take("a", "codebuilder-1", "a-0", later.Add(time.Duration(n))) || p.Step("a").State != Working || !p.Step("a").Since.Equal(later) {
			t.Fatalf("%d: %+v", n, p.Step("a"))
		}
	}
	if !p.Return("a", "not yet", false, name, later) || p.Take("a", "codebuilder-1", "a-0", later) {
		t.Error("the handoff before the last one took it")
	}
	if !p.Take("a", "codebuilder-1", "a-1", later) {
		t.Error("the last handoff did not take it")
	}
	for _, st := range []State{Done, Failed, Waiting} {
		if p.Step("a").State = st; p.Take("a", "codebuilder-1", "a-1", later) || p.Step("a").State != st {
			t.Errorf("took a step that is %s", st)
		}
	}
}

func TestReturnOnceThenFail(t *testing.T) {
	p := accepted(t, step("a"))
	p.Assign(crew(t), name, noon)
	for n := range MaxReturns {
		p.Take("a", "codebuilder-1", p.Step("a").Last().Name, noon)
		if !p.Return("a", fmt.Sprint("reason ", n), false, name, noon) {
			t.Fatal("it did not go back")
		}
		if s := p.Step("a"); s.State != Assigned || s.Agent != "codebuilder-1" || len(s.Handoffs) != n+2 {
			t.Errorf("%+v", s)
		}
	}
	p.Take("a", "codebuilder-1", p.Step("a").Last().Name, noon)
	if p.Return("a", "the last", false, name, noon) {
		t.Error("it went back once more")
	}
	if s := p.Step("a"); s.State != Failed || !slices.Equal(s.Reasons, []string{"reason 0", "the last"}) {
		t.Errorf("%+v", s)
	}
	if p.Return("nosuch", "x", false, name, noon) {
		t.Error("a step that is not there went back")
	}
}

// TestOnlyAHeldStepChanges: whoever comes late, after a death or another plan, changes nothing.
func TestOnlyAHeldStepChanges(t *testing.T) {
	for _, st := range []State{Waiting, Assigned, Working, Done, Failed} {
		for op, do := range map[string]func(*Plan){
			"finish": func(p *Plan) { p.Finish("a", "other", "other", "other", noon.Add(1)) },
			"return": func(p *Plan) { p.Return("a", "other", false, name, noon.Add(1)) },
			"fail":   func(p *Plan) { p.Fail("a", "other", noon.Add(1)) },
		} {
			p := accepted(t, step("a"))
			s := p.Step("a")
			s.State, s.Agent, s.Handoffs, s.Commit, s.Merge = st, "codebuilder-1", []Handoff{{Name: "a-0"}}, "c1", "m1"
			before := fmt.Sprintf("%+v", *s)
			do(p)
			changes := st == Working || op == "fail" && st != Done && st != Failed
			if changed := fmt.Sprintf("%+v", *p.Step("a")) != before; changed != changes {
				t.Errorf("%s of a step that is %s: changed is %v", op, st, changed)
			}
		}
	}
}

func TestFinish(t *testing.T) {
	p := accepted(t, step("a"))
	p.Assign(crew(t), name, noon)
	p.Take("a", "codebuilder-1", "a-0", noon)
	p.Finish("a", "c1", "m1", "did it", noon.Add(time.Minute))
	if s := p.Step("a"); s.State != Done || s.Commit != "c1" || s.Merge != "m1" || s.Summary != "did it" || !s.Since.Equal(noon.Add(time.Minute)) || !p.AllDone() {
		t.Errorf("%+v", s)
	}
	p.Finish("nosuch", "", "", "", noon)
	if (&Plan{}).AllDone() {
		t.Error("no plan is all done")
	}
}

// TestHopLimit: a step that too many handoffs lead to is given up for that reason, on its way out and on its way back.
func TestHopLimit(t *testing.T) {
	name := func(s Step, to string) Handoff { return Handoff{Name: s.ID + to} }
	p := &Plan{Round: 1, Steps: []Step{
		{ID: "a", Profession: "codebuilder", State: Done, Handoffs: []Handoff{{Hops: MaxHops}}},
		{ID: "b", Profession: "codebuilder", State: Waiting, DependsOn: []string{"a"}},
		{ID: "c", Profession: "codebuilder", State: Working, Agent: "codebuilder-1", Handoffs: []Handoff{{Hops: MaxHops}}},
		{ID: "d", Profession: "codebuilder", State: Working, Agent: "codebuilder-1", Handoffs: []Handoff{{Hops: MaxHops - 1}}},
	}}
	roster := []mission.Agent{{Name: "codebuilder-1", Role: mission.Specialist, Profession: "codebuilder"}}
	if given := p.Assign(roster, name, time.Time{}); len(given) != 0 || p.Step("b").State != Failed || !strings.HasPrefix(p.Step("b").Reasons[0], "hop limit: 41 handoffs") {
		t.Errorf("%d given, %+v", len(given), p.Step("b"))
	}
	if p.Return("c", "again", true, name, time.Time{}) || p.Step("c").State != Failed || !strings.HasPrefix(p.Step("c").Reasons[1], "hop limit: ") {
		t.Errorf("%+v", p.Step("c"))
	}
	if !p.Return("d", "again", true, name, time.Time{}) || p.Step("d").Last().Hops != MaxHops {
		t.Errorf("%+v", p.Step("d"))
	}
}
