package money

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"time"
)

func day(s string) time.Time {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		panic(err)
	}
	return t
}

func TestCost(t *testing.T) {
	const at = "2026-11-02T10:00:00Z"
	million := Usage{1e6, 1e6, 1e6, 1e6, 1e6, 0}
	if got, _ := Default().Cost("claude-sonnet-5-5", Usage{CacheRead: 1}, time.Time{}, false); got != 200 {
		t.Errorf("a response whose time is not known costs %d, not as on the dearest day", got)
	}
	for _, c := range []struct {
		name, model string
		u           Usage
		at          string
		fast        bool
		want        Nano
		known       bool
	}{
		{"every class has its rate", "claude-opus-5-5", million, at, false, 37*USD + USD/5, true},
		{"prompt at the threshold", "claude-haiku-5-5", Usage{Input: 1000, Output: 100, CacheRead: 99_000}, at, false, 1_140_000, true},
		{"prompt over it by one: all tokens dearer", "claude-haiku-5-5", Usage{Input: 1001, Output: 100, CacheRead: 99_000}, at, false, 5_700_500, true},
		{"cache writes are prompt, output is not", "claude-haiku-5-5", Usage{Input: 1, Output: 200_000, CacheWrite5m: 50_000, CacheWrite1h: 50_000}, at, false, 500 + 200_000*2500 + 50_000*625 + 50_000*1000, true},
		{"unknown model at the dearest row", "claude-nova-9", Usage{Input: 1000, Output: 100, CacheWrite5m: 100, CacheRead: 1000}, at, false, 25_875_000, false},
		{"no model name", "", Usage{Input: 1}, at, false, 15_000, false},
		{"nothing used costs nothing at any price", "<synthetic>", Usage{}, at, false, 0, true},
		{"last day of the earlier price", "claude-sonnet-5-5", Usage{CacheRead: 1000}, "2026-10-06T23:59:59Z", false, 200_000, true},
		{"first day of the later price", "claude-sonnet-5-5", Usage{CacheRead: 1000}, "2026-10-07T00:00:00Z", false, 100_000, true},
		{"the day is that of UTC", "claude-sonnet-5-5", Usage{CacheRead: 1000}, "2026-10-07T01:00:00+02:00", false, 200_000, true},
		{"the earlier price changes only what it names", "claude-sonnet-5-5", Usage{Input: 1}, "2026-10-01T00:00:00Z", false, 2000, true},
		{"fast mode", "claude-opus-5-5", Usage{Input: 10}, at, true, 80_000, true},
		{"fast mode without a price", "claude-haiku-4-5", Usage{Input: 10}, at, true, 60_000, false},
		{"fast mode of an unknown model", "claude-nova-9", Usage{Input: 10}, at, true, 900_000, false},
		{"web searches, not multiplied", "claude-opus-5-5", Usage{Input: 10, WebSearches: 3}, at, true, 80_000 + 30_000_000, true},
		{"dated name", "claude-sonnet-5-5-20260901", Usage{Input: 1}, at, false, 2000, true},
		{"provider in front, one region", "us.anthropic.claude-sonnet-4-5-20250929-v1:0", Usage{Input: 10, Output: 1}, at, false, 49_500, true},
		{"a broken nano-dollar is charged whole", "eu.anthropic.claude-haiku-5-5", Usage{CacheWrite5m: 1}, at, false, 138, true},
		{"provider in front, any region", "global.anthropic.claude-sonnet-4-5-20250929-v1:0", Usage{Input: 10}, at, false, 30_000, true},
		{"path in front", "vertex_ai/claude-opus-4-1@20250805", Usage{Input: 1}, at, false, 15_000, true},
		{"context size behind", "Claude-Opus-5-5[1m]", Usage{Input: 1}, at, false, 4000, true},
		{"alias behind", "claude-3-5-haiku-latest", Usage{Input: 1}, at, false, 800, true},
		{"a newer version is another model", "claude-opus-5-6", Usage{Input: 1}, at, false, 15_000, false},
		{"a longer name is another model", "claude-opus-5-5-mega", Usage{Input: 1}, at, false, 15_000, false},
		{"negative counts add nothing", "claude-opus-5-5", Usage{Input: -1000, Output: 1}, at, false, 20_000, true},
		{"too much to count stays at the largest number", "claude-nova-9", Usage{math.MaxInt64, math.MaxInt64, 0, 0, 0, math.MaxInt64}, at, true, math.MaxInt64, false},
	} {
		got, known := Default().Cost(c.model, c.u, day(c.at), c.fast)
		if got != c.want || known != c.known {
			t.Errorf("%s: Cost(%q, %+v) = %d, %v; want %d, %v", c.name, c.model, c.u, got, known, c.want, c.known)
		}
	}
}

func TestDefaultTable(t *testing.T) {
	table := Default()
	if n := len(table.Models()); n < 20 {
		t.Errorf("only %d models", n)
	}
	for _, m := range table.Models() {
		one, known := table.Rates(m, 0, day("2026-11-02T00:00:00Z"))
		if !known {
			t.Errorf("%s is listed and not found", m)
		}
		if one.CacheRead >= one.Input || one.Output <= one.Input || one.CacheWrite1h <= one.CacheWrite5m {
			t.Errorf("%s: %+v looks mistyped", m, one)
		}
		if dear, _ := table.Rates("no-such-model", 0, time.Time{}); dear.dearer(one) != dear {
			t.Errorf("%s is dearer than an unknown model", m)
		}
	}
	if got := table.Age(day("2026-12-24T00:00:00Z")); got != 61*24*time.Hour {
		t.Errorf("age is %s", got)
	}
	if got := table.Age(day("2020-01-01T00:00:00Z")); got != 0 {
		t.Errorf("a clock in the past gives the age %s", got)
	}
}

