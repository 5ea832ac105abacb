package view

import (
	"strings"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/engine"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/plan"
	"example.com/AutoAgentProject/core/queue"
)

var two = time.Date(2026, 3, 1, 14, 0, 0, 0, time.UTC)

// TestWhy: each state of a mission has one sentence with its cause and the command that changes it.
func TestWhy(t *testing.T) {
	ticking := engine.Live{Ticking: true}
	agents := func(more ...Agent) []Agent { return append([]Agent{{Name: "manager"}}, more...) }
	pause := func(cause, agent string) []mission.Pause {
		return []mission.Pause{{Cause: cause, Agent: agent, Reason: "REASON", Until: two.Add(time.Hour)}}
	}
	stop := func(c mission.Cause) *mission.Stop { return &mission.Stop{Cause: c, Reason: "REASON"} }
	for name, c := range map[string]struct {
		v             Mission
		text, command string // of the mission
		agent, does   string // a sentence of the last agent, and its command
	}{
		"completed": {Mission{Stop: stop(mission.Completed), Phase: "completed", Agents: agents()}, "REASON", "deliver m", "is completed", "logs m manager"},
		"budget":    {Mission{Stop: stop(mission.Budget), Phase: "halted: budget"}, "money: REASON", "budget add m 2usd && AutoAgentProject resume m", "", ""},
		"time":      {Mission{Stop: stop(mission.Time), Phase: "halted: time"}, "time: REASON", "hours add m 1 && AutoAgentProject resume m", "", ""},
		"damage":    {Mission{Stop: stop(mission.Damage), Phase: "halted: damage"}, "REASON", "resume m", "", ""},
		"aborted":   {Mission{Stop: stop(mission.Aborted), Phase: "aborted"}, "aborted for good: REASON", "start <new-id> --from ", "", ""},
		"stopping":  {Mission{Stop: stop(mission.Aborted), Phase: "stopping: aborted"}, "not proven yet", "abort m", "", ""},
		"unknown":   {Mission{Phase: "unknown: working", Agents: agents()}, "unknown", "doctor", "or that is unknown", "status --why m"},
		"no units":  {Mission{Engine: "systemd", Phase: "interrupted: working"}, "units are gone", "reconcile", "", ""},
		"no process": {Mission{Engine: "embedded", Phase: "interrupted: working", Agents: agents(Agent{Name: "quota"})}, "has ended", "run m",
			"nobody ticks", "status --why m"},
		"login":    {Mission{Live: ticking, Pauses: pause("login", ""), Agents: agents()}, "login: REASON", "login", "waits with the mission (login)", "login"},
		"human":    {Mission{Live: ticking, Pauses: pause("human", "")}, "A person paused it", "resume m", "", ""},
		"limit":    {Mission{Live: ticking, Pauses: pause("limit", "")}, "by itself, until 2026-03-01 15:00 UTC: REASON", "status m", "", ""},
		"cap":      {Mission{Live: ticking, Pauses: pause("cap", "")}, "raise the caps", "doctor", "", ""},
		"approval": {Mission{Live: ticking, Pauses: pause("approval", "")}, "your answer", "approvals m", "", ""},
		"blocked":  {Mission{Live: ticking, Pauses: pause("blocked", "")}, "waits for a person", "resume m", "", ""},
		"breaker of one": {Mission{Live: ticking, Pauses: pause("breaker", "b-1"), Agents: agents(Agent{Name: "b-1"})}, "b-1 is waiting for a person", "resume m b-1",
			"It is paused: REASON", "resume m b-1"},
		"another works": {Mission{Live: ticking, Pauses: pause("breaker", "b-1"), Agents: agents(Agent{Name: "b-1"}, Agent{Name: "b-2", Doing: "working", Line: "reads", Since: two})},
			"b-2 is at work", "logs -f m", "since 14:00 UTC: reads", "logs m b-2 -f"},
		"a step is blocked": {Mission{Live: ticking, Steps: []Step{{ID: "s", State: plan.Blocked, Agent: "b-1", Reason: "BLOCKED: no key"}}, Agents: agents(Agent{Name: "b-1"})},
			"Step s waits for a person: BLOCKED: no key", "resume m", "Its step s waits", "resume m b-1"},
		"a next tick": {Mission{Live: ticking, Agents: agents(Agent{Name: "b-1", Next: two.Add(30 * time.Second), Inbox: queue.Depth{New: 2}})},
			"that of b-1, in 30s", "tick m b-1", "2 in its inbox, next tick in 30s", "tick m b-1"},
		"waits for another": {Mission{Live: ticking, Steps: []Step{{ID: "s", State: plan.Waiting, DependsOn: []string{"r"}}, {ID: "r", State: plan.Working, Agent: "b-2"}},
			Agents: agents(Agent{Name: "b-1"})}, "about to begin", "logs m", "step s waits for step r, which is working", "status m"},
		"no next tick":  {Mission{Engine: "systemd", Live: ticking, Agents: agents(Agent{Name: "b-1"})}, "about to begin", "logs m", "no next tick", "reconcile"},
		"broken units":  {Mission{Live: engine.Live{Ticking: true, Trouble: []string{"a timer has no next run."}}}, "a timer has no next run", "reconcile", "", ""},
		"quota goes on": {Mission{Live: ticking, Pauses: pause("human", ""), Agents: agents(Agent{Name: "quota", Line: "$1 used"})}, "paused it", "resume m", "$1 used", "logs m quota"},
	} {
		c.v.ID = "m"
		out := Why(c.v, two)
		if len(out) != 1+len(c.v.Agents) {
			t.Errorf("%s: %+v", name, out)
		}
		for _, r := range out {
			if r.Text == "" || strings.Count(r.Text, ". ") > 0 || !strings.HasSuffix(r.Text, ".") || !strings.HasPrefix(r.Command, "AutoAgentProject ") {
				t.Errorf("%s: %+v", name, r)
			}
		}
		if !strings.Contains(out[0].Text, c.text) || out[0].Command != "AutoAgentProject "+c.command {
			t.Errorf("%s: %+v", name, out[0])
		}
		if last := out[len(out)-1]; c.agent != "" && (!strings.Contains(last.Text, c.agent) || last.Command != "AutoAgentProject "+c.does) {
			t.Errorf("%s: %+v", name, last)
		}
	}
}
