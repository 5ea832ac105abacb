package ledger

import (
	"reflect"
	"testing"

	"example.com/AutoAgentProject/core/money"
)

func TestCosts(t *testing.T) {
	runs := []Entry{
		{Run: Run{ID: "a", Agent: "manager", Model: "big"}, Nano: 10, Tokens: 12, ByModel: map[string]money.Usage{"big": {Input: 4}, "small": {Input: 8}}},
		{Run: Run{ID: "b", Agent: "codebuilder-1", Step: "page", Model: "big"}, Nano: 100, Tokens: 50}, // only its sum is known
		{Run: Run{ID: "c", Agent: "codebuilder-1", Step: "page", Model: "big"}, Nano: 7, Tokens: 3, ByModel: map[string]money.Usage{"small": {Output: 3}}},
	}
	price := func(model string, u money.Usage) money.Nano {
		if model == "big" {
			return money.Nano(5 * u.Tokens())
		}
		return money.Nano(u.Tokens())
	}
	for by, want := range map[By][]Cost{
		ByAgent: {{"codebuilder-1", 2, money.Usage{Output: 3}, 53, 107}, {"manager", 1, money.Usage{Input: 12}, 12, 10}},
		ByStep:  {{"page", 2, money.Usage{Output: 3}, 53, 107}, {"", 1, money.Usage{Input: 12}, 12, 10}},
		ByRun:   {{"a", 1, money.Usage{Input: 12}, 12, 10}, {"b", 1, money.Usage{}, 50, 100}, {"c", 1, money.Usage{Output: 3}, 3, 7}},
		// 10 for 4 tokens at 5 and 8 at 1: 20 to 8, rounded down, and the rest to the heavier one
		ByModel: {{"big", 2, money.Usage{Input: 4}, 54, 108}, {"small", 2, money.Usage{Input: 8, Output: 3}, 11, 9}},
	} {
		if got := Costs(runs, by, price); !reflect.DeepEqual(got, want) {
			t.Errorf("by %s:\n%+v, want\n%+v", by, got, want)
		}
	}
	if got := Costs(nil, ByAgent, price); len(got) != 0 {
		t.Errorf("of no run: %+v", got)
	}
}

// TestEntries: only what is settled, in the order of the reservations, with what was recorded.
func TestEntries(t *testing.T) {
	l := fresh(t, 1000)
	for _, run := range []string{"c", "a", "b"} {
		must(t, l, run)
		ok(t, l.Launch(t.Context(), run, at(2)))
	}
	ok(t, l.Spend(t.Context(), "a", Spent{Nano: 5, Tokens: 7, Requests: 2, ByModel: map[string]money.Usage{"m": {Input: 7}}}, at(3)))
	ok(t, l.Spend(t.Context(), "c", Spent{Nano: 1, Tokens: 1}, at(4)))
	ok(t, l.Spend(t.Context(), "c", Spent{Nano: 3, Tokens: 2, Requests: 1}, at(5)))
	for _, l := range []*Ledger{l, Open(l.path)} {
		got, book, err := l.Entries()
		ok(t, err)
		if len(got) != 2 || book.Nano != 8 {
			t.Fatalf("%+v, %+v", got, book)
		}
		a, c := got[0], got[1]
		if a.ID != "a" {
			a, c = c, a
		}
		if a.Nano != 5 || a.Requests != 2 || a.ByModel["m"].Input != 7 || c.ID != "c" || c.Nano != 3 || c.Tokens != 2 || c.Requests != 1 {
			t.Errorf("%+v, %+v", a, c)
		}
	}
}
