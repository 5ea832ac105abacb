package tick

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/journal"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/money"
	"example.com/AutoAgentProject/core/proc"
	"example.com/AutoAgentProject/core/recovery"
)

// died leaves what a tick leaves that was killed: its record, without an end.
func (w *world) died(r Running) {
	w.t.Helper()
	if r.Process == (proc.ID{}) {
		c := exec.Command("sleep", "600")
		ok(w.t, c.Start())
		id, err := proc.Of(c.Process.Pid)
		ok(w.t, err)
		ok(w.t, c.Process.Kill())
		_ = c.Wait()
		r.Process = id
	}
	if r.Engine == (proc.ID{}) {
		self, err := proc.Self()
		ok(w.t, err)
		r.Engine = self
	}
	r.Version, r.At = mission.Version, noon
	ok(w.t, w.Store.Save(RunningName(w.Agent.Name), r))
}

// begins begins a tick, without the wait after a crash, ends it, and returns what came.
func (w *world) begins() Outcome {
	w.t.Helper()
	b := ReadBreaker(w.Store, w.Agent.Name)
	if b.Row > 0 {
		b.Wait = recovery.Moment{}
		ok(w.t, saveBreaker(w.Store, w.Agent.Name, b))
	}
	out, end, err := w.Begin(w.t.Context())
	ok(w.t, err)
	end()
	return out
}

// TestCrashLoop: the fifth death of an agent's ticks in a row pauses that agent, and nobody else; the person is told once.
func TestCrashLoop(t *testing.T) {
	w := newWorld(t, money.NanoUSD)
	for n := range recovery.MaxCrashes {
		w.died(Running{})
		if out := w.begins(); out != Later { // it waits after the crash that it found
			t.Fatalf("crash %d: %d", n+1, out)
		}
		if b := ReadBreaker(w.Store, w.Agent.Name); len(b.Crashes) != n+1 || b.Row != n+1 {
			t.Fatalf("crash %d: %+v", n+1, b)
		}
		p, err := w.Store.PausesOf(w.Agent.Name, noon)
		if ok(t, err); len(p) > 0 != (n == recovery.MaxCrashes-1) {
			t.Fatalf("crash %d: %+v", n+1, p)
		}
	}
	w.died(Running{})
	for range 3 {
		if out := w.begins(); out != Later {
			t.Errorf("it is paused: %d", out)
		}
	}
	if out, end, err := w.as("codebuilder-2").Begin(t.Context()); out != Idle || err != nil {
		t.Error("the others go on:", out, err)
	} else {
		end()
	}
	if p, err := w.Store.Pauses(noon); len(p) > 0 || err != nil {
		t.Error("the mission is not paused:", p, err)
	}
	told := 0
	events, _, _, err := w.Store.Journal().Read(0)
	ok(t, err)
	for _, e := range events {
		if e.Kind == journal.AgentPaused {
			if told++; e.Level != journal.Blocker || !BreakerIncident(e.Incident, w.Agent.Name) || BreakerIncident(e.Incident, "codebuilder") {
				t.Errorf("%+v", e)
			}
		}
	}
	todo, err := os.ReadFile(w.Store.Todo())
	if ok(t, err); told != 1 || strings.Count(string(todo), "- [ ]") != 1 {
		t.Errorf("told %d times\n%s", told, todo)
	}
	// A person lets it go on.
	ok(t, w.Store.UnpauseAgent(t.Context(), w.Agent.Name, BreakerCause, noon))
	ok(t, ResetBreaker(w.Store, w.Agent.Name))
	if out := w.begins(); out != Idle {
		t.Error(out)
	}
}

// TestNoCrash: what is not the agent's fault counts nothing.
func TestNoCrash(t *testing.T) {
	boot, err := proc.Boot()
	ok(t, err)
	gone := proc.ID{Boot: boot, PID: 1 << 22, Start: 1}
	for name, r := range map[string]Running{
		"it ended by itself":     {Ended: true},
		"another boot":           {Process: proc.ID{Boot: "other", PID: 5, Start: 5}},
		"its engine died too":    {Engine: gone},
		"its engine, other boot": {Engine: proc.ID{Boot: "other", PID: 5, Start: 5}},
	} {
		w := newWorld(t, money.NanoUSD)
		w.died(r)
		if out := w.begins(); out != Idle || ReadBreaker(w.Store, w.Agent.Name).Row != 0 {
			t.Errorf("%s: %d, %+v", name, out, ReadBreaker(w.Store, w.Agent.Name))
		}
	}
}

