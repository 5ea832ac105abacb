package view

import (
	"slices"
	"time"

	"example.com/AutoAgentProject/core/ledger"
	"example.com/AutoAgentProject/core/mission"
)

// Burn is how the money went, against the time.
type Burn struct {
	Start  time.Time `json:"start"`
	Now    time.Time `json:"now"`            // its end, if it ended
	Until  time.Time `json:"until,omitzero"` // when its time is used up, if it goes on as now
	Total  int64     `json:"total"`
	Points []Point   `json:"points"` // ever later, ever more, in the budget's unit
}

// Point is what was spent until a moment.
type Point struct {
	At   time.Time `json:"at"`
	Used int64     `json:"used"`
	Run  string    `json:"run,omitempty"`
}

// maxPoints is how many points a chart has at most; of more, the last one of each part is shown.
const maxPoints = 300

func burn(v Mission, m mission.Mission, entries []ledger.Entry, now time.Time) Burn {
	b := Burn{Start: v.CreatedAt, Now: now, Total: v.Budget.Total, Points: []Point{}}
	switch {
	case !v.EndedAt.IsZero():
		b.Now = v.EndedAt
	case v.Stop != nil && !v.Stop.At.IsZero():
		b.Now = v.Stop.At
	case v.Time.Limited:
		b.Until = now.Add(time.Duration(v.Time.Left))
	}
	entries = slices.Clone(entries)
	slices.SortFunc(entries, func(x, y ledger.Entry) int { return x.Settled.Compare(y.Settled) })
	var used int64
	every := max((len(entries)+maxPoints-1)/maxPoints, 1)
	for i, e := range entries {
		used += v.Budget.Unit.Of(e.Nano, e.Tokens)
		if i%every == every-1 || i == len(entries)-1 {
			b.Points = append(b.Points, Point{At: e.Settled, Used: used, Run: e.ID})
		}
	}
	if b.Start.IsZero() && len(b.Points) > 0 {
		b.Start = b.Points[0].At
	}
	if n := len(b.Points); n > 0 && b.Points[n-1].At.After(b.Now) {
		b.Now = b.Points[n-1].At
	}
	return b
}

func byRun(entries []ledger.Entry) map[string]ledger.Entry {
	out := make(map[string]ledger.Entry, len(entries))
	for _, e := range entries {
		out[e.ID] = e
	}
	return out
}
