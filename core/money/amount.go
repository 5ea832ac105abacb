package money

import (
	"fmt"
	"strconv"
	"strings"
)

// Unit is what an Amount counts.
type Unit string

// The units of a budget.
const (
	NanoUSD Unit = "nano_usd"
	Tokens  Unit = "tokens"
)

// Of picks the number that a budget in this unit counts.
func (u Unit) Of(nano Nano, tokens int64) int64 {
	if u == Tokens {
		return tokens
	}
	return int64(nano)
}

// Amount is an absolute amount of money or tokens.
type Amount struct {
	Unit Unit  `json:"unit"`
	N    int64 `json:"n"`
}

// Valid says whether the unit is known and the number more than 0, as a budget must be.
func (a Amount) Valid() bool {
	return (a.Unit == NanoUSD || a.Unit == Tokens) && a.N > 0
}

// String is the amount for people: "$1.20" or "2,000,000 tokens".
func (a Amount) String() string {
	switch {
	case a.Unit != Tokens:
		return FormatUSD(Nano(a.N))
	case a.N == 1:
		return "1 token"
	}
	return FormatTokens(a.N) + " tokens"
}

// FormatUSD writes an amount for people, cut and never rounded up: from one dollar on with two decimals, below it with
// two to four, and with more where only they show anything: "$1,234.50", "$0.0123", "$0.000042".
func FormatUSD(n Nano) string {
	sign, u := "", uint64(n)
	if n < 0 {
		sign, u = "-", -uint64(n)
	}
	whole, frac := u/uint64(USD), fmt.Sprintf("%09d", u%uint64(USD))
	keep := 2
	if whole == 0 {
		first := strings.IndexFunc(frac, func(r rune) bool { return r != '0' })
		keep = min(max(4, first+2), len(frac))
	}
	frac = frac[:keep]
	for len(frac) > 2 && frac[len(frac)-1] == '0' {
		frac = frac[:len(frac)-1]
	}
	return sign + "$" + group(strconv.FormatUint(whole, 10)) + "." + frac
}

// FormatTokens writes a count with commas: "2,000,000".
func FormatTokens(n int64) string {
	s := strconv.FormatInt(n, 10)
	if s[0] == '-' {
		return "-" + group(s[1:])
	}
	return group(s)
}

// group puts a comma before every three digits from the right.
func group(digits string) string {
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
