package gateway

import (
	"slices"

	"example.com/AutoAgentProject/core/money"
)

// settle charges what the response cost, once: what was told, and for the rest the most that it can be.
func (c *call) settle() {
	if c.settled {
		return
	}
	c.settled = true
	g, r, n := c.g, &c.record, c.meter.Count()
	r.Usage = n.Usage
	r.Cut = !n.Final && !c.free
	switch {
	case c.free || n.Failed && !n.Begun:
		r.Amount, r.Cut, r.Usage = 0, false, money.Usage{}
	case n.Begun:
		if !n.Final {
			// Not all that was written has been seen, and thinking is not shown at all.
			n.Usage.Output = max(n.Usage.Output, c.output)
		}
		amount, known := g.tariff.cost(r.Model, n, r.Time)
		r.Amount, r.Unpriced = amount, !known
	default:
		r.Amount = r.Worst
	}
	r.Beyond = r.Amount > r.Worst
	if n.Begun {
		g.known.learn(c.ask.prompt, n.Usage.Prompt())
	}
	g.account.settle(r.Worst, r.Amount)
	g.note(n, *r)
	if g.cfg.OnRecord != nil {
		g.cfg.OnRecord(*r)
	}
}

func (g *Gateway) note(n Count, r Record) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.regional = g.regional || n.Regional
	t := g.report.ByModel[r.Model]
	g.report.ByModel[r.Model] = Total{t.Requests + 1, t.Usage.Add(r.Usage), money.Sum(t.Amount, r.Amount)}
	for counter, yes := range map[*int]bool{&g.report.Lowered: r.MaxTokens < r.Asked, &g.report.Cut: r.Cut, &g.report.Beyond: r.Beyond} {
		if yes {
			*counter++
		}
	}
	if r.Unpriced && !slices.Contains(g.report.Unpriced, r.Model) {
		g.report.Unpriced = append(g.report.Unpriced, r.Model)
	}
}
