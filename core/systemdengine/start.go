package systemdengine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/dbus"

	"example.com/AutoAgentProject/core/files"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/units"
	"example.com/AutoAgentProject/core/usererr"
)

// Start puts the mission's units in place and starts them, all or nothing, and returns at once with no Stop.
func (e *Engine) Start(ctx context.Context, id string) (mission.Stop, error) {
	return mission.Stop{}, e.start(ctx, id)
}

func (e *Engine) start(ctx context.Context, id string) (err error) {
	s, m, err := e.unitsOf(id)
	if err != nil {
		return err
	}
	if stop, err := e.Root.Mission(id).Stopped(); err != nil || stop != nil {
		return cmpErr(err, usererr.New(usererr.Conflict, "AutoAgentProject status "+id+" shows it", "mission %s was stopped", id))
	}
	rendered, err := units.Render(*m, e.Settings)
	if err != nil {
		return err
	}
	unlock, err := e.lockUnits(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	b := &bus{e: e, patience: glance}
	defer b.close()
	found, err := b.loaded(ctx, s)
	if err != nil {
		return err
	}
	b.patience = patience
	for name, u := range found {
		if !settled(u) && !strings.HasSuffix(name, ".slice") {
			return usererr.New(usererr.Conflict, "AutoAgentProject status "+id+" shows it", "mission %s is being ticked: %s is %s", id, name, u.ActiveState)
		}
	}
	e.forgetTries(id)
	mine, err := e.publish(rendered)
	defer func() {
		if err == nil {
			return
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Minute)
		defer cancel()
		if uerr := e.undo(ctx, b, s, mine); uerr != nil {
			err = errors.Join(err, fmt.Errorf("what was made of it could not all be taken back: %w", uerr))
		}
	}()
	if err != nil {
		return err
	}
	if err := e.verify(ctx, rendered); err != nil {
		return err
	}
	return b.bringUp(ctx, s)
}

func cmpErr(err error, otherwise error) error {
	if err != nil {
		return err
	}
	return otherwise
}

func unwritable(err error, dir string) error {
	return usererr.Wrap(err, usererr.Environment, "units are put there: make it writable, or use --engine embedded", "no unit can be put into %s", dir)
}

// publish writes the units. One that is there already and says the same is what a start that was cut off left; another
// one is somebody else's. It returns what is the mission's now, also when it fails.
func (e *Engine) publish(rendered []units.File) (mine []string, err error) {
	for _, f := range rendered {
		path := filepath.Join(e.Settings.UnitDir, f.Name)
		err := files.Publish(path, f.Text, 0o644)
		if errors.Is(err, files.ErrExists) {
			old, rerr := e.unit(f.Name)
			if rerr != nil || !bytes.Equal(old, f.Text) {
				return mine, usererr.New(usererr.Conflict, "look at it and take it away, or choose another id", "%s is there already and is not of this mission", path)
			}
			err = nil
		}
		if err != nil {
			if old, rerr := e.unit(f.Name); rerr == nil && bytes.Equal(old, f.Text) { // written, and not known to be on the disk
				mine = append(mine, f.Name)
			}
			return mine, unwritable(err, e.Settings.UnitDir)
		}
		mine = append(mine, f.Name)
	}
	return mine, nil
}

// verify lets systemd look at exactly these units. It says nothing about good ones, and ends with 0 also when it warns.
func (e *Engine) verify(ctx context.Context, rendered []units.File) error {
	args := []string{"--man=no"}
	if e.Settings.Manager == units.User {
		args = append(args, "--user")
	}
	args = append(args, "verify")
	for _, f := range rendered {
		args = append(args, filepath.Join(e.Settings.UnitDir, f.Name))
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "systemd-analyze", args...)
	cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+units.Runtime(units.User)) // after su or sudo it may be unset
	out, err := cmd.CombinedOutput()
	if text := strings.TrimSpace(string(out)); text != "" || err != nil {
		if text == "" {
			text = err.Error()
		}
		return usererr.New(usererr.Environment, "this is a fault of the units or of the machine; --engine embedded does without them", "systemd-analyze verify does not like the units: %s", text)
	}
	return nil
}

// bringUp loads, enables and starts the units, and returns when all timers and sockets are up.
func (b *bus) bringUp(ctx context.Context, s set) error {
	if err := b.enable(ctx, s.target()); err != nil {
		return err
	}
	if err := b.reload(ctx); err != nil {
		return err
	}
	for _, name := range []string{s.stopSocket(), s.target()} { // first what can stop it
		if err := b.start(ctx, name); err != nil {
			return err
		}
	}
	return b.up(ctx, s, append(s.of(".timer", ".socket"), s.stopSocket(), s.target()))
}

func (b *bus) enable(ctx context.Context, name string) error {
	return b.do(ctx, "enable "+name, func(ctx context.Context, c *dbus.Conn) error {
		_, _, err := c.EnableUnitFilesContext(ctx, []string{name}, false, false)
		return err
	})
}

// up waits until units that were started are active.
func (b *bus) up(ctx context.Context, s set, want []string) error {
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(pollTime) {
		found, err := b.loaded(ctx, s)
		if err != nil {
			return err
		}
		down := slices.DeleteFunc(slices.Clone(want), func(name string) bool { return found[name].ActiveState == "active" })
		if len(down) == 0 {
			return nil
		}
		waiting := slices.ContainsFunc(down, func(name string) bool { u := found[name]; return u.JobId != 0 || u.ActiveState == "activating" })
		if ctx.Err() != nil || !waiting || time.Now().After(end) {
			return errors.Join(fmt.Errorf("systemd did not start %s", strings.Join(down, ", ")), ctx.Err())
		}
	}
}

// undo takes back a start.
func (e *Engine) undo(ctx context.Context, b *bus, s set, mine []string) error {
	if len(mine) == 0 {
		return nil
	}
	var errs []error
	if err := b.must(ctx, s, s.of(".timer", ".socket")...); err != nil {
		errs = append(errs, err)
	}
	if _, err := e.endTicks(ctx, b, s); err != nil {
		errs = append(errs, err)
	}
	if group, err := b.group(ctx, s.id); err != nil {
		errs = append(errs, err)
	} else if err := group.Kill(); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(append(errs, e.remove(ctx, b, s, mine))...)
}
