package app

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/mattn/go-runewidth"

	"example.com/AutoAgentProject/core/journal"
	"example.com/AutoAgentProject/core/plan"
	"example.com/AutoAgentProject/core/view"
)

// screen is the whole terminal: the list of missions, or one of them.
type screen struct {
	ctx     context.Context
	read    *view.Reader
	colours bool

	id     string // shown; empty: the list
	only   bool   // there is no list to go back to
	at     int    // place in the list
	scroll int
	width  int
	height int

	list view.Overview
	one  view.Detail
	err  error
	seen string
	when time.Time
}

// looked is a new look at the missions.
type looked struct {
	id   string
	list view.Overview
	one  view.Detail
	err  error
	seen string
	when time.Time
}

type wink struct{} // time to look whether something changed

func (s *screen) Init() tea.Cmd { return tea.Batch(s.look(), later()) }

func later() tea.Cmd { return tea.Tick(watchEvery, func(time.Time) tea.Msg { return wink{} }) }

// look reads what is shown, beside the loop that draws.
func (s *screen) look() tea.Cmd {
	id, ctx, r := s.id, s.ctx, s.read
	return func() tea.Msg {
		m := looked{id: id, seen: r.Fingerprint(id, ""), when: time.Now()}
		if id == "" {
			m.list, m.err = r.Overview(ctx, "", 1)
		} else {
			m.one, m.err = r.Detail(ctx, id, -1, 0)
		}
		return m
	}
}

func (s *screen) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch m := msg.(type) {
	case tea.WindowSizeMsg:
		s.width, s.height = max(m.Width, 20), max(m.Height, 4)
	case looked:
		if m.id == s.id {
			s.list, s.one, s.err, s.seen, s.when = m.list, m.one, m.err, m.seen, m.when
			s.at = max(min(s.at, len(s.list.Missions)-1), 0)
		}
	case wink:
		if time.Since(s.when) > watchAnyway || s.read.Fingerprint(s.id, "") != s.seen {
			s.when = time.Now() // one look at a time is enough
			return s, tea.Batch(s.look(), later())
		}
		return s, later()
	case tea.KeyPressMsg:
		return s, s.key(m.String())
	}
	return s, nil
}

func (s *screen) key(k string) tea.Cmd {
	switch k {
	case "q", "ctrl+c":
		return tea.Quit
	case "esc", "backspace", "left", "h":
		if s.id == "" || s.only {
			if k == "esc" {
				return tea.Quit
			}
			return nil
		}
		s.id, s.scroll = "", 0
		return s.look()
	case "enter", "right", "l":
		if s.id == "" && s.at < len(s.list.Missions) {
			s.id, s.scroll, s.one = s.list.Missions[s.at].ID, 0, view.Detail{}
			return s.look()
		}
	case "up", "k":
		s.move(-1)
	case "down", "j":
		s.move(1)
	case "pgup":
		s.move(2 - s.height)
	case "pgdown", "space":
		s.move(s.height - 2)
	case "home", "g":
		s.move(-1 << 20)
	}
	return nil
}

func (s *screen) move(n int) {
	if s.id == "" {
		s.at = max(min(s.at+n, len(s.list.Missions)-1), 0)
		return
	}
	s.scroll = max(s.scroll+n, 0)
}

func (s *screen) View() tea.View {
	lines, mark := s.listLines()
	if s.id != "" {
		lines, mark = s.missionLines(), -1
	}
	room := max(s.height-1, 1)
	from := min(s.scroll, max(len(lines)-room, 0))
	if mark >= 0 { // what is chosen is on the screen
		from = max(mark-room+3, 0)
	}
	s.scroll = min(s.scroll, max(len(lines)-room, 0))
	shown := lines[from:min(from+room, len(lines))]
	for len(shown) < room {
		shown = append(shown, "")
	}
	keys := "q end · ↑↓ choose · enter open"
	if s.id != "" {
		keys = "q end · ↑↓ scroll"
		if !s.only {
			keys += " · esc all missions"
		}
	}
	v := tea.NewView(strings.Join(append(shown, s.paint("2", s.fit(keys))), "\n"))
	v.AltScreen = true
	return v
}

// fit makes text safe for the terminal and cuts it to its width.
func (s *screen) fit(text string) string {
	return runewidth.Truncate(strings.ReplaceAll(clean(view.Shown(text)), "\n", " "), s.width, "…")
}

