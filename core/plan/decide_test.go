package plan

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestDecide(t *testing.T) {
	in := func(round int, states ...State) *Plan {
		p := &Plan{Round: round}
		for i, s := range states {
			x := Step{ID: string(rune('a' + i)), State: s}
			if s == Waiting && i > 0 {
				x.DependsOn = []string{p.Steps[i-1].ID}
			}
			if s == Failed {
				x.Reasons = []string{"first", "broke " + x.ID}
			}
			p.Steps = append(p.Steps, x)
		}
		return p
	}
	final := func(p *Plan, commit string, passed bool) *Plan {
		p.Final = Final{Commit: commit, Passed: passed, Output: "2 tests failed"}
		return p
	}
	heard := func(p *Plan, n int) *Plan { p.Heard = n; return p }
	hearing := func(p *Plan, n int) *Plan { p.Hearing = n; return p }
	granted := func(p *Plan, n int) *Plan { p.Granted = n; return p }
	plain, verified := Facts{Head: "h"}, Facts{Head: "h", HasVerify: true}
	for name, c := range map[string]struct {
		p      *Plan
		f      Facts
		want   Action
		reason string
	}{
		"no plan":                           {nil, plain, MakePlan, "no plan"},
		"an empty plan":                     {&Plan{}, plain, MakePlan, "no plan"},
		"a step is ready":                   {in(1, Waiting), plain, Wait, "under way"},
		"a step is on its way":              {in(1, Assigned), plain, Wait, "under way"},
		"a step is worked on":               {in(1, Done, Working, Waiting), plain, Wait, "under way"},
		"one failed, another is worked on":  {in(1, Failed, Working), plain, Wait, "under way"},
		"one failed, another is ready":      {in(1, Failed, Done, Waiting), plain, Wait, "under way"},
		"one failed, the rest waits for it": {in(1, Done, Failed, Waiting), plain, MakeReplan, "step b failed: broke b"},
		"failed in the second plan":         {in(2, Failed), plain, MakeReplan, "broke a"},
		"failed in the last plan":           {in(MaxRounds, Failed), plain, GiveUp, "broke a (after 3 plans)"},
		"failed without a reason":           {&Plan{Round: 1, Steps: []Step{{ID: "a", State: Failed}}}, plain, MakeReplan, "no reason given"},
		"waits for what never comes":        {&Plan{Round: 1, Steps: []Step{{ID: "a", State: Waiting, DependsOn: []string{"z"}}}}, plain, GiveUp, "never come"},
		"a plan without steps":              {&Plan{Round: 1}, plain, GiveUp, "never come"},
		"done, no verify":                   {in(1, Done, Done), plain, Complete, "all steps are done"},
		"done, verify due":                  {in(1, Done), verified, Verify, "all steps are done"},
		"verified another tree":             {final(in(1, Done), "other", true), verified, Verify, "all steps are done"},
		"verified and passed":               {final(in(1, Done), "h", true), verified, Complete, "verify passed"},
		"verified and failed":               {final(in(1, Done), "h", false), verified, MakeReplan, "2 tests failed"},
		"verified and failed, last plan":    {final(in(MaxRounds, Done), "h", false), verified, GiveUp, "2 tests failed"},
		"a note while others work":          {in(1, Working, Waiting), Facts{Notes: 1}, Reconsider, "said something new"},
		"a note that is known":              {heard(in(1, Working), 1), Facts{Notes: 1}, Wait, "under way"},
		"a plan is made with it":            {hearing(in(1, Waiting), 1), Facts{Notes: 1}, Reconsider, "said something new"},
		"a step failed while it is made":    {hearing(in(1, Failed, Done, Waiting), 1), Facts{Notes: 1}, MakeReplan, "broke a"},
		"a note before the end":             {in(1, Done), Facts{Notes: 1}, Reconsider, "said something new"},
		"a note and a failure, others work": {in(1, Failed, Working), Facts{Notes: 1}, Wait, "under way"},
		"a note and a failure":              {in(1, Failed), Facts{Notes: 1}, MakeReplan, "broke a"},
		"a note when tries are used up":     {final(in(MaxRounds, Done), "h", false), Facts{Head: "h", HasVerify: true, Notes: 1}, GiveUp, "2 tests failed"},
		"a person is asked":                 {in(1, Done, Asking), plain, Wait, "a person is asked"},
		"asked, and another failed":         {in(1, Failed, Asking), plain, MakeReplan, "broke a"},
		"more was granted":                  {granted(in(MaxRounds, Failed), 1), plain, MakeReplan, "broke a"},
		"verify was taken away":             {final(in(1, Done), "h", false), plain, Complete, "all steps are done"},
	} {
		before, _ := json.Marshal(c.p)
		for range 2 { // the same facts give the same answer
			if got, reason := Decide(c.p, c.f); got != c.want || !strings.Contains(reason, c.reason) {
				t.Errorf("%s: %s, %q; want %s, %q", name, got, reason, c.want, c.reason)
			}
		}
		if after, _ := json.Marshal(c.p); string(after) != string(before) {
			t.Errorf("%s: it changed the plan", name)
		}
	}
}
