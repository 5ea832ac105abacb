package manager

import (
	"context"

	"example.com/AutoAgentProject/core/journal"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/plan"
	"example.com/AutoAgentProject/core/tick"
)

// mend makes up for what was cut off before it was done: steps that are blocked and of which nobody was told.
func (m Manager) mend(ctx context.Context) error {
	p, err := m.Store.Plan()
	if err != nil {
		return err
	}
	for _, s := range p.Steps {
		if s.State != plan.Blocked {
			continue
		}
		if err := m.TellBlocked(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// goOn ends the wait for a person where there is something to do again: a resume, a note, an answer.
func (m Manager) goOn(ctx context.Context) error {
	pauses, err := m.Store.Pauses(m.Now())
	if err != nil {
		return err
	}
	for _, c := range pauses {
		if c.Cause == tick.BlockedCause {
			return m.Store.Unpause(ctx, tick.BlockedCause, m.Now())
		}
	}
	return nil
}

// stand lets the mission wait for a person: it spends nothing and uses up no time meanwhile.
func (m Manager) stand(ctx context.Context, reason string) (tick.Outcome, error) {
	m.Line(ctx, "blocked", "", "", "waits for a person: %s", reason)
	m.phase(ctx, "blocked")
	fresh, err := m.Store.Pause(ctx, mission.Pause{Cause: tick.BlockedCause, Reason: reason}, m.Now())
	if fresh { // the step itself was told as a blocker
		m.Event(journal.Event{Kind: journal.Paused, Text: "nothing can go on before a person looks at it: " + reason})
	}
	return tick.Idle, err
}
