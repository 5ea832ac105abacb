package testkit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/engine"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/money"
	"example.com/AutoAgentProject/core/store"
	"example.com/AutoAgentProject/core/units"
	"example.com/AutoAgentProject/core/usererr"
	"example.com/AutoAgentProject/core/wake"
)

// NewEngine makes an engine for missions below root whose ticks run the given command. every is the time from one tick
// to the next of the same agent.
type NewEngine func(t *testing.T, root store.Root, command func(mission.Mission, mission.Agent) []string, every time.Duration) engine.Engine

// tickProgram stands in for the role binaries: it notes its start and does what a file of its agent's name says.
const tickProgram = `#!/bin/sh
agent=$1 dir=$2
echo "$agent $$" >>"$dir/ticks"
[ -f "$dir/do-$agent" ] && . "$dir/do-$agent"
echo "$agent $$ ends" >>"$dir/ticks"
exit 0
`

// stage is one mission with an engine.
type stage struct {
	t      *testing.T
	dir    string
	root   store.Root
	st     *store.Store
	m      mission.Mission
	engine engine.Engine
	failed atomic.Pointer[error] // what Start failed with
}

const stageID = "suite"

func newStage(t *testing.T, make NewEngine, every time.Duration, do map[string]string) *stage {
	t.Helper()
	dir, err := os.MkdirTemp("", "stage-") // short: the path of a socket may have 107 bytes, and no engine must refuse it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	s := &stage{t: t, dir: dir, root: store.Root(filepath.Join(dir, "root"))}
	s.st = s.root.Mission(stageID)
	program := filepath.Join(dir, "tick.sh")
	if err := os.WriteFile(program, []byte(tickProgram), 0o755); err != nil {
		t.Fatal(err)
	}
	for agent, script := range do {
		if err := os.WriteFile(filepath.Join(dir, "do-"+agent), []byte(script), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	roster, err := mission.ParseRoster("codebuilder:2", []string{"manager", "codebuilder"})
	if err != nil {
		t.Fatal(err)
	}
	m := mission.Mission{Version: mission.Version, ID: stageID, CreatedAt: time.Now().UTC(), Roster: roster, Budget: money.Amount{Unit: money.NanoUSD, N: int64(money.USD)}}
	if err := os.MkdirAll(s.st.Dir(), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, a := range roster {
		if err := os.MkdirAll(s.st.Agent(a.Name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	s.engine = make(t, s.root, func(m mission.Mission, a mission.Agent) []string { return []string{program, a.Name, dir} }, every)
	m.Engine = s.engine.Name()
	if by, ok := s.engine.(interface{ Manager() string }); ok {
		m.Manager = by.Manager()
	}
	s.m = m
	if err := errors.Join(s.st.CreateMission(m), s.st.PrepareTombstone()); err != nil {
		t.Fatal(err)
	}
	return s
}

// start sets the mission going; the function waits for the mission's end. An engine that does not tick in the foreground
// is asked to stop it, which the tombstone has been set for.
func (s *stage) start(ctx context.Context) func() (mission.Stop, error) {
	var stop mission.Stop
	var err error
	done := make(chan struct{})
	go func() {
		stop, err = s.engine.Start(ctx, stageID)
		if err != nil {
			s.failed.Store(&err)
		}
		close(done)
	}()
	return func() (mission.Stop, error) {
		select {
		case <-done:
		case <-time.After(3 * time.Minute):
			s.t.Fatal("the engine does not end")
		}
		if err != nil || stop != (mission.Stop{}) {
			return stop, err
		}
		if _, err := s.engine.Stop(context.WithoutCancel(ctx), stageID); err != nil {
			return stop, err
		}
		t, err := s.st.Stopped()
		if t != nil {
			stop = *t
		}
		return stop, err
	}
}

// socket is where the engine listens for an agent's wake-ups.
func (s *stage) socket(agent string) string { return units.Wakes(s.st, s.m, agent) }

// ticks counts the started ticks of an agent.
func (s *stage) ticks(agent string) int {
	b, _ := os.ReadFile(filepath.Join(s.dir, "ticks"))
	n := 0
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) == 2 && f[0] == agent {
			n++
		}
	}
	return n
}

func (s *stage) until(what string, ok func() bool) {
	s.t.Helper()
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if ok() {
			return
		}
		if err := s.failed.Load(); err != nil {
			s.t.Fatalf("Start, while waiting until %s: %v", what, *err)
		}
	}
	b, _ := os.ReadFile(filepath.Join(s.dir, "ticks"))
	s.t.Fatalf("waited in vain until %s\n%s", what, b)
}

func (s *stage) tombstone(cause mission.Cause) {
	s.t.Helper()
	if _, err := s.st.Stop(mission.Stop{Cause: cause, Reason: "for the test", By: "suite", At: time.Now()}); err != nil {
		s.t.Fatal(err)
	}
}

// alive returns the processes whose command line mentions the stage's folder.
func (s *stage) alive() []string {
	var out []string
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err == nil && strings.Contains(string(b), s.dir) && filepath.Base(filepath.Dir(f)) != fmt.Sprint(os.Getpid()) {
			out = append(out, strings.ReplaceAll(string(b), "\x00", " "))
		}
	}
	return out
}

// stopped checks a finished stop: all steps recorded in order, proof given, nothing alive, nothing ticks any more.
func (s *stage) stopped(rec engine.Record) {
	s.t.Helper()
	if !rec.Done || rec.Proof == "" {
		s.t.Errorf("record: done %v, proof %q", rec.Done, rec.Proof)
	}
	var names []string
	for _, x := range rec.Steps {
		names = append(names, x.Name)
	}
	if want := []string{engine.SocketsClosed, engine.TicksEnded, engine.Killed, engine.Proven, engine.Counted, engine.Told}; !slices.Equal(names, want) {
		s.t.Errorf("steps %v, want %v", names, want)
	}
	if left := s.alive(); len(left) > 0 {
		s.t.Errorf("still alive: %v", left)
	}
	b, _ := os.ReadFile(filepath.Join(s.dir, "ticks"))
	_ = wake.Send(s.socket("codebuilder-1"))
	time.Sleep(50 * time.Millisecond)
	if after, _ := os.ReadFile(filepath.Join(s.dir, "ticks")); string(after) != string(b) {
		s.t.Error("something ticked after the stop")
	}
	if l, err := s.engine.Live(context.Background(), stageID); err != nil || l.Ticking {
		s.t.Errorf("Live after the stop: %+v, %v", l, err)
	}
}

// EngineSuite is what every engine has to pass. The tests run one after the other.
func EngineSuite(t *testing.T, make NewEngine) {
	ctx := context.Background()
	all := []string{"manager", "codebuilder-1", "codebuilder-2", "reporter", "quota"}

	t.Run("ticks every agent and goes on by time", func(t *testing.T) {
		s := newStage(t, make, 30*time.Millisecond, nil)
		wait := s.start(ctx)
		for _, a := range all {
			s.until(a+" ticks twice", func() bool { return s.ticks(a) >= 2 })
		}
		if l, err := s.engine.Live(ctx, stageID); err != nil || !l.Ticking {
			t.Errorf("Live: %+v, %v", l, err)
		}
		s.tombstone(mission.Completed)
		rec, err := s.engine.Stop(ctx, stageID)
		if err != nil {
			t.Fatal(err)
		}
		if stop, err := wait(); err != nil || stop.Cause != mission.Completed {
			t.Errorf("Start ended with %+v, %v", stop, err)
		}
		s.stopped(rec)
	})

	t.Run("a wake-up starts a tick long before its time, also one that came during a tick", func(t *testing.T) {
		s := newStage(t, make, time.Hour, map[string]string{"codebuilder-2": "sleep 0.3\n"})
		wait := s.start(ctx)
		for _, a := range all {
			s.until(a+" ticks", func() bool { return s.ticks(a) == 1 })
		}
		if err := errors.Join(wake.Send(s.socket("codebuilder-1")), wake.Send(s.socket("codebuilder-2"))); err != nil {
			t.Fatal(err)
		}
		s.until("codebuilder-1 was woken", func() bool { return s.ticks("codebuilder-1") == 2 })
		s.until("codebuilder-2 was woken after its tick", func() bool { return s.ticks("codebuilder-2") == 2 })
		if n := s.ticks("manager"); n != 1 {
			t.Errorf("manager ticked %d times, nobody woke it", n)
		}
		s.tombstone(mission.Aborted)
		wait()
	})

	t.Run("a bad end is tried again", func(t *testing.T) {
		s := newStage(t, make, 10*time.Millisecond, map[string]string{"codebuilder-1": "exit 1\n", "manager": "kill -9 $$\n"})
		wait := s.start(ctx)
		s.until("the failing ones came again", func() bool { return s.ticks("codebuilder-1") >= 2 && s.ticks("manager") >= 2 })
		s.tombstone(mission.Aborted)
		if _, err := wait(); err != nil {
			t.Error(err)
		}
	})

	t.Run("stops what does not want to stop", func(t *testing.T) {
		deaf := `trap '' TERM HUP INT
setsid sh -c "trap '' TERM; sleep 600; : $dir" &
(setsid sh -c "sh -c 'sleep 600; : $dir' &" &)
while :; do sleep 1; done
`
		s := newStage(t, make, time.Hour, map[string]string{"codebuilder-1": deaf, "codebuilder-2": deaf, "manager": "sleep 600\n"})
		wait := s.start(ctx)
		s.until("all run", func() bool { return len(s.alive()) >= 6 })
		s.tombstone(mission.Aborted)
		rec, err := s.engine.Stop(ctx, stageID)
		if err != nil {
			t.Fatal(err)
		}
		s.stopped(rec)
		wait()
	})

	t.Run("stops once however many ask, and says the same again later", func(t *testing.T) {
		s := newStage(t, make, time.Hour, map[string]string{"manager": "sleep 600\n"})
		wait := s.start(ctx)
		s.until("it ticks", func() bool { return s.ticks("manager") == 1 })
		s.tombstone(mission.Budget)
		var asks sync.WaitGroup
		for range 4 {
			asks.Go(func() {
				if rec, err := s.engine.Stop(ctx, stageID); err != nil || !rec.Done {
					t.Errorf("stop: %+v, %v", rec, err)
				}
			})
		}
		asks.Wait()
		wait()
		rec, err := s.engine.Stop(ctx, stageID)
		if err != nil {
			t.Fatal(err)
		}
		s.stopped(rec)
	})

	t.Run("an unreadable tombstone stops as well", func(t *testing.T) {
		s := newStage(t, make, 20*time.Millisecond, nil)
		wait := s.start(ctx)
		s.until("it ticks", func() bool { return s.ticks("manager") >= 1 })
		if err := os.WriteFile(filepath.Join(s.st.Dir(), "stop.json"), []byte{0, 0}, 0o600); err != nil {
			t.Fatal(err)
		}
		rec, err := s.engine.Stop(ctx, stageID)
		if err != nil {
			t.Fatal(err)
		}
		wait()
		s.stopped(rec)
	})

	t.Run("two cannot tick one mission", func(t *testing.T) {
		s := newStage(t, make, time.Hour, nil)
		wait := s.start(ctx)
		s.until("it ticks", func() bool { return s.ticks("manager") == 1 })
		if _, err := s.engine.Start(ctx, stageID); usererr.CodeOf(err) != usererr.Conflict {
			t.Errorf("a second Start: %v", err)
		}
		s.tombstone(mission.Aborted)
		wait()
	})
}

// ForegroundSuite is for engines that tick in the foreground: they judge how a tick ended, and the end of the context
// aborts the mission.
func ForegroundSuite(t *testing.T, make NewEngine) {
	t.Run("a bad end slows down, 125 ends", func(t *testing.T) {
		s := newStage(t, make, 10*time.Millisecond, map[string]string{"codebuilder-1": "exit 1\n", "codebuilder-2": "exit 125\n", "manager": "kill -9 $$\n"})
		wait := s.start(context.Background())
		s.until("the failing ones came again", func() bool { return s.ticks("codebuilder-1") >= 2 && s.ticks("manager") >= 2 })
		if n := s.ticks("codebuilder-2"); n != 1 {
			t.Errorf("exit status 125 was ticked %d times", n)
		}
		if a, b := s.ticks("codebuilder-1"), s.ticks("reporter"); a >= b {
			t.Errorf("a failing agent was ticked %d times, a good one %d: it is not slowed down", a, b)
		}
		s.tombstone(mission.Aborted)
		if _, err := wait(); err != nil {
			t.Error(err)
		}
	})

	t.Run("the end of the context aborts", func(t *testing.T) { endOfContext(t, make) })
}

func endOfContext(t *testing.T, make NewEngine) {
	t.Helper()
	s := newStage(t, make, time.Hour, map[string]string{"manager": "sleep 600\n"})
	ctx, cancel := context.WithCancel(context.Background())
	wait := s.start(ctx)
	s.until("it ticks", func() bool { return s.ticks("manager") == 1 })
	cancel()
	stop, err := wait()
	if err != nil || stop.Cause != mission.Aborted || stop.By != "person" {
		t.Errorf("Start ended with %+v, %v", stop, err)
	}
	rec, err := s.engine.Stop(context.Background(), stageID)
	if err != nil {
		t.Fatal(err)
	}
	s.stopped(rec)
}
