package mission

import "time"

// Clock is clock.json: how long the mission could run so far. Time is monotonic inside one boot; a gap longer than
// MaxGap means that nothing ticked, so the mission could not run in it.
type Clock struct {
	Version int       `json:"version"`
	Boot    string    `json:"boot"`    // boot id of the last reading
	Mono    Duration  `json:"mono"`    // monotonic clock at the last reading
	Used    Duration  `json:"used"`    // sum
	ReadAt  time.Time `json:"read_at"` // wall clock of the last reading, for people only
}

// MaxGap is the longest time between two readings that counts as running: three missed minute ticks.
const MaxGap = 3 * time.Minute

// Advance counts the time since the last reading unless the mission was paused, the machine booted in between, or
// nothing read the clock for longer than MaxGap. Clock jumps of the wall clock and suspends change nothing.
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
	if m.MaxRun > 0 {
		left, limited = time.Duration(m.MaxRun-c.Used), true
	}
	if !m.Until.IsZero() {
		if d := m.Until.Sub(now); !limited || d < left {
			left, limited = d, true
		}
	}
	return max(left, 0), limited
}
