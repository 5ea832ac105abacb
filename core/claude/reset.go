package claude

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // zones must be known where the machine has none
)

// farthest is how far in the future a limit can end. A later time is not believed.
const farthest = 40 * 24 * time.Hour

var (
	clockForm = regexp.MustCompile(`\bresets (?:([A-Z][a-z]{2}) (\d{1,2})(?:,| at) )?(\d{1,2})(?::(\d{2}))?(am|pm) \(([A-Za-z0-9_+/-]+)\)`)
	epochForm = regexp.MustCompile(`limit reached\|(\d{10})\b`)
	limitText = regexp.MustCompile(`^(You've hit your [^\n]{0,40}limit\b|Claude (AI )?usage limit reached\b|[^\n|:]{0,40}limit reached\|\d{10}\b)`)
)

// resetOf is when the limit ends, by what the service says: of all windows that refuse, the last to open again. It is
// the zero time if that is not told, or not believable.
func (l *limit) resetOf(now time.Time) time.Time {
	if l == nil {
		return time.Time{}
	}
	last := int64(l.ResetsAt)
	for _, w := range l.Windows {
		if w.Status == rejected {
			last = max(last, int64(w.ResetsAt))
		}
	}
	return believable(time.Unix(last, 0).UTC(), now)
}

// parseReset reads the end of a limit from the program's own sentence about it, for example
// "resets 2:30am (America/New_York)", "resets Dec 3, 11:54pm (UTC)" or "limit reached|1760000000". It is the zero time
// if the sentence has none, or one that leaves room for doubt: an unknown zone, a time of day that does not exist.
func parseReset(text string, now time.Time) time.Time {
	if m := epochForm.FindStringSubmatch(text); m != nil {
		n, err := strconv.ParseInt(m[1], 10, 64)
		if err != nil {
			return time.Time{}
		}
		return believable(time.Unix(n, 0).UTC(), now)
	}
	m := clockForm.FindStringSubmatch(text)
	if m == nil {
		return time.Time{}
	}
	zone, err := time.LoadLocation(m[6])
	hour, minute, ok := clock(m[3], m[4], m[5])
	if err != nil || m[6] == "Local" || !ok {
		return time.Time{}
	}
	y, mon, d := now.In(zone).Date()
	if m[1] == "" { // a time of day: the next one
		at := time.Date(y, mon, d, hour, minute, 0, 0, zone)
		if justPast(at, now) {
			return at.Add(time.Minute).UTC()
		}
		if !at.After(now) {
			at = time.Date(y, mon, d+1, hour, minute, 0, 0, zone)
		}
		return believable(at.UTC(), now)
	}
	mon = time.Month(1 + slices.Index(strings.Fields("Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec"), m[1]))
	day, err := strconv.Atoi(m[2])
	if mon == 0 || err != nil || day < 1 || day > 31 {
		return time.Time{}
	}
	for _, year := range []int{y, y + 1} {
		at := time.Date(year, mon, day, hour, minute, 0, 0, zone)
		if justPast(at, now) {
			return at.Add(time.Minute).UTC()
		}
		if at = believable(at.UTC(), now); !at.IsZero() {
			return at
		}
	}
	return time.Time{}
}

// clock reads a time of day of twelve hours.
func clock(h, m, half string) (hour, minute int, ok bool) {
	hour, err := strconv.Atoi(h)
	if err != nil || hour < 1 || hour > 12 {
		return 0, 0, false
	}
	if m != "" {
		if minute, err = strconv.Atoi(m); err != nil || minute > 59 {
			return 0, 0, false
		}
	}
	hour %= 12
	if half == "pm" {
		hour += 12
	}
	return hour, minute, true
}

// justPast says whether the minute that the text names is still running: the seconds are not told.
func justPast(at, now time.Time) bool { return !at.After(now) && now.Sub(at) < time.Minute }

func believable(at, now time.Time) time.Time {
	if at.After(now) && at.Sub(now) <= farthest {
		return at
	}
	return time.Time{}
}
