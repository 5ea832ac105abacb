package monitor

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/runner"
)

const minute = time.Minute

var limits = Limits{Silence: 10 * minute, Stuck: 20 * minute, Wall: 3 * time.Hour, Loop: 8}

// played lets a run go on for a time, looked at every ten seconds; act says what happens at each look and may return what was
// found. It returns when the verdict came.
func played(l Limits, d time.Duration, act func(m *Monitor, at time.Duration) Facts) (Verdict, time.Duration) {
	m := New(l)
	for at := time.Duration(0); at <= d; at += 10 * time.Second {
		f := act(m, at)
		m.Look(at, f)
		if v := m.Judge(at); v.Class != "" {
			return v, at
		}
	}
	return Verdict{}, d
}

func tool(name, input string) runner.Event {
	return runner.Event{Kind: "tool", Tool: name, Input: input}
}

func text(at time.Duration) runner.Event { return runner.Event{Kind: "text", Text: at.String()} }

func TestVerdicts(t *testing.T) {
	nothing := Facts{Files: "f"}
	for name, c := range map[string]struct {
		limits Limits
		run    time.Duration
		act    func(m *Monitor, at time.Duration) Facts
		class  string
		at     time.Duration
	}{
		"nothing from the start":                          {limits, time.Hour, func(*Monitor, time.Duration) Facts { return nothing }, Silent, 10 * minute},
		"nothing from a slow start":                       {Limits{Silence: time.Minute, Start: 2 * minute}, time.Hour, func(*Monitor, time.Duration) Facts { return nothing }, Silent, 3 * minute},
		"cheerful text for ever":                          {limits, time.Hour, func(m *Monitor, at time.Duration) Facts { m.Event(at, text(at)); return nothing }, Stuck, 20 * minute},
		"heartbeats for ever":                             {limits, time.Hour, func(m *Monitor, at time.Duration) Facts { m.Event(at, runner.Event{Kind: "alive"}); return nothing }, Stuck, 20 * minute},
		"silent beside a compiler":                        {limits, 25 * minute, func(_ *Monitor, at time.Duration) Facts { return Facts{Files: "f", CPU: at} }, "", 0},
		"a compiler that gets a twentieth of a processor": {limits, time.Hour, func(_ *Monitor, at time.Duration) Facts { return Facts{Files: "f", CPU: at / 20} }, "", 0},
		"silent beside a child that sleeps":               {limits, time.Hour, func(_ *Monitor, at time.Duration) Facts { return Facts{Files: "f", CPU: at / 1000} }, Silent, 10 * minute},
		"a compiler that ended":                           {limits, time.Hour, func(_ *Monitor, at time.Duration) Facts { return Facts{Files: "f", CPU: min(at, 15*minute)} }, Silent, 25 * minute},
		"the same words and new commits": {limits, 2 * time.Hour, func(m *Monitor, at time.Duration) Facts {
			m.Event(at, runner.Event{Kind: "text", Text: "still at it"})
			return Facts{Files: "f", Commits: (at / (15 * minute)).String()}
		}, "", 0},
		"files that change":    {limits, 2 * time.Hour, func(_ *Monitor, at time.Duration) Facts { return Facts{Files: (at / (9 * minute)).String()} }, "", 0},
		"messages that change": {limits, 2 * time.Hour, func(_ *Monitor, at time.Duration) Facts { return Facts{Messages: (at / (9 * minute)).String()} }, "", 0},
		"a plan that moves":    {limits, 2 * time.Hour, func(_ *Monitor, at time.Duration) Facts { return Facts{Plan: (at / (9 * minute)).String()} }, "", 0},
		"too long":             {limits, 4 * time.Hour, func(_ *Monitor, at time.Duration) Facts { return Facts{CPU: at} }, Wall, 3 * time.Hour},
		"one call again and again": {limits, time.Hour, func(m *Monitor, at time.Duration) Facts {
			m.Event(at, tool("Bash", "ls"))
			return nothing
		}, Loop, 80 * time.Second},
		"one call again and again, burning the processor": {limits, time.Hour, func(m *Monitor, at time.Duration) Facts {
			m.Event(at, tool("Bash", "make"))
			return Facts{Files: "f", CPU: at}
		}, Loop, 80 * time.Second},
		"two calls in turn": {limits, time.Hour, func(m *Monitor, at time.Duration) Facts {
			m.Event(at, tool("Read", strconv.Itoa(int(at/time.Second)/10%2)))
			return nothing
		}, Loop, 150 * time.Second},
		"the same test after each change": {limits, time.Hour, func(m *Monitor, at time.Duration) Facts {
			m.Event(at, tool("Bash", "make test"))
			return Facts{Files: at.String()}
		}, "", 0},
		"the same tool on other files": {limits, 10 * minute, func(m *Monitor, at time.Duration) Facts {
			m.Event(at, tool("Read", at.String()))
			return nothing
		}, "", 0},
		"a reader who writes nothing": {Limits{Silence: 10 * minute, Stuck: 20 * minute, Loop: 8, Reads: true}, 2 * time.Hour, func(m *Monitor, at time.Duration) Facts {
			m.Event(at, tool("Read", at.String()))
			return nothing
		}, "", 0},
		"a reader who only talks": {Limits{Silence: 10 * minute, Stuck: 20 * minute, Loop: 8, Reads: true}, 2 * time.Hour, func(m *Monitor, at time.Duration) Facts {
			m.Event(at, text(at))
			return nothing
		}, Stuck, 20 * minute},
		"what cannot be looked at is not dead": {limits, 2 * time.Hour, func(*Monitor, time.Duration) Facts { return Facts{Unknown: true} }, "", 0},
		"not looked at":                        {Limits{}, 5 * time.Hour, func(*Monitor, time.Duration) Facts { return nothing }, "", 0},
	} {
		if v, at := played(c.limits, c.run, c.act); v.Class != c.class || c.class != "" && at != c.at {
			t.Errorf("%s: %+v after %v, want %q after %v", name, v, at, c.class, c.at)
		}
	}
}

