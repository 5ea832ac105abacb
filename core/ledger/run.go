package ledger

import (
	"context"
	"fmt"
	"slices"
	"time"

	"example.com/AutoAgentProject/core/money"
	"example.com/AutoAgentProject/core/usererr"
)

// ReserveRequest asks for the start of a run. Limits are in the unit of the budget.
type ReserveRequest struct {
	Run       string // its id, never used before
	Agent     string
	Step      string
	Model     string
	Budget    money.Amount // may be smaller than the mission's, then it holds; the zero value: the mission's alone
	StepLimit int64        // see money.Facts
	MinRun    int64
	AgentsDue int
	Now       time.Time
}

// Reserve decides whether the run may start, and if so keeps its cap for it. Read, decision and record are one under the
// lock, so that runs which start at the same time cannot pass the budget together. Asked again for a run that has
// reserved and was not launched, it answers the same; for one that was launched or has ended: usererr Conflict.
func (l *Ledger) Reserve(ctx context.Context, q ReserveRequest) (limit int64, d money.Decision, err error) {
	err = l.change(ctx, q.Now, func(p *past) (*Record, error) {
		e, err := p.find(q.Run)
		if err != nil {
			return nil, err
		}
		if e != nil {
			if p.open[q.Run] == nil || e.Launched || e.Agent != q.Agent || e.Step != q.Step {
				return nil, usererr.New(usererr.Conflict, "", "run %s has been used already", q.Run)
			}
			limit, d = e.Cap, money.Admit
			return nil, nil
		}
		budget := p.budget
		if q.Budget != (money.Amount{}) {
			if q.Budget.Unit != budget.Unit {
				return nil, fmt.Errorf("ledger: reserve in %q, the budget counts %q", q.Budget.Unit, budget.Unit)
			}
			budget.N = min(budget.N, q.Budget.N)
		}
		limit, d = money.Decide(money.Facts{Budget: budget.N, Used: p.used(), Reserved: p.reserved(),
			StepLimit: q.StepLimit, MinRun: q.MinRun, AgentsDue: q.AgentsDue})
		if d != money.Admit {
			return nil, nil
		}
		return &Record{Kind: Reserve, Run: q.Run, Agent: q.Agent, Step: q.Step, Model: q.Model, Cap: limit, Unit: budget.Unit}, nil
	})
	if err != nil {
		return 0, "", err
	}
	return limit, d, nil
}

// Launch says that the program of a run is being started. Without an open reservation it must not be: usererr Conflict.
func (l *Ledger) Launch(ctx context.Context, run string, at time.Time) error {
	return l.change(ctx, at, func(p *past) (*Record, error) {
		e := p.open[run]
		if e == nil {
			return nil, usererr.New(usererr.Conflict, "", "run %s has no open reservation", run)
		}
		if e.Launched {
			return nil, nil
		}
		return &Record{Kind: Launch, Run: run, Agent: e.Agent, Step: e.Step}, nil
	})
}

// Spent is what a run cost, by whatever meter.
type Spent struct {
	Nano     money.Nano
	Tokens   int64
	Requests int64 // to the model; 0: not known
	ByModel  map[string]money.Usage
	Source   string
	Unpriced []string
	Note     string
	Agent    string // whose run it was; only for a run that never reserved
	Step     string // likewise
}

// Spend settles a run: its reservation ends, what it cost counts. It may be told several times, for example when a
// transcript is found later: the largest counts, and what adds nothing is not recorded again. The spend of a run that
// never reserved counts too.
func (l *Ledger) Spend(ctx context.Context, run string, s Spent, at time.Time) error {
	return l.change(ctx, at, func(p *past) (*Record, error) {
		r := &Record{Kind: Spend, Run: run, Agent: s.Agent, Step: s.Step, Nano: s.Nano, Tokens: s.Tokens, Requests: s.Requests,
			ByModel: s.ByModel, Source: s.Source, Unpriced: s.Unpriced, Note: s.Note}
		e, err := p.find(run)
		if err != nil {
			return nil, err
		}
		if e != nil {
			isNew := func(model string) bool { return !slices.Contains(e.unpriced, model) }
			if e.settled && s.Nano >= 0 && s.Nano <= e.nano && s.Tokens >= 0 && s.Tokens <= e.tokens && !slices.ContainsFunc(s.Unpriced, isNew) {
				return nil, nil
			}
			r.Agent, r.Step, r.Model = e.Agent, e.Step, e.Model
		}
		return r, nil
	})
}

// Release ends the reservation of a run that cost nothing. For a run without an open reservation it does nothing.
func (l *Ledger) Release(ctx context.Context, run, note string, at time.Time) error {
	return l.change(ctx, at, func(p *past) (*Record, error) {
		e := p.open[run]
		if e == nil {
			return nil, nil
		}
		return &Record{Kind: Release, Run: run, Agent: e.Agent, Step: e.Step, Note: note}, nil
	})
}

// SetBudget changes the mission's budget to n, in the same unit. Told again it does nothing.
func (l *Ledger) SetBudget(ctx context.Context, n money.Amount, note string, at time.Time) error {
	return l.change(ctx, at, func(p *past) (*Record, error) {
		if n == p.budget {
			return nil, nil
		}
		return &Record{Kind: Budget, Cap: n.N, Unit: n.Unit, Note: note}, nil
	})
}
