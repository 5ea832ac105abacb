package reporter

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"example.com/AutoAgentProject/core/journal"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/money"
	"example.com/AutoAgentProject/core/plan"
)

// standing says where the mission stands: steps, money, time, what is next.
func (r Reporter) standing(ctx context.Context, f *Facts) {
	if p, err := r.Store.Plan(); err == nil && len(p.Steps) > 0 {
		f.Steps = fmt.Sprintf("%d of %d steps done", p.Count(plan.Done), len(p.Steps))
		f.Titles = map[string]string{}
		for _, s := range p.Steps {
			f.Titles[s.ID] = s.Title
		}
		var next []string
		for _, states := range [][]plan.State{{plan.Working, plan.Assigned}, {plan.Waiting}} {
			for _, s := range p.Steps {
				if slices.Contains(states, s.State) {
					next = append(next, oneLine(s.Title, 80))
				}
			}
		}
		if more := len(next) - 3; more > 0 {
			next = append(next[:3], fmt.Sprintf("%d more", more))
		}
		if len(next) > 0 {
			f.Next = "next: " + strings.Join(next, ", ")
		}
	}
	if book, err := r.Store.Ledger().Read(); err == nil {
		f.Money = fmt.Sprintf("%s of %s spent (%d%%)", book.Used, book.Budget, money.ShownPercent(book.Budget.N, book.Used.N))
	}
	if c, err := r.Store.Clock(ctx, nil); err == nil {
		if left, limited := mission.TimeLeft(r.Mission, c, f.Now); limited {
			f.Left = Duration(left) + " left"
		}
	}
}

// end is the last message: result, how to take it, what it cost by agent, how long it took, what is unfinished.
func (r Reporter) end(e journal.Event) (title, text string) {
	m := r.Mission
	title, lines := cut(e.Text, maxTitle), []string(nil)
	if stop, err := r.Store.Stopped(); err == nil && stop != nil {
		title = fmt.Sprintf("Mission %s %s", m.ID, ending(stop.Cause))
		if stop.Reason != "" {
			lines = append(lines, oneLine(stop.Reason, 500))
		}
	}
	took := fmt.Sprintf("It took %s.", Duration(e.At.Sub(m.CreatedAt)))
	if p, err := r.Store.Plan(); err == nil && len(p.Steps) > 0 {
		var open []string
		for _, s := range p.Steps {
			if s.State != plan.Done {
				open = append(open, oneLine(s.Title, 80))
			}
		}
		lines = append(lines, fmt.Sprintf("%d of %d steps done. %s", p.Count(plan.Done), len(p.Steps), took))
		if more := len(open) - 10; more > 0 {
			open = append(open[:10], fmt.Sprintf("%d more", more))
		}
		if len(open) > 0 {
			lines = append(lines, "Unfinished: "+strings.Join(open, ", "))
		}
		var left []string
		for _, s := range p.Skipped {
			left = append(left, oneLine(s.Title, 80))
		}
		if len(left) > 0 {
			lines = append(lines, "Left out by you: "+strings.Join(left, ", "))
		}
	} else {
		lines = append(lines, took)
	}
	if book, err := r.Store.Ledger().Read(); err == nil {
		cost := fmt.Sprintf("Cost: %s of %s", book.Used, book.Budget)
		if m.Scripted {
			cost = fmt.Sprintf("It would have cost %s of %s", book.Used, book.Budget)
		}
		var by []string
		for _, a := range slices.Sorted(maps.Keys(book.ByAgent)) {
			by = append(by, fmt.Sprintf("%s %s", a, money.FormatUSD(book.ByAgent[a].Nano)))
		}
		if len(by) > 0 {
			cost += " (" + strings.Join(by, ", ") + ")"
		}
		lines = append(lines, cost)
	}
	if stop, err := r.Store.Stopped(); err == nil && stop != nil {
		switch stop.Cause {
		case mission.Budget:
			lines = append(lines, fmt.Sprintf("Go on: AutoAgentProject budget add %s 2usd, then AutoAgentProject resume %s", m.ID, m.ID))
		case mission.Time:
			lines = append(lines, fmt.Sprintf("Go on: AutoAgentProject hours add %s 1, then AutoAgentProject resume %s", m.ID, m.ID))
		}
	}
	if _, err := os.Stat(r.Store.Result()); err == nil {
		if m.From != nil && m.From.Kind == "git" {
			lines = append(lines, "Take it: AutoAgentProject deliver "+m.ID)
		}
		lines = append(lines, fmt.Sprintf("Result: %s, or git fetch %s main:autoagent/%s", r.Store.Result(), r.Store.Repo(), m.ID))
	}
	return title, strings.Join(lines, "\n")
}

// ending is how a mission ended, in words.
func ending(c mission.Cause) string {
	why := map[mission.Cause]string{mission.Budget: "the budget is used up", mission.Time: "the time is used up",
		mission.Damage: "a file of it cannot be read", mission.Walls: "something outside of its walls changed"}[c]
	if why == "" {
		return c.Phase()
	}
	return "halted: " + why
}

// Duration writes a duration for people: 3h10m, 25m, 40s.
func Duration(d time.Duration) string {
	d = max(d, 0)
	switch {
	case d >= time.Hour:
		d = d.Round(time.Minute)
	default:
		d = d.Round(time.Second)
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
