package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"time"

	"example.com/AutoAgentProject/core/engine"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/store"
	"example.com/AutoAgentProject/core/supervisor"
	"example.com/AutoAgentProject/core/systemdengine"
	"example.com/AutoAgentProject/core/tick"
	"example.com/AutoAgentProject/core/units"
	"example.com/AutoAgentProject/core/usererr"
)

// hand gives a mission to the engine that ticks it from now on, or takes all of it back.
func (c *cli) hand(ctx context.Context, d *draft) error {
	err := func() error {
		if c.handOver {
			return askRoot(d.mission.ID, c.pollerHash(d.root))
		}
		e, err := c.engineOf(d.root, d.mission)
		if err != nil {
			return err
		}
		if _, err := e.Start(ctx, d.mission.ID); err != nil {
			return err
		}
		if s, ok := e.(*systemdengine.Engine); ok {
			c.installHost(ctx, s)
			c.installPoller(ctx, d.root, s)
		}
		return nil
	}()
	if err == nil {
		// From now on reconcile puts the units back if they are lost; without this it takes the start for cut off.
		if err := d.root.Mission(d.mission.ID).Save(store.Handed, map[string]time.Time{"at": time.Now().UTC()}); err != nil {
			c.progress("warning: that it was started could not be written down: %v", err)
		}
		return nil
	}
	st := d.root.Mission(d.mission.ID)
	if errors.Is(err, errRootGone) {
		// Units of it may be up, and only root takes them away: the mission stays until its stop is proven.
		if serr := c.cutOff(ctx, d.root, st); serr != nil {
			return usererr.Wrap(errors.Join(err, serr), usererr.Failed, "the hourly reconcile takes them away, and at once: sudo AutoAgentProject abort "+st.ID(), "the start of mission %s was cut off, and units of it may be left", st.ID())
		}
	}
	tick.Sweep(st.Dir())
	tick.Sweep(st.Work())
	tick.Sweep(st.Logs())
	return err
}

// cutOff stops a mission of the system's manager whose start was cut off, and returns when no unit of it is left.
func (c *cli) cutOff(ctx context.Context, root store.Root, st *store.Store) error {
	if _, err := st.Stop(mission.Stop{Cause: mission.FailedEnd, Reason: "its start was cut off", By: "start", At: time.Now()}); err != nil {
		return err
	}
	e, err := c.newSystemd(root, units.System, discard())
	if err != nil {
		return err
	}
	ctx, done := context.WithTimeout(context.WithoutCancel(ctx), abortWait)
	defer done()
	if gone, err := e.Gone(ctx, st.ID()); err != nil || gone {
		return err // it was cut off before anything was put there
	}
	_, err = e.Stop(ctx, st.ID())
	return err
}

// installHost puts the units of the host in place. A mission does without them, so that it is told and no more.
func (c *cli) installHost(ctx context.Context, e *systemdengine.Engine) {
	if err := e.EnsureHost(ctx); err != nil {
		c.progress("warning: the hourly reconcile is not in place: %v", err)
	}
}

// waitForEnd shows what happens until the stop of a mission that systemd ticks is proven. Who ends it here aborts it.
func (c *cli) waitForEnd(ctx context.Context, root store.Root, m mission.Mission) error {
	st := root.Mission(m.ID)
	e, err := c.engineOf(root, m)
	if err != nil {
		return err
	}
	p := c.watchProgress(st, m)
	for !stopped(st) && ctx.Err() == nil {
		_ = pause(ctx)
	}
	if ctx.Err() != nil {
		_, err = st.Stop(mission.Stop{Cause: mission.Aborted, Reason: noReason, By: "person", At: time.Now()})
	}
	if err == nil {
		late, done := context.WithTimeout(context.WithoutCancel(ctx), abortWait)
		_, err = e.Stop(late, m.ID) // until no unit is left
		done()
	}
	p.stop()
	if err != nil {
		return err
	}
	stop, err := st.Stopped()
	if err != nil || stop == nil {
		return err
	}
	return c.tellEnd(ctx, root, m, *stop)
}

// engineOf wires the engine of a mission.
func (c *cli) engineOf(root store.Root, m mission.Mission) (engine.Engine, error) {
	switch m.Engine {
	case supervisor.Name:
		return c.newSupervisor(root, discard()), nil
	case systemdengine.Name:
		return c.newSystemd(root, units.Manager(m.Manager), discard())
	}
	return nil, usererr.New(usererr.Environment, "", "this version knows no engine %q", m.Engine)
}

// owned refuses to touch a mission whose files belong to another user: as root it would leave files behind that the
// owner's ticks cannot write.
func owned(dir string) error {
	st, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if uid := fileOwner(st); uid != os.Geteuid() {
		name := strconv.Itoa(uid)
		if u, err := user.LookupId(name); err == nil {
			name = u.Username
		}
		return usererr.New(usererr.Environment, fmt.Sprintf("sudo -u %s XDG_RUNTIME_DIR=/run/user/%d %s … does it as that user", name, uid, Program), "mission %s belongs to %s", filepath.Base(dir), name)
	}
	return nil
}
