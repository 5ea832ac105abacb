package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/journal"
	"example.com/AutoAgentProject/core/plan"
	"example.com/AutoAgentProject/core/testkit"
	"example.com/AutoAgentProject/core/view"
)

// A fault is done to one tick of one agent at one system call. strace does it, so that it needs no help of ours: a SIGKILL before
// the n-th call of that name in any of the tick's threads, or an error in its place. What the tick starts is not touched.
type fault struct {
	role string // of the tick
	tick int    // which tick of that role, counted from 1
	call string // name of the system call
	n    int    // which of them, counted from 1 in each thread
	errn string // error that it returns; empty: the tick is killed
}

func (f fault) name() string {
	if f.errn == "" {
		return "kill"
	}
	return f.errn
}

func (f fault) String() string {
	return fmt.Sprintf("%s before %s %d of tick %d of the %s", f.name(), f.call, f.n, f.tick, f.role)
}

// moments are the system calls between which a tick is killed, with about how many of them a thread makes.
var moments = map[string]int{"openat": 60, "write": 40, "fsync": 25, "renameat": 20, "linkat": 4, "unlinkat": 20, "close": 60, "flock": 8, "read": 60, "newfstatat": 40, "fcntl": 20, "mmap": 30,
	"clone": 8, "clone3": 8, "waitid": 6, "socket": 4, "sendto": 4, "connect": 4, "mkdirat": 6, "getdents64": 10, "pidfd_open": 3, "epoll_pwait": 20, "futex": 60, "nanosleep": 20, "getrandom": 3, "ftruncate": 2, "dup3": 2, "pipe2": 6}

// errors are what system calls answer, by the names of the faults they stand for.
var errnos = map[string][]string{
	"ENOSPC": {"write", "openat", "fsync", "mkdirat", "linkat"}, "EIO": {"write", "fsync", "read", "renameat"}, "EMFILE": {"openat", "socket", "pipe2", "pidfd_open"},
	"EROFS": {"openat", "renameat", "linkat", "unlinkat", "mkdirat"}, "EACCES": {"openat", "connect"}, "EAGAIN": {"clone", "clone3"},
}

// pick chooses a fault by a seed: the same seed, the same fault.
func pick(seed uint64) fault {
	r := rand.New(rand.NewPCG(seed, 7))
	f := fault{role: "specialist", tick: 1 + r.IntN(3)}
	switch r.IntN(10) {
	case 0, 1, 2:
		f.role = "manager"
	case 3:
		f.role = []string{"reporter", "quota"}[r.IntN(2)]
	}
	if r.IntN(3) > 0 {
		names := sorted(moments)
		f.call = names[r.IntN(len(names))]
	} else {
		names := sorted(errnos)
		f.errn = names[r.IntN(len(names))]
		f.call = errnos[f.errn][r.IntN(len(errnos[f.errn]))]
	}
	f.n = 1 + r.IntN(moments[f.call])
	return f
}

func sorted[V any](m map[string]V) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// TestTorture does seeded faults to ticks of small missions and prints what came of each. A fault that did not fire does not
// count. AUTOAGENT_TORTURE says how many have to fire (with AUTOAGENT_FULL=1: 40); AUTOAGENT_SEED begins at another
// seed, so that with AUTOAGENT_TORTURE=1 it repeats one run.
func TestTorture(t *testing.T) {
	t.Parallel()
	testkit.Need(t, testkit.OnPath("strace"), "strace (apt-get install strace)")
	if err := exec.Command("strace", "-qq", "-o", "/dev/null", "true").Run(); err != nil {
		testkit.Need(t, false, "leave to trace processes: "+err.Error())
	}
	want, seed, workers := 0, uint64(1), 4
	if os.Getenv("AUTOAGENT_FULL") != "" {
		want = 40
	}
	if n, err := strconv.Atoi(os.Getenv("AUTOAGENT_TORTURE")); err == nil {
		want = n
	}
	if n, err := strconv.ParseUint(os.Getenv("AUTOAGENT_SEED"), 10, 64); err == nil {
		seed = n
	}
	m := &matrix{cells: map[string]map[string]int{}}
	if want == 0 { // the short form: two whose moment comes early
		t.Run("short", func(t *testing.T) {
			for _, s := range []uint64{14, 20} {
				t.Run(fmt.Sprintf("seed-%d", s), func(t *testing.T) {
					t.Parallel()
					m.add(tortured(t, s))
				})
			}
		})
		t.Logf("%d faults fired, %d did not\n%s", m.count(), m.unfired, m)
		if m.count() == 0 && !t.Failed() {
			t.Error("no fault fired")
		}
		return
	}
	var next sync.Mutex
	take := func() (uint64, bool) {
		next.Lock()
		defer next.Unlock()
		if m.count() >= want || seed > uint64(want)*20+1000 || t.Failed() && os.Getenv("AUTOAGENT_FULL") == "" {
			return 0, false
		}
		s := seed
		seed++
		return s, true
	}
	var all sync.WaitGroup
	for range min(workers, want) {
		all.Go(func() {
			for s, ok := take(); ok; s, ok = take() {
				t.Run(fmt.Sprintf("seed-%d", s), func(t *testing.T) { m.add(tortured(t, s)) })
			}
		})
	}
	all.Wait()
	t.Logf("%d faults fired, %d did not and do not count\n%s", m.count(), m.unfired, m)
	if m.count() < want && !t.Failed() {
		t.Errorf("only %d faults fired, want %d", m.count(), want)
	}
}

