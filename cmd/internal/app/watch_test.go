package app

import (
	"slices"
	"testing"

	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/plan"
	"example.com/AutoAgentProject/core/view"
)

// TestChanges: each thing that happened is a line, and what stayed is none.
func TestChanges(t *testing.T) {
	a := view.Mission{ID: "m", Phase: "working", Steps: []view.Step{{ID: "a", State: plan.Done}, {ID: "b", State: plan.Waiting}}, Budget: view.Budget{Used: 1, Text: "$1"},
		Agents: []view.Agent{{Name: "x", Doing: "idle", Line: "did a"}}}
	b := a
	b.Steps = []view.Step{{ID: "a", State: plan.Done}, {ID: "b", State: plan.Failed, Agent: "x", Reason: "it was red"}}
	b.Agents = []view.Agent{{Name: "x", Doing: "working", Line: "works on b"}}
	b.Budget = view.Budget{Used: 2, Text: "$2"}
	b.Needs = []view.Need{{Kind: "approval", Title: "Approval 1: x", Commands: []string{"AutoAgentProject approve m 1"}}}
	b.Warnings = []string{"w"}
	end := b
	end.Phase, end.Stop = "completed", &mission.Stop{Cause: mission.Completed, Reason: "all is done"}
	of := func(m view.Mission) map[string]view.Mission { return map[string]view.Mission{"m": m} }
	for _, c := range []struct {
		name      string
		old, next map[string]view.Mission
		want      []string
	}{
		{"first look", nil, of(a), []string{"working, 1 of 2 steps done, $1"}},
		{"nothing", of(a), of(a), nil},
		{"all at once", of(a), of(b), []string{"step b is failed (x): it was red", "x: works on b", "$2", "waits for you: Approval 1: x; AutoAgentProject approve m 1", "warning: w"}},
		{"nothing again", of(b), of(b), nil},
		{"the end", of(b), of(end), []string{"completed", "ended: all is done"}},
		{"after the end", of(end), of(end), nil},
		{"it went", of(b), nil, []string{"is gone"}},
	} {
		var got []string
		for _, line := range changes(c.old, c.next) {
			if line[0] != "m" {
				t.Errorf("%s: %q", c.name, line)
			}
			got = append(got, line[1])
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q", c.name, got)
		}
	}
}
