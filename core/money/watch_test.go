package money

import (
	"encoding/json"
	"maps"
	"math"
	"reflect"
	"slices"
	"testing"
	"time"
)

func TestWatch(t *testing.T) {
	one := func(n int64) Reading { return Reading{Used: map[string]int64{"transcripts": n}} }
	lost := Reading{Unreadable: []string{"transcripts"}}
	for name, looks := range map[string][]struct {
		r    Reading
		want Standing
	}{
		"transcripts that vanish": {
			{one(450), Standing{450, StateOK, 0, "", false, 45, 550}},
			{one(870), Standing{870, StateWarn85, 85, "", false, 87, 130}},
			{one(0), Standing{870, StateWarn85, 0, AlertDown, false, 87, 130}},
			{lost, Standing{870, StateWarn85, 0, AlertUnreadable, true, 87, 130}},
			{one(300), Standing{870, StateWarn85, 0, AlertDown, false, 87, 130}},
			{one(871), Standing{871, StateWarn85, 0, "", false, 87, 129}},
		},
		"several sources, each with its own mark": {
			{Reading{Used: map[string]int64{"a": 300}}, Standing{300, StateOK, 0, "", false, 30, 700}},
			{Reading{Used: map[string]int64{"a": 0, "b": 400}}, Standing{700, StateWarn70, 70, AlertDown, false, 70, 300}},
			{Reading{Used: map[string]int64{"c": 50}}, Standing{750, StateWarn70, 0, "", false, 75, 250}},
			{Reading{Used: map[string]int64{"c": 100}, Unreadable: []string{"a"}}, Standing{800, StateWarn80, 80, AlertUnreadable, true, 80, 200}},
		},
		"one after the other": {
			{one(699), Standing{699, StateOK, 0, "", false, 69, 301}},
			{one(700), Standing{700, StateWarn70, 70, "", false, 70, 300}},
			{one(799), Standing{799, StateWarn70, 0, "", false, 79, 201}},
			{one(800), Standing{800, StateWarn80, 80, "", false, 80, 200}},
			{one(850), Standing{850, StateWarn85, 85, "", false, 85, 150}},
			{one(999), Standing{999, StateWarn85, 0, "", false, 99, 1}},
			{one(1000), Standing{1000, StateStop, 100, "", true, 100, 0}},
			{one(1300), Standing{1300, StateStop, 0, "", true, 130, 0}},
			{one(0), Standing{1300, StateStop, 0, AlertDown, true, 130, 0}},
		},
		"a jump tells the highest":   {{one(0), Standing{0, StateOK, 0, "", false, 0, 1000}}, {one(1100), Standing{1100, StateStop, 100, "", true, 110, 0}}},
		"nothing could ever be read": {{lost, Standing{0, StateOK, 0, AlertUnreadable, true, 0, 1000}}},
	} {
		var w Watch
		for i, c := range looks {
			before := Watch{maps.Clone(w.Marks), w.Said}
			next, got := w.Look(1000, c.r)
			if got != c.want {
				t.Errorf("%s, look %d: %+v, want %+v", name, i, got, c.want)
			}
			if !reflect.DeepEqual(w, before) {
				t.Errorf("%s, look %d changes what it was given", name, i)
			}
			data, err := json.Marshal(next) // as a restart would
			if w = (Watch{}); err != nil || json.Unmarshal(data, &w) != nil || !reflect.DeepEqual(w, next) {
				t.Errorf("%s, look %d: %s reads back as %+v", name, i, data, w)
			}
		}
	}
}

