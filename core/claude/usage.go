package claude

import (
	"math"
	"strconv"

	"example.com/AutoAgentProject/core/money"
)

// tokens is a usage as the Messages API tells it.
type tokens struct {
	Input     number `json:"input_tokens"`
	Output    number `json:"output_tokens"`
	CacheRead number `json:"cache_read_input_tokens"`
	Written   number `json:"cache_creation_input_tokens"` // whatever its lifetime
	Split     struct {
		For5m number `json:"ephemeral_5m_input_tokens"`
		For1h number `json:"ephemeral_1h_input_tokens"`
	} `json:"cache_creation"`
	Server struct {
		Searches number `json:"web_search_requests"`
	} `json:"server_tool_use"`
}

// most is the larger of both, field by field: the program repeats a message, and early copies know less.
func (t tokens) most(o tokens) tokens {
	t.Input, t.Output = max(t.Input, o.Input), max(t.Output, o.Output)
	t.CacheRead, t.Written = max(t.CacheRead, o.CacheRead), max(t.Written, o.Written)
	t.Split.For5m, t.Split.For1h = max(t.Split.For5m, o.Split.For5m), max(t.Split.For1h, o.Split.For1h)
	t.Server.Searches = max(t.Server.Searches, o.Server.Searches)
	return t
}

// usage puts the part of the cache writes whose lifetime was not told at five minutes.
func (t tokens) usage() money.Usage {
	return money.Usage{Input: int64(t.Input), Output: int64(t.Output), CacheRead: int64(t.CacheRead),
		CacheWrite5m: int64(t.Split.For5m + max(0, t.Written-t.Split.For5m-t.Split.For1h)), CacheWrite1h: int64(t.Split.For1h),
		WebSearches: int64(t.Server.Searches)}
}

// modelUse is one entry of a result's modelUsage: all that the program's process spent on a model so far.
type modelUse struct {
	Input     number  `json:"inputTokens"`
	Output    number  `json:"outputTokens"`
	CacheRead number  `json:"cacheReadInputTokens"`
	Written   number  `json:"cacheCreationInputTokens"`
	For5m     number  `json:"cacheCreationEphemeral5mInputTokens"`
	For1h     number  `json:"cacheCreationEphemeral1hInputTokens"`
	Searches  number  `json:"webSearchRequests"`
	Cost      decimal `json:"costUSD"`
	Basis     string  `json:"costBasis"`
}

func (m modelUse) usage() money.Usage {
	return money.Usage{Input: int64(m.Input), Output: int64(m.Output), CacheRead: int64(m.CacheRead),
		CacheWrite5m: int64(m.For5m + max(0, m.Written-m.For5m-m.For1h)), CacheWrite1h: int64(m.For1h), WebSearches: int64(m.Searches)}
}

// decimal is an amount of US dollars that comes from outside: what is not a number from 0 to a million is 0.
type decimal money.Nano

func (d *decimal) UnmarshalJSON(b []byte) error {
	*d = 0
	f, err := strconv.ParseFloat(string(b), 64)
	if err == nil && f >= 0 && f <= 1e6 {
		*d = decimal(math.Round(f * float64(money.USD)))
	}
	return nil
}

// listed is the program's own figure, if it comes from a price list.
func (m modelUse) listed() money.Nano {
	if m.Basis == "list" {
		return money.Nano(m.Cost)
	}
	return 0
}

// least is the smaller of both, class by class.
func least(u, v money.Usage) money.Usage {
	return money.Usage{Input: min(u.Input, v.Input), Output: min(u.Output, v.Output),
		CacheWrite5m: min(u.CacheWrite5m, v.CacheWrite5m), CacheWrite1h: min(u.CacheWrite1h, v.CacheWrite1h),
		CacheRead: min(u.CacheRead, v.CacheRead), WebSearches: min(u.WebSearches, v.WebSearches)}
}

// less is u without v, no class below 0.
func less(u, v money.Usage) money.Usage {
	return money.Usage{Input: max(0, u.Input-v.Input), Output: max(0, u.Output-v.Output),
		CacheWrite5m: max(0, u.CacheWrite5m-v.CacheWrite5m), CacheWrite1h: max(0, u.CacheWrite1h-v.CacheWrite1h),
		CacheRead: max(0, u.CacheRead-v.CacheRead), WebSearches: max(0, u.WebSearches-v.WebSearches)}
}
