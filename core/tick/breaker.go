package tick

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"example.com/AutoAgentProject/core/files"
	"example.com/AutoAgentProject/core/journal"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/proc"
	"example.com/AutoAgentProject/core/recovery"
	"example.com/AutoAgentProject/core/store"
)

// BreakerCause is the cause of the pause of an agent whose breaker tripped.
const BreakerCause = "breaker"

// BreakerName is where an agent's recovery.Breaker lies in the mission's store.
func BreakerName(agent string) string { return filepath.Join("agents", agent, "breaker.json") }

// ReadBreaker reads an agent's breaker. One that cannot be read is worth no halt: it is as if there were none.
func ReadBreaker(st *store.Store, agent string) recovery.Breaker {
	b := recovery.Breaker{}
	if err := st.Load(BreakerName(agent), &b); err != nil {
		return recovery.Breaker{Version: mission.Version}
	}
	return b
}

func saveBreaker(st *store.Store, agent string, b recovery.Breaker) error {
	b.Version = mission.Version
	return st.Save(BreakerName(agent), b)
}

// ResetBreaker forgets all that is held against an agent.
func ResetBreaker(st *store.Store, agent string) error {
	return files.Remove(filepath.Join(st.Dir(), BreakerName(agent)))
}

// hasBreaker says whether crashes of a role are counted. Whoever stops a mission or tells of it is never paused.
func hasBreaker(r mission.Role) bool { return r == mission.Manager || r == mission.Specialist }

// Moment is now, as a breaker counts time.
func Moment() (recovery.Moment, error) {
	boot, err := proc.Boot()
	return recovery.Moment{Boot: boot, At: proc.Mono()}, err
}

// Crashed counts a crash of an agent's tick and pauses the agent if it is one too many. It returns how long the next tick
// has to wait. The tick that crashed is marked, so that none counts twice.
func Crashed(ctx context.Context, st *store.Store, m mission.Mission, a mission.Agent, how string, at time.Time) (time.Duration, error) {
	if !hasBreaker(a.Role) {
		return 0, nil
	}
	now, err := Moment()
	if err != nil {
		return 0, err
	}
	b, trip := ReadBreaker(st, a.Name).Crash(now, rand.Float64())
	err = saveBreaker(st, a.Name, b)
	var r Running
	if lerr := st.Load(RunningName(a.Name), &r); lerr == nil && !r.Ended {
		r.Ended = true
		err = errors.Join(err, st.Save(RunningName(a.Name), r))
	}
	if trip {
		err = errors.Join(err, pauseAgent(ctx, st, m, a.Name, fmt.Sprintf("%d ticks of %s within %s crashed, the last one %s", recovery.MaxCrashes, a.Name, recovery.CrashWindow, how), at))
	}
	return b.Left(now), err
}

// pauseAgent lets one agent do nothing more before a person looked at it, who is told once.
func pauseAgent(ctx context.Context, st *store.Store, m mission.Mission, agent, reason string, at time.Time) error {
	fresh, err := st.Pause(ctx, mission.Pause{Cause: BreakerCause, Agent: agent, Reason: reason}, at)
	if err != nil || !fresh {
		return err
	}
	how := fmt.Sprintf("AutoAgentProject resume %s %s lets it go on", m.ID, agent)
	what := incident("breaker-"+agent, at)
	err = st.Journal().Add(journal.Event{At: at, Kind: journal.AgentPaused, Level: journal.Blocker, Agent: agent, Incident: what,
		Text: fmt.Sprintf("%s is paused: %s\n%s", agent, reason, how)})
	return errors.Join(err, st.AddTodo(ctx, what, fmt.Sprintf("%s is paused: %s; %s", agent, reason, how), at))
}

// BreakerIncident says whether an incident is that of an agent's breaker.
func BreakerIncident(incident, agent string) bool {
	at, ok := strings.CutPrefix(incident, "breaker-"+agent+"-")
	_, err := strconv.ParseInt(at, 10, 64)
	return ok && err == nil // the names of agents end with numbers too
}

