// Package supervisor is the embedded engine: a foreground process that ticks the role binaries of one mission, reads
// their wake-up sockets, and stops everything for certain. It holds no state of its own that a restart would miss.
package supervisor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"example.com/AutoAgentProject/core/cgroup"
	"example.com/AutoAgentProject/core/engine"
	"example.com/AutoAgentProject/core/files"
	"example.com/AutoAgentProject/core/journal"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/proc"
	"example.com/AutoAgentProject/core/recovery"
	"example.com/AutoAgentProject/core/store"
	"example.com/AutoAgentProject/core/tick"
	"example.com/AutoAgentProject/core/usererr"
	"example.com/AutoAgentProject/core/wake"
)

// Name is the engine's name in mission.json.
const Name = "embedded"

// Supervisor ticks the missions below one root, one mission in one process.
type Supervisor struct {
	Root store.Root
	// Command is how an agent is ticked: program and arguments.
	Command func(m mission.Mission, a mission.Agent) []string
	// Env is the environment of the ticks; nil: this process's own.
	Env []string
	// Finish counts what is left to count and tells the end, after everything is proven dead.
	Finish func(ctx context.Context, m mission.Mission, stop mission.Stop) error
	// Every is the time from the end of a tick to the next one of that role.
	Every map[mission.Role]time.Duration
	// Grace is how long a tick may take to end its run after SIGTERM.
	Grace time.Duration
	// Beside starts a process of this program's own that is none of the mission's, such as a poller, and returns it. A stop
	// leaves it alone, and what it started. It is called when the ticks' cgroup stands, so that it is not in there; nil: none.
	Beside func() proc.ID
	// Limits bound all ticks of a mission but the guard's, and all that they start, together, where this process may make
	// a cgroup; zero: cgroup.Default.
	Limits cgroup.Limits
	Log    *slog.Logger
}

// Defaults of Every and Grace. Quota is cheap and bounds the overrun of the time limit.
var (
	DefaultEvery = map[mission.Role]time.Duration{
		mission.Manager: time.Minute, mission.Specialist: time.Minute, mission.Reporter: time.Minute, mission.Quota: 5 * time.Second,
	}
	DefaultGrace = 12 * time.Second
)

// Owner is supervisor.json: which process ticks the mission.
type Owner struct {
	Version int       `json:"version"`
	Process proc.ID   `json:"process"`
	Since   time.Time `json:"since"`
	// Group is where the ticks and all that they start are found; nil: there is no cgroup.
	Group *cgroup.Record `json:"cgroup,omitempty"`
}

func (s *Supervisor) Name() string { return Name }

// lock is held for as long as a process ticks or stops the mission.
func lock(st *store.Store) string { return filepath.Join(st.Dir(), "supervisor.lock") }

// Live says whether a supervisor ticks the mission.
func (s *Supervisor) Live(ctx context.Context, id string) (engine.Live, error) {
	var o Owner
	err := s.Root.Mission(id).Load("supervisor.json", &o)
	if errors.Is(err, os.ErrNotExist) {
		return engine.Live{}, nil
	}
	if err != nil {
		return engine.Live{}, err
	}
	alive, err := o.Process.Alive()
	if err != nil || !alive {
		return engine.Live{}, err
	}
	return engine.Live{Ticking: true, By: fmt.Sprintf("%s, process %d", Name, o.Process.PID), Next: s.next(id)}, nil
}

// next is about when each agent that does not run just now is ticked by time: from its latest tick on.
func (s *Supervisor) next(id string) map[string]time.Time {
	st := s.Root.Mission(id)
	m, err := st.Mission()
	if err != nil {
		return nil
	}
	next := map[string]time.Time{}
	for _, a := range m.Roster {
		var t tick.Running
		if st.Load(tick.RunningName(a.Name), &t) != nil {
			continue
		}
		if alive, err := t.Process.Alive(); err == nil && !alive {
			next[a.Name] = t.At.Add(s.every(a.Role))
		}
	}
	return next
}