// matrix counts outcomes by fault and moment.
type matrix struct {
	mu      sync.Mutex
	cells   map[string]map[string]int
	fired   int
	unfired int
}

func (m *matrix) count() int { m.mu.Lock(); defer m.mu.Unlock(); return m.fired }

func (m *matrix) add(f fault, outcome string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if outcome == "" {
		m.unfired++
		return
	}
	m.fired++
	row := fmt.Sprintf("%-7s %-10s %s", f.name(), f.role, f.call)
	if m.cells[row] == nil {
		m.cells[row] = map[string]int{}
	}
	m.cells[row][outcome]++
}

func (m *matrix) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-40s outcomes\n", "fault, moment")
	for _, row := range sorted(m.cells) {
		fmt.Fprintf(&b, "%-40s", row)
		for _, o := range sorted(m.cells[row]) {
			fmt.Fprintf(&b, " %s: %d", o, m.cells[row][o])
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// tortured runs a mission with one fault and checks that nothing is lost. outcome is empty if the fault did not fire.
func tortured(t *testing.T, seed uint64) (f fault, outcome string) {
	f = pick(seed)
	w := newWorld(t, planned(step("one", "test -f one"), step("two", "test -f two", "one")), works("one", bash("echo 1 > one")), works("two", bash("echo 2 > two")))
	own, log := w.own(f)
	start := exec.Command(filepath.Join(own, "AutoAgentProject"), w.command("start", "tortured", "Two steps").Args[1:]...)
	start.Env = w.env
	code, out := w.bounded(start, 4*time.Minute)
	b, _ := os.ReadFile(log)
	fired := strings.Contains(string(b), "(INJECTED)")
	if f.errn == "" {
		fired = strings.Contains(string(b), "killed by SIGKILL")
	}
	st := w.store("tortured")
	stop, err := st.Stopped()
	if err != nil {
		t.Fatalf("seed %d, %s: %v\n%s", seed, f, err, out)
	}
	if stop == nil || stop.Cause == "" {
		t.Fatalf("seed %d, %s: exit status %d and no reason\n%s%s", seed, f, code, out, w.history())
	}
	w.intact(seed, f)
	if !fired {
		return f, ""
	}
	switch {
	case stop.Cause == "completed" && code == 0:
		w.complete(seed, f)
		return f, "completed"
	case stop.Reason != "" && f.errn != "":
		return f, "stopped: " + string(stop.Cause)
	}
	t.Errorf("seed %d, %s: exit status %d, %+v\n%s%s", seed, f, code, stop, out, w.history())
	return f, "LOST"
}

// own makes a folder of the programs in which one tick is done a fault to, and returns it with strace's log.
func (w *world) own(f fault) (dir, log string) {
	w.t.Helper()
	dir, log = w.t.TempDir(), filepath.Join(w.t.TempDir(), "log")
	programs, err := os.ReadDir(bin)
	if err != nil {
		w.t.Fatal(err)
	}
	victim := "autoagent-" + f.role
	for _, p := range programs {
		name := p.Name()
		if name == victim {
			name = victim + ".real"
		}
		if err := os.Link(filepath.Join(bin, p.Name()), filepath.Join(dir, name)); err != nil {
			w.t.Fatal(err)
		}
	}
	what := "signal=KILL"
	if f.errn != "" {
		what = "error=" + f.errn
	}
	real := filepath.Join(dir, victim+".real")
	script := fmt.Sprintf("#!/bin/sh\nfor n in 1 2 3 4 5 6 7 8 9; do mkdir '%[1]s.'$n 2>/dev/null && break; done\n[ $n = %[2]d ] || exec '%[3]s' \"$@\"\n"+
		"exec strace -f -b execve -qq -o '%[1]s' -e trace=%[4]s -e inject=%[4]s:%[5]s:when=%[6]d '%[3]s' \"$@\"\n", log, f.tick, real, f.call, what, f.n)
	if err := os.WriteFile(filepath.Join(dir, victim), []byte(script), 0o755); err != nil {
		w.t.Fatal(err)
	}
	return dir, log
}

// bounded runs a command that has to end; after the time it is ended, and so is its mission.
func (w *world) bounded(cmd *exec.Cmd, d time.Duration) (int, string) {
	w.t.Helper()
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	timer := time.AfterFunc(d, func() { w.do("abort", "tortured") })
	defer timer.Stop()
	err := cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		w.t.Fatal(err)
	}
	if !timer.Stop() {
		w.t.Errorf("it did not end within %v\n%s%s", d, out.String(), w.history())
	}
	return cmd.ProcessState.ExitCode(), out.String()
}

// intact checks what holds for a mission that has ended, whatever was done to it: everything can be read, nothing is held, no run
// is open, and the ledger holds at least what the model was asked for.
func (w *world) intact(seed uint64, f fault) {
	w.t.Helper()
	bad := func(format string, args ...any) {
		w.t.Helper()
		w.t.Errorf("seed %d, %s: %s\n%s", seed, f, fmt.Sprintf(format, args...), w.history())
	}
	st := w.store("tortured")
	var v view.Mission
	code, out := w.do("status", "tortured", "--json")
	if err := json.Unmarshal([]byte(out), &v); err != nil || code != 0 && (v.Stop == nil || v.Stop.Cause != "damage") {
		bad("status: %d, %v\n%s", code, err, out)
	}
	book, err := st.Ledger().Read()
	if err != nil || book.Reserved.N != 0 || len(book.OpenRuns) != 0 {
		bad("ledger: %v, reserved %v, open %v", err, book.Reserved, book.OpenRuns)
	}
	served, counted := w.model.Stats().Tokens(), int64(0)
	for _, s := range book.ByAgent {
		counted += s.Tokens
	}
	if counted < served {
		bad("the model was asked for %d tokens, the ledger holds %d", served, counted)
	}
	p, err := st.Plan()
	if err != nil {
		bad("plan: %v", err)
		return
	}
	for _, s := range p.Steps {
		merged := git(w.t, w.root, "--git-dir", st.Repo(), "log", "--format=%s", "main", "--grep", "^"+s.ID+":")
		if n := strings.Count(merged, s.ID+":"); n > 1 || n == 0 && s.State == plan.Done {
			bad("step %s is %s and was merged %d times", s.ID, s.State, n)
		}
		boxes := 0
		for _, box := range []string{"new", "in_process", "completed", "failed"} {
			names, _ := filepath.Glob(filepath.Join(st.Agent("codebuilder-1"), "inbox", box, s.Last().Name))
			boxes += len(names)
		}
		if s.Agent != "" && s.State != plan.Assigned && boxes != 1 {
			bad("the handoff of step %s is in %d boxes", s.ID, boxes)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(st.Work(), ".cells", "*", "*")); len(left) > 0 && v.Stop != nil && v.Stop.Cause == "completed" {
		bad("scratch folders are left: %v", left)
	}
	w.noneAlive()
}

// complete checks a mission that completed: the result is whole, nothing was done twice.
func (w *world) complete(seed uint64, f fault) {
	w.t.Helper()
	st := w.store("tortured")
	for file, want := range map[string]string{"one": "1\n", "two": "2\n"} {
		if b, err := os.ReadFile(filepath.Join(st.Result(), file)); err != nil || string(b) != want {
			w.t.Errorf("seed %d, %s: result/%s is %q, %v", seed, f, file, b, err)
		}
	}
	ends := w.events("tortured", journal.MissionStopped)
	if len(ends) > 1 {
		w.t.Errorf("seed %d, %s: %d ends were told", seed, f, len(ends))
	}
}

// TestPick: a seed names one fault, and all kinds come up.
func TestPick(t *testing.T) {
	seen := map[string]bool{}
	for seed := range uint64(3000) {
		f := pick(seed)
		if f != pick(seed) || f.n < 1 || moments[f.call] == 0 {
			t.Fatalf("seed %d: %s", seed, f)
		}
		seen[f.role], seen[f.call], seen[f.name()] = true, true, true
	}
	for _, name := range slices.Concat(sorted(moments), sorted(errnos), []string{"kill", "manager", "specialist", "reporter", "quota"}) {
		if !seen[name] {
			t.Errorf("%s never comes up", name)
		}
	}
}
