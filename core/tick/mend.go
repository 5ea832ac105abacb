package tick

import (
	"context"
	"fmt"
	"slices"

	"example.com/AutoAgentProject/core/journal"
	"example.com/AutoAgentProject/core/plan"
)

// Mend makes up for what nobody else notices about this agent's steps: one that is blocked and of which nobody was told, and one
// whose handoff is nowhere any more, or was closed although the step goes on. The caller has delivered before, so what is
// not there now is lost. What was repaired is told in the journal.
func (t *Tick) Mend(ctx context.Context) error {
	p, err := t.Store.Plan()
	if err != nil {
		return err
	}
	for _, s := range p.Steps {
		switch {
		case s.Agent != t.Agent.Name:
		case s.State == plan.Blocked:
			err = t.TellBlocked(ctx, s)
		case t.lostHandoff(s):
			err = t.handAgain(ctx, s)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// lostHandoff says whether a step is under way and nothing in the agent's mailbox stands for it.
func (t *Tick) lostHandoff(s plan.Step) bool {
	return (s.State == plan.Assigned || s.State == plan.Working) && slices.Contains([]string{"", "completed"}, t.Store.Queue().Where(s.Agent, s.Last().Name))
}

// handAgain hands a step to its agent again, as it was handed over last.
func (t *Tick) handAgain(ctx context.Context, lost plan.Step) error {
	again := false
	err := t.Store.ChangePlan(ctx, func(p *plan.Plan) (bool, error) {
		s := p.Step(lost.ID)
		if s == nil || s.Last().Name != lost.Last().Name || !t.lostHandoff(*s) {
			return false, nil
		}
		name, failed := t.Namer(ctx, s.Last().Commit)
		again = p.Again(s.ID, name, t.Now())
		return again, *failed
	})
	if err != nil || !again {
		return err
	}
	t.Event(journal.Event{Kind: journal.Repaired, Step: lost.ID, Text: fmt.Sprintf("the handoff of step %s to %s was lost, or closed too early; it was handed over again", lost.ID, lost.Agent)})
	return t.Deliver(ctx)
}