func (s *screen) paint(code, text string) string {
	if !s.colours || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// gauge draws a share as a bar.
func gauge(used, total int64, width int) string {
	n := 0
	if total > 0 {
		n = int(min(used, total) * int64(width) / total)
	}
	return strings.Repeat("█", n) + strings.Repeat("░", width-n)
}

func (s *screen) listLines() (lines []string, mark int) {
	o := s.list
	if s.when.IsZero() {
		return []string{s.paint("2", "…")}, -1
	}
	lines = append(lines, s.paint("1", s.fit(fmt.Sprintf("Missions: %d wait for you, %d run, %d halted, %d ended", o.Counts.Waiting, o.Counts.Running, o.Counts.Halted, o.Counts.Ended))), "")
	if s.err != nil {
		return append(lines, s.paint("31", s.fit(s.err.Error()))), -1
	}
	if len(o.Missions) == 0 {
		return append(lines, s.fit("There is none yet: AutoAgentProject start")), -1
	}
	mark = -1
	for i, m := range o.Missions {
		point, code := "  ", colourOf(m.Phase)
		if i == s.at {
			point, mark = "▸ ", len(lines)
		}
		if m.Group == view.Waiting {
			code = "33;1"
		}
		left := ""
		if m.Time.Limited && m.Stop == nil {
			left = shortDuration(time.Duration(m.Time.Left).Round(time.Minute)) + " left"
		}
		lines = append(lines, s.paint(code, s.fit(fmt.Sprintf("%s%-18s %-18s %d/%d  %s %s  %s", point, m.ID, m.Phase, doneSteps(m.Mission), len(m.Steps), gauge(m.Budget.Used, m.Budget.Total, 10), dash(m.Budget.Text), left))))
		for _, n := range m.Needs {
			if m.Group == view.Waiting {
				lines = append(lines, s.paint("33", s.fit("      waits for you: "+n.Title+"; "+first(n.Commands...))))
			}
		}
	}
	return lines, mark
}

func colourOf(phase string) string {
	switch {
	case phase == "completed":
		return "32"
	case phase == "failed", phase == "aborted", phase == "unreadable", strings.HasPrefix(phase, "halted"):
		return "31"
	}
	return "0"
}

func (s *screen) missionLines() []string {
	d, now := s.one, time.Now()
	var lines []string
	say := func(code, format string, args ...any) {
		lines = append(lines, s.paint(code, s.fit(fmt.Sprintf(format, args...))))
	}
	switch {
	case errors.Is(s.err, view.ErrNotFound):
		say("31", "There is no mission %s any more", s.id)
		return lines
	case s.err != nil:
		say("31", "%s", s.err)
		return lines
	case d.ID == "":
		say("2", "%s …", s.id)
		return lines
	}
	say("1", "%s  %s", d.ID, d.Phase)
	say("0", "%s", d.Goal)
	if d.Stop != nil {
		say("0", "ended %s: %s (by %s)", ago(d.Stop.At, now), d.Stop.Reason, d.Stop.By)
	}
	say("0", "")
	bar := max(min(s.width-44, 40), 10)
	say("0", "money  %s %s", gauge(d.Budget.Used, d.Budget.Total, bar), d.Budget.Text)
	if d.Time.Limited {
		say("0", "time   %s %s used, %s left", gauge(int64(d.Time.Used), int64(d.Time.Used+d.Time.Left), bar), shortDuration(time.Duration(d.Time.Used).Round(time.Second)), shortDuration(time.Duration(d.Time.Left).Round(time.Second)))
	}
	say("0", "steps  %s %d of %d done", gauge(int64(doneSteps(d.Mission)), int64(len(d.Steps)), bar), doneSteps(d.Mission), len(d.Steps))
	for _, n := range d.Needs {
		say("33;1", "waits for you: %s", n.Title)
		for _, cmd := range n.Commands {
			say("33", "    %s", cmd)
		}
	}
	for _, p := range d.Pauses {
		say("33", "paused (%s): %s", p.Cause, p.Reason)
	}
	for _, w := range d.Warnings {
		say("33", "warning: %s", w)
	}
	say("0", "")
	for _, x := range d.Steps {
		sign, code := "·", "2"
		switch x.State {
		case plan.Done:
			sign, code = "✓", "32"
		case plan.Working:
			sign, code = "▶", "36;1"
		case plan.Assigned:
			sign, code = "▷", "36"
		case plan.Failed:
			sign, code = "✗", "31"
		}
		say(code, "%s %-16s %-16s %s", sign, x.ID, dash(x.Agent), x.Title)
	}
	if len(d.Steps) > 0 {
		say("0", "")
	}
	for _, a := range d.Agents {
		code := "0"
		if a.Doing == "working" {
			code = "36;1"
		}
		next := ""
		if !a.Next.IsZero() {
			next = ", next tick in " + shortDuration(max(a.Next.Sub(now), 0).Round(time.Second))
		}
		say(code, "%-16s %-9s %s%s", a.Name, dash(a.Doing), dash(a.Line), next)
	}
	say("0", "")
	for i := len(d.Events) - 1; i >= 0; i-- {
		e, code := d.Events[i], "2"
		switch e.Level {
		case journal.Blocker, journal.End:
			code = "31;1"
		case journal.Milestone:
			code = "32"
		}
		say(code, "%s  %s", e.At.Local().Format("15:04:05"), e.Text)
	}
	return lines
}
