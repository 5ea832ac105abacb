package bridge

import (
	"fmt"
	"time"

	"example.com/AutoAgentProject/core/money"
	"example.com/AutoAgentProject/core/view"
)

// lanes is who did what when: a lane for each agent, a bar for each run, a line for each handoff.
type lanes struct {
	W, H  int
	Left  int // where the time begins
	Rows  []lane
	Bars  []rect
	Lines []line
	Ticks []mark
	Now   int // x of this moment; 0: it is over
	Said  string
}

type lane struct {
	Y, H int
	Name string
	Hue  string
	Odd  bool
}

type rect struct {
	X, Y, W, H int
	Class      string
	Href, Tip  string
}

type line struct {
	X1, Y1, X2, Y2 int
	Class, Tip     string
}

type mark struct {
	X    int
	At   time.Time
	Text string
}

const (
	laneH  = 34
	lanesW = 1000
	lanesX = 132
)

func timeline(d view.Detail) lanes {
	l := lanes{W: lanesW, Left: lanesX}
	row := map[string]int{}
	for _, a := range d.Agents {
		if a.Name == "quota" || a.Name == "reporter" {
			continue // they neither run a model nor carry the baton
		}
		row[a.Name] = len(l.Rows)
		l.Rows = append(l.Rows, lane{Y: len(l.Rows) * laneH, H: laneH, Name: cut(a.Name, 16), Hue: hue(a.Name), Odd: len(l.Rows)%2 == 1})
	}
	from, to := time.Time{}, d.Burn.Now
	for _, r := range d.Runs.Runs {
		if from.IsZero() || r.Started.Before(from) {
			from = r.Started
		}
		if r.State == "running" {
			continue
		}
		if r.Ended.After(to) {
			to = r.Ended
		}
	}
	if from.IsZero() || d.Runs.From == 0 && d.Runs.Total <= len(d.Runs.Runs) && d.CreatedAt.After(time.Time{}) && d.CreatedAt.Before(from) {
		from = d.CreatedAt
	}
	if d.Runs.From > 0 && len(d.Runs.Runs) > 0 { // older ones: the time in which they were
		to = from
		for _, r := range d.Runs.Runs {
			if r.Ended.After(to) {
				to = r.Ended
			}
		}
	}
	if len(l.Rows) == 0 || len(d.Runs.Runs) == 0 || !to.After(from) {
		return lanes{}
	}
	x := func(t time.Time) int {
		share := float64(t.Sub(from)) / float64(to.Sub(from))
		return lanesX + int(min(max(share, 0), 1)*float64(lanesW-lanesX-12))
	}
	l.H = len(l.Rows)*laneH + 26
	for _, h := range d.Handoffs {
		a, okA := row[h.From]
		b, okB := row[h.To]
		if !okA || !okB || h.Created.IsZero() || h.Created.Before(from) {
			continue
		}
		taken, class := h.Dequeued, "pass"
		if taken.IsZero() {
			taken, class = to, "pass open"
		}
		l.Lines = append(l.Lines, line{x(h.Created), a*laneH + laneH/2, x(taken), b*laneH + laneH/2, class, fmt.Sprintf("%s hands %s to %s", h.From, h.Task, h.To)})
	}
	for _, r := range d.Runs.Runs {
		n, ok := row[r.Agent]
		if !ok {
			continue
		}
		end := r.Ended
		if r.State == "running" || end.IsZero() {
			end = to
			if r.State != "running" {
				end = r.Started.Add(time.Minute)
			}
		}
		x1, x2 := x(r.Started), x(end)
		what := r.Step
		if what == "" {
			what = "plan"
		}
		l.Bars = append(l.Bars, rect{x1, n*laneH + 8, max(x2-x1, 4), laneH - 16, verdict(r.State), "/missions/" + d.ID + "/runs/" + r.Run,
			fmt.Sprintf("%s, %s: %s, %s, %s", r.Agent, what, r.State, took(time.Duration(r.Took)), money.FormatUSD(r.Nano))})
	}
	l.Ticks = ticks(from, to, x)
	if d.Stop == nil && d.Runs.From == 0 {
		l.Now = x(to)
	}
	l.Said = fmt.Sprintf("Timeline: %d runs of %d agents. The tables of runs below say the same.", len(l.Bars), len(l.Rows))
	return l
}

// ticks are at most eight even moments of a span of time.
func ticks(from, to time.Time, x func(time.Time) int) []mark {
	step := 365 * 24 * time.Hour
	for _, s := range []time.Duration{time.Second, 5 * time.Second, 15 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute,
		time.Hour, 2 * time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour, 48 * time.Hour, 7 * 24 * time.Hour, 30 * 24 * time.Hour} {
		if to.Sub(from)/s <= 7 {
			step = s
			break
		}
	}
	format := "15:04"
	switch {
	case step < time.Minute:
		format = "15:04:05"
	case step >= 12*time.Hour:
		format = "Jan 2"
	}
	var out []mark
	for t := from.Truncate(step).Add(step); t.Before(to) && len(out) < 9; t = t.Add(step) {
		out = append(out, mark{x(t), t, t.UTC().Format(format)})
	}
	return out
}
