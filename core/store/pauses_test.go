package store

import (
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/mission"
)

// inForce says which causes hold at a time, sorted.
func inForce(t testing.TB, s *Store, at time.Time) string {
	t.Helper()
	causes, err := s.Pauses(at)
	ok(t, err)
	var out []string
	for _, c := range causes {
		out = append(out, c.Cause)
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// TestPausesAreASet: lifting one lifts one.
func TestPausesAreASet(t *testing.T) {
	s := fresh(t)
	for _, cause := range []string{"human", "limit", "login", "stall", "approval"} {
		if fresh, err := s.Pause(t.Context(), mission.Pause{Cause: cause, Reason: "why"}, noon); !fresh || err != nil {
			t.Errorf("%s: %v, %v", cause, fresh, err)
		}
	}
	if fresh, err := s.Pause(t.Context(), mission.Pause{Cause: "login", Reason: "again"}, noon.Add(time.Hour)); fresh || err != nil {
		t.Errorf("the same cause: %v, %v", fresh, err)
	}
	for _, c := range []struct{ lift, left string }{
		{"nosuch", "approval human limit login stall"}, {"human", "approval limit login stall"}, {"human", "approval limit login stall"},
		{"limit", "approval login stall"}, {"stall", "approval login"}, {"approval", "login"}, {"login", ""}, {"login", ""},
	} {
		ok(t, s.Unpause(t.Context(), c.lift, noon))
		if got := inForce(t, s, noon.AddDate(1, 0, 0)); got != c.left {
			t.Errorf("%s lifted: %q, want %q", c.lift, got, c.left)
		}
	}
}

func TestPauseUntil(t *testing.T) {
	s := fresh(t)
	at := func(m int) time.Time { return noon.Add(time.Duration(m) * time.Minute) }
	pause := func(until, now time.Time) bool {
		t.Helper()
		fresh, err := s.Pause(t.Context(), mission.Pause{Cause: "limit", Reason: "r", Until: until}, now)
		ok(t, err)
		return fresh
	}
	only := func(until, since time.Time) {
		t.Helper()
		if p, err := s.Pauses(since); err != nil || len(p) != 1 || !p[0].Until.Equal(until) || !p[0].Since.Equal(since) {
			t.Errorf("%+v, %v", p, err)
		}
	}
	if !pause(at(10), noon) || pause(at(20), at(1)) || pause(at(5), at(2)) { // extended, never shortened
		t.Error("one pause is told twice")
	}
	only(at(20), noon)
	if got := inForce(t, s, at(20).Add(-1)); got != "limit" {
		t.Error(got)
	}
	if got := inForce(t, s, at(20)); got != "" {
		t.Error(got)
	}
	if !pause(at(40), at(30)) { // after its time it is a new one
		t.Error("a new pause is not told")
	}
	only(at(40), at(30))
	if pause(time.Time{}, at(31)) || pause(at(50), at(32)) { // without an end, until somebody lifts it
		t.Error("one pause is told twice")
	}
	only(time.Time{}, at(30))
	if got := inForce(t, s, at(1000)); got != "limit" {
		t.Error(got)
	}
}
