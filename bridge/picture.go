package bridge

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"example.com/AutoAgentProject/core/plan"
	"example.com/AutoAgentProject/core/view"
)

// The pictures are numbers here and SVG in the templates: no style, no script, nothing from elsewhere.

// picture is a plan with the baton on it.
type picture struct {
	W, H  int
	Nodes []node
	Edges []edge
	Said  string // for who does not see it
}

type node struct {
	X, Y, W, H         int
	Title, More, Below string // two lines at most of the title
	State              string // a plan.State, start, end
	Href               string
	Baton              bool
	Tip                string
}

type edge struct {
	D     string // path
	Class string
}

// Sizes of the picture of a plan, in its own units.
const (
	nodeW, tallW = 176, 144
	nodeH        = 72
	endW         = 100
	gapAlong     = 36 // between levels
	gapAcross    = 16 // between nodes of a level
	margin       = 18
)

// draw lays a plan out in levels: what nothing leads to first. tall lets the levels follow each other downwards.
func draw(d view.Detail, tall bool) picture {
	if len(d.Flow) > 0 {
		return drawFlow(d, tall)
	}
	return drawPlan(d, tall)
}

// drawFlow draws the stations of a flow as the steps of a plan: each behind those that lead to it.
func drawFlow(d view.Detail, tall bool) picture {
	visits := map[string]string{}
	var list []view.Step
	for _, s := range d.Flow {
		x := view.Step{ID: s.ID, Title: s.Title, Agent: s.Profession, State: s.State}
		for _, from := range d.Flow {
			if slices.Contains(from.Next, s.ID) {
				x.DependsOn = append(x.DependsOn, from.ID)
			}
		}
		visits[s.ID] = s.Visit
		list = append(list, x)
	}
	d.Steps = list
	p := drawPlan(d, tall)
	p.Nodes[0].Title, p.Nodes[0].Below, p.Nodes[0].Baton, p.Nodes[0].State = "Goal", "the flow", false, "done"
	held := p.Nodes[len(p.Nodes)-1].Baton
	for i, s := range d.Flow {
		n := &p.Nodes[i+1]
		n.Href = ""
		if s.Visit != "" {
			n.Href = "/missions/" + d.ID + "/tasks/" + s.Visit
		}
		n.Baton = s.Holds && !held
		if s.Visits > 1 {
			n.Tip += fmt.Sprintf(", visited %d times", s.Visits)
			n.Below = cut(s.Profession, 12) + fmt.Sprintf(" · %d×", s.Visits)
		}
		if s.Gate != "" {
			n.Tip += ", gate: " + s.Gate
		}
		if s.Back != "" {
			n.Tip += ", after a failure back to " + s.Back
		}
	}
	at := ""
	for _, n := range p.Nodes {
		if n.Baton {
			at = n.Title
		}
	}
	p.Said = fmt.Sprintf("The flow: %d of %d stations are done. The baton is at: %s.", done(d.Steps), len(d.Steps), at)
	return p
}

