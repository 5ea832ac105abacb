package app

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"example.com/AutoAgentProject/core/handoff"
	"example.com/AutoAgentProject/core/queue"
	"example.com/AutoAgentProject/core/usererr"
)

func (f *handoffFlags) receiving(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.batch, "batch", false, "in a mission: take and finish all of the same priority at once")
	cmd.Flags().StringVar(&f.run, "run", "", "`id` of the run that works on it: it may go on in another process (default $AUTOAGENT_RUN)")
}

func (c *cli) handoffNext(f *handoffFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "next",
		Short: "Take the next task or batch",
		Long: "Take the next task, or in batch mode all that have the priority of the first, and print it. What is held already is\n" +
			"printed again. Without any: NO_TASK.",
		Example: "  AutoAgentProject handoff next --layout swarmforge",
		RunE: c.at(f, func(_ context.Context, p *place, _ []string) error {
			p.reconcile(time.Now())
			return c.next(p, f, nil)
		}),
	}
	f.receiving(cmd)
	return protocol(cmd, count(0))
}

// at runs a command at the place of an agent.
func (c *cli) at(f *handoffFlags, run func(ctx context.Context, p *place, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		p, err := c.open(cmd.Context(), f)
		if err != nil {
			return c.state(err)
		}
		return run(cmd.Context(), p, args)
	}
}

// open finds the place of an agent.
func (c *cli) open(ctx context.Context, f *handoffFlags) (*place, error) {
	p, err := c.place(ctx, f)
	if err == nil {
		err = p.whole()
	}
	return p, err
}

// next takes and prints the next unit, in JSON together with what was finished just now.
func (c *cli) next(p *place, f *handoffFlags, done *handoff.Finished) error {
	mode, err := p.receives()
	if err != nil {
		return c.state(err)
	}
	by, err := c.holder(f)
	if err != nil {
		return environment(err)
	}
	unit, dead, err := p.queue.Next(p.role, mode, by, time.Now())
	for _, name := range dead {
		p.warn(fmt.Errorf("%s was set aside: see %s.error in failed/", name, name))
	}
	if err != nil {
		return c.state(err)
	}
	switch {
	case c.json:
		return c.printJSON(struct {
			Completed *handoff.Finished `json:"completed,omitempty"`
			Next      *handoff.Unit     `json:"next"` // null: nothing to do
		}{done, unit})
	case unit == nil:
		_, err = fmt.Fprint(c.env.Stdout, handoff.NoTask)
	default:
		_, err = fmt.Fprint(c.env.Stdout, unit.String())
	}
	return err
}

func (c *cli) handoffDone(f *handoffFlags) *cobra.Command {
	mergeOnly := false
	cmd := &cobra.Command{
		Use:   "done",
		Short: "Finish the current task or batch and take the next",
		Long: "Finish the current task or batch and take the next one. In a mission the work must have been handed on under the name\n" +
			"of its task, unless it came as a terminal broadcast (priority 00 to several), which is merged and not handed on.",
		Example: "  AutoAgentProject handoff done --layout swarmforge",
		RunE: c.at(f, func(ctx context.Context, p *place, _ []string) error {
			mode, err := p.receives()
			if err != nil {
				return c.state(err)
			}
			by, err := c.holder(f)
			if err != nil {
				return environment(err)
			}
			p.reconcile(time.Now())
			done, err := p.queue.Done(p.role, mode, by, func(u handoff.Unit) error { return c.mayEnd(ctx, p, u, mergeOnly) }, time.Now())
			if err != nil {
				return c.state(err)
			}
			if !c.json {
				fmt.Fprint(c.env.Stdout, done.String())
			}
			return c.next(p, f, &done)
		}),
	}
	f.receiving(cmd)
	cmd.Flags().BoolVar(&mergeOnly, "merge-only", false, "it is a terminal broadcast although only one has it: nothing is handed on")
	cmd.Flags().StringVar(&f.forward, "forward", "", "when work must be handed on: always, when-changed, off (default: always in a mission, off in a swarm)")
	cmd.Flags().BoolVar(&f.strict, "strict", false, "with --layout swarmforge: the rules of a mission")
	return protocol(cmd, count(0))
}

