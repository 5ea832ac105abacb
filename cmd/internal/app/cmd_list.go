package app

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"example.com/AutoAgentProject/core/store"
	"example.com/AutoAgentProject/core/usererr"
	"example.com/AutoAgentProject/core/view"
)

const unlistable = "give another --root, or make it readable"

func (c *cli) listCommand() *cobra.Command {
	all := false
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the missions",
		Long:    "List the live missions, with --all those that ended too.",
		Example: "  AutoAgentProject list --all",
		Args:    exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, args []string) error {
			root, err := c.store()
			if err != nil {
				return err
			}
			list, err := c.missions(cmd.Context(), root, all)
			if err != nil {
				return err
			}
			return c.printList(cmd.Context(), root, list, all)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "those that ended too")
	return cmd
}

// missions gathers all missions. One that cannot be read is listed as such and hides none of the others.
func (c *cli) missions(ctx context.Context, root store.Root, all bool) ([]view.Mission, error) {
	ids, err := root.IDs()
	if err != nil {
		return nil, usererr.Wrap(err, usererr.Environment, unlistable, "the missions cannot be listed")
	}
	list := []view.Mission{}
	for _, id := range ids {
		v, err := c.view(ctx, root, root.Mission(id))
		if errors.Is(err, store.ErrNoMission) {
			continue // removed meanwhile
		}
		if err != nil {
			v = view.Mission{ID: id, Phase: "unreadable", Unreadable: true, Warnings: []string{err.Error()}}
		}
		if all || v.Stop == nil || !isOver(v) {
			list = append(list, v)
		}
	}
	return list, nil
}

// isOver says whether a mission's stop is finished.
func isOver(v view.Mission) bool { return v.Stop != nil && v.Phase == v.Stop.Cause.Phase() }

func (c *cli) printList(ctx context.Context, root store.Root, list []view.Mission, all bool) error {
	unreadable := false
	for i, v := range list {
		st := root.Mission(v.ID)
		list[i].Bytes = view.Size(ctx, st.Dir(), st.Work(), st.Logs())
		unreadable = unreadable || v.Unreadable
	}
	switch {
	case c.json:
		if err := c.printJSON(list); err != nil {
			return err
		}
	case len(list) == 0 && all:
		c.say("no mission below %s", root)
	case len(list) == 0:
		c.say("no live mission below %s; AutoAgentProject list --all shows those that ended", root)
	default:
		now := time.Now()
		t := table{{"MISSION", "PHASE", "SPENT", "LEFT", "AGE", "SIZE", "TICKED", "GOAL"}}
		for _, v := range list {
			left, ticked := "-", "no"
			if v.Time.Limited && v.Stop == nil {
				left = shortDuration(time.Duration(v.Time.Left).Round(time.Minute))
			}
			if v.Live.Ticking {
				ticked = v.Engine
			}
			goal := v.Goal
			if v.Phase == "unreadable" {
				goal = v.Warnings[0]
			}
			t = append(t, []string{v.ID, v.Phase, dash(v.Budget.Text), left, ago(v.CreatedAt, now), shortBytes(v.Bytes), ticked, goal})
		}
		c.printTable(t)
	}
	if unreadable {
		return quiet(usererr.Unreadable)
	}
	return nil
}
