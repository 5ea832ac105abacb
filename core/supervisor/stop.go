package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"example.com/AutoAgentProject/core/cgroup"
	"example.com/AutoAgentProject/core/engine"
	"example.com/AutoAgentProject/core/files"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/proc"
	"example.com/AutoAgentProject/core/store"
	"example.com/AutoAgentProject/core/tick"
)

// Stop carries out a stop: by waiting for the supervisor that ticks the mission, or, where none lives, itself.
func (s *Supervisor) Stop(ctx context.Context, id string) (engine.Record, error) {
	st := s.Root.Mission(id)
	m, err := st.Mission()
	if err != nil {
		return engine.Record{}, err
	}
	for {
		rec := record(st)
		if rec.Done {
			return rec, nil
		}
		stop, err := st.Stopped()
		if err != nil {
			return rec, err
		}
		if stop == nil {
			return rec, errors.New("the mission has no tombstone")
		}
		unlock, err := files.TryLock(lock(st))
		if err == nil {
			defer unlock()
			return s.finish(ctx, st, m, *stop, nil)
		}
		if !errors.Is(err, files.ErrLocked) {
			return rec, err
		}
		killFrozen(st)
		select {
		case <-ctx.Done():
			return rec, fmt.Errorf("the supervisor of %s did not finish the stop: %w", id, ctx.Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// killFrozen kills a supervisor that was suspended: it can neither guard nor stop. Its ticks die with it.
func killFrozen(st *store.Store) {
	var o Owner
	if st.Load("supervisor.json", &o) != nil {
		return
	}
	if alive, err := o.Process.Alive(); err != nil || !alive {
		return
	}
	if at, err := proc.ReadStat(o.Process.PID); err == nil && at.State == 'T' {
		_ = o.Process.Signal(unix.SIGKILL)
	}
}

func record(st *store.Store) engine.Record {
	r := engine.Record{Version: mission.Version}
	if err := st.Load("stopping.json", &r); err != nil {
		return engine.Record{Version: mission.Version} // unreadable: all steps again, each is harmless
	}
	return r
}

// finish does what is left of the stop. l holds the running ticks, or nil when another process had started them. A
// record that cannot be written (a full disk) delays nothing.
func (s *Supervisor) finish(ctx context.Context, st *store.Store, m mission.Mission, stop mission.Stop, l *loop) (engine.Record, error) {
	rec := record(st)
	note := func(name, text string) {
		if !rec.Has(name) {
			rec.Steps = append(rec.Steps, engine.Step{Name: name, At: time.Now().UTC(), Note: text})
		}
		if err := st.Save("stopping.json", rec); err != nil {
			s.Log.Warn("record of the stop", "step", name, "err", err)
		}
	}
	for _, a := range m.Roster { // of a supervisor that died
		_ = os.Remove(st.Socket(a.Name))
	}
	note(engine.SocketsClosed, "")
	ticks := s.ticks(st, m, l)
	ended := s.endTicks(ticks, l)
	note(engine.TicksEnded, ended)
	group, err := s.leftGroup(st)
	if err != nil {
		return rec, fmt.Errorf("stop of %s: %w", m.ID, err)
	}
	proof, err := s.killAndProve(st, m, ticks, group, l)
	if err != nil {
		return rec, fmt.Errorf("stop of %s: %w", m.ID, err)
	}
	if group != nil {
		if err := group.Close(); err != nil {
			s.Log.Warn("the mission's cgroup", "err", err)
		}
	}
	note(engine.Killed, "")
	rec.Proof = proof
	note(engine.Proven, proof)
	if s.Finish != nil && st.Exists() { // of a mission whose folder is gone nothing is left to say
		if err := s.Finish(ctx, m, stop); err != nil {
			return rec, fmt.Errorf("everything of %s is stopped, but the end could not be written down: %w", m.ID, err)
		}
	}
	note(engine.Counted, "")
	rec.Done = true
	note(engine.Told, "")
	_ = files.Remove(filepath.Join(st.Dir(), "supervisor.json"))
	return rec, nil
}

// ticks returns the living ticks: the loop's own, and those that say so in their agent's folder.
func (s *Supervisor) ticks(st *store.Store, m mission.Mission, l *loop) []proc.ID {
	var out []proc.ID
	if l != nil {
		for _, x := range l.agents {
			if x.proc != nil {
				out = append(out, x.proc.id)
			}
		}
	}
	for _, a := range m.Roster {
		var t tick.Running
		if err := st.Load(tick.RunningName(a.Name), &t); err == nil {
			out = append(out, t.Process)
		}
	}
	return out
}

// endTicks sends SIGTERM and waits; a tick then interrupts its run and writes its last record.
func (s *Supervisor) endTicks(ticks []proc.ID, l *loop) string {
	for _, t := range ticks {
		_ = t.Signal(unix.SIGTERM)
	}
	grace := s.Grace
	if grace == 0 {
		grace = DefaultGrace
	}
	deadline := time.Now().Add(grace)
	for time.Now().Before(deadline) {
		if l != nil {
			l.drain()
		}
		if n := living(ticks); n == 0 {
			return fmt.Sprintf("%d", len(ticks))
		}
		time.Sleep(10 * time.Millisecond)
	}
	n := living(ticks)
	for _, t := range ticks {
		_ = t.Signal(unix.SIGKILL)
	}
	return fmt.Sprintf("%d, %d of them killed after %s", len(ticks), n, grace)
}

func (l *loop) drain() {
	for {
		select {
		case e := <-l.ended:
			l.agents[e.name].proc = nil
		case <-l.woken:
		default:
			return
		}
	}
}

// living counts; what cannot be looked at counts as living.
func living(ids []proc.ID) int {
	n := 0
	for _, id := range ids {
		if alive, err := id.Alive(); err != nil || alive {
			n++
		}
	}
	return n
}

// killAndProve kills what is left and returns what proves that nothing is: no process in the mission's cgroup, no tick,
// no descendant of this process, no process in the PID namespace of any cell of the mission. group is nil where there is
// none.
func (s *Supervisor) killAndProve(st *store.Store, m mission.Mission, ticks []proc.ID, group *cgroup.Group, l *loop) (string, error) {
	empty := ""
	if group != nil {
		if err := group.Kill(); err != nil {
			return "", err
		}
		empty = "the mission's cgroup is empty, "
	}
	cells := 0
	deadline := time.Now().Add(10 * time.Second)
	for {
		if l != nil {
			l.drain()
		}
		left := living(ticks)
		for _, t := range ticks {
			_ = t.Signal(unix.SIGKILL)
		}
		if l != nil {
			kids, err := children(l.beside)
			if err != nil {
				return "", err
			}
			for _, k := range kids {
				_ = k.Signal(unix.SIGKILL)
			}
			left += len(kids)
			reapOrphans(l.known())
		}
		if left == 0 {
			break
		}
		if time.Now().After(deadline) {
			return "", fmt.Errorf("%d processes do not die", left)
		}
		time.Sleep(5 * time.Millisecond)
	}
	for _, a := range m.Roster {
		if err := tick.EndCell(st.Agent(a.Name)); err != nil {
			return "", err
		}
		runs, err := os.ReadDir(filepath.Join(st.Agent(a.Name), "runs"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		for _, r := range runs {
			if err := tick.EndCell(st.Run(a.Name, r.Name())); err != nil {
				return "", err
			}
			cells++
		}
	}
	orphans := ""
	if l != nil {
		orphans = "no descendant left, "
	}
	return fmt.Sprintf("%s%d ticks gone, %sthe PID namespaces of %d runs and of every agent's last command are gone", empty, len(ticks), orphans, cells), nil
}
