package recovery

import (
	"slices"
	"time"
)

// A crash is a tick that was killed, or ended with an error that is not the whole mission's affair.
const (
	MaxCrashes  = 5                // so many within CrashWindow pause the agent
	CrashWindow = 15 * time.Minute //
	QuietTime   = 30 * time.Minute // without a crash: it begins anew
	firstWait   = time.Second
	lastWait    = time.Minute
)

// Moment is a time that neither a jump of the clock nor a sleep of the machine changes: the monotonic clock of one boot.
type Moment struct {
	Boot string        `json:"boot"`
	At   time.Duration `json:"at"`
}

// since is how long ago an earlier moment was; false: of another boot, which says nothing about this one.
func (m Moment) since(earlier Moment) (time.Duration, bool) {
	return max(m.At-earlier.At, 0), m.Boot == earlier.Boot && m.At >= earlier.At
}

// Breaker is what is remembered about an agent's crashes and about its runs that made nothing. Its methods return what
// it is then; nothing is changed in place.
type Breaker struct {
	Version int      `json:"version"`
	Crashes []Moment `json:"crashes,omitempty"` // the last ones, oldest first
	Row     int      `json:"row,omitempty"`     // crashes since the last good end
	Empty   int      `json:"empty,omitempty"`   // runs in a row that made nothing
	Counted string   `json:"counted,omitempty"` // the run that was counted last: none counts twice
	Wait    Moment   `json:"wait,omitzero"`     // no tick before
}

// Crash counts a crash. trip says that the agent is to be paused. chance is a number from 0 to 1: agents that crash for the same
// reason do not all come back in the same moment.
func (b Breaker) Crash(now Moment, chance float64) (_ Breaker, trip bool) {
	b = b.Quiet(now)
	b.Crashes = append(slices.Clone(b.Crashes), now)
	b.Crashes = b.Crashes[max(0, len(b.Crashes)-MaxCrashes):]
	b.Row++
	wait := min(firstWait<<min(b.Row-1, 6), lastWait)
	b.Wait = Moment{now.Boot, now.At + wait*3/4 + time.Duration(chance*float64(wait/2))} // 75 to 125 %
	if len(b.Crashes) < MaxCrashes {
		return b, false
	}
	first, ok := now.since(b.Crashes[0])
	return b, ok && first <= CrashWindow
}

// Good notes a tick that ended well.
func (b Breaker) Good() Breaker {
	b.Row, b.Wait = 0, Moment{}
	return b
}

// Quiet forgets crashes of another boot, and all of them after a quiet time.
func (b Breaker) Quiet(now Moment) Breaker {
	b.Crashes = slices.DeleteFunc(slices.Clone(b.Crashes), func(m Moment) bool { _, ok := now.since(m); return !ok })
	if n := len(b.Crashes); n > 0 {
		if ago, _ := now.since(b.Crashes[n-1]); ago < QuietTime {
			return b
		}
	}
	b.Crashes, b.Row, b.Wait = nil, 0, Moment{}
	return b
}

// Left is how long the agent has still to wait for its next tick.
func (b Breaker) Left(now Moment) time.Duration {
	if b.Wait.Boot != now.Boot {
		return 0
	}
	return min(max(b.Wait.At-now.At, 0), 2*lastWait)
}

// Ran counts a run by what it made. trip says that the agent is to be paused.
func (b Breaker) Ran(run string, made bool) (_ Breaker, trip bool) {
	switch {
	case made:
		b.Empty, b.Counted = 0, run
	case b.Counted != run:
		b.Empty, b.Counted = b.Empty+1, run
	}
	return b, b.Empty >= MaxEmpty
}
