package systemdengine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/dbus"
	"golang.org/x/sys/unix"

	"example.com/AutoAgentProject/core/engine"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/store"
	"example.com/AutoAgentProject/core/tick"
	"example.com/AutoAgentProject/core/units"
	"example.com/AutoAgentProject/core/usererr"
)

// Carry carries out the stop of a mission that has its tombstone or whose folder is gone, to the proof that nothing of
// it lives, and takes its units away. It is the work of the stop's service and goes on where another one ended.
func (e *Engine) Carry(ctx context.Context, id string) error {
	b := &bus{e: e, patience: patience}
	defer b.close()
	_, err := e.carry(ctx, b, id)
	return err
}

func (e *Engine) carry(ctx context.Context, b *bus, id string) (engine.Record, error) {
	s, m, why := e.unitsOf(id)
	stop, err := e.mayStop(s, why)
	if err != nil {
		return engine.Record{}, err
	}
	return e.carryOut(ctx, b, s, m, *stop)
}

func (e *Engine) carryOut(ctx context.Context, b *bus, s set, m *mission.Mission, stop mission.Stop) (rec engine.Record, err error) {
	rec = e.record(s.id)
	if !rec.Done {
		if rec, err = e.end(ctx, b, s, m, stop, rec); err != nil {
			return rec, fmt.Errorf("stop of %s: %w", s.id, err)
		}
	}
	if err := e.remove(ctx, b, s, s.names()); err != nil {
		return rec, fmt.Errorf("everything of %s is stopped, but its units could not be taken away: %w", s.id, err)
	}
	return rec, nil
}

// mayStop returns the tombstone, or another reason to stop. Without one nothing is touched.
func (e *Engine) mayStop(s set, why error) (*mission.Stop, error) {
	if errors.Is(why, store.ErrNoMission) {
		if here, err := e.here(s.names()); err != nil || len(here) == 0 {
			return nil, errors.Join(err, why)
		}
		return &mission.Stop{Reason: "its folder is gone"}, nil
	}
	if usererr.CodeOf(why) == usererr.Conflict {
		return nil, why
	}
	stop, err := e.Root.Mission(s.id).Stopped()
	if err == nil && stop == nil {
		err = usererr.New(usererr.NotFound, "AutoAgentProject abort "+s.id+" stops it", "nobody asked to stop mission %s", s.id)
	}
	return stop, err
}

// end does the steps of the record. A record that cannot be written delays nothing. m is nil where the mission cannot be
// read.
func (e *Engine) end(ctx context.Context, b *bus, s set, m *mission.Mission, stop mission.Stop, rec engine.Record) (engine.Record, error) {
	var unsaved error
	note := func(name, text string) {
		if !rec.Has(name) {
			rec.Steps = append(rec.Steps, engine.Step{Name: name, At: time.Now().UTC(), Note: text})
		}
		if m == nil && !e.Root.Mission(s.id).Exists() {
			return // there is no folder for it
		}
		err := e.save(ctx, s.id, rec)
		if unsaved = err; err != nil {
			e.log().Warn("the record of the stop could not be written", "after", name, "err", err)
		}
	}
	if err := b.must(ctx, s, s.of(".timer", ".socket")...); err != nil {
		return rec, err
	}
	note(engine.SocketsClosed, "")
	ended, err := e.endTicks(ctx, b, s)
	if err != nil {
		return rec, err
	}
	note(engine.TicksEnded, ended)
	group, err := b.group(ctx, s.id)
	if err != nil {
		return rec, err
	}
	if err := group.Kill(); err != nil {
		return rec, err
	}
	if err := b.must(ctx, s, s.ending()...); err != nil {
		return rec, err
	}
	cells, err := e.endCells(s)
	if err != nil {
		return rec, err
	}
	note(engine.Killed, "")
	left, err := b.unsettled(ctx, s, s.ending())
	if err != nil {
		return rec, err
	}
	empty, err := group.Empty()
	if err != nil {
		return rec, err
	}
	if len(left) > 0 || !empty {
		return rec, fmt.Errorf("not all of it is down: units %v, control group empty: %v", left, empty)
	}
	rec.Proof = fmt.Sprintf("the control group of %s is empty, none of %d units is active, the PID namespaces of %d runs and of every agent's last command are gone",
		mission.Slice(s.id), len(s.ending()), cells)
	note(engine.Proven, rec.Proof)
	counted := ""
	switch {
	case m == nil:
		counted = "nothing could be counted: the mission cannot be read"
	case e.Finish != nil:
		if e.unwritten(s.id) {
			counted = "the end could not be written down, see the journal"
		} else if err := e.Finish(ctx, *m, stop); err != nil {
			err = fmt.Errorf("everything of it is stopped, but the end could not be written down: %w", err)
			if n := e.failedTry(s.id); n < maxTries {
				return rec, err
			}
			counted = fmt.Sprintf("the end could not be written down in %d tries: %v", maxTries, err)
			e.log().Error("the end is left out", "tries", maxTries, "err", err)
		}
	}
	note(engine.Counted, counted)
	rec.Done = true
	note(engine.Told, "")
	if unsaved == nil {
		e.forgetTries(s.id)
	} else if n := e.failedTry(s.id); n >= maxTries {
		e.log().Error("the record of the stop is left as it is", "tries", n, "err", unsaved)
	}
	return rec, nil
}