// TestEnded: a bad end counts, one that is the machine's does not, a good one ends the waiting.
func TestEnded(t *testing.T) {
	w := newWorld(t, money.NanoUSD)
	tickEnds := func(err error) recovery.Breaker {
		out, end, berr := w.Begin(t.Context())
		if ok(t, berr); out != Idle {
			t.Fatalf("before %v: %d", err, out)
		}
		w.Ended(t.Context(), err)
		end()
		return ReadBreaker(w.Store, w.Agent.Name)
	}
	for _, err := range []error{nil, syscall.ENOSPC, ErrStopped, os.ErrDeadlineExceeded} {
		if b := tickEnds(err); b.Row != 0 && err != os.ErrDeadlineExceeded {
			t.Errorf("%v: %+v", err, b)
		}
	}
	ok(t, ResetBreaker(w.Store, w.Agent.Name))
	b := tickEnds(errors.New("no"))
	now, err := Moment()
	if ok(t, err); b.Row != 1 || b.Left(now) <= 0 || b.Left(now) > 2*time.Second {
		t.Errorf("%+v", b)
	}
	if out, end, err := w.Begin(t.Context()); out != Later || err != nil {
		t.Error("it begins at once again:", out, err)
	} else {
		end()
	}
	b.Wait = recovery.Moment{}
	ok(t, saveBreaker(w.Store, w.Agent.Name, b))
	if b = tickEnds(nil); b.Row != 0 || len(b.Crashes) != 1 {
		t.Errorf("%+v", b)
	}
	// Whoever stops the mission is never kept from it.
	q := w.as("quota")
	for range 2 * recovery.MaxCrashes {
		if _, err := Crashed(t.Context(), w.Store, w.Mission, q.Agent, "x", noon); err != nil {
			t.Fatal(err)
		}
	}
	if out, end, err := q.Begin(t.Context()); out != Idle || err != nil {
		t.Error(out, err)
	} else {
		end()
	}
	// A breaker that cannot be read holds nobody up.
	ok(t, os.WriteFile(filepath.Join(w.Store.Dir(), BreakerName(w.Agent.Name)), make([]byte, 4096), 0o600))
	if b := tickEnds(errors.New("no")); b.Row != 1 {
		t.Errorf("%+v", b)
	}
}

// TestEmptyRuns: an agent whose runs make nothing is paused.
func TestEmptyRuns(t *testing.T) {
	w := newWorld(t, money.NanoUSD)
	for n := range recovery.MaxEmpty {
		run := string(rune('a' + n))
		for range 2 {
			ok(t, w.Made(t.Context(), run, false))
		}
		p, err := w.Store.PausesOf(w.Agent.Name, noon)
		if ok(t, err); len(p) > 0 != (n == recovery.MaxEmpty-1) {
			t.Fatalf("run %d: %+v", n+1, p)
		}
	}
}

// TestKeptClones: of the clones of an agent that were set aside the newest are kept, those of others are left alone.
func TestKeptClones(t *testing.T) {
	w := newWorld(t, money.NanoUSD)
	for i, name := range []string{".kept-codebuilder-1-3", ".kept-codebuilder-1-1", ".kept-codebuilder-1-2", ".kept-codebuilder-2-1", ".kept-codebuilder-1-note"} {
		dir := filepath.Join(w.Store.Work(), name)
		ok(t, os.MkdirAll(filepath.Join(dir, "sub"), 0o700))
		ok(t, os.Chtimes(dir, noon.Add(time.Duration(i)*time.Hour), noon.Add(time.Duration(i)*time.Hour)))
	}
	w.begins()
	left, err := filepath.Glob(filepath.Join(w.Store.Work(), ".kept-*"))
	if ok(t, err); len(left) != 4 {
		t.Errorf("%v", left)
	}
	if _, err := os.Stat(filepath.Join(w.Store.Work(), ".kept-codebuilder-1-3")); err == nil {
		t.Error("the oldest is still there")
	}
}
