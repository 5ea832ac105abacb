package usage

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"

	"example.com/AutoAgentProject/core/money"
)

// Number is a count that comes from outside: whatever is not a number from 0 to 10^15 is 0.
type Number int64

// UnmarshalJSON never fails.
func (n *Number) UnmarshalJSON(b []byte) error {
	*n = 0
	f, err := strconv.ParseFloat(string(b), 64)
	if err == nil && f >= 0 && f <= 1e15 {
		*n = Number(math.Round(f))
	}
	return nil
}

// Dollars is an amount of US dollars that comes from outside: what is not a number from 0 to a million is 0.
type Dollars money.Nano

// UnmarshalJSON never fails.
func (d *Dollars) UnmarshalJSON(b []byte) error {
	n, _ := dollars(b)
	*d = Dollars(n)
	return nil
}

// Tokens is a usage as the Messages API tells it, in a response, an event of a stream or a record of a transcript.
type Tokens struct {
	Input     Number `json:"input_tokens"`
	Output    Number `json:"output_tokens"`
	CacheRead Number `json:"cache_read_input_tokens"`
	Written   Number `json:"cache_creation_input_tokens"` // whatever its lifetime
	Split     struct {
		For5m Number `json:"ephemeral_5m_input_tokens"`
		For1h Number `json:"ephemeral_1h_input_tokens"`
	} `json:"cache_creation"`
	Server struct {
		Searches Number `json:"web_search_requests"`
	} `json:"server_tool_use"`
	Speed      Text       `json:"speed"`         // "fast" has a price of its own
	Geo        Text       `json:"inference_geo"` // "us": bound to that region, which has a price of its own
	Iterations Iterations `json:"iterations"`    // only those of an advisor
}

// Most is the larger of both, field by field: the program repeats a message, and early copies know less.
func (t Tokens) Most(o Tokens) Tokens {
	t.Input, t.Output = max(t.Input, o.Input), max(t.Output, o.Output)
	t.CacheRead, t.Written = max(t.CacheRead, o.CacheRead), max(t.Written, o.Written)
	t.Split.For5m, t.Split.For1h = max(t.Split.For5m, o.Split.For5m), max(t.Split.For1h, o.Split.For1h)
	t.Server.Searches = max(t.Server.Searches, o.Server.Searches)
	if t.Speed == "" || o.Speed == fast {
		t.Speed = o.Speed
	}
	if t.Geo == "" || o.Geo == inUS {
		t.Geo = o.Geo
	}
	t.Iterations = t.Iterations.most(o.Iterations)
	return t
}

const (
	fast = "fast"
	inUS = "us"
)

// Usage is the tokens by class, without those of an advisor. The part of the cache writes whose lifetime was not told
// counts as written for five minutes.
func (t Tokens) Usage() money.Usage {
	return classes(t.Input, t.Output, t.CacheRead, t.Written, t.Split.For5m, t.Split.For1h, t.Server.Searches)
}

func classes(in, out, read, written, for5m, for1h, searches Number) money.Usage {
	return money.Usage{Input: int64(in), Output: int64(out), CacheRead: int64(read),
		CacheWrite5m: int64(for5m + max(0, written-for5m-for1h)), CacheWrite1h: int64(for1h), WebSearches: int64(searches)}
}

// Call is what a response used of one model.
type Call struct {
	Model string
	Usage money.Usage
	Fast  bool
	Bound bool // to one region
}

// Cost is its list price, and whether that is known.
func (c Call) Cost(price Price, at time.Time) (money.Nano, bool) {
	name := c.Model
	if c.Bound && !strings.Contains(name, "anthropic.") {
		name = "us.anthropic." + name // as price lists know it
	}
	return price(name, c.Usage, at, c.Fast)
}

// Calls are what a response of the model is charged as: itself, and each time it asked an advisor, which is a model of
// its own whose tokens the others do not hold.
func (t Tokens) Calls(model string) []Call {
	calls := []Call{t.call(model)}
	for _, i := range t.Iterations {
		calls = append(calls, i.Tokens.call(string(i.Model)))
	}
	return calls
}

func (t Tokens) call(model string) Call {
	return Call{Model: model, Usage: t.Usage(), Fast: t.Speed == fast, Bound: t.Geo == inUS}
}

// Iteration is one pass of a response by another model.
type Iteration struct {
	Model  Text
	Tokens Tokens
}

// Iterations are a response's passes by an advisor. Its other passes are in its own tokens already.
type Iterations []Iteration

// UnmarshalJSON never fails.
func (is *Iterations) UnmarshalJSON(b []byte) error {
	*is = nil
	var all []json.RawMessage
	if json.Unmarshal(b, &all) != nil {
		return nil
	}
	for _, raw := range all {
		var one struct {
			Type  Text `json:"type"`
			Model Text `json:"model"`
		}
		var t Tokens
		if json.Unmarshal(raw, &one) != nil || one.Type != "advisor_message" {
			continue
		}
		_ = json.Unmarshal(raw, &t) // a field of the wrong kind stays empty, the others count
		t.Iterations = nil
		*is = append(*is, Iteration{Model: one.Model, Tokens: t})
	}
	return nil
}

// most takes the larger of both, pass by pass.
func (is Iterations) most(o Iterations) Iterations {
	if len(o) == 0 {
		return is
	}
	out := append(Iterations(nil), is...)
	for i, it := range o {
		if i == len(out) {
			out = append(out, it)
			continue
		}
		out[i].Tokens = out[i].Tokens.Most(it.Tokens)
		if out[i].Model == "" {
			out[i].Model = it.Model
		}
	}
	return out
}

// Text is a string that comes from outside: whatever else stands there is empty.
type Text string

// UnmarshalJSON never fails.
func (t *Text) UnmarshalJSON(b []byte) error {
	var s string
	if json.Unmarshal(b, &s) != nil {
		s = ""
	}
	*t = Text(s)
	return nil
}

// ModelTotal is one entry of a result's modelUsage: all that the program's process spent on a model so far.
type ModelTotal struct {
	Input     Number  `json:"inputTokens"`
	Output    Number  `json:"outputTokens"`
	CacheRead Number  `json:"cacheReadInputTokens"`
	Written   Number  `json:"cacheCreationInputTokens"`
	For5m     Number  `json:"cacheCreationEphemeral5mInputTokens"`
	For1h     Number  `json:"cacheCreationEphemeral1hInputTokens"`
	Searches  Number  `json:"webSearchRequests"`
	Cost      Dollars `json:"costUSD"`
	Basis     Text    `json:"costBasis"`
}

// Usage is the total by class.
func (m ModelTotal) Usage() money.Usage {
	return classes(m.Input, m.Output, m.CacheRead, m.Written, m.For5m, m.For1h, m.Searches)
}

// Listed is the program's own figure, if it comes from a price list.
func (m ModelTotal) Listed() money.Nano {
	if m.Basis == "list" {
		return money.Nano(m.Cost)
	}
	return 0
}
