package app

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"example.com/AutoAgentProject/core/engine"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/store"
	"example.com/AutoAgentProject/core/units"
	"example.com/AutoAgentProject/core/usererr"
)

// abortWait bounds how long abort waits for the proof.
const abortWait = 2 * time.Minute

const noReason = "aborted by a person"

// maxReason is how much of --reason is kept, in characters: it must fit into the tombstone.
const maxReason = 300

func (c *cli) abortCommand() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:               "abort <id>",
		Short:             "Stop a mission for good, and prove it",
		Long:              "Stop a mission for good. It returns when nothing of the mission lives any more; the work so far stays.",
		Example:           `  AutoAgentProject abort my-site --reason "wrong goal"`,
		Args:              exactly(1, "the mission's id"),
		ValidArgsFunction: c.completeID,
		RunE: func(cmd *cobra.Command, args []string) error {
			root, st, m, merr := c.mission(args[0])
			if merr != nil && usererr.CodeOf(merr) != usererr.Unreadable {
				return merr
			}
			made, err := c.bury(cmd.Context(), root, st, m, mission.Stop{Cause: mission.Aborted, Reason: cutRunes(clean(first(reason, noReason)), maxReason), By: "person", At: time.Now()})
			if usererr.CodeOf(err) == usererr.Environment {
				return err
			}
			if err != nil {
				return usererr.Wrap(err, usererr.Environment, "", "the tombstone of %s cannot be written", st.ID())
			}
			if merr != nil {
				if rec, done, err := c.stopUnits(cmd.Context(), root, st.ID()); done || err != nil {
					if err == nil {
						c.say("Mission %s is aborted: %s", st.ID(), rec.Proof)
					}
					return err
				}
				// It starts nothing any more, but who belongs to it is not known.
				return usererr.Wrap(merr, usererr.Unreadable, "put a good copy in its place and abort again", "mission %s is told to stop, but that nothing of it lives cannot be proven", st.ID())
			}
			e, err := c.engineOf(root, m)
			if err != nil {
				return err
			}
			ctx, done := context.WithTimeout(cmd.Context(), abortWait)
			defer done()
			rec, err := e.Stop(ctx, m.ID)
			if err != nil {
				return usererr.Wrap(err, usererr.Failed, "AutoAgentProject status "+m.ID+" shows how far it is; abort again goes on", "mission %s is not proven stopped", m.ID)
			}
			stop, err := st.Stopped()
			if err != nil || stop == nil {
				return err
			}
			if c.json {
				return c.printJSON(map[string]any{"id": m.ID, "stop": stop, "made": made, "record": rec})
			}
			if !made && stop.Cause != mission.Aborted {
				c.say("Mission %s had ended already: %s", m.ID, stop.Cause.Phase())
				return nil
			}
			c.say("Mission %s is aborted: %s", m.ID, rec.Proof)
			c.say("  %-8s %s", "cost", costText(st, m))
			c.say("  %-8s %s", "work", st.Work())
			return nil
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "`why`, for the record (default \""+noReason+"\")")
	return cmd
}

// bury sets the tombstone. Root lets the owner do it: of a mission of the system's manager root may end the rest too.
func (c *cli) bury(ctx context.Context, root store.Root, st *store.Store, m mission.Mission, stop mission.Stop) (made bool, err error) {
	err = owned(st.Dir())
	if err == nil {
		return st.Stop(stop)
	}
	if os.Geteuid() != 0 || m.Manager != string(units.System) && m.ID != "" { // one that cannot be read may be anybody's
		return false, err
	}
	old, err := st.Stopped()
	if err != nil || old != nil {
		return false, err
	}
	return true, c.letOwnerWrite(ctx, root, writeTombstone, st.ID(), stop)
}

// stopUnits ends a mission whose own record cannot be read by the units that are installed for it; done is false where there
// are none.
func (c *cli) stopUnits(ctx context.Context, root store.Root, id string) (rec engine.Record, done bool, err error) {
	managers := []units.Manager{units.System}
	if os.Geteuid() != 0 {
		managers = append(managers, units.User)
	}
	for _, manager := range managers {
		e, err := c.newSystemd(root, manager, discard())
		if err != nil {
			continue
		}
		if _, err := os.Stat(filepath.Join(e.Settings.UnitDir, "forge-autoagent-"+id+"-stop.service")); err != nil {
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, abortWait)
		defer cancel()
		rec, err = e.Stop(ctx, id)
		return rec, true, err
	}
	return rec, false, nil
}
