package systemdengine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/dbus"

	"example.com/AutoAgentProject/core/files"
	"example.com/AutoAgentProject/core/units"
	"example.com/AutoAgentProject/core/usererr"
)

const (
	hostTimer   = units.Reconcile + ".timer"
	hostService = units.Reconcile + ".service"
)

func isHostUnit(name string) bool { return name == hostTimer || name == hostService }

// hostSlices hold every mission's. They stay up when the last one is gone.
var hostSlices = []string{"forge-autoagent.slice", "forge-autoagentguard.slice"}

// EnsureHost puts the host's units in place, which run the hourly reconcile: written where they are missing or say
// something else, enabled, the timer started. Where all is as it should be, it changes nothing.
func (e *Engine) EnsureHost(ctx context.Context) error {
	unlock, err := e.lockUnits(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	return e.ensureHost(ctx)
}

func (e *Engine) ensureHost(ctx context.Context) error {
	rendered, err := units.Host(e.Settings)
	if err != nil {
		return err
	}
	changed, err := e.place(ctx, rendered, rendered)
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
	if err := b.enable(ctx, hostTimer); err != nil {
		return err
	}
	found, err := b.hostUnits(ctx)
	if err != nil {
		return err
	}
	if u := found[hostTimer]; u.ActiveState == "active" && !changed {
		return nil
	} else if u.ActiveState == "failed" {
		if err := b.reset(ctx, hostTimer); err != nil {
			return err
		}
	}
	err = b.do(ctx, "restart "+hostTimer, func(ctx context.Context, c *dbus.Conn) error {
		_, err := c.RestartUnitContext(ctx, hostTimer, "replace", nil)
		return err
	})
	if err != nil {
		return err
	}
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(pollTime) {
		found, err := b.hostUnits(ctx)
		if u := found[hostTimer]; err != nil || u.ActiveState == "active" && u.JobId == 0 {
			return err
		}
		if ctx.Err() != nil || time.Now().After(end) {
			return errors.Join(fmt.Errorf("systemd did not start %s", hostTimer), ctx.Err())
		}
	}
}

// hostUnits are those that the manager knows.
func (b *bus) hostUnits(ctx context.Context) (map[string]dbus.UnitStatus, error) {
	found := map[string]dbus.UnitStatus{}
	err := b.do(ctx, "list the units", func(ctx context.Context, c *dbus.Conn) error {
		clear(found)
		all, err := c.ListUnitsContext(ctx)
		for _, u := range all {
			if isHostUnit(u.Name) || slices.Contains(hostSlices, u.Name) {
				found[u.Name] = u
			}
		}
		return err
	})
	return found, err
}

// RemoveHost takes the host's units away again, so that nothing of this program is left in the manager. While units of a
// mission are there, it refuses.
func (e *Engine) RemoveHost(ctx context.Context) error {
	unlock, err := e.lockUnits(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	b := &bus{e: e, patience: glance}
	defer b.close()
	t, err := e.table(ctx, b)
	if err != nil {
		return err
	}
	missions := map[string]bool{}
	for name, u := range t.files {
		missions[nameOf(u.id, name)] = true
	}
	for name, u := range t.units {
		if !u.settled() {
			missions[nameOf(u.id, name)] = true
		}
	}
	if len(missions) > 0 {
		return usererr.New(usererr.Conflict, "end the missions first: AutoAgentProject list --all, AutoAgentProject abort <id>",
			"units of missions are here: %s", strings.Join(slices.Sorted(maps.Keys(missions)), ", "))
	}
	b.patience = patience
	for name, u := range t.units { // what failed when its mission was gone already, and nobody has looked at since
		if u.active == "failed" {
			if err := b.reset(ctx, name); err != nil && !unloaded(err) {
				return err
			}
		}
	}
	for _, name := range []string{hostTimer, hostService} {
		err := b.do(ctx, "stop "+name, func(ctx context.Context, c *dbus.Conn) error {
			_, err := c.StopUnitContext(ctx, name, "replace", nil)
			return err
		})
		if err != nil && !unloaded(err) {
			return err
		}
	}
	if err := b.disable(ctx, hostTimer); err != nil {
		return err
	}
	if err := e.removePollers(ctx, b); err != nil {
		return err
	}
	if _, err := e.removeBridge(ctx, b); err != nil {
		return err
	}
	for _, name := range []string{hostTimer, hostService} {
		text, err := e.unit(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil && !strings.HasPrefix(string(text), units.Header) {
			err = usererr.New(usererr.Conflict, "look at it", "%s is not of this program", filepath.Join(e.Settings.UnitDir, name))
		}
		if err == nil {
			err = files.Remove(filepath.Join(e.Settings.UnitDir, name))
		}
		if err != nil {
			return err
		}
	}
	if err := b.reload(ctx); err != nil {
		return err
	}
	return b.forgetHost(ctx)
}

// forgetHost waits until the manager knows nothing of the host's units any more.
func (b *bus) forgetHost(ctx context.Context) error {
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(pollTime) {
		found, err := b.hostUnits(ctx)
		if err != nil || len(found) == 0 {
			return err
		}
		for name, u := range found {
			switch {
			case u.ActiveState == "failed":
				err = b.reset(ctx, name)
			case slices.Contains(hostSlices, name) && u.ActiveState == "active" && u.JobId == 0:
				err = b.do(ctx, "stop "+name, func(ctx context.Context, c *dbus.Conn) error {
					_, err := c.StopUnitContext(ctx, name, "replace", nil)
					return err
				})
			}
			if err != nil && !unloaded(err) {
				return err
			}
		}
		if ctx.Err() != nil || time.Now().After(end) {
			return errors.Join(fmt.Errorf("systemd still knows %s", strings.Join(slices.Sorted(maps.Keys(found)), ", ")), ctx.Err())
		}
	}
}

// nameOf is the mission, or the unit's name where it is not known.
func nameOf(id, name string) string {
	if id == "" {
		return name
	}
	return "mission " + id
}

// host writes the host's units anew where they are of another version. Without any nobody asked for them.
func (r *round) host(ctx context.Context) {
	old := false
	for _, name := range []string{hostTimer, hostService} {
		f := r.e.unitFile(name)
		old = old || f.ours && f.version != units.Version
	}
	if !old {
		return
	}
	r.tell(key{}, "host", "the host's units were of another version and were written anew", r.e.EnsureHost(ctx))
}
