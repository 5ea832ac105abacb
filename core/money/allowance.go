package money

import (
	"fmt"
	"strings"

	"example.com/AutoAgentProject/core/usererr"
)

// PlanToken is the kind of credential that belongs to a subscription; runner.Credential has the same word.
const PlanToken = "plan-token"

// Where the daily allowance comes from.
const (
	SourceGiven = "given" // the person said it
	SourceTable = "table" // our estimate for the plan
)

// Allowance is what one day of a subscription is worth at list price. No vendor publishes it: what the table says may
// be wrong by a factor of two either way, so it is marked as an estimate.
type Allowance struct {
	Nano     Nano
	Source   string // SourceGiven or SourceTable
	Estimate bool
	Plan     string // row of the table; empty for SourceGiven
	Assumed  bool   // the plan is not known, so the smallest was taken
}

// DailyAllowance finds the allowance: the one that was given (0: none), else the row of the plan. A plan that the table
// does not know counts as pro, the smallest. Without a subscription there is nothing to take a share of, and the error
// is a usererr with code Usage.
func DailyAllowance(given Nano, plan, credential string) (Allowance, error) {
	if given > 0 {
		return Allowance{Nano: given, Source: SourceGiven}, nil
	}
	if credential != PlanToken {
		return Allowance{}, usererr.New(usererr.Usage, "say --budget 5usd, or --daily 40usd to take the share of",
			"a budget in percent is a share of a subscription, and this login has none")
	}
	a := Allowance{Source: SourceTable, Estimate: true, Plan: strings.ToLower(strings.TrimSpace(plan))}
	switch a.Plan {
	case "pro":
		a.Nano = 12 * USD
	case "max5", "max": // max without a size: the smaller one
		a.Plan, a.Nano = "max5", 30*USD
	case "max20":
		a.Nano = 120 * USD
	default:
		a.Plan, a.Nano, a.Assumed = "pro", 12*USD, true
	}
	return a, nil
}

// Fix turns a budget into the absolute amount that a mission is held to, and tells how in one line. A share is rounded
// down, to not less than 1. The allowance matters for budgets in percent only.
func Fix(b Budget, a Allowance) (Amount, string) {
	switch b.Kind {
	case KindUSD:
		n := Amount{NanoUSD, int64(b.Nano)}
		return n, n.String()
	case KindTokens:
		n := Amount{Tokens, b.Tokens}
		return n, n.String()
	}
	n := Amount{NanoUSD, max(mulDiv(int64(a.Nano), b.BasisPoints, 10_000, false), 1)}
	how := "source: given"
	if a.Source == SourceTable {
		how = "plan " + a.Plan
		if a.Assumed {
			how = "plan not known, taken as " + a.Plan
		}
		how += ", source: table"
	}
	if a.Estimate {
		how += " (estimate)"
	}
	return n, fmt.Sprintf("%s %% of %s/day = %s, %s", decimal(b.BasisPoints, 2), FormatUSD(a.Nano), n, how)
}