func TestSpend(t *testing.T) {
	use := func(n int64) map[string]Usage { return map[string]Usage{"m": {Input: n}} }
	for _, c := range []struct {
		name   string
		claims []Claim
		want   Claim
		known  bool
	}{
		{"no meter", nil, Claim{}, false},
		{"one", []Claim{{MeterStream, 5, 7, 1, use(7), nil}}, Claim{MeterStream, 5, 7, 1, use(7), nil}, true},
		{"nothing is an answer", []Claim{{Meter: MeterResult}}, Claim{Meter: MeterResult}, true},
		{"the gateway knows most", []Claim{{MeterGateway, 9, 90, 3, use(90), nil}, {MeterResult, 5, 50, 2, use(50), nil}, {MeterTranscript, 4, 40, 2, use(40), nil}}, Claim{MeterGateway, 9, 90, 3, use(90), nil}, true},
		{"the result knows subagents", []Claim{{MeterGateway, 4, 40, 1, use(40), nil}, {MeterResult, 5, 50, 0, use(50), nil}, {MeterTranscript, 3, 30, 1, use(30), nil}}, Claim{MeterResult, 5, 50, 1, use(50), nil}, true},
		{"the transcript alone, after a kill", []Claim{{MeterTranscript, 3, 30, 1, use(30), nil}}, Claim{MeterTranscript, 3, 30, 1, use(30), nil}, true},
		{"money and tokens by different meters", []Claim{{MeterResult, 9, 10, 1, use(10), nil}, {MeterTranscript, 3, 30, 1, use(30), nil}}, Claim{MeterResult, 9, 30, 1, use(10), nil}, true},
		{"equal money: the one with more tokens", []Claim{{MeterGateway, 5, 10, 1, use(10), nil}, {MeterResult, 5, 11, 1, use(11), nil}}, Claim{MeterResult, 5, 11, 1, use(11), nil}, true},
		{"all equal: the first", []Claim{{MeterGateway, 5, 10, 1, use(10), nil}, {MeterResult, 5, 10, 1, use(10), nil}}, Claim{MeterGateway, 5, 10, 1, use(10), nil}, true},
		{"models without a price of all", []Claim{{MeterGateway, 5, 10, 1, nil, []string{"b"}}, {MeterResult, 6, 10, 1, nil, []string{"a", "b"}}}, Claim{MeterResult, 6, 10, 1, nil, []string{"a", "b"}}, true},
		{"negative claims", []Claim{{MeterGateway, -5, -10, -1, nil, nil}}, Claim{Meter: MeterGateway}, true},
	} {
		got, known := Spend(c.claims...)
		if known != c.known || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, %v; want %+v", c.name, got, known, c.want)
		}
		slices.Reverse(c.claims)
		if again, _ := Spend(c.claims...); again.Nano != got.Nano || again.Tokens != got.Tokens {
			t.Errorf("%s: the order of the meters matters: %+v", c.name, again)
		}
	}
}

func TestPark(t *testing.T) {
	now := time.Unix(1_796_000_000, 0)
	for _, c := range []struct {
		reset  time.Time
		jitter time.Duration
		n      int
		want   time.Duration
		told   bool
	}{
		{now.Add(time.Hour), 20 * time.Second, 1, time.Hour + 20*time.Second, true},
		{now.Add(time.Hour), -time.Hour, 1, time.Hour, true}, // never before it
		{time.Time{}, time.Minute, 1, time.Minute, false},
		{time.Time{}, time.Minute, 3, 4 * time.Minute, false},
		{time.Time{}, 0, 1 << 40, 30 * time.Minute, false},
		{now, 0, 0, time.Minute, false},
		{now.Add(-time.Hour), 0, 2, 2 * time.Minute, false},
		{now.Add(MaxLimit + time.Second), 0, 1, time.Minute, false},
	} {
		if until, told := Park(c.reset, now, c.jitter, c.n); until.Sub(now) != c.want || told != c.told {
			t.Errorf("%+v: %v, %v", c, until.Sub(now), told)
		}
	}
}

func TestLimits(t *testing.T) {
	now := time.Unix(1_796_000_000, 0)
	var l Limits
	for i, wait := range []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute} { // no time is ever invented
		var do LimitAction
		var until time.Time
		l, do, until = l.Merge(LimitEvent{Status: "rejected"}, now, 0)
		if do != LimitPark || until.Sub(now) != wait {
			t.Errorf("refusal %d: %q for %v", i, do, until.Sub(now))
		}
		now = until
	}
	l, do, _ := l.Merge(LimitEvent{Status: "allowed"}, now, 0)
	if do != LimitNone || l.Waits != 0 || l.Parked != 0 {
		t.Errorf("answered again: %q, %+v", do, l)
	}
	_, do, until := l.Merge(LimitEvent{Credit: true}, now, 0)
	if do != LimitBlock || until.Sub(now) != 30*time.Minute {
		t.Errorf("no credit: %q for %v", do, until.Sub(now))
	}
	l, _, _ = l.Merge(LimitEvent{Status: "rejected", Reset: now.Unix() + 600}, now, 0)
	if l, _, until = l.Merge(LimitEvent{Status: "rejected", Reset: now.Unix() + 60}, now, 0); until.Sub(now) != 10*time.Minute {
		t.Errorf("a shorter limit ends a longer one: %v", until.Sub(now))
	}
	data, err := json.Marshal(l)
	var again Limits
	if err != nil || json.Unmarshal(data, &again) != nil || !reflect.DeepEqual(l, again) {
		t.Errorf("%s reads back as %+v", data, again)
	}
	if BackOff(math.MaxInt) != 30*time.Minute || BackOff(-1) != time.Minute {
		t.Error("back-off has no bounds")
	}
}
