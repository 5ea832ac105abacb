package app

import (
	"context"

	"github.com/spf13/cobra"

	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/store"
)

func (c *cli) muteCommand() *cobra.Command {
	return c.sayCommand("mute", "Hold back a mission's milestones",
		"Hold back the milestones of a mission. Blockers, questions and the end are told all the same; what was held back comes\nas one message after unmute.",
		func(_ context.Context, st *store.Store, _ mission.Mission) (string, error) { return setMuted(st, true) })
}

func (c *cli) unmuteCommand() *cobra.Command {
	return c.sayCommand("unmute", "Tell a mission's milestones again", "Tell the milestones of a mission again, those that were held back as one message.",
		func(_ context.Context, st *store.Store, _ mission.Mission) (string, error) {
			return setMuted(st, false)
		})
}

func (c *cli) ackCommand() *cobra.Command {
	return c.sayCommand("ack", "Repeat a mission's blockers no more", "Repeat the blockers of a mission that were told so far no more. New ones are told.",
		func(_ context.Context, st *store.Store, _ mission.Mission) (string, error) { return acknowledge(st) })
}

func (c *cli) pauseCommand() *cobra.Command {
	return c.sayCommand("pause", "Hold a mission back until resume",
		"Let a live mission begin nothing new until resume: runs that are under way end, no new one starts, and its time stands\nstill. Other reasons to wait are not touched.",
		func(ctx context.Context, st *store.Store, _ mission.Mission) (string, error) {
			return pauseMission(ctx, st, terminal)
		})
}

// sayCommand is a command that says one thing to one mission.
func (c *cli) sayCommand(name, short, long string, do func(context.Context, *store.Store, mission.Mission) (string, error)) *cobra.Command {
	return &cobra.Command{
		Use: name + " <id>", Short: short, Long: long, Example: "  AutoAgentProject " + name + " my-site",
		Args: exactly(1, "the mission's id"), ValidArgsFunction: c.completeID,
		RunE: func(cmd *cobra.Command, args []string) error {
			_, st, m, err := c.mission(args[0])
			if err != nil {
				return err
			}
			said, err := do(cmd.Context(), st, m)
			return c.done(st.ID(), said, err)
		},
	}
}
