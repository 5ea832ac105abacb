package usage

import (
	"time"

	"example.com/AutoAgentProject/core/money"
)

// Price is the list price of one response at a time. For a model it does not know it returns false and the dearest
// price there is.
type Price func(model string, u money.Usage, at time.Time, fast bool) (money.Nano, bool)

// Summary is what a count comes to, in the form that scripts read.
type Summary struct {
	Totals      Totals              `json:"totals"`
	Nano        money.Nano          `json:"nano_usd"`
	Diagnostics Diagnostics         `json:"diagnostics"`
	ByModel     map[string]Cost     `json:"by_model"`
	ByDay       map[string]Cost     `json:"by_day"`
	Unpriced    map[string]Unpriced `json:"unpriced_models"`
}

// Totals are the responses and their tokens.
type Totals struct {
	Messages     int64 `json:"messages"`
	Input        int64 `json:"input"`
	Output       int64 `json:"output"`
	CacheWrite5m int64 `json:"cache_write_5m"`
	CacheWrite1h int64 `json:"cache_write_1h"`
	CacheRead    int64 `json:"cache_read"`
	All          int64 `json:"tokens_all"`
	NoCacheRead  int64 `json:"tokens_no_cache_read"`
}

// Cost is a part of it.
type Cost struct {
	Tokens int64      `json:"tokens"`
	Nano   money.Nano `json:"nano_usd"`
}

// Unpriced is a model that was charged at the dearest rates because no price is known for it.
type Unpriced struct {
	Messages int64 `json:"messages"`
	Tokens   int64 `json:"tokens"`
}

// Diagnostics say what was found besides.
type Diagnostics struct {
	Files      int   `json:"files"`
	Repeats    int64 `json:"duplicate_records"`
	Malformed  int64 `json:"malformed_lines"`
	Tails      int64 `json:"incomplete_tail"`
	Undated    int64 `json:"undated_messages"`
	Unreadable int   `json:"unreadable_files"`
	Vanished   int   `json:"vanished_files"`
}

// NoDay is the day of responses whose time is not known, NoModel the name of a model that is not told.
const (
	NoDay   = "unknown"
	NoModel = "unknown"
)

// Summary adds up: each response at its own price, days as they were in that zone.
func (c *Count) Summary(price Price, zone *time.Location) Summary {
	s := Summary{ByModel: map[string]Cost{}, ByDay: map[string]Cost{}, Unpriced: map[string]Unpriced{}}
	var sum money.Usage
	for _, r := range c.responses {
		s.Totals.Messages++
		at, day := r.At(), NoDay
		if at.IsZero() {
			s.Diagnostics.Undated++
		} else {
			day = at.In(zone).Format(time.DateOnly)
		}
		for _, call := range r.Tokens.Calls(r.Model) {
			nano, known := call.Cost(price, at)
			model, tokens := call.Model, call.Usage.Tokens()
			if model == "" {
				model = NoModel
			}
			sum, s.Nano = sum.Add(call.Usage), money.Sum(s.Nano, nano)
			s.ByModel[model] = s.ByModel[model].add(tokens, nano)
			s.ByDay[day] = s.ByDay[day].add(tokens, nano)
			if !known {
				u := s.Unpriced[model]
				s.Unpriced[model] = Unpriced{u.Messages + 1, money.Sum(u.Tokens, tokens)}
			}
		}
	}
	s.Totals.Input, s.Totals.Output, s.Totals.CacheRead = sum.Input, sum.Output, sum.CacheRead
	s.Totals.CacheWrite5m, s.Totals.CacheWrite1h = sum.CacheWrite5m, sum.CacheWrite1h
	s.Totals.All = sum.Tokens()
	s.Totals.NoCacheRead = money.Sum(sum.Input, sum.Output, sum.CacheWrite5m, sum.CacheWrite1h)
	s.Diagnostics.Repeats = c.repeats
	return s
}

// Summary is that of the count, with what was found in the files.
func (s *Scan) Summary(price Price, zone *time.Location) Summary {
	sum := s.Count.Summary(price, zone)
	d := &sum.Diagnostics
	d.Files, d.Malformed, d.Unreadable, d.Vanished = len(s.files), s.malformed, len(s.unreadable), s.vanished
	for _, f := range s.files {
		if f.Tail {
			d.Tails++
		}
	}
	return sum
}

func (c Cost) add(tokens int64, nano money.Nano) Cost {
	return Cost{money.Sum(c.Tokens, tokens), money.Sum(c.Nano, nano)}
}
