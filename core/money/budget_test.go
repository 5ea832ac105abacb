package money

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"example.com/AutoAgentProject/core/usererr"
)

// kinds are the errors of a budget string by their text in testdata/budgets.json.
func kinds() map[string]error {
	m := map[string]error{}
	for _, err := range []error{ErrEmpty, ErrNoUnit, ErrUnknownUnit, ErrNotUSD, ErrComma, ErrNotNumber, ErrNotPositive,
		ErrOver100, ErrTooLarge, ErrFineUSD, ErrFinePercent, ErrFineTokens} {
		m[err.Error()] = err
	}
	return m
}

type budgetCase struct {
	In          string
	Error       string
	Kind        Kind
	BasisPoints int64 `json:"basis_points"`
	Nano        Nano  `json:"nano_usd"`
	Tokens      int64
}

func budgetCases(t testing.TB) []budgetCase {
	data, err := os.ReadFile("testdata/budgets.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []budgetCase
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) < 60 {
		t.Fatalf("only %d cases", len(cases))
	}
	return cases
}

func TestParseBudget(t *testing.T) {
	errs := kinds()
	for _, c := range budgetCases(t) {
		got, err := ParseBudget(c.In)
		if c.Error != "" {
			want := errs[c.Error]
			if want == nil {
				t.Fatalf("testdata names an error that does not exist: %q", c.Error)
			}
			if !errors.Is(err, want) || usererr.CodeOf(err) != usererr.Usage {
				t.Errorf("ParseBudget(%q) = %v, %v; want error %q", c.In, got, err, c.Error)
			}
			continue
		}
		want := Budget{c.Kind, c.BasisPoints, c.Nano, c.Tokens}
		if err != nil || got != want {
			t.Errorf("ParseBudget(%q) = %+v, %v; want %+v", c.In, got, err, want)
		}
		if again, err := ParseBudget(got.String()); err != nil || again != got {
			t.Errorf("ParseBudget(%q), the String of %q, = %+v, %v", got.String(), c.In, again, err)
		}
	}
}

func TestBudgetErrorTellsInputAndWayOut(t *testing.T) {
	_, err := ParseBudget("10" + strings.Repeat("x", 10_000))
	var u *usererr.Error
	if !errors.As(err, &u) || !strings.Contains(u.Hint, "5usd") || !strings.Contains(u.Error(), `"10xxx`) || len(u.Error()) > 200 {
		t.Errorf("error is %v, hint %q", err, u.Hint)
	}
}

func TestParseUSD(t *testing.T) {
	for in, want := range map[string]Nano{"40usd": 40 * USD, "$40": 40 * USD, "12.50 USD": 12*USD + USD/2} {
		if got, err := ParseUSD(in); err != nil || got != want {
			t.Errorf("ParseUSD(%q) = %d, %v", in, got, err)
		}
	}
	for in, want := range map[string]error{"40": ErrNoUnit, "10%": ErrNotUSD, "2Mtok": ErrNotUSD, "0usd": ErrNotPositive, "40eur": ErrUnknownUnit, "": ErrEmpty} {
		if _, err := ParseUSD(in); !errors.Is(err, want) || usererr.CodeOf(err) != usererr.Usage {
			t.Errorf("ParseUSD(%q): %v, want %v", in, err, want)
		}
	}
}

func FuzzParseBudget(f *testing.F) {
	for _, c := range budgetCases(f) {
		f.Add(c.In)
	}
	f.Fuzz(func(t *testing.T, s string) {
		b, err := ParseBudget(s)
		if err != nil {
			if b != (Budget{}) {
				t.Errorf("%q: an error and a budget %+v", s, b)
			}
			return
		}
		set := 0
		for _, n := range []int64{b.BasisPoints, int64(b.Nano), b.Tokens} {
			if n < 0 {
				t.Errorf("%q: negative: %+v", s, b)
			}
			if n > 0 {
				set++
			}
		}
		if set != 1 || b.BasisPoints > 10_000 {
			t.Errorf("%q: %+v", s, b)
		}
		if again, err := ParseBudget(b.String()); err != nil || again != b {
			t.Errorf("%q: %+v reads back from %q as %+v, %v", s, b, b.String(), again, err)
		}
		if n, _ := Fix(b, Allowance{Nano: 12 * USD, Source: SourceTable, Plan: "pro"}); !n.Valid() {
			t.Errorf("%q: fixed to %+v", s, n)
		}
	})
}
