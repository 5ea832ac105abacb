package app

import (
	"errors"
	"fmt"
	"os/exec"

	"github.com/spf13/cobra"

	"example.com/AutoAgentProject/core/usererr"
)

func (c *cli) tickCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "tick <id> <agent>",
		Short: "Tick one agent once, now",
		Long: "Tick one agent once, now, as its engine would: nothing is done where nothing is due, and where another tick of the\n" +
			"agent runs.",
		Example:           "  AutoAgentProject tick my-site manager",
		Args:              exactly(2, "the mission's id and an agent"),
		ValidArgsFunction: c.completeID,
		RunE: func(cmd *cobra.Command, args []string) error {
			root, st, m, err := c.mission(args[0])
			if err != nil {
				return err
			}
			a, ok := m.Agent(args[1])
			if !ok {
				return usererr.New(usererr.NotFound, "AutoAgentProject status "+m.ID+" shows the agents", "mission %s has no agent %q", m.ID, args[1])
			}
			if err := owned(st.Dir()); err != nil {
				return err
			}
			path, err := roleProgram(a.Role)
			if err != nil {
				return err
			}
			x := exec.CommandContext(cmd.Context(), path, "--root", string(root), "--mission", m.ID, "--agent", a.Name)
			x.Env = tickEnvironment(c.env.Getenv)
			x.Stdout, x.Stderr = c.env.Stderr, c.env.Stderr
			x.Cancel = func() error { return x.Process.Signal(termSignal) }
			err = x.Run()
			var exit *exec.ExitError
			if errors.As(err, &exit) {
				if exit.ExitCode() < 0 {
					return fmt.Errorf("the tick of %s: %w", a.Name, err)
				}
				return quiet(usererr.Code(exit.ExitCode()))
			}
			if err != nil {
				return usererr.Wrap(err, usererr.Environment, "", "the tick of %s cannot be started", a.Name)
			}
			return nil
		},
	}
}
