package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/mattn/go-runewidth"
	"github.com/spf13/cobra"

	"example.com/AutoAgentProject/core/engine"
	"example.com/AutoAgentProject/core/plan"
	"example.com/AutoAgentProject/core/store"
	"example.com/AutoAgentProject/core/systemdengine"
	"example.com/AutoAgentProject/core/units"
	"example.com/AutoAgentProject/core/usererr"
	"example.com/AutoAgentProject/core/view"
)

func (c *cli) statusCommand() *cobra.Command {
	why := false
	cmd := &cobra.Command{
		Use:   "status [<id>]",
		Short: "Show a mission: steps, agents, spend, time",
		Long: "Show a mission as it is. Without an id: the only live mission, or the list of them; with --json always the list.\n" +
			"With --why: one sentence each for the mission and its agents that says why it does something or nothing, and\nthe command that changes it.",
		Example: "  AutoAgentProject status my-site\n  AutoAgentProject status my-site --why\n  AutoAgentProject status my-site --json",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usererr.New(usererr.Usage, "see AutoAgentProject status --help", "status takes one id at most")
			}
			return nil
		},
		ValidArgsFunction: c.completeID,
		RunE: func(cmd *cobra.Command, args []string) error {
			root, err := c.store()
			if err != nil {
				return err
			}
			if len(args) == 0 {
				live, err := c.missions(cmd.Context(), root, false)
				if err != nil {
					return err
				}
				if why && len(live) != 1 {
					return usererr.New(usererr.Usage, "AutoAgentProject list shows the missions", "--why needs a mission's id")
				}
				if len(live) != 1 || c.json && !why {
					return c.printList(cmd.Context(), root, live, false)
				}
				args = []string{live[0].ID}
			}
			_, st, _, err := c.mission(args[0])
			if err != nil {
				return err
			}
			v, err := c.view(cmd.Context(), root, st)
			if err != nil {
				return err
			}
			switch {
			case why && c.json:
				err = c.printJSON(map[string]any{"id": v.ID, "phase": v.Phase, "why": view.Why(v, time.Now()), "warnings": v.Warnings})
			case why:
				c.printWhy(v)
			case c.json:
				err = c.printJSON(v)
			default:
				c.printStatus(v)
			}
			if err == nil && v.Unreadable {
				err = quiet(usererr.Unreadable)
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&why, "why", false, "say why it does something or nothing, and what changes that")
	return cmd
}

// printWhy says why, two lines each.
func (c *cli) printWhy(v view.Mission) {
	for _, r := range view.Why(v, time.Now()) {
		c.say("%s  %s", c.colour("1", r.Of), c.fit(r.Text, len(r.Of)+2))
		c.say("  → %s", r.Command)
	}
	for _, w := range v.Warnings {
		c.say("  %s", c.colour("33", c.fit("warning: "+w, 2)))
	}
}

// view gathers a mission for people.
func (c *cli) view(ctx context.Context, root store.Root, st *store.Store) (view.Mission, error) {
	have, err := missionCraft(st)
	if err != nil { // a damaged text of the mission hides nothing else of it
		if have, err = loadCraft(); err != nil {
			return view.Mission{}, err
		}
	}
	return view.Read(ctx, st, func(ctx context.Context, _ string) (engine.Live, error) { return c.live(ctx, root, st) }, have.profs, time.Now())
}

// live asks the engine of a mission who ticks it.
func (c *cli) live(ctx context.Context, root store.Root, st *store.Store) (engine.Live, error) {
	m, err := st.Mission()
	if err != nil {
		return engine.Live{}, err
	}
	if os.Geteuid() == 0 && m.Manager == string(units.User) {
		return engine.Live{}, errors.New("only its owner can ask the user manager that ticks it")
	}
	e, err := c.engineOf(root, m)
	if err != nil {
		return engine.Live{}, err
	}
	l, err := e.Live(ctx, m.ID)
	if s, ok := e.(*systemdengine.Engine); ok && err == nil {
		if stop, serr := st.Stopped(); serr == nil && stop == nil {
			l.Trouble, err = s.Trouble(ctx, m.ID)
		}
	}
	return l, err
}

