package view

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/plan"
)

// Reason says in one sentence why a mission or one of its agents does what it does, or nothing, and what changes that.
type Reason struct {
	Of      string `json:"of"` // the mission's id, or an agent's name
	Text    string `json:"text"`
	Command string `json:"command"`
}

const program = "AutoAgentProject "

// Why answers for the mission first, then for each agent. It goes by what v holds alone.
func Why(v Mission, now time.Time) []Reason {
	out := []Reason{v.why(now)}
	for _, a := range v.Agents {
		out = append(out, v.whyAgent(a, now))
	}
	for i := range out {
		out[i].Text = strings.Join(strings.Fields(out[i].Text), " ")
	}
	return out
}

func (v Mission) reason(of, command, format string, args ...any) Reason {
	return Reason{Of: of, Command: program + command, Text: fmt.Sprintf(format, args...)}
}

// cmd is a command about this mission.
func (v Mission) cmd(verb string, more ...string) string {
	return strings.Join(append([]string{verb, v.ID}, more...), " ")
}

func (v Mission) why(now time.Time) Reason {
	say := func(command, format string, args ...any) Reason { return v.reason(v.ID, command, format, args...) }
	switch {
	case v.Stop != nil && strings.HasPrefix(v.Phase, "stopping"):
		return say(v.cmd("abort"), "It is being stopped, and that nothing of it lives is not proven yet: %s.", v.Stop.Reason)
	case v.Stop != nil && v.Stop.Cause == mission.Completed:
		return say(v.cmd("deliver"), "It is completed: %s.", v.Stop.Reason)
	case v.Stop != nil && v.Stop.Cause.Final():
		return say("start <new-id> --from "+v.Repo, "It is %s for good: %s.", v.Stop.Cause.Phase(), v.Stop.Reason)
	case v.Stop != nil && v.Stop.Cause == mission.Budget:
		return say(v.cmd("budget add", "2usd")+" && "+program+v.cmd("resume"), "It has halted for want of money: %s.", v.Stop.Reason)
	case v.Stop != nil && v.Stop.Cause == mission.Time:
		return say(v.cmd("hours add", "1")+" && "+program+v.cmd("resume"), "It has halted for want of time: %s.", v.Stop.Reason)
	case v.Stop != nil:
		return say(v.cmd("resume"), "It has halted, and goes on when what is wrong was mended: %s.", v.Stop.Reason)
	case strings.HasPrefix(v.Phase, "unknown"):
		return say("doctor", "Whether somebody ticks it is unknown.")
	case !v.Live.Ticking && v.Engine == "systemd":
		return say("reconcile", "Nobody ticks it: its units are gone or stopped.")
	case !v.Live.Ticking:
		return say(v.cmd("run"), "Nobody ticks it: the process that did has ended.")
	}
	for _, p := range v.Pauses {
		if p.Agent == "" {
			return v.paused(p, now)
		}
	}
	var works, waits []string
	for _, a := range v.Agents {
		if a.Doing == "working" {
			works = append(works, a.Name)
		}
		if a.Doing == "blocked" || v.pausedAgent(a.Name) != nil {
			waits = append(waits, a.Name)
		}
	}
	blocked := v.stepsIn(plan.Blocked, "")
	switch {
	case len(works) > 0:
		return say(v.cmd("logs -f"), "It goes on: %s at work.", isAre(works))
	case len(blocked) > 0:
		return say(v.cmd("resume"), "Step %s waits for a person: %s.", blocked[0].ID, strings.TrimSuffix(blocked[0].Reason, "."))
	case len(waits) > 0:
		return say(v.cmd("resume", waits[0]), "Nothing happens, because %s waiting for a person.", isAre(waits))
	case len(v.Live.Trouble) > 0:
		return say("reconcile", "Its units are not as they should be: %s.", strings.TrimSuffix(v.Live.Trouble[0], "."))
	}
	if next, ok := v.nextTick(); ok {
		return say(v.cmd("tick", next.Name), "Nobody is at work just now; the next tick is that of %s, %s.", next.Name, in(next.Next, now))
	}
	return say(v.cmd("logs"), "A tick is under way or about to begin.")
}

// paused says what a pause of the mission waits for.
func (v Mission) paused(p mission.Pause, now time.Time) Reason {
	reason := strings.TrimSuffix(p.Reason, ".")
	until := ""
	if !p.Until.IsZero() {
		until = ", until " + p.Until.UTC().Format("2006-01-02 15:04 MST")
	}
	say := func(command, format string, args ...any) Reason { return v.reason(v.ID, command, format, args...) }
	switch p.Cause {
	case "human":
		return say(v.cmd("resume"), "A person paused it: %s.", reason)
	case "login":
		return say("login", "It waits for a login: %s.", reason)
	case "approval":
		return say(v.cmd("approvals"), "It waits for your answer: %s.", reason)
	case "blocked":
		return say(v.cmd("resume"), "It waits for a person: %s.", reason)
	case "cap":
		return say("doctor", "What all missions together may spend is used up%s: %s; raise the caps in the configuration.", until, reason)
	case "limit":
		return say(v.cmd("status"), "It waits by itself%s: %s.", until, reason)
	}
	return say(v.cmd("status"), "It is paused (%s)%s: %s.", p.Cause, until, reason)
}