func (e *Engine) save(ctx context.Context, id string, r engine.Record) error {
	if e.Save != nil {
		return e.Save(ctx, id, r)
	}
	return e.Root.Mission(id).Save("stopping.json", r)
}

// endTicks stops all ticks, the guard's too: SIGTERM first, so that a tick interrupts its run and writes its last record.
func (e *Engine) endTicks(ctx context.Context, b *bus, s set) (string, error) {
	services := s.of(".service")
	running, err := b.unsettled(ctx, s, services)
	if err != nil {
		return "", err
	}
	grace := e.Grace
	if grace == 0 {
		grace = DefaultGrace
	}
	left, err := b.stop(ctx, s, services, grace)
	if err != nil {
		return "", err
	}
	for _, name := range left {
		err := b.do(ctx, "kill "+name, func(ctx context.Context, c *dbus.Conn) error {
			return c.KillUnitWithTarget(ctx, name, dbus.All, int32(unix.SIGKILL))
		})
		if err != nil && !unloaded(err) && errorName(err) != "org.freedesktop.systemd1.NoSuchProcess" {
			e.log().Warn("what is left of a tick could not be killed through systemd", "of", name, "err", err) // the group comes next, and the proof
		}
	}
	if len(left) > 0 {
		return fmt.Sprintf("%d, %d of them killed after %s", len(running), len(left), grace), nil
	}
	return fmt.Sprint(len(running)), nil
}

// endCells ends the cells that ticks noted, and returns how many runs were looked at.
func (e *Engine) endCells(s set) (int, error) {
	st := e.Root.Mission(s.id)
	end := tick.EndCell
	if e.Settings.Manager == units.System {
		uid, err := userID(e.Settings.User)
		if err != nil {
			return 0, err
		}
		end = func(dir string) error { return tick.EndCellOf(dir, uid) }
	}
	n := 0
	for _, a := range s.roster {
		if err := end(st.Agent(a.Name)); err != nil {
			return n, err
		}
		runs, err := os.ReadDir(filepath.Join(st.Agent(a.Name), "runs"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return n, err
		}
		for _, r := range runs {
			if err := end(st.Run(a.Name, r.Name())); err != nil {
				return n, err
			}
			n++
		}
	}
	return n, nil
}

// userID is the number of a user whom units name.
func userID(name string) (int, error) {
	u, err := user.Lookup(name)
	if err != nil {
		u, err = user.LookupId(name)
	}
	if err != nil {
		return 0, fmt.Errorf("find out whose cells may be ended: %w", err)
	}
	return strconv.Atoi(u.Uid)
}

// inside says whether this process is the stop's service.
func (s set) inside() bool {
	b, _ := os.ReadFile("/proc/self/cgroup")
	return strings.Contains(string(b), "/"+s.stopService()+"\n")
}
