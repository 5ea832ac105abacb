package systemdengine

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/coreos/go-systemd/v22/dbus"

	"example.com/AutoAgentProject/core/files"
	"example.com/AutoAgentProject/core/units"
)

// EnsurePoller puts the poller of a channel in place and starts it. Where it is already as it should be, it is only
// started: it ends by itself whenever nothing is left to do.
func (e *Engine) EnsurePoller(ctx context.Context, hash string) error {
	unit, err := units.Poller(e.Settings, hash)
	if err != nil {
		return err
	}
	unlock, err := e.lockUnits(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	list := []units.File{unit}
	changed, err := e.place(ctx, list, list)
	if err != nil {
		return err
	}
	b := &bus{e: e, patience: patience}
	defer b.close()
	if changed {
		if err := b.reload(ctx); err != nil {
			return err
		}
	}
	if err := b.enable(ctx, unit.Name); err != nil {
		return err
	}
	return b.do(ctx, "start "+unit.Name, func(ctx context.Context, c *dbus.Conn) error {
		_, err := c.StartUnitContext(ctx, unit.Name, "replace", nil)
		return err
	})
}

// removePollers takes all pollers of this manager away.
func (e *Engine) removePollers(ctx context.Context, b *bus) error {
	entries, err := os.ReadDir(e.Settings.UnitDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	errs := []error{err}
	for _, f := range entries {
		if !units.IsPoller(f.Name()) {
			continue
		}
		text, err := e.unit(f.Name())
		if err != nil || !strings.HasPrefix(string(text), units.Header) {
			errs = append(errs, err)
			continue
		}
		err = b.do(ctx, "stop "+f.Name(), func(ctx context.Context, c *dbus.Conn) error {
			_, err := c.StopUnitContext(ctx, f.Name(), "replace", nil)
			return err
		})
		if err != nil && !unloaded(err) {
			errs = append(errs, err)
			continue
		}
		errs = append(errs, b.disable(ctx, f.Name()), files.Remove(filepath.Join(e.Settings.UnitDir, f.Name())))
	}
	return errors.Join(errs...)
}
