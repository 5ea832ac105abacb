package bridge

import (
	"fmt"
	"strings"
	"time"

	"example.com/AutoAgentProject/core/money"
	"example.com/AutoAgentProject/core/view"
)

// chart is how the money went.
type chart struct {
	W, H         int
	X0, X1       int
	Y0, Y1       int // of nothing, and of the whole budget
	Line, Area   string
	Pace         string // how it would go if it went evenly
	Levels       []level
	Ticks        []mark
	NowX, NowY   int
	EndX         int // when its time is used up; 0: not shown
	Over         bool
	Said         string
	Total, Spent string
}

type level struct {
	Y     int
	Text  string
	Class string
}

func burnChart(d view.Detail) chart {
	b := d.Burn
	if b.Total <= 0 || b.Start.IsZero() || !b.Now.After(b.Start) {
		return chart{}
	}
	c := chart{W: 720, H: 240, X0: 62, X1: 706, Y0: 206, Y1: 26, Over: d.Stop != nil}
	end := b.Now
	if !b.Until.IsZero() && b.Until.After(end) {
		end = b.Until
		if most := b.Now.Add(3 * b.Now.Sub(b.Start)); end.After(most) { // what was, can still be seen
			end = most
		}
	}
	x := func(t time.Time) int {
		return c.X0 + int(min(max(float64(t.Sub(b.Start))/float64(end.Sub(b.Start)), 0), 1)*float64(c.X1-c.X0))
	}
	top := b.Total
	for _, p := range b.Points {
		top = max(top, p.Used)
	}
	y := func(n int64) int { return c.Y0 - int(float64(n)/float64(top)*float64(c.Y0-c.Y1)) }
	var path strings.Builder
	fmt.Fprintf(&path, "M%d %d", c.X0, c.Y0)
	last := int64(0)
	for _, p := range b.Points {
		fmt.Fprintf(&path, "H%dV%d", x(p.At), y(p.Used))
		last = p.Used
	}
	c.NowX, c.NowY = x(b.Now), y(last)
	fmt.Fprintf(&path, "H%d", c.NowX)
	c.Line = path.String()
	c.Area = fmt.Sprintf("%sV%dZ", c.Line, c.Y0)
	if !b.Until.IsZero() && b.Until.After(b.Start) {
		share := float64(end.Sub(b.Start)) / float64(b.Until.Sub(b.Start))
		c.Pace = fmt.Sprintf("M%d %dL%d %d", c.X0, c.Y0, c.X1, y(int64(float64(b.Total)*min(share, 1))))
		if !end.Before(b.Until) {
			c.EndX = x(b.Until)
		}
	}
	unit := d.Budget.Unit
	text := func(n int64) string { return money.Amount{Unit: unit, N: n}.String() }
	c.Levels = []level{{y(b.Total), text(b.Total), "all"}, {y(b.Total / 20 * 17), "85%", "some"}, {y(b.Total / 10 * 7), "70%", "some"}, {c.Y0, text(0), "none"}}
	c.Ticks = ticks(b.Start, end, x)
	c.Total, c.Spent = text(b.Total), text(last)
	c.Said = fmt.Sprintf("%s of %s were used after %s.", c.Spent, c.Total, took(b.Now.Sub(b.Start)))
	if !b.Until.IsZero() {
		c.Said += fmt.Sprintf(" %s are left.", took(b.Until.Sub(b.Now)))
	}
	return c
}
