package caps

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/money"
)

var noon = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (h Host) reserve(t *testing.T, l Limits, run string, n, least int64, now time.Time) Answer {
	t.Helper()
	a, err := h.Reserve(t.Context(), l, Request{Run: run, Mission: "my-site", N: n, Least: least}, now)
	ok(t, err)
	return a
}

func (h Host) standing(t *testing.T, l Limits, now time.Time) string {
	t.Helper()
	s, err := h.Standings(l, now)
	ok(t, err)
	return fmt.Sprint(s)
}

// TestCaps: a run gets what both periods have; used up, the answer says until when; what a period had is not carried over.
func TestCaps(t *testing.T) {
	h, l := Host{t.TempDir()}, Limits{Day: 100, Month: 150}
	if a := h.reserve(t, l, "one", 80, 10, noon); a.Decision != money.Admit || a.Limit != 80 {
		t.Errorf("%+v", a)
	}
	if a := h.reserve(t, l, "two", 80, 10, noon); a.Decision != money.Admit || a.Limit != 20 {
		t.Errorf("%+v", a)
	}
	if a := h.reserve(t, l, "three", 80, 10, noon); a.Decision != money.Wait {
		t.Errorf("others may give some back: %+v", a)
	}
	ok(t, h.Settle(t.Context(), "one", "my-site", 75, noon))
	ok(t, h.Settle(t.Context(), "one", "my-site", 75, noon))
	ok(t, h.Settle(t.Context(), "two", "my-site", 20, noon))
	if a := h.reserve(t, l, "three", 80, 10, noon); a.Decision != money.Exhausted || !a.Until.Equal(noon.Add(12*time.Hour)) {
		t.Errorf("%+v", a)
	}
	if got, want := h.standing(t, l, noon), "[{2026-12-01 100 95 0} {2026-12 150 95 0}]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	next := noon.Add(24 * time.Hour)
	if a := h.reserve(t, l, "three", 80, 10, next); a.Decision != money.Admit || a.Limit != 55 {
		t.Errorf("the month has 55 left: %+v", a)
	}
	ok(t, h.Settle(t.Context(), "three", "my-site", 55, next))
	if a := h.reserve(t, l, "four", 80, 10, next); a.Decision != money.Exhausted || !a.Until.Equal(time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)) {
		t.Errorf("%+v", a)
	}
	if got, want := h.standing(t, l, next), "[{2026-12-02 100 55 0} {2026-12 150 150 0}]"; got != want {
		t.Errorf("a refusal by the month left something in the day: %s, want %s", got, want)
	}
}

