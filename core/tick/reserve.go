package tick

import (
	"context"
	"errors"
	"fmt"

	"example.com/AutoAgentProject/core/caps"
	"example.com/AutoAgentProject/core/ledger"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/money"
)

// reserve asks the ledger for money, and the caps of all missions. Moved means granted.
func (t *Tick) reserve(ctx context.Context, run string, a Ask, alone bool) (limit money.Amount, under caps.Answer, out Outcome, err error) {
	m, step := t.Mission, a.Step
	due := 1
	if !alone {
		due = t.agentsDue()
	}
	most := m.StepLimit
	if a.StepLimit > 0 && (most == 0 || a.StepLimit < most) {
		most = a.StepLimit
	}
	stepLimit := most
	if step != "" && stepLimit > 0 {
		book, err := t.ledger.Read()
		if err != nil {
			return limit, under, Idle, err
		}
		stepLimit = book.StepLeft(step, most)
	}
	n, decision, err := t.ledger.Reserve(ctx, ledger.ReserveRequest{
		Run: run, Agent: t.Agent.Name, Step: step, Model: m.Model, StepLimit: stepLimit, MinRun: m.MinRun,
		AgentsDue: due, Now: t.Now(),
	})
	limit = money.Amount{Unit: m.Budget.Unit, N: n}
	if err != nil {
		return limit, under, Idle, fmt.Errorf("reserve: %w", err)
	}
	switch decision {
	case money.Admit:
		if !alone {
			due += t.otherMissions()
		}
		limit, under, out, err = t.underCaps(ctx, run, limit, due)
		if err != nil || out != Moved {
			err = errors.Join(err, t.release(ctx, run, "the caps of all missions left nothing for it"))
		}
		return limit, under, out, err
	case money.Wait:
		t.Line(ctx, "waiting", step, "", "waits until others have finished: the rest of the budget is reserved")
		return limit, under, Later, nil
	case money.StepSpent:
		return limit, under, Moved, fmt.Errorf("%w: %s", errStepSpent, money.Amount{Unit: limit.Unit, N: most})
	}
	t.Line(ctx, "waiting", step, "", "the budget is used up")
	book, err := t.ledger.Read()
	return limit, under, Over, errors.Join(err, t.Stop(mission.Budget, "less than the smallest run is left of "+book.Budget.String()))
}

// StepLimit is the class of a result without a run: the step has used up its own limit.
const StepLimit = "step-limit"

var errStepSpent = errors.New("the step has used up its limit")

// agentsDue counts who may want money now: this agent and every specialist with something in its mailboxes. Without a
// gateway it is one more if it is alone: a run that is lost counts with all it had reserved then, and must not end the
// mission.
func (t *Tick) agentsDue() int {
	n := 1
	for _, a := range mission.Specialists(t.Mission.Roster) {
		if a.Name == t.Agent.Name {
			continue
		}
		if p, err := t.Store.Queue().Pending(a.Name); err == nil && p {
			n++
		}
	}
	if t.Price == nil {
		return max(n, 2)
	}
	return n
}

// wakeWaiting wakes the specialists with work: money that was reserved is free again.
func (t *Tick) wakeWaiting() {
	for _, a := range mission.Specialists(t.Mission.Roster) {
		if p, err := t.Store.Queue().Pending(a.Name); err == nil && p && a.Name != t.Agent.Name {
			t.Wake(a.Name)
		}
	}
}
