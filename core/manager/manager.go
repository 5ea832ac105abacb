// Package manager is the tick of the agent that owns the goal: it asks the model for a plan, checks it in code, hands
// steps out, plans anew after a failure, and ends the mission when everything is done and proven. Where nothing
// changed it asks nobody.
package manager

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"example.com/AutoAgentProject/core/git"
	"example.com/AutoAgentProject/core/handoff"
	"example.com/AutoAgentProject/core/journal"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/plan"
	"example.com/AutoAgentProject/core/queue"
	"example.com/AutoAgentProject/core/tick"
	"example.com/AutoAgentProject/core/usererr"
)

// MaxRuns is how many runs the manager may need for one plan before the mission fails.
const MaxRuns = 3

// maxDeaths is how many ticks may die over one plan. A crash of the machine or of the engine is one as well.
const maxDeaths = 10

// Manager is one tick of the manager.
type Manager struct{ *tick.Tick }

// Once does the next thing that is due. The caller has begun the tick.
func (m Manager) Once(ctx context.Context) (tick.Outcome, error) {
	if err := m.Deliver(ctx); err != nil {
		return tick.Idle, err
	}
	if err := m.readMail(ctx); err != nil {
		return tick.Idle, err
	}
	m.watchMail(ctx)
	if err := m.mend(ctx); err != nil {
		return tick.Idle, err
	}
	head, err := m.Repo().Resolve(ctx, "refs/heads/main")
	if err != nil {
		return tick.Idle, err
	}
	p, err := m.Store.Plan()
	if err != nil {
		return tick.Idle, err
	}
	if p, err = m.takeAnswers(ctx, p, head); err != nil {
		return tick.Idle, err
	}
	if len(p.Ready()) > 0 && p.Hearing == 0 { // a tick died between finishing a step and handing on, or a person let a step be tried again
		if err := m.goOn(ctx); err != nil {
			return tick.Idle, err
		}
		if err := m.Change(ctx, head, func(*plan.Plan) error { return nil }); err != nil {
			return tick.Idle, err
		}
		return tick.Moved, nil
	}
	if m.Flow != nil {
		return m.conduct(ctx, p, head)
	}
	notes, err := m.Store.Notes()
	if usererr.CodeOf(err) == usererr.Unreadable { // holds up the next plan, not the work
		m.Log.Warn("what a person told cannot be read", "err", err)
	} else if err != nil {
		return tick.Idle, err
	}
	action, reason := plan.Decide(p, plan.Facts{HasVerify: strings.TrimSpace(m.Mission.Verify) != "", Head: head, Notes: len(notes)})
	if action != plan.Stand {
		if err := m.goOn(ctx); err != nil {
			return tick.Idle, err
		}
	}
	switch action {
	case plan.MakePlan, plan.MakeReplan, plan.Reconsider:
		return m.plan(ctx, p, head, reason, len(notes), action == plan.Reconsider)
	case plan.Verify:
		return m.verify(ctx, head)
	case plan.Complete:
		if err := m.Repo().Publish(ctx, head, m.Store.Work(), m.Store.Result()); err != nil {
			return tick.Idle, err
		}
		m.Line(ctx, "idle", "", "", "all done")
		m.Event(journal.Event{Kind: journal.MissionFinished, Text: reason})
		return tick.Over, m.Stop(mission.Completed, reason)
	case plan.Stand:
		return m.standOrAsk(ctx, p, head, reason)
	case plan.GiveUp:
		return m.giveUp(ctx, p, head, reason)
	}
	if n := p.Count(plan.Asking); n > 0 {
		m.Line(ctx, "waiting", "", "", "waits for a person's word on %d steps; %d under way", n, p.Count(plan.Assigned, plan.Working))
		return tick.Idle, m.waitAlone(ctx, p)
	}
	if err := m.summarise(ctx); err != nil {
		return tick.Idle, err
	}
	m.phase(ctx, "working")
	m.Line(ctx, "waiting", "", "", "%d of %d steps done, %d under way", p.Count(plan.Done), len(p.Steps), p.Count(plan.Assigned, plan.Working))
	return tick.Idle, nil
}

func (m Manager) phase(ctx context.Context, phase string) {
	if err := m.Store.SetPhase(ctx, phase, m.Now()); err != nil {
		m.Log.Warn("the mission's phase could not be written", "err", err)
	}
}

// readMail files what came to the manager; notes become events and are told to the next plan, work is not for it.
func (m Manager) readMail(ctx context.Context) error {
	q := m.Store.Queue()
	for {
		held, dead, err := q.Claim(m.Agent.Name, m.Owner, m.Now())
		if err != nil && !errors.Is(err, queue.ErrBusy) {
			return err
		}
		for _, name := range dead {
			m.Event(journal.Event{Kind: journal.Repaired, Text: "a handoff to the manager was set aside: see inbox/failed/" + name + ".error"})
		}
		if held == nil || err != nil {
			return nil
		}
		if held.Envelope.Get("type") == handoff.Note {
			if err := m.FileNote(held.Envelope); err != nil {
				return err
			}
		}
		m.Event(journal.Event{Kind: journal.MailReceived, Text: fmt.Sprintf("the manager got a %s from %s: %s",
			held.Envelope.Get("type"), held.Envelope.Get("from"), held.Envelope.Get("message")+held.Envelope.Get("task"))})
		if err := q.Complete(m.Agent.Name, held.Name, m.Now()); err != nil {
			return err
		}
	}
}

// verify runs the mission's own command on the integrated tree, once for each tree.
func (m Manager) verify(ctx context.Context, head string) (tick.Outcome, error) {
	m.phase(ctx, "verifying")
	m.Line(ctx, "working", "", "", "verifies the integrated tree")
	ctx, done := m.UntilStopped(ctx)
	defer done()
	dir, remove, err := m.Checkout(ctx, head)
	if err != nil {
		return tick.Idle, err
	}
	defer remove()
	ok, output, err := m.Check(ctx, dir, m.Mission.Verify)
	if errors.Is(err, tick.ErrStopped) {
		return tick.Over, nil
	}
	if err != nil {
		return tick.Idle, err
	}
	final := plan.Final{Commit: head, Passed: ok}
	e := journal.Event{Kind: journal.VerifyPassed, Text: "the mission's verify passed on the integrated tree"}
	if !ok {
		final.Output = tail(output, 4000)
		e = journal.Event{Kind: journal.VerifyFailed, Level: journal.Milestone, Text: "the mission's verify failed on the integrated tree"}
	}
	err = m.Store.ChangePlan(ctx, func(p *plan.Plan) (bool, error) {
		p.Final = final
		return true, nil
	})
	if err != nil {
		return tick.Idle, err
	}
	m.Event(e)
	m.Wake(m.Agent.Name)
	return tick.Moved, nil
}

func tail(s string, max int) string {
	s = strings.TrimSpace(s)
	if len(s) <= max {
		return s
	}
	return "…" + strings.ToValidUTF8(s[len(s)-max:], "")
}

// look brings the manager's own clone to head, so that the model can read what is there.
func (m Manager) look(ctx context.Context, head string) error {
	clone, err := m.Clone()
	if err != nil {
		return err
	}
	_, err = clone.Prepare(ctx, m.Repo(), head, git.Fresh)
	return err
}
