package usererr

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
)

// TestCodes: the table is complete, in order, without a number twice, and its numbers never change.
func TestCodes(t *testing.T) {
	want := []Code{0, 1, 2, 3, 4, 5, 6, 7, 8, 70, 75, 125}
	if named := []Code{OK, Failed, Usage, NotFound, Environment, Conflict, Unreadable, Spent, Aborted, Bug, Later, DoNotRetry}; fmt.Sprint(named) != fmt.Sprint(want) {
		t.Errorf("the numbers are a contract: %v, were %v", named, want)
	}
	meanings := map[string]bool{}
	rows := Codes()
	for i, r := range rows {
		if i > 0 && r.Code <= rows[i-1].Code {
			t.Errorf("%d comes after %d", r.Code, rows[i-1].Code)
		}
		if r.Code < 0 || r.Code > 125 {
			t.Errorf("%d is no status that a program may choose", r.Code)
		}
		if strings.TrimSpace(r.Meaning) == "" || meanings[r.Meaning] || strings.HasSuffix(r.Meaning, ".") {
			t.Errorf("%d: %q", r.Code, r.Meaning)
		}
		meanings[r.Meaning] = true
		if i >= len(want) || r.Code != want[i] {
			t.Errorf("row %d is %d", i, r.Code)
		}
	}
	if len(rows) != len(want) {
		t.Errorf("%d rows, want %d", len(rows), len(want))
	}
	rows[0].Meaning = "changed"
	if Codes()[0].Meaning == "changed" {
		t.Error("the table can be changed by whoever reads it")
	}
}

func TestCodeOf(t *testing.T) {
	plain := errors.New("plain")
	later, damaged := New(Later, "wait", "busy"), New(Unreadable, "put a copy there", "plan.json cannot be read")
	for name, c := range map[string]struct {
		err  error
		want Code
	}{
		"none":                       {nil, OK},
		"not for the user":           {plain, Failed},
		"itself":                     {later, Later},
		"wrapped":                    {fmt.Errorf("claim: %w", fmt.Errorf("read: %w", damaged)), Unreadable},
		"told as text only":          {fmt.Errorf("claim: %v", damaged), Failed},
		"around a plain one":         {Wrap(plain, NotFound, "", "no mission"), NotFound},
		"the outer one counts":       {Wrap(later, Conflict, "", "in use"), Conflict},
		"joined: the first counts":   {errors.Join(later, damaged), Later},
		"joined, the other way":      {errors.Join(damaged, later), Unreadable},
		"joined: a plain one first":  {errors.Join(plain, damaged), Unreadable},
		"joined: nil first":          {errors.Join(nil, damaged, later), Unreadable},
		"joined: the first in depth": {errors.Join(fmt.Errorf("a: %w", errors.Join(plain, damaged)), later), Unreadable},
		"two in one sentence":        {fmt.Errorf("%w, and %w", later, damaged), Later},
		"joined of none":             {errors.Join(nil, nil), OK},
		"an error is never done":     {New(OK, "", "strange"), Failed},
		"an error without a code":    {&Error{Sentence: "strange"}, Failed},
	} {
		if got := CodeOf(c.err); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
	// The hint that is printed belongs to the same error as the status.
	var u *Error
	if !errors.As(errors.Join(fmt.Errorf("x: %w", damaged), later), &u) || u.Hint != "put a copy there" {
		t.Errorf("%+v", u)
	}
}

func TestError(t *testing.T) {
	e := New(Usage, "write --budget 5usd", "budget %q is wrong", "5%d")
	if e.Error() != `budget "5%d" is wrong` || e.Hint != "write --budget 5usd" || errors.Unwrap(e) != nil {
		t.Errorf("%+v", e)
	}
	w := Wrap(fs.ErrNotExist, NotFound, "", "mission %s", "x")
	if w.Error() != "mission x: file does not exist" || !errors.Is(fmt.Errorf("read: %w", w), fs.ErrNotExist) {
		t.Error(w)
	}
	if w = Wrap(nil, Failed, "", "it broke"); w.Error() != "it broke" {
		t.Error(w)
	}
}
