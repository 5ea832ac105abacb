package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/AutoAgentProject/core/journal"
	"example.com/AutoAgentProject/core/scriptmodel"
	"example.com/AutoAgentProject/core/tick"
)

// TestWhatGitIgnoresIsNoResult: a command that passes only because of a file that is not delivered proves nothing.
func TestWhatGitIgnoresIsNoResult(t *testing.T) {
	t.Parallel()
	from := t.TempDir()
	put(t, from, ".gitignore", "build/\n")
	again := planned(step("thing", "test -f build/thing"))
	again.Name, again.When, again.Not = "re-plan", []string{"A new plan is needed"}, nil
	again.Steps = []scriptmodel.Step{text("no plan")}
	w := newWorld(t, again, planned(step("thing", "test -f build/thing")), works("thing", bash("mkdir -p build && echo x > build/thing")))
	w.must(1, "start", "ignored", "Make the thing", "--from", from)
	failed := w.events("ignored", journal.VerifyFailed)
	if len(failed) != 2 || !strings.Contains(failed[0].Text, "fresh checkout") {
		t.Errorf("refused as %v\n%s", failed, w.history())
	}
}

// TestDamageHalts: a ledger or plan that cannot be read stops the mission, is kept as it is, and holds up neither the
// stop nor the other missions.
func TestDamageHalts(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"ledger.jsonl", "plan.json", "clock.json", "mission.json"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			long := bash("echo 1 > one")
			long.DelayMS = 60_000
			w := newWorld(t, planned(step("one", "test -f one")), works("one", bash("true"), long))
			_, wait := w.background("start", "damaged", "One slow step")
			w.until("the step runs", func() bool { return w.model.Stats().ByRule["one"] > 0 })
			path := filepath.Join(w.store("damaged").Dir(), name)
			w.until("it is there", func() bool { _, err := os.Stat(path); return err == nil })
			if err := os.WriteFile(path, []byte("\x00\x00\x00"), 0o600); err != nil {
				t.Fatal(err)
			}
			code, out := wait()
			if code != 6 || !strings.Contains(out, "halted: damage") {
				t.Errorf("start ended with %d:\n%s", code, out)
			}
			if b, err := os.ReadFile(path); err != nil || string(b) != "\x00\x00\x00" {
				t.Errorf("the damaged file is now %q, %v", b, err)
			}
			w.noneAlive()
			w.do("list", "--all")
		})
	}
}

// TestServiceDownCountsNoAttempt: a service that fails again and again pauses the mission; nobody's work is to blame.
func TestServiceDownCountsNoAttempt(t *testing.T) {
	t.Parallel()
	w := newWorld(t, scriptmodel.Rule{Name: "down", Steps: []scriptmodel.Step{{Status: 529, ErrType: "overloaded_error", ErrMsg: "overloaded"}}})
	_, wait := w.background("start", "down", "Wait for better times")
	w.until("it is paused", func() bool { return len(w.events("down", journal.Paused)) > 0 })
	for range 3 {
		w.do("tick", "down", "manager")
	}
	v := w.status("down")
	if v.Stop != nil || len(v.Pauses) != 1 || v.Pauses[0].Cause != "limit" || len(w.events("down", journal.Paused)) != 1 {
		t.Errorf("%+v", v)
	}
	var hold tick.Hold
	if err := w.store("down").Load("agents/manager/hold.json", &hold); err != nil || hold.Runs != 0 || hold.Waits != 1 {
		t.Errorf("the wait counts as an attempt: %+v, %v", hold, err)
	}
	w.must(0, "abort", "down")
	wait()
}

// TestVanishedProgramCostsNothing: a run that could not be started is not charged.
func TestVanishedProgramCostsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, planned(step("one", "true")), works("one", text("x")))
	program := filepath.Join(t.TempDir(), "claude")
	for i, e := range w.env {
		if p, ok := strings.CutPrefix(e, "AUTOAGENT_CLAUDE="); ok {
			if err := os.Link(p, program); err != nil {
				b, err := os.ReadFile(p)
				if err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(program, b, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			w.env[i] = "AUTOAGENT_CLAUDE=" + program
		}
	}
	_, wait := w.background("start", "gone", "Nothing")
	w.until("it exists", func() bool { return w.store("gone").Exists() })
	if err := os.Remove(program); err != nil {
		t.Fatal(err)
	}
	w.until("a tick failed", func() bool { return len(w.events("gone", journal.Repaired)) > 0 || w.model.Stats().Requests > 0 })
	book, err := w.store("gone").Ledger().Read()
	if err != nil || book.Used.N > 10_000_000 {
		t.Errorf("used %v, %v", book.Used, err)
	}
	w.must(0, "abort", "gone")
	wait()
}
