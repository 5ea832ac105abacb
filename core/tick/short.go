package tick

import (
	"fmt"

	"example.com/AutoAgentProject/core/conductor"
	"example.com/AutoAgentProject/core/money"
)

// The shares of the budget, in percent, from which runs are told that money is short, and from which they get a cheaper
// model and the smallest context.
const (
	WrapUp = 70
	Tight  = 85
)

// Pressure is how much of the budget is used, in percent. What cannot be read is no pressure: then no run starts anyway.
func (t *Tick) Pressure() int {
	book, err := t.ledger.Read()
	if err != nil {
		return 0
	}
	return int(money.ShownPercent(book.Budget.N, book.Used.N))
}

// Spent is what a step has cost so far, in words.
func (t *Tick) Spent(step string) (string, error) {
	book, err := t.ledger.Read()
	if err != nil {
		return "", err
	}
	sum := book.ByStep[step]
	return fmt.Sprintf("%s at list price, %s", money.FormatUSD(sum.Nano), money.Amount{Unit: money.Tokens, N: sum.Tokens}), nil
}

// stepPressure is the same for the part of a step that has one of its own.
func (t *Tick) stepPressure(a Ask) int {
	if a.StepLimit == 0 {
		return 0
	}
	book, err := t.ledger.Read()
	if err != nil {
		return 0
	}
	sum := book.ByStep[a.Step]
	used := int64(sum.Nano)
	if t.Mission.Budget.Unit == money.Tokens {
		used = sum.Tokens
	}
	return map[conductor.Level]int{conductor.WrapUp: WrapUp, conductor.Tight: Tight, conductor.HandOver: 100}[conductor.LevelOf(used, a.StepLimit)]
}

const wrapUp = `
## Money is short
Most of the mission's money is used. Do the smallest thing that makes this step right, leave every extra out, and finish.
`

// shorten fits an ask to the money that is left.
func (t *Tick) shorten(a Ask) Ask {
	p := t.Pressure()
	if p >= WrapUp {
		a.Prompt += wrapUp
	}
	if p >= Tight || a.Cheap {
		a.Model = t.Mission.CheapModel
	}
	return a
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
