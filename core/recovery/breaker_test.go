package recovery

import (
	"testing"
	"time"
)

func at(d time.Duration) Moment { return Moment{"boot", d} }

// TestCrashes: five crashes in a quarter of an hour pause an agent; four, or five in a longer time, do not.
func TestCrashes(t *testing.T) {
	for name, c := range map[string]struct {
		gaps []time.Duration
		trip bool
	}{
		"at once":         {[]time.Duration{0, 0, 0, 0, 0}, true},
		"in 15 minutes":   {[]time.Duration{0, 225 * time.Second, 225 * time.Second, 225 * time.Second, 225 * time.Second}, true},
		"a second longer": {[]time.Duration{0, 225 * time.Second, 225 * time.Second, 225 * time.Second, 226 * time.Second}, false},
		"four":            {[]time.Duration{0, 0, 0, 0}, false},
		"quiet between":   {[]time.Duration{0, 0, 0, 0, QuietTime}, false},
		"slowly at first": {[]time.Duration{0, 14 * time.Minute, time.Minute, time.Minute, time.Minute, time.Minute}, true},
	} {
		var b Breaker
		trip, now := false, time.Hour
		for i, g := range c.gaps {
			now += g
			if b, trip = b.Crash(at(now), 0.5); trip && i < len(c.gaps)-1 {
				t.Errorf("%s: at crash %d", name, i+1)
			}
		}
		if trip != c.trip {
			t.Errorf("%s: %v, %+v", name, trip, b)
		}
		if len(b.Crashes) > MaxCrashes {
			t.Errorf("%s: it remembers %d", name, len(b.Crashes))
		}
	}
}

// TestOtherBoot: a machine that restarts again and again is not the agent's fault; a clock that went back says nothing.
func TestOtherBoot(t *testing.T) {
	var b Breaker
	for i := range 2 * MaxCrashes {
		trip := false
		if b, trip = b.Crash(Moment{string(rune('a' + i)), time.Minute}, 0); trip || len(b.Crashes) != 1 {
			t.Fatalf("%v %+v", trip, b)
		}
	}
	b = Breaker{Crashes: []Moment{at(time.Hour)}}
	if b = b.Quiet(at(time.Minute)); len(b.Crashes) != 0 {
		t.Errorf("%+v", b)
	}
}

// TestBackOff: 1 s, doubled, a minute at most, each a quarter shorter or longer by chance; a good end ends it.
func TestBackOff(t *testing.T) {
	for _, chance := range []float64{0, 0.5, 1} {
		var b Breaker
		now := time.Hour
		for n := range 9 {
			b, _ = b.Crash(at(now), chance)
			base := min(time.Second<<n, time.Minute)
			want := base*3/4 + time.Duration(chance*float64(base/2))
			if left := b.Left(at(now)); left != want {
				t.Errorf("crash %d, chance %v: %v, want %v", n+1, chance, left, want)
			}
			if left := b.Left(at(now + want)); left != 0 {
				t.Errorf("then %v", left)
			}
			now += time.Second
		}
		if b.Good().Left(at(now)) != 0 || b.Left(Moment{"other", 0}) != 0 || len(b.Good().Crashes) == 0 {
			t.Errorf("%+v", b)
		}
	}
}

// TestEmptyRuns: runs in a row that made nothing, each counted once.
func TestEmptyRuns(t *testing.T) {
	var b Breaker
	trip := false
	for n := range MaxEmpty {
		run := string(rune('a' + n))
		for range 3 {
			if b, trip = b.Ran(run, false); trip != (n == MaxEmpty-1) || b.Empty != n+1 {
				t.Fatalf("run %d: %v, %+v", n+1, trip, b)
			}
		}
	}
	if b, trip = b.Ran("z", true); trip || b.Empty != 0 {
		t.Errorf("%v %+v", trip, b)
	}
}