// Start ticks the mission until it is stopped, and stops it. When ctx ends first, the mission is aborted, or, with the
// cause ErrLeave, left standing: usererr Later.
func (s *Supervisor) Start(ctx context.Context, id string) (mission.Stop, error) {
	st := s.Root.Mission(id)
	m, err := st.Mission()
	if err != nil {
		return mission.Stop{}, err
	}
	unlock, err := files.TryLock(lock(st))
	if errors.Is(err, files.ErrLocked) {
		return mission.Stop{}, usererr.New(usererr.Conflict, "AutoAgentProject status "+id+" shows it", "mission %s is being ticked by another process", id)
	}
	if err != nil {
		return mission.Stop{}, err
	}
	defer unlock()
	if err := becomeSubreaper(); err != nil {
		return mission.Stop{}, err
	}
	if err := s.endLeft(st); err != nil {
		return mission.Stop{}, fmt.Errorf("end what an earlier supervisor of %s left: %w", id, err)
	}
	for _, a := range mission.Specialists(m.Roster) {
		if err := st.Queue().Forgive(a.Name); err != nil {
			return mission.Stop{}, err
		}
	}
	l := &loop{s: s, st: st, m: m, agents: map[string]*agent{}, ended: make(chan end, len(m.Roster)), woken: make(chan string, 64)}
	defer l.dropGroup()
	if err := l.takeGroup(); err != nil {
		return mission.Stop{}, err
	}
	if s.Beside != nil {
		l.beside = s.Beside()
	}
	if err := l.open(); err != nil {
		l.close()
		return mission.Stop{}, err
	}
	l.run(ctx)
	l.close()
	stop, err := st.Stopped()
	if err != nil {
		return mission.Stop{}, err
	}
	if stop == nil && leaving(ctx) {
		return mission.Stop{}, s.leave(st, m, l)
	}
	if stop == nil { // the tombstone could not be written; nothing goes on all the same
		stop = &mission.Stop{Cause: mission.Aborted, Reason: "stopped by a signal", By: "supervisor", At: time.Now()}
	}
	if _, err := s.finish(context.WithoutCancel(ctx), st, m, *stop, l); err != nil {
		return *stop, err
	}
	return *stop, nil
}

// agent is one ticked agent.
type agent struct {
	mission.Agent
	proc     *process  // nil: not running
	due      time.Time // next tick by time
	woken    bool      // a wake-up came since the last start
	failures int       // in a row
	row      int       // crashes in a row that its breaker counted
	never    bool      // it said: do not start me again
	socket   closer
}

type closer interface{ Close() error }

type end struct {
	name string
	exit int
	tail string
}

// loop is the one place where things happen: ends, wake-ups, time, the tombstone.
type loop struct {
	s      *Supervisor
	st     *store.Store
	m      mission.Mission
	group  *cgroup.Group // nil: none
	agents map[string]*agent
	ended  chan end
	woken  chan string
	beside proc.ID
}

// open makes the sockets and puts every agent's first tick at now.
func (l *loop) open() error {
	for _, a := range l.m.Roster {
		c, err := wake.Listen(l.st.Socket(a.Name))
		if err != nil {
			return err
		}
		l.agents[a.Name] = &agent{Agent: a, due: time.Now(), socket: c}
		go func() {
			buf := make([]byte, 64)
			for {
				if _, _, err := c.ReadFromUnix(buf); err != nil {
					return
				}
				l.woken <- a.Name
			}
		}()
	}
	return nil
}

// close closes the sockets: nothing wakes anybody any more.
func (l *loop) close() {
	for name, a := range l.agents {
		if a.socket != nil {
			a.socket.Close()
			a.socket = nil
		}
		os.Remove(l.st.Socket(name))
	}
}

// run ticks until there is a tombstone. It returns with ticks possibly still running.
func (l *loop) run(ctx context.Context) {
	every := time.NewTicker(200 * time.Millisecond)
	defer every.Stop()
	for {
		if stop, err := l.st.Stopped(); err == nil && stop != nil {
			return
		}
		if leaving(ctx) {
			return
		}
		if ctx.Err() != nil {
			if _, err := l.st.Stop(mission.Stop{Cause: mission.Aborted, Reason: "stopped at the terminal", By: "person", At: time.Now()}); err != nil {
				l.s.Log.Error("the tombstone cannot be written or read", "err", err)
				return
			}
			continue
		}
		now := time.Now()
		for _, a := range l.m.Roster {
			x := l.agents[a.Name]
			if x.proc == nil && !x.never && (x.woken && x.failures == 0 || !now.Before(x.due)) {
				l.start(ctx, x)
			}
		}
		select {
		case <-ctx.Done():
		case name := <-l.woken:
			l.agents[name].woken = true
		case e := <-l.ended:
			l.end(ctx, e)
		case <-every.C:
			reapOrphans(l.known())
			if l.group != nil {
				_ = l.group.Hold() // what it cannot do, the next tick of an agent says
			}
		}
	}
}