func (v Mission) whyAgent(a Agent, now time.Time) Reason {
	say := func(command, format string, args ...any) Reason { return v.reason(a.Name, command, format, args...) }
	if v.Stop != nil {
		return say(v.cmd("logs", a.Name), "It does nothing: the mission is %s.", v.Phase)
	}
	if a.Name == "quota" || a.Name == "reporter" { // they work through every pause
		if !v.Live.Ticking {
			return say(v.cmd("status --why"), "It does nothing: nobody ticks the mission.")
		}
		return say(v.cmd("logs", a.Name), "It looks by itself%s: %s.", next(a, now), or(a.Line, "nothing to tell"))
	}
	if p := v.pausedAgent(a.Name); p != nil {
		return say(v.cmd("resume", a.Name), "It is paused: %s.", strings.TrimSuffix(p.Reason, "."))
	}
	for _, p := range v.Pauses {
		if p.Agent == "" {
			r := v.paused(p, now)
			return Reason{Of: a.Name, Command: r.Command, Text: "It waits with the mission (" + p.Cause + ")."}
		}
	}
	if !v.Live.Ticking {
		return say(v.cmd("status --why"), "It does nothing: nobody ticks the mission, or that is unknown.")
	}
	if a.Doing == "working" {
		return say(v.cmd("logs", a.Name, "-f"), "It is at work since %s: %s.", a.Since.UTC().Format("15:04 MST"), or(a.Line, "no word yet"))
	}
	if b := v.stepsIn(plan.Blocked, a.Name); len(b) > 0 && a.Inbox.New+a.Inbox.InProcess == 0 {
		return say(v.cmd("resume", a.Name), "Its step %s waits for a person: %s.", b[0].ID, strings.TrimSuffix(b[0].Reason, "."))
	}
	if n := a.Inbox.New + a.Inbox.InProcess; n > 0 {
		return say(v.cmd("tick", a.Name), "%d in its inbox%s: %s.", n, next(a, now), or(a.Line, "nobody took it yet"))
	}
	if a.Next.IsZero() && v.Engine == "systemd" {
		return say("reconcile", "Nothing is in its inbox, and no next tick is planned.")
	}
	if a.Name == "manager" {
		return say(v.cmd("logs", a.Name), "It waits%s: %s.", next(a, now), or(a.Line, "nothing is due"))
	}
	if w := v.stepsIn(plan.Waiting, ""); len(w) > 0 {
		for _, d := range w[0].DependsOn {
			if s := v.step(d); s != nil && s.State != plan.Done {
				return say(v.cmd("status"), "It has nothing to do: step %s waits for step %s, which is %s.", w[0].ID, s.ID, s.State)
			}
		}
	}
	return say(v.cmd("status"), "It has nothing to do%s.", next(a, now))
}

func (v Mission) pausedAgent(name string) *mission.Pause {
	i := slices.IndexFunc(v.Pauses, func(p mission.Pause) bool { return p.Agent == name })
	if i < 0 {
		return nil
	}
	return &v.Pauses[i]
}

// stepsIn are the steps in a state, of one agent or, if that is empty, of all.
func (v Mission) stepsIn(state plan.State, agent string) (out []Step) {
	for _, s := range v.Steps {
		if s.State == state && (agent == "" || s.Agent == agent) {
			out = append(out, s)
		}
	}
	return out
}

func (v Mission) step(id string) *Step {
	for i := range v.Steps {
		if v.Steps[i].ID == id {
			return &v.Steps[i]
		}
	}
	return nil
}

// nextTick is the agent with work that is ticked next: quota and reporter do none.
func (v Mission) nextTick() (out Agent, ok bool) {
	for _, a := range v.Agents {
		if a.Name != "quota" && a.Name != "reporter" && !a.Next.IsZero() && (!ok || a.Next.Before(out.Next)) {
			out, ok = a, true
		}
	}
	return out, ok
}

func next(a Agent, now time.Time) string {
	if a.Next.IsZero() {
		return ""
	}
	return ", next tick " + in(a.Next, now)
}

func in(t, now time.Time) string {
	if d := t.Sub(now).Round(time.Second); d > 0 {
		return "in " + d.String()
	}
	return "now"
}

func isAre(names []string) string {
	if len(names) == 1 {
		return names[0] + " is"
	}
	return strings.Join(names, ", ") + " are"
}

func or(a, b string) string {
	if a = strings.TrimSuffix(strings.TrimSpace(a), "."); a != "" {
		return a
	}
	return b
}
