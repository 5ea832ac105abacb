package gateway

import (
	"strings"
	"time"

	"example.com/AutoAgentProject/core/money"
	"example.com/AutoAgentProject/core/usage"
)

// tariff says what a response costs in the unit of the budget.
type tariff struct {
	unit  money.Unit
	price usage.Price
}

// cost is what a response costs. It is answered by the model that says so; where that name has no price, by the one
// that was asked.
func (t tariff) cost(asked string, n Count, at time.Time) (amount int64, known bool) {
	if t.unit == money.Tokens {
		return n.Usage.Tokens(), true
	}
	model := asked
	if n.Model != "" {
		if _, ok := t.price(n.Model, money.Usage{Input: 1}, at, false); ok {
			model = n.Model
		}
	}
	if n.Regional {
		model = bindRegion(model)
	}
	nano, known := t.price(model, n.Usage, at, n.Fast)
	return int64(nano), known
}

// worst is the most that a request can cost: all of its prompt in the dearest class that it can fall into, and all the
// output that it may have.
func (t tariff) worst(a *ask, prompt, output int64, regional bool, at time.Time) int64 {
	classes := []money.Usage{{Input: prompt}, {CacheRead: prompt}}
	if a.cached {
		classes = append(classes, money.Usage{CacheWrite5m: prompt})
	}
	if a.hour {
		classes = append(classes, money.Usage{CacheWrite1h: prompt})
	}
	var most int64
	for _, u := range classes {
		u.Output = output
		amount, _ := t.cost(a.model, Count{Usage: u, Fast: a.fast, Regional: regional || a.regional}, at)
		most = max(most, amount)
	}
	return most
}

// bindRegion is the name by which a price list knows the model bound to a region.
func bindRegion(model string) string {
	if strings.Contains(model, "anthropic.") {
		return model
	}
	return "us.anthropic." + model
}

// fit is the largest output from floor to want whose worst case is not more than left. ok is false if there is none.
func fit(left, want, floor int64, worst func(output int64) int64) (output, amount int64, ok bool) {
	if amount = worst(want); amount <= left {
		return want, amount, true
	}
	low, high := floor, want-1
	if low > high || worst(low) > left {
		return 0, worst(min(floor, want)), false
	}
	for low < high {
		middle := low + (high-low+1)/2
		if worst(middle) <= left {
			low = middle
		} else {
			high = middle - 1
		}
	}
	return low, worst(low), true
}
