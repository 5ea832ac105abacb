package tick

import (
	"context"
	"errors"
	"fmt"

	"example.com/AutoAgentProject/core/handoff"
	"example.com/AutoAgentProject/core/journal"
	"example.com/AutoAgentProject/core/plan"
)

// Priority of work along the plan (the convention of the format: 00 urgent, 50 the chain, 99 low).
const priority = 50

// Namer fixes the envelopes of assignments made by this agent on top of commit. The sequence number is taken before
// the plan is written: one may be lost, none is used twice.
func (t *Tick) Namer(ctx context.Context, commit string) (plan.Namer, *error) {
	var failed error
	return func(s plan.Step, to string) plan.Handoff {
		seq, err := t.Store.Queue().Sequence(ctx, t.Agent.Name)
		if err != nil {
			failed = err
		}
		if s.Visit != nil && s.Visit.From != "" {
			commit = s.Visit.From
		}
		now := t.Now()
		name, id, _ := handoff.NewWork(handoff.Work{From: t.Agent.Name, To: to, Priority: priority, Task: s.ID, Commit: commit, Seq: seq, At: now})
		return plan.Handoff{Name: name, ID: id, From: t.Agent.Name, Commit: commit, At: now.UTC()}
	}, &failed
}

// Change changes the plan under the lock, gives what became ready to whoever has the least to do, and sends it.
// head is the commit that new work starts from. told are the events of the change itself.
func (t *Tick) Change(ctx context.Context, head string, change func(*plan.Plan) error, told ...journal.Event) error {
	var given []plan.Step
	course := t.Course()
	err := t.Store.ChangePlan(ctx, func(p *plan.Plan) (bool, error) {
		if err := change(p); err != nil {
			return false, err
		}
		if t.Flow != nil {
			p.Follow(course, t.Now())
		}
		name, failed := t.Namer(ctx, head)
		for _, s := range p.Assign(t.Mission.Roster, name, t.Now()) {
			given = append(given, *s)
		}
		return true, *failed
	})
	if err != nil {
		return err
	}
	for _, e := range told {
		t.Event(e)
	}
	for _, s := range given {
		t.Event(journal.Event{Kind: journal.StepAssigned, Step: s.ID, Text: fmt.Sprintf("step %s (%s) went to %s", s.ID, s.Title, s.Agent)})
	}
	return t.Deliver(ctx)
}

// Deliver sends what the plan says was handed over and did not arrive yet, and brings this agent's outbox to its
// recipients. It is repeatable: what arrived is not sent again.
func (t *Tick) Deliver(ctx context.Context) error {
	q := t.Store.Queue()
	p, err := t.Store.Plan()
	if err != nil {
		return err
	}
	senders := map[string]bool{t.Agent.Name: true}
	for _, s := range p.Steps {
		h := s.Last()
		if s.State != plan.Assigned || q.Where(s.Agent, h.Name) != "" {
			continue
		}
		short, err := t.Repo().Short(ctx, h.Commit)
		if err != nil {
			return err
		}
		_, _, e := handoff.NewWork(handoff.Work{From: h.From, To: s.Agent, Priority: priority, Task: s.ID, Commit: short, At: h.At, Hops: h.Hops})
		e.Set("id", h.ID) // fixed when it was assigned; the sequence number is in it
		if err := q.Send(h.From, h.Name, e); err != nil {
			return err
		}
		senders[h.From] = true
	}
	var errs []error
	for from := range senders { // one that fails holds up no other
		woken, err := q.Deliver(from, t.Now())
		t.Wake(woken...) // also when the rest failed
		if err != nil {
			errs = append(errs, fmt.Errorf("deliver the outbox of %s: %w", from, err))
		}
	}
	return errors.Join(errs...)
}