// TestRunOverMidnight: what was set aside yesterday is settled in yesterday's day, whatever day it is.
func TestRunOverMidnight(t *testing.T) {
	h, l := Host{t.TempDir()}, Limits{Day: 100}
	late := time.Date(2026, 12, 31, 23, 59, 0, 0, time.UTC)
	h.reserve(t, l, "one", 60, 10, late)
	h.reserve(t, l, "two", 30, 10, late)
	after := late.Add(2 * time.Hour)
	ok(t, h.Settle(t.Context(), "one", "my-site", 50, after))
	ok(t, h.Release(t.Context(), "two", after))
	if got, want := h.standing(t, l, late), "[{2026-12-31 100 50 0}]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got, want := h.standing(t, l, after), "[{2027-01-01 100 0 0}]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestCapChanges: the cap of the moment holds, lower or higher, and none leaves no trace.
func TestCapChanges(t *testing.T) {
	h := Host{filepath.Join(t.TempDir(), ".caps")}
	if a := h.reserve(t, Limits{}, "one", 1000, 10, noon); a.Limit != 1000 {
		t.Errorf("%+v", a)
	}
	if _, err := os.Stat(h.Dir); err == nil {
		t.Error("something was written without a cap")
	}
	h.reserve(t, Limits{Day: 100}, "two", 60, 10, noon)
	if a := h.reserve(t, Limits{Day: 65}, "three", 50, 10, noon); a.Decision != money.Wait {
		t.Errorf("%+v", a)
	}
	if a := h.reserve(t, Limits{Day: 200}, "three", 50, 10, noon); a.Decision != money.Admit || a.Limit != 50 {
		t.Errorf("%+v", a)
	}
}

// TestShared: what is free is shared among those who may want something, as it is in a mission.
func TestShared(t *testing.T) {
	h, l := Host{t.TempDir()}, Limits{Day: 120, Month: 100}
	for _, c := range []struct {
		due  int
		want int64
	}{{4, 25}, {3, 25}, {1, 50}} {
		a, err := h.Reserve(t.Context(), l, Request{fmt.Sprint(c), "my-site", 80, 10, c.due}, noon)
		if err != nil || a.Decision != money.Admit || a.Limit != c.want || !strings.Contains(a.Reason, "month") {
			t.Errorf("%+v: %+v, %v", c, a, err)
		}
	}
}

// TestFree: room is what every period has left beside what is reserved, of the cap that is in force now.
func TestFree(t *testing.T) {
	h := Host{t.TempDir()}
	free := func(want bool, l Limits, least int64, now time.Time) {
		t.Helper()
		if got, err := h.Free(l, least, now); got != want || err != nil {
			t.Errorf("%v, %v", got, err)
		}
	}
	free(true, Limits{}, 1000, noon)
	free(true, Limits{Day: 100}, 100, noon)
	h.reserve(t, Limits{Day: 100, Month: 120}, "one", 60, 10, noon)
	h.reserve(t, Limits{Day: 100, Month: 120}, "two", 40, 10, noon)
	ok(t, h.Settle(t.Context(), "one", "my-site", 60, noon))
	free(false, Limits{Day: 100, Month: 120}, 0, noon)
	free(true, Limits{Day: 110, Month: 120}, 10, noon)
	free(false, Limits{Day: 109, Month: 120}, 10, noon)
	free(false, Limits{Day: 200, Month: 105}, 10, noon)
	free(false, Limits{Day: 50}, 10, noon)
	free(true, Limits{}, 1000, noon)
	free(true, Limits{Day: 100, Month: 120}, 20, noon.Add(24*time.Hour))
	free(false, Limits{Day: 100, Month: 120}, 21, noon.Add(24*time.Hour))
	ok(t, os.WriteFile(filepath.Join(h.Dir, "2026-12-01.jsonl"), []byte("\x00\x00\n"), 0o600))
	if got, err := h.Free(Limits{Day: 1000}, 1, noon); got || err == nil {
		t.Error("what cannot be read has no room", got, err)
	}
}

// TestNeverMoreTogether: whatever many missions reserve and spend at once, used and reserved never pass a cap.
func TestNeverMoreTogether(t *testing.T) {
	h, l := Host{t.TempDir()}, Limits{Day: 10_000, Month: 12_000}
	var all sync.WaitGroup
	for m := range 8 {
		all.Go(func() {
			r := rand.New(rand.NewPCG(uint64(m), 1))
			for n := range 12 {
				run := fmt.Sprintf("%d-%d", m, n)
				a, err := h.Reserve(t.Context(), l, Request{run, fmt.Sprint("m", m), r.Int64N(900) + 100, 50, r.IntN(4)}, noon)
				switch {
				case err != nil:
					t.Error(err)
				case a.Decision != money.Admit:
				case r.IntN(4) == 0:
					err = h.Release(t.Context(), run, noon)
				default:
					err = h.Settle(t.Context(), run, fmt.Sprint("m", m), money.Nano(r.Int64N(a.Limit+1)), noon)
				}
				s, serr := h.Standings(l, noon)
				if err != nil || serr != nil {
					t.Error(err, serr)
				}
				for _, p := range s {
					if p.Used+p.Reserved > p.Cap {
						t.Errorf("%+v", p)
					}
				}
			}
		})
	}
	all.Wait()
}
