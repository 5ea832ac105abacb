package manager

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"example.com/AutoAgentProject/core/files"
	"example.com/AutoAgentProject/core/journal"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/plan"
	"example.com/AutoAgentProject/core/runner"
	"example.com/AutoAgentProject/core/tick"
)

// plan asks the model for a plan and puts it in force if the code accepts it. With listen it is asked whether what the
// person said changes the plan, while others work.
func (m Manager) plan(ctx context.Context, p *plan.Plan, head, reason string, notes int, listen bool) (tick.Outcome, error) {
	pauses, err := m.Paused(ctx)
	if err != nil {
		return tick.Idle, err
	}
	if len(pauses) > 0 {
		m.Line(ctx, "waiting", "", "", "paused: %s", pauses[0].Reason)
		return tick.Later, nil
	}
	if !listen {
		m.phase(ctx, "planning")
	}
	if notes > 0 && p.Hearing == 0 { // which ones the prompt holds, and that no step is given out that may be replaced
		if err := m.Store.ChangePlan(ctx, func(now *plan.Plan) (bool, error) { now.Hear(notes); *p = *now; return true, nil }); err != nil {
			return tick.Idle, err
		}
	}
	h, err := m.Hold(holdKey(p, listen))
	if err != nil {
		return tick.Idle, err
	}
	res, ok, err := m.Result(h.Run)
	if err != nil {
		return tick.Idle, err
	}
	if !ok {
		h.Died()
		if h.Deaths >= maxDeaths {
			return m.noPlan(ctx, p, head, fmt.Sprintf("%d ticks died while they planned", h.Deaths), listen)
		}
		if h.Runs >= MaxRuns {
			return m.noPlan(ctx, p, head, usedUp(h), listen)
		}
		var out tick.Outcome
		if res, out, err = m.ask(ctx, &h, p, head, reason, listen); err != nil || out != tick.Moved {
			return out, err
		}
	}
	prop, bad := m.read(res, p, listen)
	leaves := plan.Deviations(prop, p)
	if len(bad) == 0 && len(leaves) > 0 {
		var out tick.Outcome
		if bad, out, err = m.mayLeave(ctx, p, prop, leaves); err != nil || out != tick.Moved {
			return out, err
		}
	}
	if len(bad) > 0 {
		m.Event(journal.Event{Kind: journal.PlanRefused, Run: h.Run, Text: "no usable plan: " + strings.Join(bad, "; ")})
		h.Run, h.Why = "", bad[0]
		if err := m.Keep(h); err != nil {
			return tick.Idle, err
		}
		if h.Runs >= MaxRuns {
			return m.noPlan(ctx, p, head, usedUp(h), listen)
		}
		m.Wake(m.Agent.Name)
		return tick.Moved, nil
	}
	accepted := false
	if err := m.Change(ctx, head, func(now *plan.Plan) error {
		if now.Round == p.Round { // else an earlier tick accepted it and died
			if len(leaves) > 0 {
				now.Allow(prop)
			}
			if listen {
				now.Listen(prop, m.Now())
			} else {
				now.Accept(prop, m.Now())
			}
			accepted = true
		}
		return nil
	}); err != nil {
		return tick.Idle, err
	}
	if accepted {
		text := fmt.Sprintf("the plan has %d steps", len(prop.Steps))
		switch {
		case listen && len(prop.Steps) == 0:
			text = "your note was read; the plan stays as it is"
		case listen:
			text = fmt.Sprintf("plan %d has %d new steps, because of your note", p.Round+1, len(prop.Steps))
		case p.Round > 0:
			text = fmt.Sprintf("plan %d has %d new steps, because %s", p.Round+1, len(prop.Steps), reason)
		}
		m.Event(journal.Event{Kind: journal.PlanAccepted, Level: journal.Milestone, Run: h.Run, Text: text})
	}
	m.phase(ctx, "working")
	m.Line(ctx, "waiting", "", "", "the plan has %d new steps", len(prop.Steps))
	return tick.Moved, m.Drop()
}

// holdKey names the plan that is made: another one after a person let it go on.
func holdKey(p *plan.Plan, listen bool) string {
	switch {
	case listen:
		return fmt.Sprintf("notes-%d", p.Hearing)
	case p.Granted > 0:
		return fmt.Sprintf("plan-%d-%d", p.Round+1, p.Granted)
	}
	return fmt.Sprintf("plan-%d", p.Round+1)
}

