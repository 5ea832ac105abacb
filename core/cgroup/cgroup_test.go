package cgroup

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"example.com/AutoAgentProject/core/testkit"
)

// hops are processes that are gone as soon as one looks at them: each has one child and ends.
const hops = `h() { [ $1 -gt 30000 ] || h $(($1+1)) & }
for i in 1 2 3 4 5 6 7 8; do h 0; done 2>/dev/null
echo ready`

func TestBornInside(t *testing.T) {
	g := opened(t, "born", Limits{Memory: 1 << 30, Tasks: 50})
	cmd := role(t, "shell", "cat /proc/self/cgroup; kill -0 -$$")
	out := &strings.Builder{}
	cmd.Stdout = out
	if err := start(t, g, cmd).Wait(); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), "/"+g.name+"\n"); n != len(g.places) {
		t.Errorf("the process was in %d of %d groups:\n%s", n, len(g.places), out)
	}
	for _, file := range []string{"/proc/self/cgroup", "/proc/thread-self/cgroup"} {
		if b, _ := os.ReadFile(file); strings.Contains(string(b), g.name) {
			t.Errorf("this process is in the group:\n%s", b)
		}
	}
	if empty, err := g.Empty(); err != nil || !empty {
		t.Errorf("after its end: empty %v, %v", empty, err)
	}
}

// TestAdd: a running process is moved in whole.
func TestAdd(t *testing.T) {
	g := opened(t, "add", Limits{Tasks: 50})
	cmd := exec.Command("sleep", "60")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := g.Add(cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	if empty, err := g.Empty(); err != nil || empty {
		t.Errorf("with a process in it: empty %v, %v", empty, err)
	}
	if err := g.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil || cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Errorf("it ended with %v", err)
	}
}

// TestTasksAreBounded: what multiplies gets no further than its limit, loses, and a group beside it goes on.
func TestTasksAreBounded(t *testing.T) {
	g, beside := opened(t, "many", Limits{Tasks: 60}), opened(t, "beside", Limits{Tasks: 60})
	if got := g.Bounds(); !slices.Equal(got, []string{"60 tasks"}) {
		t.Errorf("bounds %v", got)
	}
	stays := begun(t, beside, "echo ready; exec sleep 60")
	start(t, g, role(t, "multiply"))
	until(t, "it is at its limit", func() bool {
		n, err := strconv.Atoi(read(t, g, "pids.current"))
		if err != nil || n > 60 {
			t.Fatalf("%d tasks, %v", n, err)
		}
		return !strings.HasSuffix(read(t, g, "pids.events"), "max 0")
	})
	for range 5 {
		if err := start(t, beside, role(t, "shell", "sh -c true")).Wait(); err != nil {
			t.Errorf("beside it: %v", err)
		}
	}
	if err := g.Kill(); err != nil {
		t.Fatal(err)
	}
	if empty, err := g.Empty(); err != nil || !empty {
		t.Errorf("after the kill: empty %v, %v", empty, err)
	}
	late := role(t, "shell", "true")
	if err := g.Start(late.SysProcAttr, func() (int, error) { return os.Getpid(), late.Start() }); err == nil {
		t.Error("something was started in it after the kill")
		_ = late.Wait()
	}
	if err := stays.Process.Signal(unix.Signal(0)); err != nil {
		t.Errorf("the group beside it: %v", err)
	}
	if empty, err := beside.Empty(); err != nil || empty {
		t.Errorf("the group beside it: empty %v, %v", empty, err)
	}
}

// TestMemoryIsBounded: all together, not each; who goes beyond is killed, and the starter lives.
func TestMemoryIsBounded(t *testing.T) {
	small, large := opened(t, "small", Limits{Memory: 100 << 20}), opened(t, "large", Limits{Memory: 1 << 30})
	if got := small.Bounds(); !slices.Equal(got, []string{"memory 100 MiB"}) {
		t.Errorf("bounds %v", got)
	}
	if err := start(t, large, role(t, "hog")).Wait(); err != nil {
		t.Errorf("within its limit: %v", err)
	}
	cmd := start(t, small, role(t, "hog"))
	if err := cmd.Wait(); err == nil || cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Errorf("beyond its limit: %v", err)
	}
	if err := start(t, small, role(t, "shell", "true")).Wait(); err != nil {
		t.Errorf("after it: %v", err)
	}
}