// lost looks whether the tick before this one died, and counts it, unless it went down with its engine or with the machine.
func (t *Tick) lost(ctx context.Context) error {
	var r Running
	err := t.Store.Load(RunningName(t.Agent.Name), &r)
	if errors.Is(err, fs.ErrNotExist) || err == nil && r.Ended || err != nil && !files.Passing(err) {
		return nil
	}
	if err != nil {
		return err
	}
	boot, err := proc.Boot()
	if err != nil || r.Process.Boot != boot {
		return err
	}
	if alive, err := r.Process.Alive(); err != nil || alive { // its lock is free: the same process began again
		return err
	}
	if r.Engine.PID > 0 {
		if alive, err := r.Engine.Alive(); err == nil && !alive {
			return nil
		}
	}
	t.Log.Warn("the tick before this one died", "process", r.Process.PID)
	_, err = Crashed(ctx, t.Store, t.Mission, t.Agent, "was killed or died", t.Now())
	return err
}

// mayBegin says why the agent does nothing now; empty: it may begin.
func (t *Tick) mayBegin() (why string, err error) {
	pauses, err := t.Store.PausesOf(t.Agent.Name, t.Now())
	if err != nil {
		return "", err
	}
	for _, p := range pauses {
		if p.Agent != "" {
			return "paused: " + p.Reason, nil
		}
	}
	now, err := Moment()
	if err != nil {
		return "", err
	}
	if left := ReadBreaker(t.Store, t.Agent.Name).Left(now); left > 0 {
		return fmt.Sprintf("waits %s after a crash", left.Round(time.Second)), nil
	}
	return "", nil
}

// Passing says whether an error comes from the machine, or from a stop, and may be gone at the next tick.
func Passing(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EROFS) || errors.Is(err, context.Canceled) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, files.ErrLocked) || errors.Is(err, ErrStopped) || files.Passing(err)
}

// Ended notes how the tick ended, for the breaker. An error that is the machine's and may pass is no crash.
func (t *Tick) Ended(ctx context.Context, failed error) {
	if !hasBreaker(t.Agent.Role) {
		return
	}
	ctx = context.WithoutCancel(ctx)
	var err error
	if stop, serr := t.Store.Stopped(); failed != nil && !Passing(failed) && serr == nil && stop == nil {
		_, err = Crashed(ctx, t.Store, t.Mission, t.Agent, "ended badly: "+failed.Error(), t.Now())
	} else {
		if b := ReadBreaker(t.Store, t.Agent.Name); b.Row > 0 && failed == nil {
			err = saveBreaker(t.Store, t.Agent.Name, b.Good())
		}
		err = errors.Join(err, t.note(true))
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // the folder is gone with its mission
		t.Log.Warn("the end of this tick could not be noted", "err", err)
	}
}

// note writes down that this tick runs, or that it ended by itself.
func (t *Tick) note(ended bool) error {
	engine, _ := proc.Of(os.Getppid()) // not known: then it is not taken for dead
	return t.Store.Save(RunningName(t.Agent.Name), Running{Version: mission.Version, Process: t.Owner, At: t.began.UTC(), Engine: engine, Ended: ended})
}

// Made counts a run of this agent by whether it made something. An agent of which many in a row made nothing is paused.
func (t *Tick) Made(ctx context.Context, run string, made bool) error {
	before := ReadBreaker(t.Store, t.Agent.Name)
	b, trip := before.Ran(run, made)
	if run == "" || b.Counted == before.Counted && b.Empty == before.Empty {
		return nil
	}
	err := saveBreaker(t.Store, t.Agent.Name, b)
	if trip {
		err = errors.Join(err, pauseAgent(ctx, t.Store, t.Mission, t.Agent.Name, fmt.Sprintf("%d runs of %s in a row made nothing", recovery.MaxEmpty, t.Agent.Name), t.Now()))
		t.Wake("reporter")
	}
	return err
}
