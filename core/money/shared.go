package money

// Stay is one run as SharedContext sees it.
type Stay struct {
	Fresh    int64 // tokens that the run added: input, cache writes and output
	Requests int64 // to the model; less than 1 counts as 1
	Read     Nano  // price of reading one token from the cache
}

// SharedContext estimates what the same runs, in this order, would have cost above what they did if all of them had been
// one conversation that only grows: each request of a run would have read all that earlier runs added, from a cache that
// never forgets. extra = Σ requests × (fresh tokens of all earlier runs) × cache-read price. It is no measurement: no
// context is that long, and a cache does forget.
func SharedContext(runs []Stay) (extra Nano) {
	var before int64
	for _, r := range runs {
		tokens := mulDiv(before, max(r.Requests, 1), 1, false)
		extra = Sum(extra, part(tokens, r.Read))
		before = Sum(before, r.Fresh)
	}
	return extra
}
