// Package tick is what the ticks of all roles share: begin (lock, tombstone, clean up after a dead one), a paid run
// from reservation to spend, commands behind the walls, handing steps over. A tick may be killed at any instant; the
// next one goes on from the files.
package tick

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"example.com/AutoAgentProject/core/caps"
	"example.com/AutoAgentProject/core/cell"
	"example.com/AutoAgentProject/core/files"
	"example.com/AutoAgentProject/core/flow"
	"example.com/AutoAgentProject/core/git"
	"example.com/AutoAgentProject/core/journal"
	"example.com/AutoAgentProject/core/ledger"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/proc"
	"example.com/AutoAgentProject/core/profession"
	"example.com/AutoAgentProject/core/runner"
	"example.com/AutoAgentProject/core/store"
	"example.com/AutoAgentProject/core/units"
	"example.com/AutoAgentProject/core/usage"
	"example.com/AutoAgentProject/core/wake"
)

// Outcome is how a tick ended.
type Outcome int

const (
	Idle  Outcome = iota // nothing was due
	Moved                // something was done
	Later                // something is due but must wait
	Busy                 // another tick of this agent runs
	Over                 // the mission has a tombstone
)

// Tick is one run of a role's binary for one agent.
type Tick struct {
	Store   *store.Store
	Mission mission.Mission
	Agent   mission.Agent
	Owner   proc.ID

	Professions profession.Set
	Flow        *flow.Flow // that the mission follows; nil: a planned list
	Runner      runner.Runner
	Credential  func() (runner.Credential, error)
	Price       usage.Price                 // list prices; nil: runs have no gateway
	Caps        func() (caps.Limits, error) // what all missions may spend together; nil: anything
	Limits      Limits
	Now         func() time.Time
	Log         *slog.Logger
	UnitDirs    []string // of the system's manager, audited too
	Home        string   // of the operator; what is audited there stands in audit.go. Empty: nothing

	began  time.Time
	ledger *ledger.Ledger
	gate   string // file with what the gate knows, shown in the cell of the run; empty: none
	model  string // address at which the run finds its model; empty: the program's own
}

// Limits are what a run and a command may take.
type Limits struct {
	Verify  time.Duration // wall clock of a verify command
	Git     time.Duration // wall clock of a git command in a clone
	Bundle  int64         // bytes that one step may bring out of a clone
	Refusal int           // how often a refused answer goes back into the same conversation
	Cell    cell.Limits
}

// DefaultLimits are used where the configuration says nothing.
var DefaultLimits = Limits{Verify: 15 * time.Minute, Git: 5 * time.Minute, Bundle: 1 << 30, Refusal: 3}

// Begin takes the agent's lock and looks at the tombstone. With Busy or Over there is nothing to do; otherwise end must
// be called.
func (t *Tick) Begin(ctx context.Context) (Outcome, func(), error) {
	unlock, err := files.TryLock(t.Store.AgentLock(t.Agent.Name))
	if errors.Is(err, files.ErrLocked) {
		return Busy, func() {}, nil
	}
	if err != nil {
		return Idle, nil, err
	}
	if t.Owner, err = proc.Self(); err != nil {
		unlock()
		return Idle, nil, err
	}
	t.began = t.Now()
	if hasBreaker(t.Agent.Role) {
		if err := t.lost(ctx); err != nil {
			t.Log.Warn("whether the tick before this one died is not known", "err", err)
		}
	}
	if err := t.note(false); err != nil {
		if t.Agent.Role != mission.Quota { // whoever stops the mission does so on a full disk too
			unlock()
			return Idle, nil, err
		}
		t.Log.Warn("the record of this tick could not be written", "err", err)
	}
	t.ledger = t.Store.Ledger()
	if r := t.Agent.Role; r == mission.Manager || r == mission.Specialist { // only they have runs
		if err := t.cleanUp(ctx); err != nil { // also when stopped: their spend must be counted
			if Passing(err) {
				t.Ended(ctx, err)
			}
			unlock()
			return Idle, nil, fmt.Errorf("clean up after an earlier tick: %w", err)
		}
	}
	if stop, err := t.Store.Stopped(); err != nil || stop != nil {
		unlock()
		return Over, func() {}, err
	}
	if hasBreaker(t.Agent.Role) {
		why, err := t.mayBegin()
		if err != nil || why != "" {
			if err == nil {
				t.Line(ctx, "waiting", "", "", "%s", why)
				t.Ended(ctx, ErrStopped) // neither good nor bad
			}
			unlock()
			return Later, func() {}, err
		}
	}
	return Idle, unlock, nil
}