func TestDearest(t *testing.T) {
	table := Default()
	for want, in := range map[string][]string{
		"claude-opus-5-5":   {"claude-sonnet-5-5", "claude-opus-5-5", "claude-haiku-5-5"},
		"claude-nova-9":     {"claude-fable-5-1", "claude-nova-9"},
		"claude-haiku-5-5":  {"claude-haiku-5-5", "claude-3-haiku"}, // by its long-prompt rates
		"claude-sonnet-4-6": {"claude-sonnet-4-6"},
		"":                  nil,
	} {
		if got := table.Dearest(in...); got != want {
			t.Errorf("Dearest(%v) = %q, want %q", in, got, want)
		}
	}
}

func TestLoadIsStrict(t *testing.T) {
	good := string(defaultPrices)
	if _, err := Load(strings.NewReader(good)); err != nil {
		t.Fatal(err)
	}
	for name, edit := range map[string][2]string{
		"other unit":             {"nano-USD per token", "USD per token"},
		"unknown field":          {`"note"`, `"remark"`},
		"price missing":          {`"input": 4000, `, ``},
		"price zero":             {`"input": 4000`, `"input": 0`},
		"price negative":         {`"input": 4000`, `"input": -4000`},
		"price not whole":        {`"input": 4000`, `"input": 4000.5`},
		"price as text":          {`"input": 4000`, `"input": "4000"`},
		"no date":                {`"checked": "2026-10-24"`, `"checked": "last week"`},
		"no fallback":            {`"fallback_nano_usd_per_token"`, `"note": "x", "fallback_nano_usd_per_token_old"`},
		"fallback free":          {`"cache_read": 1500}`, `"cache_read": 0}`},
		"fast too large":         {`"fast": 6`, `"fast": 9000000000`},
		"threshold missing":      {`"threshold_tokens": 100000, `, ``},
		"long price missing":     {`"threshold_tokens": 100000, "input": 500,`, `"threshold_tokens": 100000,`},
		"period without day":     {`"date": "2026-10-06"`, `"date": "October"`},
		"period free":            {`"date": "2026-10-06", "cache_read": 200`, `"date": "2026-10-06", "cache_read": 0`},
		"periods in disorder":    {`[{"date": "2026-10-06", "cache_read": 200}]`, `[{"date": "2026-10-06"}, {"date": "2026-10-05"}]`},
		"name never looked up":   {`"claude-opus-5-5":`, `"Claude-Opus-5-5-20260922":`},
		"something after it":     {"\n}\n", "\n}\n{}"},
		"cut off":                {"\n }\n}\n", ""},
		"regional below list":    {`"regional_percent": 110`, `"regional_percent": 10`},
		"free searches":          {`"web_search_nano_usd": 10000000`, `"web_search_nano_usd": 0`},
		"fast multiplier absent": {`"fallback_fast_multiplier": 6`, `"fallback_fast_multiplier": 0`},
	} {
		bad := strings.Replace(good, edit[0], edit[1], 1)
		if bad == good {
			t.Fatalf("%s: the edit finds nothing to change", name)
		}
		if _, err := Load(strings.NewReader(bad)); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	for _, bad := range []string{"", "null", "{}", "[]"} {
		if _, err := Load(strings.NewReader(bad)); err == nil {
			t.Errorf("%q: accepted", bad)
		}
	}
}

func TestFallbackIsNeverCheaperThanARow(t *testing.T) {
	cheap := bytes.Replace(defaultPrices, []byte(`{"input": 15000, "output": 75000, "cache_write_5m": 18750, "cache_write_1h": 30000, "cache_read": 1500}`),
		[]byte(`{"input": 1, "output": 1, "cache_write_5m": 1, "cache_write_1h": 1, "cache_read": 1}`), 1)
	if bytes.Equal(cheap, defaultPrices) {
		t.Fatal("the edit finds nothing to change")
	}
	table, err := Load(bytes.NewReader(cheap))
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := table.Rates("no-such-model", 0, time.Time{}); got != (Rates{15000, 75000, 18750, 30000, 1500}) {
		t.Errorf("an unknown model costs %+v", got)
	}
}

func TestOverride(t *testing.T) {
	base := Default()
	over, err := base.Override(strings.NewReader(`{"unit": "nano-USD per token", "models": {
		"claude-nova-9": {"input": 20000, "output": 90000, "cache_write_5m": 25000, "cache_write_1h": 40000, "cache_read": 2000},
		"claude-opus-5-5": {"input": 1, "output": 2, "cache_write_5m": 3, "cache_write_1h": 4, "cache_read": 1}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for model, want := range map[string]Nano{"claude-nova-9": 20_000, "claude-opus-5-5": 1, "claude-opus-5": 5000, "no-such-model": 20_000} {
		if got, _ := over.Cost(model, Usage{Input: 1}, time.Time{}, false); got != want {
			t.Errorf("%s costs %d, want %d", model, got, want)
		}
	}
	if got, _ := base.Cost("claude-opus-5-5", Usage{Input: 1}, time.Time{}, false); got != 4000 {
		t.Errorf("the table itself changed: %d", got)
	}
	if _, err := base.Override(strings.NewReader(`{"unit": "nano-USD per token", "models": {"claude-nova-9": {"input": 0}}}`)); err == nil {
		t.Error("a free model was accepted")
	}
}