// TestAway: hours in which nobody looked are no silence of the run: the machine slept, or was stopped.
func TestAway(t *testing.T) {
	m := New(Limits{Silence: 10 * minute, Stuck: 20 * minute})
	m.Look(0, Facts{})
	m.Look(9*minute, Facts{})
	for _, at := range []time.Duration{6 * time.Hour, 6*time.Hour + 9*minute} {
		m.Look(at, Facts{})
		if v := m.Judge(at); v.Class != "" {
			t.Fatalf("after %v: %+v", at, v)
		}
	}
	for at := 6*time.Hour + 9*minute; at <= 6*time.Hour+21*minute; at += 30 * time.Second {
		m.Look(at, Facts{})
	}
	if v := m.Judge(6*time.Hour + 21*minute); v.Class != Silent {
		t.Errorf("%+v", v)
	}
}

// TestNoVerdictBeforeTheLook: the eighth call may have been the one that changed something; only a look says.
func TestNoVerdictBeforeTheLook(t *testing.T) {
	m := New(Limits{Loop: 8})
	m.Look(0, Facts{Files: "a"})
	for range 8 {
		m.Event(time.Second, tool("Bash", "step"))
	}
	if v := m.Judge(time.Second); v.Class != "" {
		t.Errorf("unseen: %+v", v)
	}
	m.Look(2*time.Second, Facts{Files: "b"})
	if v := m.Judge(2 * time.Second); v.Class != "" {
		t.Errorf("it changed something: %+v", v)
	}
	for range 8 {
		m.Event(3*time.Second, tool("Bash", "step"))
	}
	m.Look(4*time.Second, Facts{Files: "b"})
	if v := m.Judge(4 * time.Second); v.Class != Loop || !strings.Contains(v.Reason, "Bash 8 times") {
		t.Errorf("%+v", v)
	}
}

func TestMissing(t *testing.T) {
	m := New(Limits{Required: []string{"Write", "Bash", "Read"}})
	m.Event(0, tool("Bash", "x"))
	m.Event(0, runner.Event{Kind: "text", Text: "Write"})
	if got := m.Missing(); !slices.Equal(got, []string{"Write", "Read"}) {
		t.Errorf("%v", got)
	}
	if ask := Ask(m.Missing(), "no file was changed so far."); !strings.Contains(ask, "You must call the tools Write, Read before you finish") || !strings.Contains(ask, "no file was changed") {
		t.Error(ask)
	}
	m.Event(0, tool("Write", "x"))
	m.Event(0, tool("Read", "x"))
	if m.Missing() != nil {
		t.Error(m.Missing())
	}
}

// TestWild: a program that never repeats itself takes a bounded amount of memory.
func TestWild(t *testing.T) {
	m := New(Limits{Loop: 8, Reads: true})
	for i := range 5 * most {
		m.Event(0, tool("T"+strconv.Itoa(i), strconv.Itoa(i)))
	}
	if len(m.calls) > most || len(m.met) > most || len(m.tools) > most {
		t.Error(len(m.calls), len(m.met), len(m.tools))
	}
}