// Running is agents/<agent>/tick.json: the latest tick of the agent, for whoever has to end it.
type Running struct {
	Version int       `json:"version"`
	Process proc.ID   `json:"process"`
	At      time.Time `json:"at"`              // its start
	Engine  proc.ID   `json:"engine,omitzero"` // its parent
	Ended   bool      `json:"ended,omitempty"` // by itself, or its death was counted
}

// RunningName is where Running lies in the mission's store.
func RunningName(agent string) string { return filepath.Join("agents", agent, "tick.json") }

// UntilStopped returns a context that ends when the mission gets its tombstone.
func (t *Tick) UntilStopped(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		every := time.NewTicker(250 * time.Millisecond)
		defer every.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-every.C:
				if stop, err := t.Store.Stopped(); err == nil && stop != nil {
					cancel(ErrStopped)
					return
				}
			}
		}
	}()
	return ctx, func() { cancel(context.Canceled) }
}

// ErrStopped is the cause of a context that ended because the mission got its tombstone.
var ErrStopped = errors.New("the mission was stopped")

// Paused returns the pauses in force. A pause for a lost login is lifted by a newer login file, one for a used up cap by a
// higher cap, one for a person's answer when there is one.
func (t *Tick) Paused(ctx context.Context) ([]mission.Pause, error) {
	causes, err := t.Store.PausesOf(t.Agent.Name, t.Now())
	if err != nil {
		return nil, err
	}
	var left []mission.Pause
	for _, c := range causes {
		said := ""
		switch c.Cause { // of the whole mission: no agent has one of these alone
		case WaitCause:
			if t.answered(c.Since) { // whoever still has nothing to do waits again; the answer was told by itself
				if err := t.Store.Unpause(ctx, c.Cause, t.Now()); err != nil {
					return nil, err
				}
				continue
			}
		case "login":
			if st, err := os.Stat(t.Mission.Credentials); err == nil && st.ModTime().After(c.Since) {
				said = "there is a new login, work goes on"
			}
		case capCause:
			if t.capsAllow(c.Need) {
				said = "the caps of all missions have room again, work goes on"
			}
		}
		if said == "" {
			left = append(left, c)
			continue
		}
		if err := t.Store.Unpause(ctx, c.Cause, t.Now()); err != nil {
			return nil, err
		}
		t.Event(journal.Event{Kind: journal.Unpaused, Level: journal.Milestone, Text: said})
	}
	return left, nil
}

// Line sets the agent's status line.
func (t *Tick) Line(ctx context.Context, doing, step, run, format string, args ...any) {
	l := store.Line{Text: fmt.Sprintf(format, args...), Doing: doing, Step: step, Run: run}
	if err := t.Store.SetLine(ctx, t.Agent.Name, l, "", t.Now()); err != nil {
		t.Log.Warn("the status line could not be written", "run", run, "err", err)
	}
}

// Event writes an event with this agent's name and the time. Events are a record: a failure is logged, not returned.
func (t *Tick) Event(e journal.Event) {
	e.At = t.Now()
	if e.Agent == "" {
		e.Agent = t.Agent.Name
	}
	if err := t.Store.Journal().Add(e); err != nil {
		t.Log.Warn("an event could not be written down", "event", e.Kind, "run", e.Run, "err", err)
	}
	t.Log.Info(e.Text, "event", e.Kind, "step", e.Step, "run", e.Run)
	if e.Level != journal.Routine && e.Level != "" {
		t.Wake("reporter")
	}
}

// Wake tells agents that there is something for them.
func (t *Tick) Wake(agents ...string) {
	for _, a := range agents {
		if err := wake.Send(units.Wakes(t.Store, t.Mission, a)); err != nil {
			t.Log.Warn("an agent could not be woken", "which", a, "err", err)
		}
	}
}

// Stop sets the tombstone and wakes whoever carries the stop out.
func (t *Tick) Stop(cause mission.Cause, reason string) error {
	_, err := t.Store.Stop(mission.Stop{Cause: cause, Reason: reason, By: t.Agent.Name, At: t.Now()})
	if err != nil {
		return err
	}
	t.Wake("quota")
	return nil
}

// Repo is the mission's repository.
func (t *Tick) Repo() git.Repo { return git.Repo{Dir: t.Store.Repo()} }
