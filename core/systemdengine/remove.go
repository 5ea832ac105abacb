package systemdengine

import (
	"context"
	"errors"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coreos/go-systemd/v22/dbus"
	"golang.org/x/sys/unix"

	"example.com/AutoAgentProject/core/files"
	"example.com/AutoAgentProject/core/mission"
)

// remove takes units away: down, disabled, their files gone, forgotten by the manager. It is repeatable. Last come those
// that bring a stop back after a crash of the machine: the target, the guard's, the stop's own.
func (e *Engine) remove(ctx context.Context, b *bus, s set, names []string) error {
	if err := b.must(ctx, s, s.target(), s.stopSocket(), mission.Slice(s.id)); err != nil {
		return err
	}
	here, err := e.here(names)
	if err != nil {
		return err
	}
	var last []string
	for _, a := range s.roster {
		if a.Role == mission.Quota {
			last = append(last, set{s.id, []mission.Agent{a}}.of(".timer", ".socket", ".service")...)
		}
	}
	last = append(last, s.target(), s.stopSocket())
	own := []string{s.stopService(), mission.GuardSlice(s.id)}
	of := func(some ...string) []string {
		return slices.DeleteFunc(slices.Clone(some), func(name string) bool { return !slices.Contains(here, name) })
	}
	first := slices.DeleteFunc(slices.Clone(here), func(name string) bool { return slices.Contains(slices.Concat(last, own), name) })
	if err := e.unlink(first); err != nil {
		return err
	}
	if err := b.disable(ctx, s.target()); err != nil {
		return err
	}
	if err := e.unlink(of(last...)); err != nil {
		return err
	}
	if err := b.reload(ctx); err != nil {
		return err
	}
	found, err := b.loaded(ctx, s)
	if err != nil {
		return err
	}
	for name, u := range found {
		if u.ActiveState != "failed" {
			continue
		}
		if err := b.reset(ctx, name); err != nil {
			return err
		}
	}
	// These go after the manager has read the units again: a service without its file is in no slice, and then the slice
	// would end before it and leave a control group behind.
	if err := e.unlink(of(own...)); err != nil {
		return err
	}
	return b.letGo(ctx, s)
}

// disable takes away what starts a unit at boot.
func (b *bus) disable(ctx context.Context, name string) error {
	err := b.do(ctx, "disable "+name, func(ctx context.Context, c *dbus.Conn) error {
		_, err := c.DisableUnitFilesContext(ctx, []string{name}, false)
		return err
	})
	if unloaded(err) || strings.HasSuffix(errorName(err), ".FileNotFound") {
		return nil
	}
	return err
}

// reset makes systemd forget that a unit failed.
func (b *bus) reset(ctx context.Context, name string) error {
	err := b.do(ctx, "reset "+name, func(ctx context.Context, c *dbus.Conn) error { return c.ResetFailedUnitContext(ctx, name) })
	if unloaded(err) {
		return nil
	}
	return err
}

func (e *Engine) unlink(names []string) error {
	var errs []error
	for _, name := range names {
		errs = append(errs, files.Remove(filepath.Join(e.Settings.UnitDir, name)))
	}
	return errors.Join(errs...)
}

// letGo ends the guard's slice, which stays up without anything in it. The slice takes this process along if it is the
// stop's service: that is the last thing it asks for, and it ends by itself, so the signal must not make it a failure.
func (b *bus) letGo(ctx context.Context, s set) error {
	slice := mission.GuardSlice(s.id)
	if !s.inside() {
		return b.must(ctx, s, slice)
	}
	signal.Ignore(unix.SIGTERM)
	err := b.do(ctx, "stop "+slice, func(ctx context.Context, c *dbus.Conn) error {
		_, err := c.StopUnitContext(ctx, slice, "replace", nil)
		return err
	})
	if unloaded(err) {
		return nil
	}
	return err
}
