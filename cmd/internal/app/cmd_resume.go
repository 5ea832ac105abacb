package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"example.com/AutoAgentProject/core/journal"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/money"
	"example.com/AutoAgentProject/core/store"
	"example.com/AutoAgentProject/core/supervisor"
	"example.com/AutoAgentProject/core/systemdengine"
	"example.com/AutoAgentProject/core/units"
	"example.com/AutoAgentProject/core/usererr"
)

func (c *cli) resumeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "resume <id> [agent]",
		Short: "Go on with a mission that was paused or halted",
		Long: "Go on with a mission that was paused, try its blocked steps again, and let agents go on that were paused because they\n" +
			"only failed; with an agent's name, of that agent alone. Or go on with a mission that halted because its\n" +
			"money or its time was used up, after budget add or hours add; or because a file of it was damaged, when\n" +
			"a good copy is in its place. Nothing else brings a halted mission back.",
		Example:           "  AutoAgentProject budget add my-site 2usd && AutoAgentProject resume my-site\n  AutoAgentProject resume my-site codebuilder-1",
		Args:              idAndAgent,
		ValidArgsFunction: c.completeID,
		RunE: func(cmd *cobra.Command, args []string) error {
			root, st, m, err := c.mission(args[0])
			if err != nil {
				return err
			}
			agent, err := worker(m, args[1:])
			if err != nil {
				return err
			}
			if agent != "" {
				if err := live(st); err != nil {
					return err
				}
			}
			if stop, err := st.Stopped(); err == nil && stop == nil { // it did not halt: what waits for a person is lifted
				if said, was, err := unpauseMission(cmd.Context(), st, m, agent); was || err != nil {
					return c.done(m.ID, said, err)
				}
			}
			if agent != "" {
				return usererr.New(usererr.Conflict, "AutoAgentProject status "+m.ID+" --why says what it waits for", "%s of %s waits for no person", agent, m.ID)
			}
			return c.resume(cmd.Context(), root, st, m)
		},
	}
}

// resume proves the stop once more, checks that the mission could work, lifts the tombstone and lets its engine tick.
func (c *cli) resume(ctx context.Context, root store.Root, st *store.Store, m mission.Mission) error {
	byRoot := os.Geteuid() == 0 && m.Manager == string(units.System)
	if !byRoot {
		if m.Manager == string(units.System) {
			return usererr.New(usererr.Environment, "sudo AutoAgentProject resume "+m.ID+c.rootHint(root), "only root can put units into the system's manager")
		}
		if err := owned(st.Dir()); err != nil {
			return err
		}
	}
	stop, err := st.Stopped()
	if err != nil {
		return err
	}
	if err := mayGoOn(ctx, st, m, stop); err != nil {
		return err
	}
	e, err := c.engineOf(root, m)
	if err != nil {
		return err
	}
	if _, err := e.Stop(ctx, m.ID); err != nil { // to its end, if it was cut off
		return usererr.Wrap(err, usererr.Failed, "", "the stop of mission %s is not finished", m.ID)
	}
	if !byRoot {
		err = lift(ctx, st, *stop)
	} else {
		err = c.letOwnerWrite(ctx, root, writeResumed, m.ID, *stop)
	}
	if err != nil {
		return err
	}
	if m.Engine == supervisor.Name {
		return c.tickToTheEnd(ctx, root, m)
	}
	_, err = e.Start(ctx, m.ID)
	if l, lerr := e.Live(ctx, m.ID); err != nil && lerr == nil && l.Ticking {
		err = nil // reconcile looked in the moment in between and was faster
	}
	if err != nil {
		// Halted again, for the same reason: a live mission that nobody ticks would be worse.
		if byRoot {
			return errors.Join(err, c.letOwnerWrite(ctx, root, writeTombstone, m.ID, *stop))
		}
		_, serr := st.Stop(*stop)
		return errors.Join(err, serr)
	}
	if s, ok := e.(*systemdengine.Engine); ok {
		c.installPoller(ctx, root, s)
	}
	if c.json {
		return c.printJSON(map[string]any{"id": m.ID, "resumed": true, "halted_at": stop.At})
	}
	c.say("Mission %s goes on", m.ID)
	return nil
}

