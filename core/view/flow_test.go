package view

import (
	"fmt"
	"testing"

	"example.com/AutoAgentProject/core/conductor"
	"example.com/AutoAgentProject/core/flow"
	"example.com/AutoAgentProject/core/plan"
)

// TestStations: each step of a flow once, as its latest visit left it, with where the baton is and can go.
func TestStations(t *testing.T) {
	f := flow.Flow{ID: "f", Steps: []flow.Step{
		{ID: "spec", Profession: "ideator"},
		{ID: "build", Profession: "codebuilder"},
		{ID: "judge", Profession: "reviewer", Loop: flow.Loop{Back: "build"}, Exit: flow.Exit{On: "is it good", Arms: []flow.Arm{{Value: "yes", To: flow.Complete}, {Value: "more", To: "next"}}}},
		{ID: "polish", Profession: "codebuilder", Gate: "human"},
	}}
	visit := func(n int, step string, s plan.State) plan.Step {
		return plan.Step{ID: fmt.Sprintf("v%d", n), State: s, Visit: &plan.Visit{Step: step}}
	}
	p := &plan.Plan{Steps: []plan.Step{visit(1, "spec", plan.Done), visit(2, "build", plan.Failed), visit(3, "build", plan.Working)}, Baton: &conductor.State{Status: conductor.Running, Step: "build"}}
	got := ""
	for _, s := range stations(f, p) {
		got += fmt.Sprintln(s.ID, s.State, s.Visits, s.Visit, s.Holds, s.Next, s.Back, s.Gate)
	}
	want := "spec done 1 v1 false [build]  \nbuild working 2 v3 true [judge]  \njudge waiting 0  false [polish] build \npolish waiting 0  false []  human\n"
	if got != want {
		t.Errorf("%s", got)
	}
	p.Baton.Status = conductor.Complete
	for _, s := range stations(f, p) {
		if s.Holds {
			t.Errorf("%+v", s)
		}
	}
}
