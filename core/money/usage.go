// Package money holds amounts, prices and the decisions about them: what a budget string means, what a response of the
// model costs, whether a run may start, which threshold was crossed. It reads no file and no clock.
package money

// Nano is money in nano-USD (10^-9 USD). All sums are integers.
type Nano int64

// USD is one US dollar.
const USD Nano = 1_000_000_000

// Usage counts the tokens of one response or the sum of several, by class.
type Usage struct {
	Input        int64 `json:"input"`          // uncached prompt tokens
	Output       int64 `json:"output"`         // generated tokens, thinking included
	CacheWrite5m int64 `json:"cache_write_5m"` // written to the 5-minute cache
	CacheWrite1h int64 `json:"cache_write_1h"` // written to the 1-hour cache
	CacheRead    int64 `json:"cache_read"`     // read from a cache
	WebSearches  int64 `json:"web_searches"`   // server-side web searches
}

// Add returns the sum of both, class by class. A sum that does not fit stays at the largest number.
func (u Usage) Add(v Usage) Usage {
	u.Input = Sum(u.Input, v.Input)
	u.Output = Sum(u.Output, v.Output)
	u.CacheWrite5m = Sum(u.CacheWrite5m, v.CacheWrite5m)
	u.CacheWrite1h = Sum(u.CacheWrite1h, v.CacheWrite1h)
	u.CacheRead = Sum(u.CacheRead, v.CacheRead)
	u.WebSearches = Sum(u.WebSearches, v.WebSearches)
	return u
}

// Tokens is the sum of all token classes, the number that a token budget counts.
func (u Usage) Tokens() int64 {
	return Sum(u.Input, u.Output, u.CacheWrite5m, u.CacheWrite1h, u.CacheRead)
}

// Prompt is the size of the prompt in tokens: everything but the output.
func (u Usage) Prompt() int64 {
	return Sum(u.Input, u.CacheWrite5m, u.CacheWrite1h, u.CacheRead)
}