func usedUp(h tick.Hold) string {
	return strings.TrimSuffix(fmt.Sprintf("%d runs gave no usable plan, the last: %s", h.Runs, h.Why), ", the last: ")
}

// noPlan ends the tries to make a plan. Where the person's note could not be worked in, the plan there is goes on.
func (m Manager) noPlan(ctx context.Context, p *plan.Plan, head, reason string, listen bool) (tick.Outcome, error) {
	if !listen {
		return m.giveUp(ctx, p, head, reason)
	}
	if err := m.Store.ChangePlan(ctx, func(now *plan.Plan) (bool, error) { now.Stay(); return true, nil }); err != nil {
		return tick.Idle, err
	}
	m.Event(journal.Event{Kind: journal.PlanRefused, Level: journal.Blocker, Incident: fmt.Sprintf("note-%d", p.Hearing),
		Text: "your note could not be worked into the plan, which stays as it is: " + reason})
	m.Wake(m.Agent.Name)
	return tick.Moved, m.Drop()
}

// ask runs the agent program once; refused answers go back into the same conversation.
func (m Manager) ask(ctx context.Context, h *tick.Hold, p *plan.Plan, head, reason string, listen bool) (runner.Result, tick.Outcome, error) {
	prof, ok := m.Professions.Get(m.Agent.Profession)
	if !ok {
		return runner.Result{}, tick.Idle, fmt.Errorf("there is no profession %q any more", m.Agent.Profession)
	}
	goal, err := os.ReadFile(m.Store.Goal())
	if err != nil {
		return runner.Result{}, tick.Idle, err
	}
	if err := m.look(ctx, head); err != nil {
		return runner.Result{}, tick.Idle, fmt.Errorf("prepare the manager's clone: %w", err)
	}
	words, err := m.words(h.Key)
	if err != nil {
		return runner.Result{}, tick.Idle, err
	}
	if h.Why != "" {
		words += fmt.Sprintf("\n## Your last run gave no usable plan\nThe reason: %s\nKeep this one short: read only what you need, then answer with the plan.\n", tail(h.Why, 1000))
	}
	text, inputs := prompt(string(goal), m.Mission, m.crew(), p, reason, listen)+words, []string(nil)
	if len(goal) > longGoal {
		dir, err := m.layOut(goal)
		if err != nil {
			return runner.Result{}, tick.Idle, err
		}
		text, inputs = prompt(excerpt(goal, filepath.Join(dir, "goal.md")), m.Mission, m.crew(), p, reason, listen)+words, []string{dir}
	}
	return m.Run(ctx, h, tick.Ask{
		Profession: prof, Dir: m.Store.Clone(m.Agent.Name), Inputs: inputs, Prompt: text,
		Schema: plan.Schema(m.kinds(), listen),
		Follow: func(t runner.Turn) string {
			_, bad := m.read(runner.Result{Verdict: runner.Done, Structured: t.Structured}, p, listen)
			if len(bad) == 0 && t.N == 1 {
				return keepToGoal(t, p)
			}
			if len(bad) == 0 || t.N > m.Limits.Refusal {
				return ""
			}
			m.Event(journal.Event{Kind: journal.PlanRefused, Run: h.Run, Text: "the plan went back: " + strings.Join(bad, "; ")})
			return "This plan cannot be accepted:\n- " + strings.Join(bad, "\n- ") + "\n\nAnswer with the whole corrected plan."
		},
	})
}

// longGoal is how much of a goal stands in the prompt, in bytes; no model takes megabytes at once.
const longGoal = 200_000

// layOut puts a long goal where the run can read it, and returns the folder. The next tick sweeps it.
func (m Manager) layOut(goal []byte) (string, error) {
	dir := filepath.Join(m.Store.Cells(m.Agent.Name), "goal")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	return dir, files.Replace(filepath.Join(dir, "goal.md"), goal, 0o600)
}

// excerpt is the beginning of a long goal and where the whole of it lies.
func excerpt(goal []byte, path string) string {
	return fmt.Sprintf("%s…\n\n(This is the beginning. The whole goal has %d bytes and is in the file %s: read all of it, piece by piece, before you plan.)\n",
		strings.ToValidUTF8(string(goal[:longGoal/4]), ""), len(goal), path)
}

