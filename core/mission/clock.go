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
		left, limited = time.Duration(m.MaxRun-c.Used), true
	}
	if !m.Until.IsZero() {
		if d := m.Until.Sub(now); !limited || d < left {
			left, limited = d, true
		}
	}
	return max(left, 0), limited
}
