package notify

import (
	"strings"
	"time"
	_ "time/tzdata" // machines without zones exist

	"example.com/AutoAgentProject/core/usererr"
)

// Quiet is a time of each day in which only what needs the person is told. The zero value is none.
type Quiet struct {
	from, to int // minutes of the day
	zone     *time.Location
}

// ParseQuiet reads "22:00-07:00 Europe/Berlin"; without a zone it is UTC. Empty is none.
func ParseQuiet(s string) (Quiet, error) {
	if strings.TrimSpace(s) == "" {
		return Quiet{}, nil
	}
	const hint = `write "22:00-07:00 Europe/Berlin"; without a zone it is UTC`
	wrong := usererr.New(usererr.Usage, hint, "%q are no quiet hours", s)
	hours, zone, _ := strings.Cut(strings.TrimSpace(s), " ")
	from, to, ok := strings.Cut(hours, "-")
	f, ferr := time.Parse("15:04", from)
	t, terr := time.Parse("15:04", to)
	if !ok || ferr != nil || terr != nil || len(from) != 5 || len(to) != 5 || f.Equal(t) {
		return Quiet{}, wrong
	}
	q := Quiet{from: f.Hour()*60 + f.Minute(), to: t.Hour()*60 + t.Minute(), zone: time.UTC}
	if zone = strings.TrimSpace(zone); zone != "" {
		loc, err := time.LoadLocation(zone)
		if err != nil || zone == "Local" {
			return Quiet{}, usererr.New(usererr.Usage, hint, "there is no time zone %q", zone)
		}
		q.zone = loc
	}
	return q, nil
}

// Holds says whether now lies in the quiet hours.
func (q Quiet) Holds(now time.Time) bool {
	if q.zone == nil {
		return false
	}
	t := now.In(q.zone)
	m := t.Hour()*60 + t.Minute()
	if q.from < q.to {
		return q.from <= m && m < q.to
	}
	return m >= q.from || m < q.to
}
