package app

import (
	"context"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/store"
	"example.com/AutoAgentProject/core/systemdengine"
	"example.com/AutoAgentProject/core/usererr"
)

// tickToTheEnd runs the embedded engine in the foreground and says how the mission ended.
func (c *cli) tickToTheEnd(ctx context.Context, root store.Root, m mission.Mission) error {
	st := root.Mission(m.ID)
	// A pipe that nobody reads any more (start | head) is no reason to stop; caught, not ignored, so that the ticks do not
	// inherit it.
	// The same for Ctrl-Z: who is suspended can neither guard nor stop.
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, syscall.SIGPIPE, syscall.SIGTSTP)
	defer signal.Stop(caught)
	p := c.watchProgress(st, m)
	s := c.newSupervisor(root, slog.New(slog.NewTextHandler(io.Discard, nil)))
	told := c.carryAlong(ctx, s, m)
	stop, err := s.Start(ctx, m.ID)
	told()
	p.stop()
	if err != nil {
		return err
	}
	return c.tellEnd(ctx, root, m, stop)
}

// endCode is the exit status for the end of a mission.
func endCode(cause mission.Cause) usererr.Code {
	switch cause {
	case mission.Completed:
		return usererr.OK
	case mission.Budget, mission.Time:
		return usererr.Spent
	case mission.Aborted:
		return usererr.Aborted
	case mission.Damage:
		return usererr.Unreadable
	}
	return usererr.Failed
}

func (c *cli) runCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "run <id>",
		Short: "Go on with a mission that nobody ticks any more",
		Long: "Go on with a live mission that nobody ticks: of the embedded engine in the foreground, when its process is gone after a\n" +
			"crash, a reboot or a kill -9; of systemd by putting its units back, if they are lost.",
		Example:           "  AutoAgentProject run my-site",
		Args:              exactly(1, "the mission's id"),
		ValidArgsFunction: c.completeID,
		RunE: func(cmd *cobra.Command, args []string) error {
			root, st, m, err := c.mission(args[0])
			if err != nil {
				return err
			}
			stop, err := st.Stopped()
			if err != nil {
				return err
			}
			if m.Engine == systemdengine.Name {
				return c.putUnitsBack(cmd.Context(), root, m, stop)
			}
			if stop == nil {
				if err := owned(st.Dir()); err != nil {
					return err
				}
				return c.tickToTheEnd(cmd.Context(), root, m)
			}
			if _, err := c.newSupervisor(root, discard()).Stop(cmd.Context(), m.ID); err != nil {
				return err
			}
			return c.tellEnd(cmd.Context(), root, m, *stop)
		},
	}
}

// putUnitsBack lets systemd tick a live mission again whose units are lost.
func (c *cli) putUnitsBack(ctx context.Context, root store.Root, m mission.Mission, stop *mission.Stop) error {
	switch {
	case stop != nil:
		return usererr.New(usererr.Conflict, "AutoAgentProject status "+m.ID+" shows it", "mission %s was stopped", m.ID)
	case m.Manager != string(ownManager()) && os.Geteuid() != 0:
		return usererr.New(usererr.Environment, "sudo AutoAgentProject run "+m.ID+c.rootHint(root), "only root can put units into the system's manager")
	case m.Manager != string(ownManager()):
		return owned(root.Mission(m.ID).Dir())
	case os.Geteuid() == 0:
		if err := onlyRootsPrograms(); err != nil {
			return err
		}
	}
	e, err := c.engineOf(root, m)
	if err != nil {
		return err
	}
	if _, err := e.Start(ctx, m.ID); err != nil {
		return err
	}
	if c.json {
		return c.printJSON(map[string]any{"id": m.ID, "ticked": true})
	}
	c.say("Mission %s is ticked by systemd again", m.ID)
	return nil
}
