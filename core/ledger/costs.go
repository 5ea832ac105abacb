package ledger

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"example.com/AutoAgentProject/core/money"
)

// Entry is a run that was settled: what it cost, of which tokens.
type Entry struct {
	Run
	Nano     money.Nano
	Tokens   int64
	Requests int64                  // to the model; 0: not recorded
	ByModel  map[string]money.Usage // empty where no meter told it
	Settled  time.Time              // when it was written down, the last time
}

// Entries returns the settled runs in the order in which they reserved, with the state of the ledger they are part of. It reads all of it.
func (l *Ledger) Entries() ([]Entry, Book, error) {
	var out []Entry
	book, err := l.read(l.whole, func(p *past) {
		out = nil
		for _, e := range p.runs {
			if e.settled {
				out = append(out, Entry{Run: e.Run, Nano: e.nano, Tokens: e.tokens, Requests: e.requests, ByModel: e.byModel, Settled: e.at})
			}
		}
	})
	slices.SortFunc(out, func(x, y Entry) int { return cmp.Or(x.At.Compare(y.At), cmp.Compare(x.ID, y.ID)) })
	return out, book, err
}

// By is what costs are told by.
type By string

// The ways to tell costs.
const (
	ByAgent By = "agent"
	ByStep  By = "step"
	ByModel By = "model"
	ByRun   By = "run"
)

// Cost is one line of a table of costs.
type Cost struct {
	Name   string
	Runs   int // that took part
	Usage  money.Usage
	Tokens int64 // at least the sum of Usage: of some runs only the sum is known
	Nano   money.Nano
}

// PriceOf is the list price of tokens of a model, by which the cost of a run with several models is divided.
type PriceOf func(model string, u money.Usage) money.Nano

// Costs adds up by agent, step, model or run, the dearest first; runs stay in their order.
func Costs(runs []Entry, by By, price PriceOf) []Cost {
	sums := map[string]*Cost{}
	var order []string
	add := func(name string, u money.Usage, tokens int64, nano money.Nano) {
		c := sums[name]
		if c == nil {
			c = &Cost{Name: name}
			sums[name] = c
			order = append(order, name)
		}
		c.Runs++
		c.Usage, c.Tokens, c.Nano = c.Usage.Add(u), money.Sum(c.Tokens, tokens), money.Sum(c.Nano, nano)
	}
	for _, e := range runs {
		var all money.Usage
		for _, u := range e.ByModel {
			all = all.Add(u)
		}
		switch by {
		case ByAgent:
			add(e.Agent, all, e.Tokens, e.Nano)
		case ByStep:
			add(e.Step, all, e.Tokens, e.Nano)
		case ByRun:
			add(e.ID, all, e.Tokens, e.Nano)
		case ByModel:
			parts := divide(e, price)
			for _, m := range slices.Sorted(maps.Keys(parts)) {
				tokens := e.ByModel[m].Tokens()
				if len(e.ByModel) == 0 {
					tokens = e.Tokens
				}
				add(m, e.ByModel[m], tokens, parts[m])
			}
		}
	}
	out := make([]Cost, 0, len(order))
	for _, name := range order {
		out = append(out, *sums[name])
	}
	if by != ByRun {
		slices.SortStableFunc(out, func(x, y Cost) int { return cmp.Or(cmp.Compare(y.Nano, x.Nano), cmp.Compare(x.Name, y.Name)) })
	}
	return out
}

// divide shares the cost of a run among its models by the list price of what each used. The parts add up to it exactly.
func divide(e Entry, price PriceOf) map[string]money.Nano {
	if len(e.ByModel) == 0 {
		return map[string]money.Nano{e.Model: e.Nano}
	}
	weights := map[string]int64{}
	for m, u := range e.ByModel {
		weights[m] = int64(price(m, u))
	}
	parts := map[string]money.Nano{}
	for m, n := range money.Divide(int64(e.Nano), weights) {
		parts[m] = money.Nano(n)
	}
	return parts
}
