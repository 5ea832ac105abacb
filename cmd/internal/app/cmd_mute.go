package app

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/store"
	"example.com/AutoAgentProject/core/usererr"
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
	return &cobra.Command{
		Use: "pause <id> [agent]", Short: "Hold a mission or one of its agents back until resume",
		Long: "Let a live mission begin nothing new until resume: runs that are under way end, no new one starts, and its time stands\n" +
			"still. With an agent's name: that agent alone, and the time goes on. Other reasons to wait are not touched.",
		Example: "  AutoAgentProject pause my-site\n  AutoAgentProject pause my-site codebuilder-1",
		Args:    idAndAgent, ValidArgsFunction: c.completeID,
		RunE: func(cmd *cobra.Command, args []string) error {
			_, st, m, err := c.mission(args[0])
			if err != nil {
				return err
			}
			agent, err := worker(m, args[1:])
			if err != nil {
				return err
			}
			said, err := pauseMission(cmd.Context(), st, agent, terminal)
			return c.done(st.ID(), said, err)
		},
	}
}

// idAndAgent takes a mission's id and perhaps an agent's name.
func idAndAgent(cmd *cobra.Command, args []string) error {
	if len(args) != 1 && len(args) != 2 {
		return usererr.New(usererr.Usage, "see "+cmd.CommandPath()+" --help", "%s takes the mission's id and perhaps an agent's name", cmd.Name())
	}
	return nil
}

// worker is the agent that is named, one that can be paused; empty if none is.
func worker(m mission.Mission, args []string) (string, error) {
	if len(args) == 0 {
		return "", nil
	}
	var able []string
	for _, a := range m.Roster {
		if a.Role != mission.Manager && a.Role != mission.Specialist {
			continue
		}
		if a.Name == args[0] {
			return a.Name, nil
		}
		able = append(able, a.Name)
	}
	if _, ok := m.Agent(args[0]); ok {
		return "", usererr.New(usererr.Usage, "it can be said of "+strings.Join(able, ", "), "%s spends nothing and is never paused", args[0])
	}
	return "", usererr.New(usererr.NotFound, "it has "+strings.Join(able, ", "), "mission %s has no agent %q", m.ID, args[0])
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
