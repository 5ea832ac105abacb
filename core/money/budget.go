package money

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"example.com/AutoAgentProject/core/usererr"
)

// Kind is what the person said a budget in.
type Kind string

// The kinds of budget.
const (
	KindPercent Kind = "percent" // a share of one day of the subscription
	KindUSD     Kind = "usd"
	KindTokens  Kind = "tokens"
)

// Budget is a budget as it was said. One of the numbers is set, by Kind, and it is more than 0.
type Budget struct {
	Kind        Kind
	BasisPoints int64 // percent: hundredths of a percent, at most 10,000
	Nano        Nano  // usd
	Tokens      int64 // tokens
}

// What can be wrong with a budget string. The errors of ParseBudget and ParseUSD wrap one of them.
var (
	ErrEmpty       = errors.New("empty")
	ErrNoUnit      = errors.New("no unit")
	ErrUnknownUnit = errors.New("unknown unit")
	ErrNotUSD      = errors.New("must be an amount in usd")
	ErrComma       = errors.New("use a point, not a comma")
	ErrNotNumber   = errors.New("not a number")
	ErrNotPositive = errors.New("must be more than 0")
	ErrOver100     = errors.New("over 100%")
	ErrTooLarge    = errors.New("too large")
	ErrFineUSD     = errors.New("finer than a nano-dollar")
	ErrFinePercent = errors.New("finer than 0.01 %")
	ErrFineTokens  = errors.New("finer than one token")
)

// unit is a way to say a budget. A number with up to decimals digits after the point is counted in 10^-decimals.
type unit struct {
	name     string
	kind     Kind
	decimals int
	fine     error
}

// ParseBudget reads a budget: "10%", "2.5 %", "5usd", "$5", "5.25 USD", "2Mtok", "750ktok", "1500000tok". The number is
// ASCII digits with at most one point between them, whatever the locale; the unit is obligatory and its case is free.
// The error is a usererr with code Usage around one of the Err values.
func ParseBudget(s string) (Budget, error) {
	b, err := parseBudget(s)
	if err != nil {
		return Budget{}, usererr.Wrap(err, usererr.Usage, "say it like 10%, 5usd, $5.25, 750ktok or 2Mtok", "budget %.60q", s)
	}
	return b, nil
}

// ParseUSD reads an amount of money: "40usd", "$40", "12.50 USD". The rules and errors are those of ParseBudget.
func ParseUSD(s string) (Nano, error) {
	b, err := parseBudget(s)
	if err == nil && b.Kind != KindUSD {
		err = ErrNotUSD
	}
	if err != nil {
		return 0, usererr.Wrap(err, usererr.Usage, "say it like 40usd, $40 or 12.50usd", "amount %.60q", s)
	}
	return b.Nano, nil
}

func parseBudget(s string) (Budget, error) {
	s = strings.Trim(s, " \t\r\n")
	if s == "" {
		return Budget{}, ErrEmpty
	}
	if strings.Contains(s, ",") {
		return Budget{}, ErrComma
	}
	number, u, known := cutUnit(s)
	whole, frac, negative, ok := cutNumber(number)
	if !ok {
		return Budget{}, ErrNotNumber
	}
	if negative || whole == "" && frac == "" {
		return Budget{}, ErrNotPositive
	}
	if !known {
		if u.name != "" {
			return Budget{}, ErrUnknownUnit
		}
		return Budget{}, ErrNoUnit
	}
	if len(frac) > u.decimals {
		return Budget{}, u.fine
	}
	n, err := strconv.ParseInt(whole+frac+strings.Repeat("0", u.decimals-len(frac)), 10, 64)
	switch {
	case u.kind == KindPercent && (err != nil || n > 10_000):
		return Budget{}, ErrOver100
	case err != nil:
		return Budget{}, ErrTooLarge
	case u.kind == KindPercent:
		return Budget{Kind: KindPercent, BasisPoints: n}, nil
	case u.kind == KindUSD:
		return Budget{Kind: KindUSD, Nano: Nano(n)}, nil
	}
	return Budget{Kind: KindTokens, Tokens: n}, nil
}

// cutUnit splits a budget string. Where the unit is not known, u has its name only, and none if there is no unit.
func cutUnit(s string) (number string, u unit, known bool) {
	usd := unit{"usd", KindUSD, 9, ErrFineUSD}
	if rest, ok := strings.CutPrefix(s, "$"); ok {
		return strings.TrimLeft(rest, " \t"), usd, true
	}
	for _, u := range []unit{
		{"%", KindPercent, 2, ErrFinePercent},
		usd,
		{"mtok", KindTokens, 6, ErrFineTokens},
		{"ktok", KindTokens, 3, ErrFineTokens},
		{"tok", KindTokens, 0, ErrFineTokens},
	} {
		if at := len(s) - len(u.name); at >= 0 && strings.EqualFold(s[at:], u.name) {
			return strings.TrimRight(s[:at], " \t"), u, true
		}
	}
	// "5eur" is a number with a strange unit; "1e3" and "NaN" are no numbers.
	at := strings.LastIndexAny(s, "0123456789.") + 1
	if at == 0 {
		return s, unit{}, false
	}
	return s[:at], unit{name: strings.Trim(s[at:], " \t")}, false
}

// cutNumber splits digits with at most one point between them. Zeros that say nothing are cut off.
func cutNumber(s string) (whole, frac string, negative, ok bool) {
	s, negative = strings.CutPrefix(s, "-")
	whole, frac, point := strings.Cut(s, ".")
	if !digits(whole) || point && !digits(frac) {
		return "", "", false, false
	}
	return strings.TrimLeft(whole, "0"), strings.TrimRight(frac, "0"), negative, true
}

func digits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// String is the budget in a form that ParseBudget reads back to the same.
func (b Budget) String() string {
	switch b.Kind {
	case KindPercent:
		return decimal(b.BasisPoints, 2) + "%"
	case KindUSD:
		return decimal(int64(b.Nano), 9) + "usd"
	}
	return strconv.FormatInt(b.Tokens, 10) + "tok"
}

// decimal writes n * 10^-decimals exactly, without zeros at the end.
func decimal(n int64, decimals int) string {
	s := fmt.Sprintf("%0*d", decimals+1, n)
	whole, frac := s[:len(s)-decimals], strings.TrimRight(s[len(s)-decimals:], "0")
	if frac == "" {
		return whole
	}
	return whole + "." + frac
}
