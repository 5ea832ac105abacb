package mission

import "time"

// Clock is clock.json: how long the mission could run so far. Time is monotonic inside one boot; in a gap longer than
// MaxGap nothing ticked, so that no more than MaxGap of it counts.
type Clock struct {
	Version int       `json:"version"`
	Boot    string    `json:"boot"`    // boot id of the last reading
	Mono    Duration  `json:"mono"`    // monotonic clock at the last reading
	Used    Duration  `json:"used"`    // sum
	ReadAt  time.Time `json:"read_at"` // wall clock of the last reading, for people only

	Granted Duration  `json:"granted,omitempty"` // what a person added to the time in which the mission can run
	Until   time.Time `json:"until,omitzero"`    // the absolute end that a person set since the start
}

// Grant adds time to what a mission has. An absolute end that is past is counted from now. A mission whose time is not
// limited has nothing to add to.
func (c Clock) Grant(m Mission, d time.Duration, now time.Time) Clock {
	c.Version = Version
	if m.MaxRun != 0 {
		c.Granted += Duration(d)
	}
	if end := End(m, c); !end.IsZero() {
		if end.Before(now) {
			end = now
		}
		c.Until = end.Add(d).UTC()
	}
	return c
}

// End is the absolute end of a mission, or zero.
func End(m Mission, c Clock) time.Time {
	if !c.Until.IsZero() {
		return c.Until
	}
	return m.Until
}

// MaxGap is the longest time between two readings that counts as running: three missed minute ticks.
const MaxGap = 3 * time.Minute

// Advance counts the time since the last reading, at most MaxGap, unless the mission was paused or the machine booted in
// between. Jumps of the wall clock and suspends change nothing.
func (c Clock) Advance(boot string, mono time.Duration, now time.Time, paused bool) Clock {
	if c.Boot == boot && !paused {
		if d := mono - time.Duration(c.Mono); d > 0 {
			c.Used += Duration(min(d, MaxGap))
		}
	}
	c.Version, c.Boot, c.Mono, c.ReadAt = Version, boot, Duration(mono), now.UTC()
	return c
}

// TimeLeft returns how long the mission may still run, and false if it has no limit. It is never negative.
func TimeLeft(m Mission, c Clock, now time.Time) (time.Duration, bool) {
	left, limited := time.Duration(0), false
	if m.MaxRun != 0 {
		left, limited = time.Duration(m.MaxRun+c.Granted-c.Used), true
	}
	if end := End(m, c); !end.IsZero() {
		if d := end.Sub(now); !limited || d < left {
			left, limited = d, true
		}
	}
	return max(left, 0), limited
}
