package e2e

import (
	"strings"
	"testing"

	"example.com/AutoAgentProject/core/scriptmodel"
	"example.com/AutoAgentProject/core/units"
)

// twoSteps is a script for missions that end by themselves, the names of whose steps begin with a prefix; goal is a text
// of the goal by which the plan is found.
func twoSteps(goal, prefix string) []scriptmodel.Rule {
	one, two := prefix+"one", prefix+"two"
	plan := planned(step(one, "test -f "+one), step(two, "test -f "+two, one))
	plan.Name, plan.When = goal, append(plan.When, goal)
	return []scriptmodel.Rule{plan, works(one, bash("echo 1 >> "+one)), works(two, bash("echo 2 >> "+two))}
}

// TestSystemdMission: handed to a manager of systemd, a mission finishes by itself and leaves no unit behind.
func TestSystemdMission(t *testing.T) {
	each(t, func(t *testing.T, manager units.Manager) {
		p := personOf(t, manager, twoSteps("Two steps", ""))
		out := p.start("my-site", "Two steps", "--verify", "test -f one && test -f two")
		if !strings.Contains(out, "MISSION=my-site") {
			t.Errorf("start does not say where the journal is:\n%s", out)
		}
		if v := p.status("my-site"); !v.Live.Ticking || len(v.Live.Next) == 0 {
			t.Errorf("nobody ticks it: %+v", v.Live)
		}
		p.over("my-site")
		if v := p.status("my-site"); v.Phase != "completed" || v.Budget.Reserved != 0 || v.Live.Ticking {
			t.Errorf("phase %q, reserved %d, %+v\n%s", v.Phase, v.Budget.Reserved, v.Live, p.history())
		}
		p.nothingLeft()
		if manager == units.System { // a user's manager does not hand LogExtraFields= to the journal
			p.told("my-site", "manager", "codebuilder-1", "reporter")
		}
	})
}

// TestSystemdNeighbours: a mission is stopped; the one whose id begins with the same word and a dash goes on and finishes.
func TestSystemdNeighbours(t *testing.T) {
	each(t, func(t *testing.T, manager units.Manager) {
		never := planned(step("first", "true"))
		never.Name, never.When = "never", append(never.When, "Work that never ends")
		p := personOf(t, manager, append(twoSteps("Two steps", ""), never, stubborn("mark-of-my")))
		p.start("my", "Work that never ends")
		p.until("my works", func() bool { return len(p.marked("mark-of-my")) >= 4 })
		p.start("my-site", "Two steps", "--verify", "test -f one && test -f two")
		p.until("my-site works", func() bool { return len(p.events("my-site", "run_started")) > 0 })
		before := p.listed(p.names("my-site")...)
		if code, out := p.do("abort", "my"); code != 0 || len(p.marked("mark-of-my")) > 0 {
			t.Errorf("abort: %d, %d alive\n%s", code, len(p.marked("mark-of-my")), out)
		}
		if left := p.loaded("my"); left != "" {
			t.Errorf("still loaded:\n%s", left)
		}
		if n := strings.Count(p.listed(p.names("my-site")...), "\n"); n != strings.Count(before, "\n") {
			t.Errorf("units of my-site are missing; before:\n%s\nnow:\n%s", before, p.listed(p.names("my-site")...))
		}
		p.over("my-site")
		for _, e := range p.events("my-site", "") {
			if strings.Contains(e.Text, "cut off") || strings.Contains(e.Text, "came back") {
				t.Errorf("the other one was disturbed: %s", e.Text)
			}
		}
		if v := p.status("my-site"); v.Phase != "completed" {
			t.Errorf("phase %q", v.Phase)
		}
		if n := p.model.Stats().ByRule["one"]; n != 2 {
			t.Errorf("the step had %d requests, want 2", n)
		}
		p.nothingLeft("mark-of-my")
	})
}

// told fails the test if the journal has nothing of a mission's agent under its fields.
func (p *person) told(id string, agents ...string) {
	p.t.Helper()
	said := map[string]int{}
	for _, e := range p.host.Journal(p.asks(), "MISSION="+id) {
		said[e["AGENT"]]++
	}
	for _, agent := range agents {
		if said[agent] == 0 {
			p.t.Errorf("the journal has nothing of %s: %v", agent, said)
		}
	}
}