func (l *loop) start(ctx context.Context, x *agent) {
	x.woken = false
	p, err := l.startIn(x)
	if errors.Is(err, cgroup.ErrGone) { // somebody tidied up
		if err = l.takeGroup(); err == nil {
			p, err = l.startIn(x)
		}
	}
	if err != nil {
		l.failed(ctx, x, "could not be started: "+err.Error())
		return
	}
	x.proc = p
}

// startIn starts a tick in the mission's cgroup. The guard stays outside: agents that use up all of the group must not
// keep it from looking. It starts nothing itself.
func (l *loop) startIn(x *agent) (*process, error) {
	group := l.group
	if x.Role == mission.Quota {
		group = nil
	}
	return startTick(group, l.s.Command(l.m, x.Agent), l.s.Env, func(exit int, tail string) { l.ended <- end{x.Name, exit, tail} })
}

// end takes note of a tick's end by the contract of exit statuses.
func (l *loop) end(ctx context.Context, e end) {
	x := l.agents[e.name]
	x.proc = nil
	switch usererr.Code(e.exit) {
	case usererr.OK, usererr.Later:
		x.failures, x.row = 0, 0
		x.due = time.Now().Add(l.s.every(x.Role))
		return
	case usererr.DoNotRetry:
		x.never = true
		return
	}
	l.failed(ctx, x, fmt.Sprintf("ended badly (%s): %s", exitText(e.exit), e.tail))
}

// failed notes that a tick went wrong and puts off the agent's next one. A tick that could not count its own crash has it
// counted here.
func (l *loop) failed(ctx context.Context, x *agent, how string) {
	x.failures++
	now := time.Now()
	wait := pauseAfter(x.failures)
	if m, err := tick.Moment(); err == nil {
		b := tick.ReadBreaker(l.st, x.Name)
		left := b.Left(m)
		if b.Row <= x.row {
			if left, err = tick.Crashed(ctx, l.st, l.m, x.Agent, how, now); err != nil {
				l.s.Log.Warn("a crash could not be counted", "agent", x.Name, "err", err)
			}
		}
		x.row = tick.ReadBreaker(l.st, x.Name).Row
		wait = max(left, time.Second/2, time.Duration(float64(wait)*0.75))
	}
	x.due = now.Add(wait)
	l.s.Log.Warn("a tick of "+x.Name+" "+how, "agent", x.Name)
	ev := journal.Event{At: time.Now(), Kind: journal.Repaired, Agent: x.Name, Text: fmt.Sprintf("a tick of %s %s", x.Name, how)}
	if x.failures == recovery.MaxCrashes && x.Role != mission.Manager && x.Role != mission.Specialist { // those have a breaker
		ev.Level, ev.Incident = journal.Blocker, fmt.Sprintf("ticks-%s-%d", x.Name, ev.At.Unix())
		ev.Text = fmt.Sprintf("five ticks of %s in a row went wrong, the last one %s", x.Name, how)
	}
	if err := l.st.Journal().Add(ev); err != nil {
		l.s.Log.Warn("an event could not be written down", "err", err)
	}
}

func exitText(exit int) string {
	if exit < 0 {
		return "killed by a signal"
	}
	return fmt.Sprintf("exit status %d", exit)
}

func (s *Supervisor) every(r mission.Role) time.Duration {
	if d, ok := s.Every[r]; ok {
		return d
	}
	return DefaultEvery[r]
}

// pauseAfter is the pause after n bad ends in a row: 1 s, doubled, at most a minute.
func pauseAfter(n int) time.Duration { return min(time.Second<<min(n-1, 6), time.Minute) }

func (l *loop) known() map[int]bool {
	pids := map[int]bool{}
	for _, x := range l.agents {
		if x.proc != nil {
			pids[x.proc.id.PID] = true
		}
	}
	return pids
}
