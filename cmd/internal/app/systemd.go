package app

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"example.com/AutoAgentProject/core/engine"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/store"
	"example.com/AutoAgentProject/core/systemdengine"
	"example.com/AutoAgentProject/core/units"
	"example.com/AutoAgentProject/core/usererr"
	"example.com/AutoAgentProject/core/wake"
	"example.com/AutoAgentProject/systemd"
)

// systemUnits is where the units of the system's manager lie.
const systemUnits = "/etc/systemd/system"

// ownManager is the manager that serves whoever runs this.
func ownManager() units.Manager {
	if os.Geteuid() == 0 {
		return units.System
	}
	return units.User
}

// newSystemd wires the systemd engine with the user manager of whoever runs this, or with the system's manager for the
// owner of the root.
func (c *cli) newSystemd(root store.Root, manager units.Manager, log *slog.Logger) (*systemdengine.Engine, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	if self, err = filepath.EvalSymlinks(self); err != nil {
		return nil, err
	}
	e := &systemdengine.Engine{
		Root: root, Log: log,
		Settings: units.Settings{Templates: systemd.Files(), Manager: manager, Root: string(root), Bin: filepath.Dir(self), Lang: c.env.Getenv("LANG")},
		Finish: func(ctx context.Context, m mission.Mission, stop mission.Stop) error {
			return finish(ctx, root.Mission(m.ID), m, stop, log)
		},
	}
	s := &e.Settings
	if s.RunWall, err = longestRun(); err != nil {
		return nil, err
	}
	if manager == units.User {
		s.Home = c.env.Getenv("HOME")
		s.UnitDir, s.Path = filepath.Join(s.Home, ".config", "systemd", "user"), first(c.env.Getenv("PATH"), systemPath)
		if !filepath.IsAbs(s.Home) {
			return nil, usererr.New(usererr.Environment, "set HOME", "there is no home folder")
		}
		return e, nil
	}
	owner, err := ownerOf(root)
	if err != nil {
		return nil, err
	}
	s.User, s.Home, s.UnitDir, s.Path = owner.Username, owner.HomeDir, systemUnits, systemPath
	if os.Geteuid() == 0 {
		hand := ownersHand{root: root, owner: owner}
		e.Save = func(ctx context.Context, id string, r engine.Record) error {
			return hand.write(ctx, writeRecord, id, r)
		}
		e.Finish = func(ctx context.Context, m mission.Mission, stop mission.Stop) error {
			return hand.write(ctx, writeEnd, m.ID, stop)
		}
	}
	return e, nil
}

// ownerOf is the user whose folder the root is: whoever runs this, where it is still to be made. A root is known by its real
// path: a link on the way there was put there since, by somebody who wants root to take another one for the owner.
func ownerOf(root store.Root) (*user.User, error) {
	uid := os.Geteuid()
	fd, err := unix.Openat2(unix.AT_FDCWD, string(root), &unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS})
	switch {
	case err == nil:
		var st unix.Stat_t
		err := unix.Fstat(fd, &st)
		_ = unix.Close(fd)
		if err != nil {
			return nil, err
		}
		uid = int(st.Uid)
	case errors.Is(err, unix.ELOOP):
		return nil, usererr.New(usererr.Conflict, "give the folder itself in --root", "there is a link on the way to %s", root)
	case !errors.Is(err, unix.ENOENT):
		return nil, usererr.Wrap(err, usererr.Environment, "", "the root %s cannot be looked at", root)
	}
	u, err := user.LookupId(strconv.Itoa(uid))
	if err != nil {
		return nil, usererr.Wrap(err, usererr.Environment, "give it to a user of this machine", "nobody knows the owner of %s", root)
	}
	return u, nil
}

// longestRun is the longest that a run of any profession may take.
func longestRun() (time.Duration, error) {
	profs, err := professions()
	if err != nil {
		return 0, err
	}
	longest := 30 * time.Minute
	for _, name := range profs.Names() {
		if p, ok := profs.Get(name); ok {
			longest = max(longest, p.Wall)
		}
	}
	return longest, nil
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
			e, err := c.newSystemd(root, ownManager(), c.stderrLog("autoagent-stop", args[0]))
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
func askForStop(m mission.Mission) error {
	if m.Engine != systemdengine.Name {
		return nil
	}
	return wake.Send(units.StopSocket(units.Runtime(units.ManagerOf(m)), m.ID))
}

// askForRemoval asks the stop unit of a mission whose folder is gone to take the units away. Which manager started this
// tick is written nowhere any more; at most one of the two listens.
func askForRemoval(id string) error {
	return errors.Join(
		wake.Send(units.StopSocket(units.Runtime(units.User), id)),
		wake.Send(units.StopSocket(units.Runtime(units.System), id)))
}
