package money

import (
	"maps"
	"slices"
)

// The meters that can tell what a run cost, most trusted first.
const (
	MeterGateway    = "gateway"    // what our proxy counted
	MeterResult     = "result"     // modelUsage of the last result
	MeterStream     = "stream"     // the events as they came
	MeterTranscript = "transcript" // what the program wrote down
)

// Claim is what one meter says that a run cost.
type Claim struct {
	Meter    string
	Nano     Nano
	Tokens   int64
	Requests int64
	ByModel  map[string]Usage
	Unpriced []string
}

// Spend is what a run is charged: of all meters the most money and the most tokens, each by itself, so that a budget in
// either is safe. Classes and models are those of the meter with the most money (of equal ones with the most tokens, then
// the first), whose name it bears. A negative claim counts as 0. known is false if no meter said anything, which is not
// the same as nothing was spent.
func Spend(claims ...Claim) (charged Claim, known bool) {
	best := -1
	unpriced := map[string]bool{}
	var nano Nano
	var tokens, requests int64
	for i, c := range claims {
		for _, m := range c.Unpriced {
			unpriced[m] = true
		}
		nano, tokens, requests = max(nano, c.Nano), max(tokens, c.Tokens), max(requests, c.Requests)
		if best < 0 || c.Nano > claims[best].Nano || c.Nano == claims[best].Nano && c.Tokens > claims[best].Tokens {
			best = i
		}
	}
	if best < 0 {
		return Claim{}, false
	}
	charged = claims[best]
	charged.Nano, charged.Tokens, charged.Requests = nano, tokens, requests
	charged.Unpriced = slices.Sorted(maps.Keys(unpriced))
	return charged, true
}
