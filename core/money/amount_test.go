package money

import (
	"encoding/json"
	"math"
	"testing"
)

func TestFormatUSD(t *testing.T) {
	for n, want := range map[Nano]string{
		0:                    "$0.00",
		1:                    "$0.000000001",
		12:                   "$0.000000012",
		42_900:               "$0.000042",
		1_200_000:            "$0.0012",
		12_300_000:           "$0.0123",
		100_000_000:          "$0.10",
		123_456_789:          "$0.1234",
		999_999_999:          "$0.9999",
		USD:                  "$1.00",
		1_200_000_000:        "$1.20",
		1_999_999_999:        "$1.99",
		1_234_500_000_000:    "$1,234.50",
		-12_300_000:          "-$0.0123",
		math.MaxInt64:        "$9,223,372,036.85",
		math.MinInt64:        "-$9,223,372,036.85",
		1_000_000 * USD:      "$1,000,000.00",
		50_000_000:           "$0.05",
		10_000_000_000 * 100: "$1,000.00",
	} {
		if got := FormatUSD(n); got != want {
			t.Errorf("FormatUSD(%d) = %s, want %s", n, got, want)
		}
	}
}

func TestAmountText(t *testing.T) {
	for a, want := range map[Amount]string{
		{NanoUSD, 1_200_000_000}: "$1.20",
		{Tokens, 2_000_000}:      "2,000,000 tokens",
		{Tokens, 1}:              "1 token",
		{Tokens, 999}:            "999 tokens",
		{Tokens, -1234}:          "-1,234 tokens",
	} {
		if a.String() != want {
			t.Errorf("%+v says %q, want %q", a, a.String(), want)
		}
		data, err := json.Marshal(a)
		var b Amount
		if err != nil || json.Unmarshal(data, &b) != nil || b != a {
			t.Errorf("%+v is %s in JSON, read back %+v", a, data, b)
		}
	}
	if s, _ := json.Marshal(Amount{NanoUSD, 5}); string(s) != `{"unit":"nano_usd","n":5}` {
		t.Errorf("JSON is %s", s)
	}
}

func TestAmountValid(t *testing.T) {
	for a, want := range map[Amount]bool{
		{NanoUSD, 1}: true, {Tokens, 1}: true, {NanoUSD, 0}: false, {Tokens, -1}: false, {"", 5}: false, {"eur", 5}: false,
	} {
		if a.Valid() != want {
			t.Errorf("%+v valid: %v", a, !want)
		}
	}
}

func TestSumsNeverWrapOrShrink(t *testing.T) {
	if got := Sum[int64](math.MaxInt64, 1, 5); got != math.MaxInt64 {
		t.Errorf("Sum wraps to %d", got)
	}
	if got := Sum[Nano](5, -7, 3); got != 8 {
		t.Errorf("a negative amount lowers the sum to %d", got)
	}
	u := Usage{Input: math.MaxInt64, Output: 1, CacheRead: 2}
	if got := u.Add(u); got.Input != math.MaxInt64 || got.Output != 2 || got.Tokens() != math.MaxInt64 || got.Prompt() != math.MaxInt64 {
		t.Errorf("usage wraps: %+v", got)
	}
}
