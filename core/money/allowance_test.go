package money

import (
	"errors"
	"math"
	"strings"
	"testing"

	"example.com/AutoAgentProject/core/usererr"
)

func TestDailyAllowance(t *testing.T) {
	for _, c := range []struct {
		given      Nano
		plan, cred string
		want       Allowance
	}{
		{40 * USD, "pro", "plan-token", Allowance{40 * USD, SourceGiven, false, "", false}},
		{40 * USD, "", "api-key", Allowance{40 * USD, SourceGiven, false, "", false}},
		{0, "pro", "plan-token", Allowance{12 * USD, SourceTable, true, "pro", false}},
		{0, "max5", "plan-token", Allowance{30 * USD, SourceTable, true, "max5", false}},
		{0, "max", "plan-token", Allowance{30 * USD, SourceTable, true, "max5", false}},
		{0, " Max20", "plan-token", Allowance{120 * USD, SourceTable, true, "max20", false}},
		{0, "", "plan-token", Allowance{12 * USD, SourceTable, true, "pro", true}},
		{0, "team", "plan-token", Allowance{12 * USD, SourceTable, true, "pro", true}},
		{-5, "pro", "plan-token", Allowance{12 * USD, SourceTable, true, "pro", false}},
	} {
		got, err := DailyAllowance(c.given, c.plan, c.cred)
		if err != nil || got != c.want {
			t.Errorf("DailyAllowance(%d, %q, %q) = %+v, %v; want %+v", c.given, c.plan, c.cred, got, err, c.want)
		}
	}
	for _, cred := range []string{"api-key", "", "gateway"} {
		_, err := DailyAllowance(0, "max20", cred)
		var u *usererr.Error
		if !errors.As(err, &u) || u.Code != usererr.Usage || !strings.Contains(u.Hint, "--budget 5usd") || !strings.Contains(u.Hint, "--daily") {
			t.Errorf("credential %q: %v", cred, err)
		}
	}
}

func TestFix(t *testing.T) {
	pro := Allowance{12 * USD, SourceTable, true, "pro", false}
	for _, c := range []struct {
		budget string
		a      Allowance
		want   Amount
		says   string
	}{
		{"10%", pro, Amount{NanoUSD, 1_200_000_000}, "10 % of $12.00/day = $1.20, plan pro, source: table (estimate)"},
		{"2.5%", Allowance{12 * USD, SourceTable, true, "pro", true}, Amount{NanoUSD, 300_000_000}, "2.5 % of $12.00/day = $0.30, plan not known, taken as pro, source: table (estimate)"},
		{"10%", Allowance{40 * USD, SourceGiven, false, "", false}, Amount{NanoUSD, 4 * int64(USD)}, "10 % of $40.00/day = $4.00, source: given"},
		{"100%", Allowance{Nano: math.MaxInt64, Source: SourceGiven}, Amount{NanoUSD, math.MaxInt64}, "100 % of $9,223,372,036.85/day = $9,223,372,036.85, source: given"},
		{"0.01%", Allowance{Nano: 29_999, Source: SourceGiven}, Amount{NanoUSD, 2}, "0.01 % of $0.000029/day = $0.000000002, source: given"},
		{"0.01%", Allowance{Nano: 1, Source: SourceGiven}, Amount{NanoUSD, 1}, "0.01 % of $0.000000001/day = $0.000000001, source: given"},
		{"5usd", pro, Amount{NanoUSD, 5 * int64(USD)}, "$5.00"},
		{"2Mtok", pro, Amount{Tokens, 2_000_000}, "2,000,000 tokens"},
	} {
		b, err := ParseBudget(c.budget)
		if err != nil {
			t.Fatal(err)
		}
		if n, says := Fix(b, c.a); n != c.want || says != c.says {
			t.Errorf("Fix(%s, %+v) = %+v, %q; want %+v, %q", c.budget, c.a, n, says, c.want, c.says)
		}
	}
}
