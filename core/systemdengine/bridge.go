package systemdengine

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/coreos/go-systemd/v22/dbus"

	"example.com/AutoAgentProject/core/files"
	"example.com/AutoAgentProject/core/units"
	"example.com/AutoAgentProject/core/usererr"
)

// EnsureBridge puts the units of the dashboard in place and lets its socket listen. With other settings than before, the socket
// listens anew and a dashboard that runs ends: the next who looks starts the new one.
func (e *Engine) EnsureBridge(ctx context.Context, s units.BridgeSettings) error {
	list, err := units.BridgeUnits(e.Settings, s)
	if err != nil {
		return err
	}
	unlock, err := e.lockUnits(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	changed, err := e.place(ctx, list, list)
	if err != nil {
		return err
	}
	b := &bus{e: e, patience: patience}
	defer b.close()
	socket, service := units.Bridge+".socket", units.Bridge+".service"
	if changed {
		if err := b.reload(ctx); err != nil {
			return err
		}
		if err := errors.Join(b.reset(ctx, socket), b.reset(ctx, service), b.stopHost(ctx, service), b.stopHost(ctx, socket)); err != nil {
			return err
		}
	}
	if err := b.enable(ctx, socket); err != nil {
		return err
	}
	done := make(chan string, 1)
	err = b.do(ctx, "start "+socket, func(ctx context.Context, c *dbus.Conn) error {
		_, err := c.StartUnitContext(ctx, socket, "replace", done)
		return err
	})
	if err != nil {
		return err
	}
	select {
	case result := <-done:
		if result != "done" {
			return usererr.New(usererr.Environment, "AutoAgentProject bridge install --listen with another port, perhaps it is in use", "systemd did not let %s listen on %s", socket, s.Listen)
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// RemoveBridge takes the units of the dashboard away. Without any there is nothing to do.
func (e *Engine) RemoveBridge(ctx context.Context) error {
	unlock, err := e.lockUnits(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	b := &bus{e: e, patience: patience}
	defer b.close()
	changed, err := e.removeBridge(ctx, b)
	if err != nil || !changed {
		return err
	}
	return b.reload(ctx)
}

func (e *Engine) removeBridge(ctx context.Context, b *bus) (changed bool, err error) {
	var errs []error
	for _, name := range []string{units.Bridge + ".socket", units.Bridge + ".service"} {
		text, err := e.unit(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil && !strings.HasPrefix(string(text), units.Header) {
			err = usererr.New(usererr.Conflict, "look at it", "%s is not of this program", filepath.Join(e.Settings.UnitDir, name))
		}
		if err == nil {
			err = errors.Join(b.stopHost(ctx, name), b.disable(ctx, name), files.Remove(filepath.Join(e.Settings.UnitDir, name)), b.reset(ctx, name))
			changed = true
		}
		errs = append(errs, err)
	}
	return changed, errors.Join(errs...)
}

// stopHost stops a unit of the host; one that is not loaded is stopped.
func (b *bus) stopHost(ctx context.Context, name string) error {
	done := make(chan string, 1)
	err := b.do(ctx, "stop "+name, func(ctx context.Context, c *dbus.Conn) error {
		_, err := c.StopUnitContext(ctx, name, "replace", done)
		return err
	})
	if unloaded(err) {
		return nil
	}
	if err == nil {
		select {
		case <-done:
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	return err
}