// drawPlan lays steps out by what they depend on.
func drawPlan(d view.Detail, tall bool) picture {
	if len(d.Steps) == 0 && d.Phase == "unreadable" {
		return picture{}
	}
	index := map[string]int{}
	for i, s := range d.Steps {
		index[s.ID] = i
	}
	level := make([]int, len(d.Steps))
	for range d.Steps { // as often as the longest way can be; a circle, which no accepted plan has, ends too
		for i, s := range d.Steps {
			for _, dep := range s.DependsOn {
				if j, ok := index[dep]; ok && j != i && level[j] < len(d.Steps) {
					level[i] = min(max(level[i], level[j]+1), len(d.Steps))
				}
			}
		}
	}
	levels := [][]int{}
	for i, l := range level {
		for len(levels) <= l {
			levels = append(levels, nil)
		}
		levels[l] = append(levels[l], i)
	}
	row := make([]float64, len(d.Steps)) // place in its level
	for _, l := range levels {
		slices.SortStableFunc(l, func(a, b int) int { return cmp.Compare(middle(d.Steps[a], index, row), middle(d.Steps[b], index, row)) })
		for n, i := range l {
			row[i] = float64(n) - float64(len(l)-1)/2
		}
	}
	most := 1
	for _, l := range levels {
		most = max(most, len(l))
	}
	p := picture{}
	across, width, letters := nodeH, nodeW, 19
	if tall {
		across, width, letters = tallW, tallW, 16
	}
	breadth := most*across + (most-1)*gapAcross
	if tall {
		p.W = breadth + 2*margin
	} else {
		p.H = breadth + 2*margin
	}
	at := margin
	place := func(along, size int, center float64, n *node) { // along the levels, and across them
		mid := float64(margin) + float64(breadth)/2 + center*float64(across+gapAcross)
		if tall {
			n.X, n.Y = int(mid)-n.W/2, along
		} else {
			n.X, n.Y = along, int(mid)-n.H/2
		}
	}
	long := func(w int) int {
		if tall {
			return nodeH
		}
		return w
	}
	over := d.Stop != nil
	nodes := make([]node, len(d.Steps))
	held := false
	start := node{W: endW, H: nodeH, Title: "Plan", Below: "manager", State: "start", Tip: "The manager plans"}
	if d.Round > 1 {
		start.Below = fmt.Sprintf("plan %d", d.Round)
	}
	place(at, long(endW), 0, &start)
	at += long(endW) + gapAlong
	for _, l := range levels {
		for _, i := range l {
			s := d.Steps[i]
			n := node{W: width, H: nodeH, State: string(s.State), Href: "/missions/" + d.ID + "/tasks/" + s.ID, Tip: s.ID + ": " + s.Title + " (" + string(s.State) + ")"}
			n.Title, n.More = fold(s.Title, letters)
			n.Below = string(s.State)
			switch {
			case s.Agent == "" || tall && s.State != plan.Working:
			case tall: // the baton says the rest
				n.Below = cut(s.Agent, letters)
			default:
				n.Below = cut(s.Agent, letters-5) + " · " + n.Below
			}
			n.Baton = s.State == plan.Working || s.State == plan.Assigned && !over
			held = held || n.Baton
			place(at, long(width), row[i], &n)
			nodes[i] = n
		}
		at += long(width) + gapAlong
	}
	end := node{W: endW, H: nodeH, Title: "Result", Below: "not yet", State: "end", Tip: "The integrated work"}
	switch {
	case over && d.Stop.Cause == "completed":
		end.State, end.Below, end.Baton = "done", "done", true
	case strings.Contains(d.Phase, "verifying"):
		end.State, end.Below, end.Baton = "working", "final verify", true
	}
	start.Baton = !held && !end.Baton
	if start.Baton || len(d.Steps) > 0 {
		start.State = "done"
	}
	if start.Baton {
		start.State = "working"
	}
	place(at, long(endW), 0, &end)
	at += long(endW) + margin
	if tall {
		p.H = at
	} else {
		p.W = at
	}
	follows := map[int]bool{}
	join := func(a, b node, class string) { p.Edges = append(p.Edges, edge{curve(a, b, tall), class}) }
	for i, s := range d.Steps {
		class := "ahead"
		if s.State != plan.Waiting {
			class = "gone"
		}
		root := true
		for _, dep := range s.DependsOn {
			if j, ok := index[dep]; ok {
				root, follows[j] = false, true
				join(nodes[j], nodes[i], class)
			}
		}
		if root {
			join(start, nodes[i], class)
		}
	}
	for i := range d.Steps {
		if !follows[i] {
			class := "ahead"
			if end.Baton {
				class = "gone"
			}
			join(nodes[i], end, class)
		}
	}
	if len(d.Steps) == 0 {
		join(start, end, "ahead")
	}
	p.Nodes = append(append([]node{start}, nodes...), end)
	var who []string
	for _, n := range p.Nodes {
		if n.Baton {
			who = append(who, n.Title)
		}
	}
	p.Said = fmt.Sprintf("The plan: %d of %d steps are done. The baton is at: %s.", done(d.Steps), len(d.Steps), strings.Join(who, ", "))
	return p
}

// middle is the mean place of what a step builds on.
func middle(s view.Step, index map[string]int, row []float64) float64 {
	sum, n := 0.0, 0
	for _, dep := range s.DependsOn {
		if j, ok := index[dep]; ok {
			sum, n = sum+row[j], n+1
		}
	}
	if n == 0 {
		return 0
	}
	return sum / float64(n)
}

func curve(a, b node, tall bool) string {
	if tall {
		x1, y1, x2, y2 := a.X+a.W/2, a.Y+a.H, b.X+b.W/2, b.Y
		m := (y1 + y2) / 2
		return fmt.Sprintf("M%d %dC%d %d %d %d %d %d", x1, y1, x1, m, x2, m, x2, y2)
	}
	x1, y1, x2, y2 := a.X+a.W, a.Y+a.H/2, b.X, b.Y+b.H/2
	m := x1 + gapAlong/2
	if x2-x1 > 2*gapAlong { // past other levels: late, so that it runs beside them
		return fmt.Sprintf("M%d %dC%d %d %d %d %d %d", x1, y1, x1+(x2-x1)/2, y1, x2-gapAlong, y2, x2, y2)
	}
	return fmt.Sprintf("M%d %dC%d %d %d %d %d %d", x1, y1, m, y1, m, y2, x2, y2)
}

// fold breaks a text into two lines of at most n characters, at a blank where there is one.
func fold(s string, n int) (string, string) {
	r := []rune(s)
	if len(r) <= n {
		return s, ""
	}
	at := n
	for i := n; i > n/2; i-- {
		if r[i] == ' ' {
			at = i
			break
		}
	}
	return string(r[:at]), cut(strings.TrimSpace(string(r[at:])), n)
}

// cut shortens a text to n characters.
func cut(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return strings.TrimRight(string(r[:n-1]), " ") + "…"
	}
	return s
}
