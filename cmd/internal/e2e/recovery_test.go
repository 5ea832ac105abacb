package e2e

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/journal"
	"example.com/AutoAgentProject/core/tick"
)

// TestBlockedWaits: a step that its agent calls impossible waits for a person, costs nothing meanwhile, and is done when the
// person lets it be tried again.
func TestBlockedWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t, planned(step("one", "test -f one")), works("one", text("BLOCKED: there is no key")))
	cmd, wait := w.background("start", "blocked", "One step")
	w.until("the mission waits", func() bool {
		p, err := w.store("blocked").Pauses(time.Now())
		return err == nil && len(p) == 1 && p[0].Cause == tick.BlockedCause
	})
	asked := w.model.Stats().Requests
	why := w.must(0, "status", "blocked", "--why")
	if !strings.Contains(why, "BLOCKED: there is no key") || !strings.Contains(why, "→ AutoAgentProject resume blocked") {
		t.Errorf("why:\n%s", why)
	}
	for range 5 {
		for _, a := range []string{"manager", "codebuilder-1"} {
			w.do("tick", "blocked", a)
		}
	}
	if n := w.model.Stats().Requests; n != asked {
		t.Errorf("%d model calls while it was blocked", n-asked)
	}
	if told := w.events("blocked", journal.StepBlocked); len(told) != 1 || told[0].Level != journal.Blocker {
		t.Errorf("told %+v", told)
	}
	todo, err := os.ReadFile(w.store("blocked").Todo())
	if err != nil || strings.Count(string(todo), "- [ ] 🚫") != 1 {
		t.Errorf("%s, %v", todo, err)
	}
	w.must(0, "resume", "blocked")
	w.until("it was tried again", func() bool { return len(w.events("blocked", journal.StepAssigned)) == 2 })
	w.until("it is blocked again", func() bool { return len(w.events("blocked", journal.StepBlocked)) == 2 })
	w.must(0, "abort", "blocked")
	wait()
	_ = cmd
}

// TestCrashLoop: an agent whose ticks are killed again and again is paused, alone; the person is told once, and lets it go on.
func TestCrashLoop(t *testing.T) {
	if os.Getenv("AUTOAGENT_FULL") == "" {
		t.Skip("only with AUTOAGENT_FULL=1: the waits between crashes add up")
	}
	t.Parallel()
	long := bash("echo 1 > one")
	long.DelayMS = 20_000
	w := newWorld(t, planned(step("one", "test -f one")), works("one", bash("true"), long))
	_, wait := w.background("start", "loop", "One step")
	killed := map[int]bool{}
	w.until("it is paused", func() bool {
		var r tick.Running
		if err := w.store("loop").Load(tick.RunningName("codebuilder-1"), &r); err == nil && !r.Ended && !killed[r.Process.PID] && len(w.events("loop", journal.RunStarted)) > 1 {
			if alive, err := r.Process.Alive(); err == nil && alive {
				killed[r.Process.PID] = true
				_ = r.Process.Signal(syscall.SIGKILL)
			}
		}
		return len(w.events("loop", journal.AgentPaused)) > 0
	})
	if len(killed) != 5 {
		t.Errorf("it was paused after %d crashes", len(killed))
	}
	if why := w.must(0, "status", "loop", "--why"); !strings.Contains(why, "→ AutoAgentProject resume loop codebuilder-1") {
		t.Errorf("why:\n%s", why)
	}
	w.must(0, "resume", "loop", "codebuilder-1")
	// It works again: the first it does is to give up the handoff over which three of its ticks died.
	w.until("it goes on", func() bool { return len(w.events("loop", journal.StepFailed)) == 1 })
	if p, err := w.store("loop").PausesOf("codebuilder-1", time.Now()); err != nil || len(p) > 0 {
		t.Errorf("%+v, %v", p, err)
	}
	w.must(0, "abort", "loop")
	wait()
	if told := w.events("loop", journal.AgentPaused); len(told) != 1 {
		t.Errorf("told %+v", told)
	}
}
