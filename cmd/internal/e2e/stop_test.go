package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/scriptmodel"
)

// stubborn leaves children behind in every way: a session of its own, a double fork, one that ignores TERM and HUP.
// mark is in the command line of each.
func stubborn(mark string) scriptmodel.Rule {
	sleep := fmt.Sprintf("sleep 9999 && echo %s", mark)
	return works("first", bash(fmt.Sprintf(`echo half > half.txt
setsid nohup sh -c '%[1]s' >/dev/null 2>&1 &
(setsid sh -c "sh -c '%[1]s' >/dev/null 2>&1 &" &)
sh -c "trap '' TERM HUP INT; %[1]s" >/dev/null 2>&1 &
python3 -c 'import time; time.sleep(9999)' %[2]s || sleep 9999`, sleep, mark)))
}

// busy starts a mission whose agent is in the middle of a run with stubborn children, after a first step was merged.
func busy(t *testing.T, id string) (w *world, mark string, pid int, wait func() (int, string)) {
	mark = fmt.Sprintf("mark-%d-%d", os.Getpid(), time.Now().UnixNano())
	w = newWorld(t, planned(step("zero", "test -f zero"), step("first", "true", "zero")), works("zero", bash("echo 0 > zero")), stubborn(mark))
	cmd, wait := w.background("start", id, "Work that never ends")
	w.until("the children run", func() bool { return len(alive(mark)) >= 4 })
	return w, mark, cmd.Process.Pid, wait
}

// ended checks that a mission is aborted, that nothing lives and that the work so far is there.
func ended(t *testing.T, w *world, id, mark string) {
	t.Helper()
	if left := alive(mark); len(left) > 0 {
		t.Errorf("still alive: %v", left)
	}
	w.noneAlive()
	v := w.status(id)
	if v.Phase != "aborted" {
		t.Errorf("phase %q, want aborted", v.Phase)
	}
	for _, a := range v.Agents {
		if a.Doing == "working" {
			t.Errorf("%s is said to be working", a.Name)
		}
	}
	if _, err := os.Stat(filepath.Join(v.Result, "zero")); err != nil {
		t.Errorf("the merged work: %v", err)
	}
	if _, err := os.Stat(filepath.Join(w.store(id).Clone("codebuilder-1"), "half.txt")); err != nil {
		t.Errorf("the unfinished work: %v", err)
	}
	if v.Budget.Reserved != 0 || v.Budget.Used == 0 {
		t.Errorf("the last count: used %d, reserved %d", v.Budget.Used, v.Budget.Reserved)
	}
	before := w.model.Stats().Requests
	w.do("tick", id, "manager")
	w.do("tick", id, "codebuilder-1")
	if after := w.model.Stats().Requests; after != before {
		t.Error("a tick after the end asked the model")
	}
}

// TestAbort: from another terminal, from two at once.
func TestAbort(t *testing.T) {
	t.Parallel()
	w, mark, _, wait := busy(t, "abort-me")
	began := time.Now()
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			if code, out := w.do("abort", "abort-me", "--reason", "enough of it"); code != 0 || !strings.Contains(out, "is aborted") {
				t.Errorf("abort: %d %s", code, out)
			}
		})
	}
	both.Wait()
	t.Logf("abort took %v", time.Since(began).Round(10*time.Millisecond))
	if left := alive(mark); len(left) > 0 {
		t.Errorf("alive although abort said it is over: %v", left)
	}
	if code, out := wait(); code != 8 || !strings.Contains(out, "enough of it") {
		t.Errorf("start ended with %d:\n%s", code, out)
	}
	ended(t, w, "abort-me", mark)
}