func (c *cli) printStatus(v view.Mission) {
	now := time.Now()
	c.say("%s  %s", c.colour("1", v.ID), c.phase(v.Phase))
	row := func(name, format string, args ...any) {
		c.say("  %-8s %s", name, c.fit(fmt.Sprintf(format, args...), 11))
	}
	row("goal", "%s", v.Goal)
	if v.Stop != nil {
		row("ended", "%s, %s (by %s)", v.Stop.Reason, ago(v.Stop.At, now), v.Stop.By)
	}
	row("budget", "%s", v.Budget.Text)
	if v.Budget.Reserved > 0 {
		row("", "%d%% of it reserved by runs", v.Budget.Reserved*100/max(v.Budget.Total, 1))
	}
	switch {
	case v.Stop != nil:
	case v.Time.Limited:
		row("time", "%s used, %s left", shortDuration(time.Duration(v.Time.Used).Round(time.Second)), shortDuration(time.Duration(v.Time.Left).Round(time.Second)))
	}
	row("age", "started %s", ago(v.CreatedAt, now))
	row("pays", "%s", v.Payer)
	row("network", "%s", networkText(v.Network))
	if len(v.FromRepo) > 0 {
		row("loads", "%s", fromRepoText(v.FromRepo))
	}
	if v.Live.Ticking {
		row("ticked", "by %s", v.Live.By)
	}
	for _, p := range v.Pauses {
		until := ""
		if !p.Until.IsZero() {
			until = " until " + p.Until.Local().Format("15:04")
			if p.Until.Sub(now) > 12*time.Hour { // another day, most likely
				until = " until " + p.Until.Local().Format("2006-01-02 15:04")
			}
		}
		who := ""
		if p.Agent != "" {
			who = p.Agent + " is "
		}
		c.say("  %s", c.colour("33", c.fit(fmt.Sprintf("%spaused%s (%s): %s", who, until, p.Cause, p.Reason), 2)))
	}
	for _, n := range v.Needs {
		if n.Kind == "approval" {
			c.say("  %s", c.colour("33", c.fit(fmt.Sprintf("%s: %s", n.Title, n.Commands[0]), 2)))
		}
	}
	for _, w := range v.Warnings {
		c.say("  %s", c.colour("33", c.fit("warning: "+w, 2)))
	}
	documents := false
	if len(v.Steps) > 0 {
		c.say("")
		t := table{{"STEP", "STATE", "AGENT", "SINCE", "TITLE"}}
		for _, s := range v.Steps {
			title := s.Title
			if s.State == plan.Failed && s.Reason != "" {
				title += " (" + s.Reason + ")"
			}
			t = append(t, []string{s.ID, string(s.State), dash(s.Agent), ago(s.Since, now), title})
			documents = documents || s.State == plan.Done
		}
		c.printTable(t)
		if documents {
			c.say("  %s", c.fit(Program+" handoff show <step> --mission "+v.ID+" prints what an agent left of one", 2))
		}
	}
	c.say("")
	t := table{{"AGENT", "DOES", "SINCE", "INBOX", "NEXT", "LAST LINE"}}
	for _, a := range v.Agents {
		inbox := fmt.Sprintf("%d", a.Inbox.New+a.Inbox.InProcess)
		if a.Inbox.New > 0 && !a.Inbox.Oldest.IsZero() {
			inbox += ", oldest " + ago(a.Inbox.Oldest, now)
		}
		if a.Inbox.Failed > 0 {
			inbox += fmt.Sprintf(", %d failed", a.Inbox.Failed)
		}
		next := "-"
		if !a.Next.IsZero() {
			next = "in " + shortDuration(max(a.Next.Sub(now), 0).Round(time.Second))
		}
		t = append(t, []string{a.Name, dash(a.Doing), ago(a.Since, now), inbox, next, dash(a.Line)})
	}
	c.printTable(t)
	if v.Result != "" {
		c.say("")
		row("result", "%s", v.Result)
	}
}

func (c *cli) phase(p string) styled {
	switch {
	case p == "completed":
		return c.colour("32", p)
	case p == "failed", strings.HasPrefix(p, "halted"), p == "aborted":
		return c.colour("31", p)
	}
	return c.colour("36", p)
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// ago is the age of a moment in words; the future counts as now.
func ago(t, now time.Time) string {
	if t.IsZero() {
		return "-"
	}
	d := max(now.Sub(t), 0)
	switch {
	case d < time.Second:
		return "now"
	case d < time.Minute:
		return fmt.Sprintf("%ds ago", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm ago", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh ago", int(d.Hours()))
	}
	return fmt.Sprintf("%dd ago", int(d.Hours()/24))
}

// table is rows of cells, the first one the head.
type table [][]string

// printTable prints columns aligned, the last one cut to the terminal's width.
func (c *cli) printTable(t table) {
	var width []int
	for i := range t {
		for j := range t[i] {
			t[i][j] = strings.ReplaceAll(clean(t[i][j]), "\n", " ")
			for len(width) <= j {
				width = append(width, 0)
			}
			width[j] = max(width[j], runewidth.StringWidth(t[i][j]))
		}
	}
	for i, row := range t {
		var b strings.Builder
		b.WriteString("  ")
		for j, cell := range row {
			if j == len(row)-1 {
				b.WriteString(cell)
				break
			}
			b.WriteString(runewidth.FillRight(cell, width[j]+2))
		}
		line := styled(c.fit(strings.TrimRight(b.String(), " "), 0))
		if i == 0 {
			line = c.colour("2", string(line))
		}
		fmt.Fprintln(c.env.Stdout, line)
	}
}

// fit cuts text to what is left of the terminal's width behind an indent; piped output is never cut.
func (c *cli) fit(s string, indent int) string {
	s = strings.ReplaceAll(clean(s), "\n", " ")
	if tty, w := c.terminal(); tty {
		return runewidth.Truncate(s, max(w-indent, 20), "…")
	}
	return s
}
