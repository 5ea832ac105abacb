package supervisor

import (
	"log/slog"
	"os"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/journal"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/recovery"
	"example.com/AutoAgentProject/core/store"
	"example.com/AutoAgentProject/core/tick"
)

// TestCrashLoop: ticks that die before they can count it themselves are counted here; the fifth pauses the agent, and each
// wait is longer than the one before. Whoever stops the mission is never paused.
func TestCrashLoop(t *testing.T) {
	roster, err := mission.ParseRoster("codebuilder:1", []string{"manager", "codebuilder"})
	if err != nil {
		t.Fatal(err)
	}
	st := store.Root(t.TempDir()).Mission("loop")
	for _, a := range roster {
		if err := os.MkdirAll(st.Agent(a.Name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	l := &loop{s: &Supervisor{Log: slog.New(slog.DiscardHandler)}, st: st, m: mission.Mission{ID: "loop", Roster: roster}}
	for _, name := range []string{"codebuilder-1", "quota"} {
		a, ok := l.m.Agent(name)
		if !ok {
			t.Fatal(name)
		}
		x := &agent{Agent: a}
		var last time.Duration
		for n := range recovery.MaxCrashes {
			began := time.Now()
			l.failed(t.Context(), x, "could not be started")
			wait := x.due.Sub(began)
			base := time.Second << n
			if wait < base*3/4-time.Millisecond || wait > base*5/4+time.Second || wait <= last {
				t.Errorf("%s: wait %d is %v", name, n+1, wait)
			}
			last = wait
			pauses, err := st.PausesOf(name, time.Now())
			if want := name != "quota" && n == recovery.MaxCrashes-1; err != nil || len(pauses) > 0 != want {
				t.Errorf("%s: after crash %d: %+v, %v", name, n+1, pauses, err)
			}
		}
		// The tick counted itself: once is enough.
		if b := tick.ReadBreaker(st, name); name != "quota" && b.Row != recovery.MaxCrashes {
			t.Errorf("%s: %+v", name, b)
		}
	}
	events, _, _, err := st.Journal().Read(0)
	if err != nil {
		t.Fatal(err)
	}
	blockers := map[string]int{}
	for _, e := range events {
		if e.Level == journal.Blocker {
			blockers[e.Agent+" "+e.Kind]++
		}
	}
	if len(blockers) != 2 || blockers["codebuilder-1 "+journal.AgentPaused] != 1 || blockers["quota "+journal.Repaired] != 1 {
		t.Errorf("%v", blockers)
	}
}

// TestCountedByTheTick: a crash that the tick counted itself is not counted again.
func TestCountedByTheTick(t *testing.T) {
	roster, _ := mission.ParseRoster("codebuilder:1", []string{"manager", "codebuilder"})
	st := store.Root(t.TempDir()).Mission("loop")
	if err := os.MkdirAll(st.Agent("codebuilder-1"), 0o700); err != nil {
		t.Fatal(err)
	}
	l := &loop{s: &Supervisor{Log: slog.New(slog.DiscardHandler)}, st: st, m: mission.Mission{ID: "loop", Roster: roster}}
	a, _ := l.m.Agent("codebuilder-1")
	x := &agent{Agent: a}
	for n := range 3 {
		if _, err := tick.Crashed(t.Context(), st, l.m, a, "ended badly", time.Now()); err != nil {
			t.Fatal(err)
		}
		l.failed(t.Context(), x, "ended badly")
		if b := tick.ReadBreaker(st, a.Name); b.Row != n+1 {
			t.Fatalf("%+v", b)
		}
	}
}
