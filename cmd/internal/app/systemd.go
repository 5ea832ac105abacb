package app

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/store"
	"example.com/AutoAgentProject/core/systemdengine"
	"example.com/AutoAgentProject/core/units"
	"example.com/AutoAgentProject/core/usererr"
	"example.com/AutoAgentProject/core/wake"
	"example.com/AutoAgentProject/systemd"
)

// newSystemd wires the systemd engine with the user manager of whoever runs this.
func (c *cli) newSystemd(root store.Root, log *slog.Logger) (*systemdengine.Engine, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	home := c.env.Getenv("HOME")
	if !filepath.IsAbs(home) {
		return nil, usererr.New(usererr.Environment, "set HOME", "there is no home folder")
	}
	profs, err := professions()
	if err != nil {
		return nil, err
	}
	longest := 30 * time.Minute
	for _, name := range profs.Names() {
		if p, ok := profs.Get(name); ok {
			longest = max(longest, p.Wall)
		}
	}
	return &systemdengine.Engine{
		Root: root, Log: log,
		Settings: units.Settings{
			Templates: systemd.Files(), Manager: units.User, Root: string(root), Bin: filepath.Dir(self),
			UnitDir: filepath.Join(home, ".config", "systemd", "user"), Home: home,
			Path: first(c.env.Getenv("PATH"), systemPath), Lang: c.env.Getenv("LANG"), RunWall: longest,
		},
		Finish: func(ctx context.Context, m mission.Mission, stop mission.Stop) error {
			return finish(ctx, root.Mission(m.ID), m, stop, log)
		},
	}, nil
}

// stopMissionCommand is what the stop unit of a mission runs.
func (c *cli) stopMissionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "stop-mission <id>",
		Short:   "Carry out the stop of a mission that has its tombstone",
		Long:    "Carry out the stop of a mission of the systemd engine. Its stop unit runs this; people use abort.",
		Example: "  AutoAgentProject stop-mission my-site",
		Hidden:  true,
		Args:    exactly(1, "the mission's id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			root, err := c.store()
			if err != nil {
				return err
			}
			if err := mission.CheckID(args[0]); err != nil {
				return err
			}
			e, err := c.newSystemd(root, slog.New(slog.NewTextHandler(c.env.Stderr, nil)))
			if err != nil {
				return err
			}
			return e.Carry(cmd.Context(), args[0])
		},
	}
}

// drainWake empties the socket that started this tick. What comes from now on starts another one.
func drainWake(getenv func(string) string) {
	const handedOver = 3 // the first descriptor that systemd passes
	if getenv("LISTEN_PID") != strconv.Itoa(os.Getpid()) {
		return
	}
	unix.CloseOnExec(handedOver)
	buf := make([]byte, 64)
	for {
		if _, _, err := unix.Recvfrom(handedOver, buf, unix.MSG_DONTWAIT); err != nil {
			break
		}
	}
	_ = unix.Close(handedOver)
}

// askForStop asks the stop unit of a mission to do its work. Quota does so whenever it finds a tombstone, so that a stop
// that was cut off by a crash goes on.
func askForStop(m mission.Mission, getenv func(string) string) error {
	if m.Engine != systemdengine.Name {
		return nil
	}
	runtime := first(getenv("XDG_RUNTIME_DIR"), "/run/user/"+strconv.Itoa(os.Getuid()))
	return wake.Send(units.StopSocket(runtime, m.ID))
}
