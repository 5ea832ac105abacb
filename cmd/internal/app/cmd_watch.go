package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/spf13/cobra"

	"example.com/AutoAgentProject/core/plan"
	"example.com/AutoAgentProject/core/usererr"
	"example.com/AutoAgentProject/core/view"
)

func (c *cli) watchCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "watch [<id>]",
		Short: "Show all missions, or one, as they go on",
		Long: "Show all missions, or one, on the whole terminal, as they go on: steps, agents, money, time, what waits for you. It only\n" +
			"looks; q ends it and no mission. Where the output is no terminal, each change is a line, with --json an object, and\n" +
			"it ends when the mission does.",
		Example:           "  AutoAgentProject watch\n  AutoAgentProject watch my-site | tee my-site.log",
		Args:              atMostOne("watch"),
		ValidArgsFunction: c.completeID,
		RunE: func(cmd *cobra.Command, args []string) error {
			root, err := c.store()
			if err != nil {
				return err
			}
			id := ""
			if len(args) == 1 {
				id = args[0]
				if _, st, _, err := c.mission(id); err != nil && (st == nil || !st.Exists() || usererr.CodeOf(err) != usererr.Unreadable) {
					return err
				}
			}
			r, err := c.reader(root)
			if err != nil {
				return err
			}
			if tty, _ := c.terminal(); !tty || c.json {
				return c.watchPlain(cmd.Context(), r, id)
			}
			return c.watchScreen(cmd.Context(), r, id)
		},
	}
}

// watchEvery is how often it is looked whether something changed, and watchAnyway how often it is read all the same: what
// time alone changes is in no file.
const (
	watchEvery  = 500 * time.Millisecond
	watchAnyway = 5 * time.Second
)

// lookAt reads the missions that are watched.
func lookAt(ctx context.Context, r *view.Reader, id string) (map[string]view.Mission, error) {
	out := map[string]view.Mission{}
	if id != "" {
		d, err := r.Detail(ctx, id, -1, 0)
		if errors.Is(err, view.ErrNotFound) {
			return out, nil
		}
		out[id] = d.Mission
		return out, err
	}
	o, err := r.Overview(ctx, "", 1)
	for _, m := range o.Missions {
		out[m.ID] = m.Mission
	}
	return out, err
}

// change is one thing that happened, as a line.
type change struct {
	At      time.Time `json:"at"`
	Mission string    `json:"mission"`
	Text    string    `json:"text"`
}

// watchPlain writes a line for each change until the mission ends, or ctx.
func (c *cli) watchPlain(ctx context.Context, r *view.Reader, id string) error {
	var old map[string]view.Mission
	seen, read := "", time.Time{}
	for {
		if now := r.Fingerprint(id, ""); now != seen || time.Since(read) > watchAnyway {
			next, err := lookAt(ctx, r, id)
			if err != nil && ctx.Err() == nil {
				return err
			}
			if ctx.Err() != nil {
				return nil
			}
			seen, read = now, time.Now()
			for _, text := range changes(old, next) {
				if err := c.sayChange(change{time.Now().UTC(), text[0], text[1]}); err != nil {
					return nil // nobody reads it any more
				}
			}
			old = next
		}
		if v, there := old[id]; id != "" && (!there || isOver(v)) {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(watchEvery):
		}
	}
}

func (c *cli) sayChange(ch change) error {
	if c.json {
		return c.printJSONLine(ch)
	}
	_, err := fmt.Fprintf(c.env.Stdout, "%s  %s  %s\n", ch.At.Local().Format("15:04:05"), clean(ch.Mission), view.Line(ch.Text, 400))
	return err
}

// changes says what differs between two looks, mission by mission: its id and a sentence. What is there at the first look is told
// as it stands.
func changes(old, next map[string]view.Mission) [][2]string {
	var out [][2]string
	ids := map[string]bool{}
	for id := range old {
		ids[id] = true
	}
	for id := range next {
		ids[id] = true
	}
	order := make([]string, 0, len(ids))
	for id := range ids {
		order = append(order, id)
	}
	slices.Sort(order)
	for _, id := range order {
		say := func(format string, args ...any) { out = append(out, [2]string{id, fmt.Sprintf(format, args...)}) }
		a, known := old[id]
		b, there := next[id]
		if !there {
			say("is gone")
			continue
		}
		switch {
		case !known:
			say("%s, %d of %d steps done, %s", b.Phase, doneSteps(b), len(b.Steps), dash(b.Budget.Text))
		case a.Phase != b.Phase:
			say("%s", b.Phase)
		}
		states := map[string]plan.State{}
		for _, s := range a.Steps {
			states[s.ID] = s.State
		}
		for _, s := range b.Steps {
			if was, ok := states[s.ID]; known && (!ok || was != s.State) {
				text := fmt.Sprintf("step %s is %s", s.ID, s.State)
				if s.Agent != "" {
					text += " (" + s.Agent + ")"
				}
				if s.State == plan.Failed && s.Reason != "" {
					text += ": " + s.Reason
				}
				say("%s", text)
			}
		}
		lines := map[string]view.Agent{}
		for _, x := range a.Agents {
			lines[x.Name] = x
		}
		for _, x := range b.Agents {
			if was, ok := lines[x.Name]; known && ok && x.Line != "" && (was.Line != x.Line || was.Doing != x.Doing) {
				say("%s: %s", x.Name, x.Line)
			}
		}
		if known && b.Budget.Used != a.Budget.Used {
			say("%s", b.Budget.Text)
		}
		for _, n := range b.Needs {
			if !slices.ContainsFunc(a.Needs, func(o view.Need) bool { return o.Kind == n.Kind && o.Title == n.Title }) {
				say("waits for you: %s; %s", n.Title, first(n.Commands...))
			}
		}
		for _, w := range b.Warnings {
			if !slices.Contains(a.Warnings, w) {
				say("warning: %s", w)
			}
		}
		if isOver(b) && !(known && isOver(a)) {
			say("ended: %s", b.Stop.Reason)
		}
	}
	return out
}

func doneSteps(v view.Mission) int {
	n := 0
	for _, s := range v.Steps {
		if s.State == plan.Done {
			n++
		}
	}
	return n
}

// watchScreen shows them on the whole terminal.
func (c *cli) watchScreen(ctx context.Context, r *view.Reader, id string) error {
	s := &screen{ctx: ctx, read: r, id: id, only: id != "", colours: c.env.Getenv("NO_COLOR") == "", width: 80, height: 24}
	out, _ := c.env.Stdout.(*os.File)
	_, err := tea.NewProgram(s, tea.WithContext(ctx), tea.WithInput(c.env.Stdin), tea.WithOutput(out), tea.WithoutCatchPanics()).Run()
	if errors.Is(err, tea.ErrInterrupted) || errors.Is(err, tea.ErrProgramKilled) || ctx.Err() != nil {
		return nil
	}
	return err
}
