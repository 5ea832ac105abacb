package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/journal"
	"example.com/AutoAgentProject/core/plan"
	"example.com/AutoAgentProject/core/scriptmodel"
)

// endless is a mission whose agent waits for an answer that does not come.
func endless(t *testing.T, id string) (w *world, supervisor *os.Process, wait func() (int, string)) {
	long := bash("echo 1 > one")
	long.DelayMS = 170_000
	w = newWorld(t, planned(step("one", "test -f one")), works("one", bash("true"), long))
	cmd, wait := w.background("start", id, "Wait")
	w.until("the step runs", func() bool { return w.model.Stats().ByRule["one"] > 0 })
	return w, cmd.Process, wait
}

// TestFolderGone: a mission whose data folder is removed ends, instead of spending where nobody counts.
func TestFolderGone(t *testing.T) {
	t.Parallel()
	w, _, wait := endless(t, "gone")
	if err := os.Rename(w.store("gone").Dir(), filepath.Join(t.TempDir(), "away")); err != nil {
		t.Fatal(err)
	}
	if code, out := wait(); code != 6 || !strings.Contains(out, "folder is gone") {
		t.Errorf("start ended with %d:\n%s", code, out)
	}
	w.noneAlive()
}

// TestSuspendedSupervisor: a suspended supervisor can neither guard nor stop; abort does not wait for it.
func TestSuspendedSupervisor(t *testing.T) {
	t.Parallel()
	w, p, wait := endless(t, "frozen")
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	w.must(0, "abort", "frozen")
	wait()
	if v := w.status("frozen"); v.Phase != "aborted" {
		t.Errorf("phase %q", v.Phase)
	}
	// Ctrl-Z at the terminal suspends nothing.
	w, p, wait = endless(t, "ctrl-z")
	if err := p.Signal(syscall.SIGTSTP); err != nil {
		t.Fatal(err)
	}
	time.Sleep(100 * time.Millisecond)
	if b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.Pid)); err != nil || strings.Contains(string(b), ") T ") {
		t.Errorf("it is suspended: %s, %v", b, err)
	}
	w.must(0, "abort", "ctrl-z")
	wait()
}

// TestUnreadableFolder: what an agent makes unreadable is delivered all the same, and harms no later step.
func TestUnreadableFolder(t *testing.T) {
	t.Parallel()
	w := newWorld(t, planned(step("one", "test -f one"), step("two", "test -f two", "one")),
		works("one", bash("mkdir -p keep && echo precious > keep/file && chmod 000 keep; echo 1 > one")),
		works("two", bash("echo 2 > two; chmod -R a-w .")))
	w.must(0, "start", "unreadable", "Two steps")
	if _, err := os.ReadFile(filepath.Join(w.store("unreadable").Result(), "keep", "file")); err != nil {
		t.Errorf("the work is lost: %v", err)
	}
}

// TestFifoInPlaceOfGitsFiles: git would wait for somebody to write into it.
func TestFifoInPlaceOfGitsFiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t, planned(step("one", "test -f one")), works("one", bash("echo 1 > one; mkdir s; mkfifo s/.gitattributes s/.gitignore .gitmodules")))
	w.must(0, "start", "fifo", "One step")
}

// TestHistoryOfItsOwn: an agent that begins a history of its own gets its step back and can mend it.
func TestHistoryOfItsOwn(t *testing.T) {
	t.Parallel()
	again := works("one", bash("echo 1 > one"))
	again.Name, again.When = "again", append(again.When, "It came back to you")
	w := newWorld(t, again, planned(step("one", "test -f one")),
		works("one", bash("echo 1 > one; git checkout -q --orphan fresh && git add -A && git -c user.name=a -c user.email=a@autoagent.example commit -qm x")))
	w.must(0, "start", "orphan", "One step")
}

// TestVerifyLeavesNothing: what a verify command makes or changes is no part of the work.
func TestVerifyLeavesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, planned(step("one", "mkdir -p node_modules; echo junk > node_modules/junk; echo tampered >> one; test -f one")), works("one", bash("echo 1 > one")))
	w.must(0, "start", "leavings", "One step")
	result := w.store("leavings").Result()
	if b, err := os.ReadFile(filepath.Join(result, "one")); err != nil || string(b) != "1\n" {
		t.Errorf("one is %q, %v", b, err)
	}
	if _, err := os.Stat(filepath.Join(result, "node_modules")); err == nil {
		t.Error("node_modules is part of the result")
	}
}

// TestCrashesWhilePlanning: three deaths of everything are no attempts at a plan.
func TestCrashesWhilePlanning(t *testing.T) {
	t.Parallel()
	rule := planned(step("one", "test -f one"))
	rule.Steps[0].DelayMS = 2500
	w := newWorld(t, rule, works("one", bash("echo 1 > one")))
	args := []string{"start", "crashes", "One step", "--budget", "100usd"}
	for n := range 3 {
		cmd, wait := w.background(args...)
		w.until("it plans", func() bool {
			runs, _ := filepath.Glob(filepath.Join(w.store("crashes").Agent("manager"), "runs", "*", "cell.json"))
			return len(runs) > n
		})
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		wait()
		args = []string{"run", "crashes"}
	}
	w.must(0, args...)
}

// TestManyConflicts: three agents, with AUTOAGENT_FULL=1 five, change one file at once; all of it is there at the end,
// without another plan.
func TestManyConflicts(t *testing.T) {
	t.Parallel()
	agents := 3
	if full() {
		agents = 5
	}
	var steps []plan.ProposedStep
	var rules []scriptmodel.Rule
	for i := range agents {
		id := fmt.Sprintf("c%d", i)
		again := works(id, bash("grep -v '^[<=>]' shared > s2; grep -q "+id+" s2 || echo "+id+" >> s2; mv s2 shared"))
		again.Name, again.When = id+"-again", append(again.When, "It came back to you")
		steps = append(steps, step(id, "grep -q "+id+" shared"))
		rules = append(rules, again, works(id, bash("echo "+id+" >> shared")))
	}
	w := newWorld(t, append(rules, planned(steps...))...)
	w.must(0, "start", "five", "Five lines", "--specialists", fmt.Sprintf("codebuilder:%d", agents), "--verify", fmt.Sprintf("test $(sort -u shared | wc -l) = %d", agents))
	if n := len(w.events("five", journal.PlanAccepted)); n != 1 {
		t.Errorf("%d plans", n)
	}
}