// mayEnd checks that the work was handed on.
func (c *cli) mayEnd(ctx context.Context, p *place, u handoff.Unit, mergeOnly bool) error {
	if p.policy.Forward == handoff.ForwardOff {
		return nil
	}
	since, err := takenAt(u)
	if err != nil {
		return err
	}
	sent, err := p.queue.SentSince(p.role, since)
	if err != nil {
		return err
	}
	changed := true
	if p.policy.Forward == handoff.ForwardWhenChanged {
		if changed, err = p.unlike(ctx, u); err != nil {
			return err
		}
	}
	if problems := handoff.CheckDone(p.role, u, sent, changed, mergeOnly, p.policy); problems != nil {
		what := u.Batch
		if what == "" {
			what = u.Items[0].Path
		}
		return c.refuse("HANDOFF NOT DONE", what, problems, "")
	}
	return nil
}

// unlike says whether the tree differs from any commit of a unit.
func (p *place) unlike(ctx context.Context, u handoff.Unit) (bool, error) {
	unlock, err := p.lock()
	if err != nil {
		return true, err
	}
	defer unlock()
	for _, i := range u.Items {
		if commit, ok := i.Text.Field("commit"); ok && handoff.IsCommit(commit) {
			if changed, err := p.tree.changed(ctx, commit); err != nil || changed {
				return true, err
			}
		}
	}
	return false, nil
}

// takenAt is when the first of a unit was taken up.
func takenAt(u handoff.Unit) (first time.Time, err error) {
	for _, i := range u.Items {
		at, err := time.Parse(time.RFC3339Nano, i.Text.Or("dequeued_at", ""))
		if err != nil {
			continue // put there by hand: everything that was ever sent counts
		}
		if first.IsZero() || at.Before(first) {
			first = at
		}
	}
	return first, nil
}

func (c *cli) handoffMerge(f *handoffFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "merge [<role> <commit>]",
		Short: "Merge what the current task hands over",
		Long: "Merge the commits of the current task or batch into the branch of this tree, or the one that is named. Where files\n" +
			"conflict they stay in the tree to be solved and committed. Nothing is merged into a tree with changes of its own.",
		Example: "  AutoAgentProject handoff merge --layout swarmforge",
		RunE: c.at(f, func(ctx context.Context, p *place, args []string) (err error) {
			var todo []handoff.Message
			if len(args) == 2 {
				todo = append(todo, handoff.Message{From: args[0], Commit: args[1]})
			} else if todo, err = p.merges(); err != nil {
				return c.state(err)
			}
			unlock, err := p.lock()
			if err != nil {
				return environment(err)
			}
			defer unlock()
			for _, m := range todo {
				if err := c.merge(ctx, p, m); err != nil {
					return environment(err)
				}
			}
			return nil
		}),
	}
	f.receiving(cmd)
	return protocol(cmd, func(n int) bool { return n == 0 || n == 2 })
}

// merges are the commits that the current unit hands over.
func (p *place) merges() ([]handoff.Message, error) {
	u, err := p.queue.Current(p.role)
	if err != nil && !isNotThere(err) {
		return nil, err
	}
	var out []handoff.Message
	if u != nil {
		for _, i := range u.Items {
			if i.Text.Or("type", "") == handoff.GitHandoff {
				out = append(out, handoff.Message{From: i.Text.Or("from", "unknown"), Commit: i.Text.Or("commit", ""), Task: i.Text.Or("task", "")})
			}
		}
	}
	if out == nil {
		return nil, &queue.StateError{Token: "NO_CURRENT_TASK", Text: "nothing is held that hands over a commit", Empty: true}
	}
	return out, nil
}

func (c *cli) merge(ctx context.Context, p *place, m handoff.Message) error {
	if !handoff.IsCommit(m.Commit) {
		return usererr.New(usererr.Failed, "a commit is 10 to 40 hexadecimal digits", "%q is no commit", m.Commit)
	}
	what := m.Task
	if what == "" {
		what = m.Commit
	}
	moved, conflicts, err := p.tree.merge(ctx, m.Commit, fmt.Sprintf("Merge %s from %s\n\nBy %s.\n", what, m.From, p.role))
	switch {
	case err != nil:
		return err
	case len(conflicts) > 0:
		fmt.Fprintf(c.env.Stderr, "MERGE_CONFLICT: %s %s\n", clean(m.From), m.Commit)
		for _, name := range conflicts {
			fmt.Fprintf(c.env.Stderr, "- %s\n", strings.ReplaceAll(clean(name), "\n", "?"))
		}
		fmt.Fprintf(c.env.Stderr, "solve them and commit, with the line By %s. in the message\n", p.role)
		return quiet(usererr.Failed)
	case moved:
		c.say("MERGED: %s %s", m.From, m.Commit)
	default:
		c.say("UP_TO_DATE: %s %s", m.From, m.Commit)
	}
	return nil
}

func isNotThere(err error) bool { return errors.Is(err, errNotThere) }
