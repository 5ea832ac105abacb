package money

import (
	"maps"
	"time"
)

// Window is how much of one of an account's usage windows is used.
type Window struct {
	Used  int64 `json:"used_bp"`   // hundredths of a percent; -1: not told
	Reset int64 `json:"resets_at"` // unix seconds; 0: not told
}

// Limits is what is known of an account's usage windows, in JSON. It says nothing about a mission's own budget.
type Limits struct {
	Windows map[string]Window `json:"windows"`
	Parked  int64             `json:"parked_until"` // unix seconds; 0: requests are answered
	Waits   int               `json:"waits"`        // refusals in a row that told no time
}

// LimitEvent is one word of the service about an account. Numbers below 0 are not told.
type LimitEvent struct {
	Status  string // "allowed", "allowed_warning", "rejected"
	Overage bool   // paid extra usage is being spent
	Credit  bool   // the account has no credit left
	Windows map[string]Window
	Reset   int64 // unix seconds; when a refusal ends; 0: not told
}

// LimitAction is what an event asks of all agents.
type LimitAction string

// The actions.
const (
	LimitNone LimitAction = ""
	LimitPark LimitAction = "park" // no request until the time given; no attempt is counted
	LimitHalt LimitAction = "halt" // real money is being spent beyond the plan
	// LimitBlock is LimitPark for want of credit: no time ends that, a person must.
	LimitBlock LimitAction = "block"
)

// Waits where the service tells no time: doubled from the first to the last.
const (
	firstWait = time.Minute
	lastWait  = 30 * time.Minute
	// MaxLimit is how far in the future a limit can end. A later time is not believed.
	MaxLimit = 40 * 24 * time.Hour
)

// BackOff is the n-th wait (n from 1) where nobody told how long.
func BackOff(n int) time.Duration {
	d := firstWait
	for range n - 1 {
		if d = min(2*d, lastWait); d == lastWait {
			break
		}
	}
	return d
}

// Park says until when to wait: until the reset that was told and jitter longer, so that not all come back in the same
// second. A reset that is zero, past or beyond MaxLimit is none: then it is the n-th wait by BackOff, never a guess.
func Park(reset, now time.Time, jitter time.Duration, n int) (until time.Time, told bool) {
	if reset.After(now) && reset.Sub(now) <= MaxLimit {
		return reset.Add(max(jitter, 0)), true
	}
	return now.Add(BackOff(max(n, 1))), false
}

// Merge takes in an event: what it does not tell stays as it was. It returns what to remember and what to do, until when
// for LimitPark and LimitBlock, and never changes what it was given.
func (l Limits) Merge(e LimitEvent, now time.Time, jitter time.Duration) (Limits, LimitAction, time.Time) {
	l = l.At(now)
	for name, w := range e.Windows {
		old, known := l.Windows[name]
		if w.Used < 0 && known {
			w.Used = old.Used
		}
		if w.Reset <= 0 {
			w.Reset = old.Reset
		}
		l.Windows[name] = w
	}
	switch {
	case e.Overage:
		return l, LimitHalt, time.Time{}
	case e.Credit:
		l.Parked = max(l.Parked, now.Add(lastWait).Unix())
		return l, LimitBlock, time.Unix(l.Parked, 0).UTC()
	case e.Status == "rejected":
		reset := time.Time{}
		if e.Reset > 0 {
			reset = time.Unix(e.Reset, 0)
		}
		until, told := Park(reset, now, jitter, l.Waits+1)
		if told {
			l.Waits = 0
		} else {
			l.Waits++
		}
		l.Parked = max(l.Parked, until.Unix())
		return l, LimitPark, time.Unix(l.Parked, 0).UTC()
	case e.Status == "allowed", e.Status == "allowed_warning":
		l.Waits = 0 // a time that was told is waited for all the same
	}
	return l, LimitNone, time.Time{}
}

// At is what is still true at a moment: windows that have opened again are not, nor is a wait that is over.
func (l Limits) At(now time.Time) Limits {
	windows := map[string]Window{}
	maps.Copy(windows, l.Windows)
	maps.DeleteFunc(windows, func(_ string, w Window) bool { return w.Reset > 0 && now.Unix() >= w.Reset })
	l.Windows = windows
	if l.Parked > 0 && now.Unix() >= l.Parked {
		l.Parked = 0
	}
	return l
}
