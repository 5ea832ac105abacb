package ledger

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"example.com/AutoAgentProject/core/money"
)

// Book is the state of a ledger at one moment.
type Book struct {
	Budget   money.Amount           // the mission's budget
	Used     money.Amount           // spent by all runs, in the unit of the budget
	Reserved money.Amount           // caps of the open runs
	Nano     money.Nano             // spent in money, whatever the budget counts
	Tokens   int64                  // spent in tokens, whatever the budget counts
	OpenRuns []Run                  // reserved and neither settled nor released, oldest first
	ByAgent  map[string]Sum         // what each agent spent
	ByStep   map[string]Sum         // what each step cost
	ByModel  map[string]money.Usage // tokens of each model
	Unpriced []string               // models that were charged without a known price, sorted
	Records  int64
}

// Run is a run that reserved.
type Run struct {
	ID       string
	Agent    string
	Step     string
	Model    string
	Cap      int64     // in the unit of the budget
	At       time.Time // when it reserved
	Launched bool      // its program was started, so it may have cost something
}

// Sum is what several runs cost together.
type Sum struct {
	Nano   money.Nano `json:"nano_usd"`
	Tokens int64      `json:"tokens"`
	Runs   int        `json:"runs"`
}

// StepLeft is the step limit for the next run of a step whose runs together may cost limit: what is left of it, or -1
// if nothing is. A limit of 0 is none and stays 0.
func (b Book) StepLeft(step string, limit int64) int64 {
	if limit == 0 {
		return 0
	}
	s := b.ByStep[step]
	left := money.Remaining(limit, b.Budget.Unit.Of(s.Nano, s.Tokens))
	if left == 0 {
		return -1
	}
	return left
}

// book makes the state for others, who may keep and change it.
func (p *past) book() Book {
	b := Book{
		Budget:   p.budget,
		Used:     money.Amount{Unit: p.budget.Unit, N: p.used()},
		Reserved: money.Amount{Unit: p.budget.Unit, N: p.reserved()},
		Nano:     p.nano,
		Tokens:   p.tokens,
		ByAgent:  map[string]Sum{},
		ByStep:   map[string]Sum{},
		ByModel:  map[string]money.Usage{},
		Records:  p.seq,
	}
	for _, e := range p.open {
		b.OpenRuns = append(b.OpenRuns, e.Run)
	}
	slices.SortFunc(b.OpenRuns, func(x, y Run) int {
		return cmp.Or(x.At.Compare(y.At), cmp.Compare(x.ID, y.ID))
	})
	unpriced := map[string]bool{}
	if p.base != nil {
		maps.Copy(b.ByAgent, p.base.ByAgent)
		maps.Copy(b.ByStep, p.base.ByStep)
		maps.Copy(b.ByModel, p.base.ByModel)
		for _, model := range p.base.Unpriced {
			unpriced[model] = true
		}
	}
	for _, e := range p.runs {
		if !e.settled {
			continue
		}
		b.ByAgent[e.Agent] = b.ByAgent[e.Agent].add(e)
		b.ByStep[e.Step] = b.ByStep[e.Step].add(e)
		for model, u := range e.byModel {
			b.ByModel[model] = b.ByModel[model].Add(u)
		}
		for _, model := range e.unpriced {
			unpriced[model] = true
		}
	}
	b.Unpriced = slices.Sorted(maps.Keys(unpriced))
	return b
}

func (s Sum) add(e *run) Sum {
	return Sum{money.Sum(s.Nano, e.nano), money.Sum(s.Tokens, e.tokens), s.Runs + 1}
}

func (p *past) used() int64 { return p.budget.Unit.Of(p.nano, p.tokens) }

func (p *past) reserved() int64 {
	var n int64
	for _, e := range p.open {
		n = money.Sum(n, e.Cap)
	}
	return n
}

// union adds to known the names that it lacks.
func union(known, more []string) []string {
	for _, m := range more {
		if !slices.Contains(known, m) {
			known = append(known, m)
		}
	}
	return known
}
