package systemdengine

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coreos/go-systemd/v22/dbus"

	"example.com/AutoAgentProject/core/files"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/units"
	"example.com/AutoAgentProject/core/usererr"
)

// mend puts back and starts what is missing.
func (e *Engine) mend(ctx context.Context, b *bus, f fact, a act) error {
	if len(a.write) > 0 {
		if err := e.putBack(ctx, f, a.write); err != nil {
			return err
		}
	}
	if err := b.enable(ctx, f.set.target()); err != nil {
		return err
	}
	if err := b.reload(ctx); err != nil {
		return err
	}
	for _, name := range order(slices.Clone(a.start)) {
		if f.units[name].active == "failed" {
			if err := b.reset(ctx, name); err != nil {
				return err
			}
		}
		if err := b.start(ctx, name); err != nil {
			return err
		}
	}
	for _, name := range a.again {
		err := b.do(ctx, "restart "+name, func(ctx context.Context, c *dbus.Conn) error {
			_, err := c.RestartUnitContext(ctx, name, "replace", nil)
			return err
		})
		if err != nil {
			return err
		}
	}
	if err := b.up(ctx, f.set, slices.Concat(a.start, a.again)); err != nil {
		return err
	}
	if slices.Contains(a.start, f.set.target()) { // it brought them back
		if err := b.must(ctx, f.set, a.silent...); err != nil {
			return err
		}
	}
	if stop, err := e.Root.Mission(f.id).Stopped(); err == nil && stop != nil { // meanwhile; its stop may not have seen them start
		_, err := e.carry(ctx, b, f.id)
		return err
	}
	return nil
}

// putBack writes units that are missing or of another version. They are like the mission's others.
func (e *Engine) putBack(ctx context.Context, f fact, names []string) error {
	rendered, err := units.Render(*f.m, e.like(f))
	if err != nil {
		return err
	}
	some := slices.DeleteFunc(slices.Clone(rendered), func(u units.File) bool { return !slices.Contains(names, u.Name) })
	_, err = e.place(ctx, some, rendered)
	return err
}

// place writes units that are missing or say something else, and lets systemd look at them all. If that does not
// succeed, the folder is as it was.
func (e *Engine) place(ctx context.Context, some, all []units.File) (changed bool, err error) {
	var undo []func() error
	defer func() {
		for _, u := range undo {
			if err != nil {
				err = errors.Join(err, u())
			}
		}
	}()
	for _, u := range some {
		path := filepath.Join(e.Settings.UnitDir, u.Name)
		old, err := e.unit(u.Name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			if err = files.Publish(path, u.Text, 0o644); err == nil {
				undo = append(undo, func() error { return files.Remove(path) })
			}
		case err == nil && bytes.Equal(old, u.Text):
			continue
		case err == nil && !strings.HasPrefix(string(old), units.Header):
			err = usererr.New(usererr.Conflict, "look at it and take it away", "%s is there already and is not of this program", path)
			return false, err
		case err == nil:
			if err = files.Replace(path, u.Text, 0o644); err == nil {
				undo = append(undo, func() error { return files.Replace(path, old, 0o644) })
			}
		}
		if err != nil {
			return false, unwritable(err, e.Settings.UnitDir)
		}
		changed = true
	}
	if !changed {
		return false, nil
	}
	return true, e.verify(ctx, all)
}

// like are the settings with which the mission's units were rendered, as far as they tell.
func (e *Engine) like(f fact) units.Settings {
	var best mission.Agent
	for _, a := range f.set.roster {
		if f.files[f.set.base()+"-"+a.Name+".service"].root == e.Root && (best.Name == "" || best.Role == mission.Quota) {
			best = a
		}
	}
	if best.Name == "" {
		service, _ := e.unit(f.set.stopService())
		return units.Adopt(e.Settings, true, string(service), "")
	}
	service, _ := e.unit(f.set.base() + "-" + best.Name + ".service")
	timer, _ := e.unit(f.set.base() + "-" + best.Name + ".timer")
	return units.Adopt(e.Settings, best.Role == mission.Quota, string(service), string(timer))
}