// TestCtrlC: the terminal sends SIGINT to the whole foreground group.
func TestCtrlC(t *testing.T) {
	t.Parallel()
	w, mark, pid, wait := busy(t, "ctrl-c")
	if err := syscall.Kill(pid, syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if code, out := wait(); code != 8 {
		t.Errorf("start ended with %d:\n%s", code, out)
	}
	ended(t, w, "ctrl-c", mark)
}

// TestSupervisorKilled: with the supervisor everything dies, status says that nobody ticks, abort finishes the job.
func TestSupervisorKilled(t *testing.T) {
	t.Parallel()
	w, mark, pid, wait := busy(t, "orphan")
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	wait()
	w.until("everything died with it", func() bool { return len(alive(mark)) == 0 })
	v := w.status("orphan")
	if v.Live.Ticking || len(v.Warnings) == 0 || v.Agents[1].Doing == "working" {
		t.Errorf("status takes a dead mission for a live one: %+v", v)
	}
	w.must(0, "abort", "orphan")
	ended(t, w, "orphan", mark)
}

// TestRunGoesOn: after the supervisor was killed, run goes on to the end; what was merged is not done again.
func TestRunGoesOn(t *testing.T) {
	t.Parallel()
	slow := bash("echo 1 > one")
	slow.DelayMS = 3000
	w := newWorld(t, planned(step("zero", "test -f zero"), step("one", "test -f one", "zero")), works("zero", bash("echo 0 > zero")), works("one", slow))
	cmd, wait := w.background("start", "go-on", "Two steps")
	w.until("the second step runs", func() bool { return w.model.Stats().ByRule["one"] > 0 })
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	wait()
	w.must(0, "run", "go-on")
	if n := w.model.Stats().ByRule["zero"]; n != 2 {
		t.Errorf("the merged step had %d requests, want 2", n)
	}
	if v := w.status("go-on"); v.Phase != "completed" || v.Budget.Reserved != 0 {
		t.Errorf("phase %q, reserved %d", v.Phase, v.Budget.Reserved)
	}
}

// TestIdleMissionAsksNobody: while one agent works, twenty ticks of all others make no request.
func TestIdleMissionAsksNobody(t *testing.T) {
	t.Parallel()
	long := bash("echo 1 > one")
	long.DelayMS = 170_000
	w := newWorld(t, planned(step("one", "test -f one")), works("one", bash("true"), long))
	_, wait := w.background("start", "idle", "One slow step", "--specialists", "codebuilder:1,designer:1")
	w.until("the step runs", func() bool { return w.model.Stats().ByRule["one"] > 0 })
	before := w.model.Stats().Requests
	for range 20 {
		for _, a := range []string{"manager", "designer-1", "reporter", "quota", "codebuilder-1"} {
			if code, out := w.do("tick", "idle", a); code != 0 {
				t.Fatalf("tick of %s: %d %s", a, code, out)
			}
		}
	}
	if n := w.model.Stats().Requests - before; n != 0 {
		t.Errorf("20 idle ticks made %d requests", n)
	}
	w.must(0, "abort", "idle")
	wait()
}

// TestShutdownLeavesItStanding: SIGTERM, as at a shutdown, ends everything that runs and not the mission; run goes on
// without having counted the cut run as the step's fault.
func TestShutdownLeavesItStanding(t *testing.T) {
	t.Parallel()
	mark := fmt.Sprintf("mark-%d-%d", os.Getpid(), time.Now().UnixNano())
	again := scriptmodel.Rule{Name: "one again", When: []string{"(one)", "An earlier run of this step was cut off"}, Steps: []scriptmodel.Step{bash("echo 1 > one"), text("did one")}}
	w := newWorld(t, again, planned(step("one", "test -f one")), works("one", bash(fmt.Sprintf("setsid nohup sh -c 'sleep 9999 && echo %[1]s' >/dev/null 2>&1 & python3 -c 'import time; time.sleep(9999)' %[1]s || sleep 9999", mark))))
	cmd, wait := w.background("start", "shutdown", "One step")
	w.until("the agent works", func() bool { return len(alive(mark)) >= 2 })
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code, out := wait(); code != 75 || !strings.Contains(out, "run shutdown goes on") {
		t.Errorf("start ended with %d:\n%s", code, out)
	}
	if left := alive(mark); len(left) > 0 {
		t.Errorf("still alive: %v", left)
	}
	w.noneAlive()
	if v := w.status("shutdown"); v.Stop != nil || v.Live.Ticking || !strings.HasPrefix(v.Phase, "interrupted") {
		t.Errorf("phase %q, ticking %v", v.Phase, v.Live.Ticking)
	}
	w.must(0, "run", "shutdown")
	if n := len(w.events("shutdown", "step_returned")); n != 0 {
		t.Errorf("%d steps came back\n%s", n, w.history())
	}
}