// TestKill: whatever way a process detached itself, and with each means that a kernel may have.
func TestKill(t *testing.T) {
	const deaf = `trap '' TERM HUP INT
setsid sh -c "trap '' TERM; sleep 60" &
(setsid sh -c "sh -c 'sleep 60' &" &)
sleep 60 &
echo ready
sleep 60; sleep 60`
	listed := func(g *Group) error {
		for {
			for _, p := range g.places {
				p.killListed()
			}
			if empty, err := g.Empty(); err != nil || empty {
				return err
			}
		}
	}
	for _, c := range []struct {
		name   string
		v1, v2 bool
		kill   func(*Group) error
	}{
		{"everywhere", true, true, (*Group).Kill},
		{"v1 alone", true, false, (*Group).Kill},
		{"v2 alone", false, true, (*Group).Kill},
		{"v2 of an old kernel", false, true, listed},
	} {
		for what, script := range map[string]string{"deaf": deaf, "hops": hops} {
			t.Run(c.name+", "+what, func(t *testing.T) {
				// Many tasks: the dead count until something reaps them, and hops that cannot fork end by themselves.
				all := opened(t, "kill", Limits{Tasks: 5000})
				g := &Group{name: all.name}
				for _, p := range all.places {
					if p.V2 && c.v2 || !p.V2 && c.v1 {
						g.places = append(g.places, p)
					}
				}
				if len(g.places) == 0 {
					t.Log("this machine has no such hierarchy")
					return
				}
				begun(t, all, script)
				if empty, err := g.Empty(); err != nil || empty {
					t.Fatalf("before: empty %v, %v", empty, err)
				}
				if err := c.kill(g); err != nil {
					t.Fatal(err)
				}
				if empty, err := all.Empty(); err != nil || !empty {
					t.Errorf("after: empty %v, %v", empty, err)
				}
				if c.name == "v2 of an old kernel" && read(t, g, "cgroup.freeze") != "1" {
					t.Error("it was not frozen: processes that multiply fast enough could get away")
				}
			})
		}
	}
}

// TestReuse: what a dead process left in the group is ended, and the new limits hold.
func TestReuse(t *testing.T) {
	g := opened(t, "reuse", Limits{Tasks: 50})
	left := begun(t, g, "trap '' TERM; setsid sleep 60 & echo ready; wait")
	if err := os.Mkdir(filepath.Join(g.places[0].Path, "below"), 0o755); err != nil {
		t.Fatal(err)
	}
	again, err := Open(g.name, Limits{Tasks: 70})
	if err != nil {
		t.Fatal(err)
	}
	if err := left.Wait(); err == nil {
		t.Error("what was left in the group goes on")
	}
	if got := again.Bounds(); !slices.Equal(got, []string{"70 tasks"}) {
		t.Errorf("bounds %v", got)
	}
	if empty, err := again.Empty(); err != nil || !empty {
		t.Errorf("empty %v, %v", empty, err)
	}
	if err := start(t, again, role(t, "shell", "true")).Wait(); err != nil {
		t.Error(err)
	}
}

// TestGone: a group that somebody removed is named so, and can be had again.
func TestGone(t *testing.T) {
	g := opened(t, "gone", Limits{Tasks: 50})
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	err := g.Start(&syscall.SysProcAttr{}, func() (int, error) { t.Error("it was started"); return 0, nil })
	if !errors.Is(err, ErrGone) {
		t.Errorf("Start: %v", err)
	}
	if err := g.Add(os.Getpid()); !errors.Is(err, ErrGone) {
		t.Errorf("Add: %v", err)
	}
	if empty, err := g.Empty(); err != nil || !empty {
		t.Errorf("empty %v, %v", empty, err)
	}
	if err := errors.Join(g.Kill(), g.Close()); err != nil {
		t.Errorf("again: %v", err)
	}
}

// TestCloseKeeps: a group with a process in it is not removed.
func TestCloseKeeps(t *testing.T) {
	g := opened(t, "keeps", Limits{Tasks: 50})
	begun(t, g, "echo ready; exec sleep 60")
	if err := g.Close(); !errors.Is(err, unix.EBUSY) {
		t.Errorf("Close: %v", err)
	}
	if empty, err := g.Empty(); err != nil || empty {
		t.Errorf("empty %v, %v", empty, err)
	}
}

// TestProbe: it says the same as a group would, and nothing is left of it.
func TestProbe(t *testing.T) {
	g := opened(t, "probe", Limits{Memory: 1 << 30, Tasks: 100})
	bounds, lacks := Probe(Limits{Memory: 1 << 30, Tasks: 100})
	if want := []string{"memory 1.0 GiB", "100 tasks"}; !slices.Equal(bounds, want) || lacks != "" || !slices.Equal(g.Bounds(), want) {
		t.Errorf("probe: %q, %q; the group: %q", bounds, lacks, g.Bounds())
	}
	for _, p := range g.places {
		if left, _ := filepath.Glob(filepath.Join(filepath.Dir(p.Path), "autoagent-probe-*")); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	}
	if l := Default(); l.Tasks != DefaultTasks || l.Memory < 1<<20 {
		t.Errorf("default limits: %+v", l)
	}
}

// TestOrdinaryUser: no group, and the reason is told.
func TestOrdinaryUser(t *testing.T) {
	testkit.Need(t, os.Geteuid() == 0, "ROOT, TO BECOME ANOTHER USER")
	cmd := role(t, "probe")
	cmd.SysProcAttr.Credential = &syscall.Credential{Uid: 65534, Gid: 65534}
	out, err := cmd.CombinedOutput()
	if want := `bounds [] lacks "this user may not make cgroups here"` + "\n"; err != nil || string(out) != want {
		t.Errorf("%v: %s", err, out)
	}
}
