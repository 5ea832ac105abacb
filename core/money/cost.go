package money

import (
	"regexp"
	"strings"
	"time"
)

// Cost is the list price of one response at the time it was made, in fast mode or not. Only a single response can be
// priced exactly: the size of its prompt decides the rates. Where its time is zero, which means that it is not known, the
// dearest day counts. A model that the table does not know, or one in fast mode without a known price for that, is charged
// at the dearest rates there are, and known is false.
func (t Table) Cost(model string, u Usage, at time.Time, fast bool) (cost Nano, known bool) {
	if u == (Usage{}) {
		return 0, true
	}
	name := t.name(model)
	r, known := t.rates(name, u.Prompt(), at)
	times := int64(1)
	if fast {
		if times = t.rows[name].Fast; times == 0 {
			times, known = t.fast, false
		}
	}
	if regional(model) {
		times *= t.regional
	} else {
		times *= 100
	}
	cost = Sum(
		part(u.Input, r.Input),
		part(u.Output, r.Output),
		part(u.CacheWrite5m, r.CacheWrite5m),
		part(u.CacheWrite1h, r.CacheWrite1h),
		part(u.CacheRead, r.CacheRead),
	)
	cost = Nano(mulDiv(int64(cost), times, 100, true))
	return Sum(cost, part(u.WebSearches, t.webSearch)), known
}

// Dearest returns the model whose output, or for equal ones whose input, costs the most, at its highest rates.
// An unknown model counts as the dearest row. It is empty if there are no models.
func (t Table) Dearest(models ...string) string {
	best, name := Rates{Output: -1}, ""
	for _, m := range models {
		r := t.fallback
		if known, ok := t.rows[canonical(m)]; ok {
			r = known.dearest()
		}
		if r.Output > best.Output || r.Output == best.Output && r.Input > best.Input {
			best, name = r, m
		}
	}
	return name
}

// Rates are the prices of one token in a response with a prompt of that many tokens, not in fast mode.
func (t Table) Rates(model string, prompt int64, at time.Time) (r Rates, known bool) {
	return t.rates(t.name(model), prompt, at)
}

func (t Table) rates(name string, prompt int64, at time.Time) (Rates, bool) {
	m, ok := t.rows[name]
	if !ok {
		return t.fallback, false
	}
	if m.Long != nil && prompt > m.Long.Threshold {
		return m.Long.Rates, true
	}
	if at.IsZero() {
		return m.dearestDay(), true
	}
	if len(m.Until) == 0 {
		return m.Rates, true
	}
	day := at.UTC().Format(time.DateOnly)
	for _, p := range m.Until {
		if day <= p.Date {
			return p.over(m.Rates), true
		}
	}
	return m.Rates, true
}

// part is the price of n tokens of one class.
func part(n int64, rate Nano) Nano { return Nano(mulDiv(n, int64(rate), 1, false)) }

// over puts the rates that the period names over those of today.
func (p period) over(r Rates) Rates {
	for _, c := range []struct{ then, now *Nano }{
		{p.Input, &r.Input}, {p.Output, &r.Output},
		{p.CacheWrite5m, &r.CacheWrite5m}, {p.CacheWrite1h, &r.CacheWrite1h}, {p.CacheRead, &r.CacheRead},
	} {
		if c.then != nil {
			*c.now = *c.then
		}
	}
	return r
}

// dearestDay is the highest rate of each class on any day.
func (m row) dearestDay() Rates {
	r := m.Rates
	for _, p := range m.Until {
		r = r.dearer(p.over(m.Rates))
	}
	return r
}

// dearest is the highest rate of each class that the row has, on any day and in any tier.
func (m row) dearest() Rates {
	r := m.dearestDay()
	if m.Long != nil {
		r = r.dearer(m.Long.Rates)
	}
	return r
}

func (r Rates) dearer(s Rates) Rates {
	return Rates{
		Input:        max(r.Input, s.Input),
		Output:       max(r.Output, s.Output),
		CacheWrite5m: max(r.CacheWrite5m, s.CacheWrite5m),
		CacheWrite1h: max(r.CacheWrite1h, s.CacheWrite1h),
		CacheRead:    max(r.CacheRead, s.CacheRead),
	}
}

// suffix is what providers put behind a model's name: a date, a version, a context size, an alias.
var suffix = regexp.MustCompile(`(-latest|[-@]20\d{6}|-v\d+(:\d+)?|\[1m\])$`)

// name is the plain name of a model. Those of the table are plain.
func (t Table) name(model string) string {
	if _, ok := t.rows[model]; ok {
		return model
	}
	return canonical(model)
}

// canonical is the plain name of a model: "us.anthropic.claude-opus-5-20260301-v1:0" is "claude-opus-5". A number that
// could be a version stays: "claude-opus-5-6" is not "claude-opus-5".
func canonical(model string) string {
	s := strings.ToLower(strings.TrimSpace(model))
	s = s[strings.LastIndexByte(s, '/')+1:]
	if _, rest, ok := strings.Cut(s, "anthropic."); ok {
		s = rest
	}
	for {
		at := suffix.FindStringIndex(s)
		if at == nil {
			return s
		}
		s = s[:at[0]]
	}
}

// regional says whether the name binds the model to one region, as "us.anthropic.claude-opus-5" does.
func regional(model string) bool {
	s := strings.ToLower(strings.TrimSpace(model))
	region, _, ok := strings.Cut(s[strings.LastIndexByte(s, '/')+1:], "anthropic.")
	return ok && region != "" && region != "global."
}