// mayGoOn refuses what would halt again at once, or can never go on.
func mayGoOn(ctx context.Context, st *store.Store, m mission.Mission, stop *mission.Stop) error {
	switch {
	case stop == nil:
		return usererr.New(usererr.Conflict, "AutoAgentProject status "+m.ID+" shows it", "mission %s has not halted", m.ID)
	case stop.Cause == "":
		return usererr.New(usererr.Unreadable, "put a good copy of stop.json in its place", "why mission %s stopped cannot be read", m.ID)
	case stop.Cause.Final():
		return usererr.New(usererr.Conflict, "start another one, with --from "+shellQuote(st.Result())+" if its work is to go on", "mission %s is %s for good", m.ID, stop.Cause.Phase())
	}
	book, err := st.Ledger().Read()
	if err != nil {
		return err
	}
	for _, read := range []func() error{
		func() error { _, err := st.Plan(); return err },
		func() error { _, err := st.Pauses(time.Now()); return err },
	} {
		if err := read(); err != nil {
			return err
		}
	}
	if left := money.Remaining(book.Budget.N, book.Used.N); left < m.MinRun {
		return usererr.New(usererr.Spent, fmt.Sprintf("AutoAgentProject budget add %s 2usd, for example", m.ID), "%s of %s is used, which leaves less than the smallest run, %s",
			book.Used, book.Budget, money.Amount{Unit: book.Budget.Unit, N: m.MinRun})
	}
	clock, err := st.Clock(ctx, nil)
	if err != nil {
		return err
	}
	if left, limited := mission.TimeLeft(m, clock, time.Now()); limited && left <= 0 {
		return usererr.New(usererr.Spent, fmt.Sprintf("AutoAgentProject hours add %s 1, for example", m.ID), "the time of mission %s is used up", m.ID)
	}
	return nil
}

// lift takes the tombstone away and says so.
func lift(ctx context.Context, st *store.Store, stop mission.Stop) error {
	if err := st.Lift(stop); err != nil {
		return err
	}
	if err := st.SetPhase(ctx, "working", time.Now()); err != nil {
		return err
	}
	return st.Journal().Add(journal.Event{At: time.Now(), Kind: journal.MissionResumed, Level: journal.Milestone, Agent: "person",
		Text: fmt.Sprintf("mission %s goes on after it was %s", st.ID(), stop.Cause.Phase())})
}

func (c *cli) hoursCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "hours",
		Short:   "Add to the time of a mission",
		Long:    "Add to the time of a mission.",
		Example: "  AutoAgentProject hours add my-site 1.5",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(&cobra.Command{
		Use:               "add <id> <hours>",
		Short:             "Add to the time of a mission",
		Long:              "Add to the time of a mission, live or halted. An absolute end that is past counts from now.",
		Example:           "  AutoAgentProject hours add my-site 1.5",
		Args:              exactly(2, "the mission's id and the hours"),
		ValidArgsFunction: c.completeID,
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := hours(args[1])
			if err != nil {
				return err
			}
			_, st, m, err := c.mission(args[0])
			if err != nil {
				return err
			}
			if err := c.mayRaise(st, m); err != nil {
				return err
			}
			if m.MaxRun == 0 && m.Until.IsZero() {
				return usererr.New(usererr.Conflict, "", "the time of mission %s is not limited", m.ID)
			}
			now := time.Now()
			clock, err := st.Clock(cmd.Context(), func(k mission.Clock) mission.Clock { return k.Grant(m, d, now) })
			if err != nil {
				return err
			}
			left, _ := mission.TimeLeft(m, clock, now)
			text := fmt.Sprintf("%s were added to the time of mission %s, %s are left", shortDuration(d), m.ID, shortDuration(left.Round(time.Second)))
			return c.raised(st, text, map[string]any{"id": m.ID, "added": mission.Duration(d), "left": mission.Duration(left)})
		},
	})
	return cmd
}

// mayRaise says whether a limit of this mission can still be raised.
func (c *cli) mayRaise(st *store.Store, m mission.Mission) error {
	if err := owned(st.Dir()); err != nil {
		return err
	}
	stop, err := st.Stopped()
	if err != nil || stop == nil || !stop.Cause.Final() {
		return err
	}
	return usererr.New(usererr.Conflict, "start another one", "mission %s is %s for good", m.ID, stop.Cause.Phase())
}

// raised tells of a raised limit.
func (c *cli) raised(st *store.Store, text string, answer map[string]any) error {
	if err := st.Journal().Add(journal.Event{At: time.Now(), Kind: journal.LimitRaised, Agent: "person", Text: text}); err != nil {
		return err
	}
	if c.json {
		return c.printJSON(answer)
	}
	c.say("%s", text)
	if stop, err := st.Stopped(); err == nil && stop != nil {
		sudo := ""
		if m, err := st.Mission(); err == nil && m.Manager == string(units.System) && os.Geteuid() != 0 {
			sudo = "sudo "
		}
		c.say("  %-8s %sAutoAgentProject resume %s%s", "go on", sudo, st.ID(), c.rootHint(st.Root()))
	}
	return nil
}
