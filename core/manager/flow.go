package manager

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"example.com/AutoAgentProject/core/conductor"
	"example.com/AutoAgentProject/core/flow"
	"example.com/AutoAgentProject/core/git"
	"example.com/AutoAgentProject/core/journal"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/plan"
	"example.com/AutoAgentProject/core/tick"
)

// conduct is the manager's part of a mission that follows a flow: begin it, ask a person at a gate, end it. No model is asked. The
// baton moves on in the ticks of the specialists; what a dead one left undone is made up for here.
func (m Manager) conduct(ctx context.Context, p *plan.Plan, head string) (tick.Outcome, error) {
	if p.Behind() {
		return tick.Moved, m.Change(ctx, head, func(*plan.Plan) error { return nil })
	}
	b := *p.Baton
	switch b.Status {
	case conductor.Asking:
		return m.atGate(ctx, p, head)
	case conductor.Failed:
		m.Line(ctx, "idle", "", "", "gave up: %s", b.End)
		return tick.Over, m.Stop(mission.FailedEnd, b.End)
	case conductor.Complete:
		if strings.TrimSpace(m.Mission.Verify) == "" {
			break
		}
		if p.Final.Commit != head {
			return m.verify(ctx, head)
		}
		if !p.Final.Passed {
			return tick.Moved, m.tell(ctx, head, b, conductor.Fact{Kind: conductor.Undone, Reason: "the mission's verify failed on the integrated tree: " + p.Final.Output})
		}
	case conductor.Running:
		m.phase(ctx, "working")
		m.Line(ctx, "waiting", "", "", "the baton is at %s, visit %d", b.Step, b.Visit)
		if p.Count(plan.Asking) > 0 {
			return tick.Idle, m.waitAlone(ctx, p)
		}
		return tick.Idle, nil
	}
	if err := m.Repo().Publish(ctx, head, m.Store.Work(), m.Store.Result()); err != nil {
		return tick.Idle, err
	}
	m.Line(ctx, "idle", "", "", "all done")
	m.Event(journal.Event{Kind: journal.MissionFinished, Text: b.End})
	return tick.Over, m.Stop(mission.Completed, b.End)
}

// tell gives the conductor a fact about exactly this state of the baton; if it has moved on meanwhile, an earlier tick did it.
func (m Manager) tell(ctx context.Context, head string, b conductor.State, x conductor.Fact) error {
	course := m.Course()
	was, err := json.Marshal(b)
	if err != nil {
		return err
	}
	return m.Change(ctx, head, func(now *plan.Plan) error {
		if is, err := json.Marshal(now.Baton); err != nil || string(is) != string(was) {
			return err
		}
		now.Tell(course, x, m.Now())
		return nil
	})
}

// shownDiff is how much of a change a gate shows, in bytes.
const shownDiff = 60_000

// atGate asks a person at the gate where the baton lies. Time without an answer costs nothing and is no yes: it is asked again.
func (m Manager) atGate(ctx context.Context, p *plan.Plan, head string) (tick.Outcome, error) {
	b := *p.Baton
	q, err := m.gateQuestion(ctx, p, head)
	if err != nil {
		return tick.Idle, err
	}
	d, err := m.AskPerson(ctx, q)
	switch {
	case err != nil:
		return tick.Idle, err
	case d == nil:
		m.phase(ctx, "waiting")
		m.Line(ctx, "waiting", "", "", "waits for a person at the %s gate of %s", b.Gate.Kind, b.Step)
		return tick.Later, nil
	case d.Verdict == mission.Expired:
		return tick.Moved, m.Store.ChangePlan(ctx, func(now *plan.Plan) (bool, error) {
			if now.Baton == nil || now.Baton.Gate == nil || now.Baton.Gate.Asked != b.Gate.Asked {
				return false, nil
			}
			now.Baton.Gate.Asked++
			return true, nil
		})
	}
	m.Event(journal.Event{Kind: journal.Unpaused, Text: fmt.Sprintf("the %s gate of %s: approval %d is %s", b.Gate.Kind, b.Step, d.N, d.Said())})
	if err := m.Store.Unpause(ctx, tick.WaitCause, m.Now()); err != nil {
		return tick.Idle, err
	}
	m.phase(ctx, "working")
	return tick.Moved, m.tell(ctx, head, b, conductor.Fact{Kind: conductor.Decided, Yes: d.Allows(mission.Hash(q.Subject)), Reason: d.Note})
}

// gateQuestion shows what a person decides about: why, the document of the work, its specifications, and its diff.
func (m Manager) gateQuestion(ctx context.Context, p *plan.Plan, head string) (tick.Question, error) {
	b := *p.Baton
	g := b.Gate
	q := tick.Question{Kind: mission.Gate, Name: g.Kind + "/" + b.Step, Alone: true,
		Title: fmt.Sprintf("%s gate after step %s", g.Kind, b.Step)}
	var t strings.Builder
	fs, _ := m.Flow.Step(b.Step)
	s := p.Step(b.VisitID())
	if g.Kind == conductor.GateError {
		q.Kind, q.Title = mission.Fault, fmt.Sprintf("step %s cannot go on by itself", b.Step)
		fmt.Fprintf(&t, "%s\n\nGo on: a fresh round of step %s, with your words if you give some.\nAbort: the mission ends as failed; what is done stays.\n", firstLines(g.Why, 1800), fs.BackTo())
	} else {
		fmt.Fprintf(&t, "Step %s (%s) is done and passed its checks.\n", b.Step, fs.Name())
		if g.Why != "" {
			fmt.Fprintf(&t, "\n%s\n", firstLines(g.Why, 1500))
		}
		if s != nil && s.Summary != "" {
			fmt.Fprintf(&t, "\n%s\n", firstLines(s.Summary, 1500))
		}
		fmt.Fprintf(&t, "\nApprove: on to %s. Reject, with words: back to %s.\n", g.Next, fs.BackTo())
	}
	diff, err := m.gateDiff(ctx, p, s, fs)
	if err != nil {
		return q, err
	}
	q.Text, q.Diff = strings.TrimSpace(t.String()), diff
	q.Subject, err = json.Marshal(map[string]any{"visit": b.Visit, "gate": g, "head": head, "diff": diff})
	return q, err
}

// gateDiff is what the step made: the specifications it produced, whole, and the change of the product.
func (m Manager) gateDiff(ctx context.Context, p *plan.Plan, s *plan.Step, fs flow.Step) (string, error) {
	var b strings.Builder
	for _, name := range fs.Produces {
		kept, ok := p.Specs[name]
		if !ok {
			continue
		}
		data, err := m.Repo().Document(ctx, git.DocsRef(m.Mission.ID), kept)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "specification %s:\n", name)
		for line := range strings.SplitSeq(strings.TrimSpace(string(data)), "\n") {
			fmt.Fprintf(&b, "+%s\n", line)
		}
	}
	if s != nil && s.Commit != "" && s.Last().Commit != "" && s.Commit != s.Last().Commit {
		patch, more, err := m.Repo().Patch(ctx, s.Last().Commit, s.Commit, shownDiff)
		if err != nil {
			return "", err
		}
		b.WriteString(patch)
		if more {
			fmt.Fprintf(&b, "\n… more of it is in commit %s\n", s.Commit)
		}
	}
	return b.String(), nil
}