// read takes the plan out of a result; bad says what is wrong with it.
func (m Manager) read(res runner.Result, p *plan.Plan, mayStay bool) (prop plan.Proposal, bad []string) {
	if res.Verdict != runner.Done {
		return prop, []string{"the run ended without success: " + res.Reason}
	}
	d := json.NewDecoder(bytes.NewReader(res.Structured))
	d.DisallowUnknownFields()
	if err := d.Decode(&prop); err != nil {
		return prop, []string{"the answer is no plan: " + tail(err.Error(), 300)}
	}
	if mayStay && len(prop.Steps) == 0 {
		return prop, nil
	}
	bad = plan.Check(prop, m.Mission.Roster, p)
	if more := len(bad) - maxFaults; more > 0 {
		bad = append(bad[:maxFaults], fmt.Sprintf("and %d more faults", more))
	}
	return prop, bad
}

// maxFaults is how many faults of a plan are told at once; a mad answer must not fill the journal and the conversation.
const maxFaults = 30

// kinds are the professions in the roster.
func (m Manager) kinds() []string {
	var out []string
	for _, a := range mission.Specialists(m.Mission.Roster) {
		if !slices.Contains(out, a.Profession) {
			out = append(out, a.Profession)
		}
	}
	return out
}

// crew says who there is, one line a profession.
func (m Manager) crew() string {
	var b strings.Builder
	for _, k := range m.kinds() {
		n := 0
		for _, a := range mission.Specialists(m.Mission.Roster) {
			if a.Profession == k {
				n++
			}
		}
		description := ""
		if p, ok := m.Professions.Get(k); ok {
			description = p.Description
		}
		fmt.Fprintf(&b, "- %s (%d): %s\n", k, n, description)
	}
	return b.String()
}

// fence is a line of '=' that is longer than any in text, so that no part of it can look like its end.
func fence(text string) string {
	longest, n := 4, 0
	for _, c := range []byte(text) {
		if n++; c != '=' {
			n = 0
		}
		longest = max(longest, n)
	}
	return strings.Repeat("=", longest+1)
}

// prompt is what the manager's model reads: the goal word for word, the crew, and where the work stands.
func prompt(goal string, m mission.Mission, crew string, p *plan.Plan, reason string, listen bool) string {
	var b strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&b, format, args...) }
	line := fence(goal)
	if goal != "" && !strings.HasSuffix(goal, "\n") {
		goal += "\n" // else the second line would not begin one
	}
	say("Make the plan for this mission. The goal, word for word, between the two lines:\n\n%s\n%s%s\n", line, goal, line)
	say("\n## Who there is\n%s", crew)
	if m.From != nil {
		say("\n## What there is\nYour folder holds the present state of the work; read what you need. It came from %s.\n", map[string]string{"git": "a git repository", "folder": "a plain folder"}[m.From.Kind])
	} else if p.Round == 0 {
		say("\n## What there is\nNothing yet: your folder is empty.\n")
	}
	if strings.TrimSpace(m.Verify) != "" {
		say("\n## At the end this command must exit 0 in a fresh checkout\n```sh\n%s\n```\n", m.Verify)
	}
	if p.Round > 0 {
		say("\n## Where the work stands\n")
		if listen {
			say("The person told you something, and it stands at the end of this text. Judge what it means for the plan. If nothing of the plan has to change, answer with no steps: " +
				"then the plan stays as it is. Else answer with all that is still to be begun: your steps replace those that wait, and others work on meanwhile.\n")
		} else {
			say("A new plan is needed, because %s\n", reason)
		}
		say("\nEvery acceptance of the first plan must be served, word for word:\n")
		for _, a := range p.Acceptance {
			say("- %s\n", a)
		}
		say("\nSteps so far. Those that are done, assigned, working or asking stay, leave them out of the plan; everything else is replaced by what you answer:\n")
		for _, s := range p.Steps {
			say("- %s (%s, %s): %s; serves: %s\n", s.ID, s.Profession, s.State, s.Title, strings.Join(s.Acceptance, " | "))
			for _, r := range s.Reasons {
				say("  - %s\n", tail(r, 1500))
			}
		}
		for _, s := range p.Skipped {
			say("- %s (%s): %s; the person left it out: it is not wanted any more\n", s.ID, s.Profession, s.Title)
		}
	}
	return b.String()
}
