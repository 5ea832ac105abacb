package supervisor_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"example.com/AutoAgentProject/core/cgroup"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/money"
	"example.com/AutoAgentProject/core/store"
	"example.com/AutoAgentProject/core/supervisor"
	"example.com/AutoAgentProject/core/testkit"
)

// TestMain is a supervisor of its own when it is told a root, and an agent that takes all it can get when told so.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "supervise" {
		_, err := newSupervisor(store.Root(os.Args[2])).Start(context.Background(), groupID)
		fmt.Println(err)
		os.Exit(1)
	}
	if len(os.Args) == 2 && os.Args[1] == "multiply" {
		for n := 0; n < 200; time.Sleep(time.Millisecond) { // no more, should nothing bound it
			if exec.Command("sleep", "60").Start() == nil {
				n++
			}
		}
		time.Sleep(time.Minute)
	}
	os.Exit(m.Run())
}

const groupID = "grouped"

// newSupervisor ticks with the shell scripts do-<agent> of the root; all write their name into the file ticks.
func newSupervisor(root store.Root) *supervisor.Supervisor {
	dir := string(root)
	return &supervisor.Supervisor{
		Root: root, Grace: 200 * time.Millisecond, Limits: cgroup.Limits{Memory: 1 << 30, Tasks: 80}, Log: slog.New(slog.DiscardHandler),
		Every: map[mission.Role]time.Duration{mission.Manager: 20 * time.Millisecond, mission.Specialist: time.Hour, mission.Reporter: time.Hour, mission.Quota: 20 * time.Millisecond},
		Command: func(_ mission.Mission, a mission.Agent) []string {
			return []string{"/bin/sh", "-c", fmt.Sprintf("echo %s >>%s/ticks; [ ! -f %[2]s/do-%[1]s ] || . %[2]s/do-%[1]s", a.Name, dir)}
		},
	}
}

// grouped makes a mission whose codebuilder-1 does what the script says, on a machine where it gets a cgroup.
func grouped(t *testing.T, script string) store.Root {
	t.Helper()
	_, lacks := cgroup.Probe(cgroup.Limits{Memory: 1 << 30, Tasks: 80})
	testkit.Need(t, lacks == "", "A CGROUP WITH LIMITS (as root; "+lacks+")")
	root := store.Root(t.TempDir())
	st := root.Mission(groupID)
	roster, err := mission.ParseRoster("codebuilder:1", []string{"manager", "codebuilder"})
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range roster {
		if err := os.MkdirAll(st.Agent(a.Name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	m := mission.Mission{Version: mission.Version, ID: groupID, CreatedAt: time.Now().UTC(), Roster: roster, Engine: supervisor.Name,
		Budget: money.Amount{Unit: money.NanoUSD, N: int64(money.USD)}}
	err = errors.Join(st.CreateMission(m), st.PrepareTombstone(), os.WriteFile(filepath.Join(string(root), "do-codebuilder-1"), []byte(script), 0o644))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // whatever the test came to
		_, _ = st.Stop(mission.Stop{Cause: mission.Aborted, Reason: "the test is over", By: "test", At: time.Now()})
		if _, err := newSupervisor(root).Stop(context.Background(), groupID); err != nil {
			t.Error(err)
		}
	})
	return root
}

func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("waited in vain until %s", what)
}

func ticks(root store.Root, agent string) int {
	b, _ := os.ReadFile(filepath.Join(string(root), "ticks"))
	return strings.Count(string(b), agent+"\n")
}

// owner is what supervisor.json says, with a cgroup in it.
func owner(t *testing.T, root store.Root) supervisor.Owner {
	t.Helper()
	var o supervisor.Owner
	if err := root.Mission(groupID).Load("supervisor.json", &o); err != nil || o.Group == nil {
		t.Fatalf("supervisor.json: %+v, %v", o, err)
	}
	return o
}

// stopped stops the mission and checks that the proof speaks of the cgroup, which is gone.
func stopped(t *testing.T, root store.Root, group *cgroup.Record) {
	t.Helper()
	if _, err := root.Mission(groupID).Stop(mission.Stop{Cause: mission.Aborted, Reason: "for the test", By: "test", At: time.Now()}); err != nil {
		t.Fatal(err)
	}
	rec, err := newSupervisor(root).Stop(t.Context(), groupID)
	if err != nil || !rec.Done || !strings.Contains(rec.Proof, "the mission's cgroup is empty") {
		b, _ := json.Marshal(rec)
		t.Errorf("%s, %v", b, err)
	}
	for _, p := range group.Places {
		if _, err := os.Stat(p.Path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is left: %v", p.Path, err)
		}
	}
}

// here starts the supervisor in this process; the function waits for its end.
func here(t *testing.T, root store.Root) (wait func()) {
	done := make(chan error, 1)
	go func() { _, err := newSupervisor(root).Start(context.Background(), groupID); done <- err }()
	return func() {
		t.Helper()
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(time.Minute):
			t.Fatal("the supervisor does not end")
		}
	}
}

// TestAgentTakesAll: an agent that takes all there is keeps others of its mission from starting, which is told, but neither
// the guard nor the stop.
func TestAgentTakesAll(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	root := grouped(t, "exec "+self+" multiply\n")
	wait := here(t, root)
	until(t, "the manager cannot be started", func() bool {
		events, _, _, err := root.Mission(groupID).Journal().Read(0)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			if e.Agent == "manager" && strings.Contains(e.Text, "could not be started") {
				return true
			}
		}
		return false
	})
	n := ticks(root, "quota")
	until(t, "the guard ticks", func() bool { return ticks(root, "quota") >= n+3 })
	stopped(t, root, owner(t, root).Group)
	wait()
}

// killed is a mission whose supervisor, in another process, was killed after an agent had left a child behind that is
// deaf and in a session of its own; mark is in the child's command line. elsewhere: that process was in another cgroup
// than this one.
func killed(t *testing.T, elsewhere bool) (root store.Root, mark string) {
	root = grouped(t, "")
	mark = "mark-" + filepath.Base(filepath.Dir(string(root))) + fmt.Sprint(time.Now().UnixNano())
	script := fmt.Sprintf(`setsid sh -c 'trap "" TERM HUP; sleep 60; sleep 60; : %s' >/dev/null 2>&1 &`, mark)
	if err := os.WriteFile(filepath.Join(string(root), "do-codebuilder-1"), []byte(script), 0o644); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "supervise", string(root))
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: unix.SIGKILL}
	start := func() (int, error) {
		if err := cmd.Start(); err != nil {
			return 0, err
		}
		return cmd.Process.Pid, nil
	}
	if elsewhere {
		g, err := cgroup.Open(fmt.Sprintf("autoagent-test-elsewhere-%d", os.Getpid()), cgroup.Limits{Memory: 1 << 30, Tasks: 300})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := errors.Join(g.Kill(), g.Close()); err != nil {
				t.Error(err)
			}
		})
		if err := g.Start(cmd.SysProcAttr, start); err != nil {
			t.Fatal(err)
		}
	} else if _, err := start(); err != nil {
		t.Fatal(err)
	}
	until(t, "the child runs", func() bool { return len(alive(mark)) > 0 })
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	time.Sleep(50 * time.Millisecond)
	if len(alive(mark)) == 0 {
		t.Fatal("the child died with the supervisor: there is nothing to find")
	}
	return root, mark
}

func alive(mark string) []string {
	var out []string
	list, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range list {
		if b, err := os.ReadFile(f); err == nil && strings.Contains(string(b), mark) {
			out = append(out, filepath.Dir(f))
		}
	}
	return out
}

// TestStopAfterDeath: what a dead supervisor left behind is found by another process, by its cgroup alone.
func TestStopAfterDeath(t *testing.T) {
	for _, elsewhere := range []bool{false, true} {
		root, mark := killed(t, elsewhere)
		stopped(t, root, owner(t, root).Group)
		if left := alive(mark); len(left) > 0 {
			t.Errorf("elsewhere %v: still alive: %v", elsewhere, left)
		}
	}
}

// TestStartAfterDeath: a new supervisor ends it before its first tick, also if the record of the old one is lost.
func TestStartAfterDeath(t *testing.T) {
	write := func(path string, o supervisor.Owner) error {
		b, err := json.Marshal(o)
		return errors.Join(err, os.WriteFile(path, b, 0o600))
	}
	for name, lose := range map[string]func(path string, o supervisor.Owner) error{
		"elsewhere":  func(string, supervisor.Owner) error { return nil },
		"lost":       func(path string, _ supervisor.Owner) error { return os.Remove(path) },
		"unreadable": func(path string, _ supervisor.Owner) error { return os.WriteFile(path, []byte{0, 0}, 0o600) },
		"of another boot": func(path string, o supervisor.Owner) error {
			o.Process.Boot = "another"
			for i := range o.Group.Places {
				o.Group.Places[i].Inode += 7
			}
			return write(path, o)
		},
	} {
		t.Run(name, func(t *testing.T) {
			root, mark := killed(t, name == "elsewhere")
			o := owner(t, root)
			group := *o.Group
			group.Places = slices.Clone(group.Places)
			script := fmt.Sprintf("cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' | grep -c '%s' >%s/found\n", mark[:len(mark)-1]+"["+mark[len(mark)-1:]+"]", root)
			err := os.WriteFile(filepath.Join(string(root), "do-codebuilder-1"), []byte(script), 0o644)
			if err := errors.Join(err, lose(filepath.Join(root.Mission(groupID).Dir(), "supervisor.json"), o)); err != nil {
				t.Fatal(err)
			}
			wait := here(t, root)
			found := ""
			until(t, "the agent looked", func() bool {
				b, _ := os.ReadFile(filepath.Join(string(root), "found"))
				found = strings.TrimSpace(string(b))
				return found != ""
			})
			if left := alive(mark); found != "0" || len(left) > 0 {
				t.Errorf("the first tick saw %s of them; still alive: %v", found, left)
			}
			stopped(t, root, &group)
			wait()
		})
	}
}

// TestGroupRemoved: somebody tidies up the empty group; the ticks go on in a new one.
func TestGroupRemoved(t *testing.T) {
	root := grouped(t, "")
	wait := here(t, root)
	until(t, "it ticks", func() bool {
		return ticks(root, "manager") > 0 && ticks(root, "codebuilder-1") > 0 && ticks(root, "reporter") > 0
	})
	group := owner(t, root).Group
	for _, p := range group.Places {
		until(t, "the group is removed", func() bool { err := unix.Rmdir(p.Path); return err == nil || errors.Is(err, unix.ENOENT) })
	}
	n := ticks(root, "manager")
	until(t, "it ticks again", func() bool { return ticks(root, "manager") > n+1 })
	if _, err := os.Stat(owner(t, root).Group.Places[0].Path); err != nil {
		t.Error(err)
	}
	stopped(t, root, group)
	wait()
}

// TestBound is what a person reads before a mission starts.
func TestBound(t *testing.T) {
	grouped(t, "")
	s := &supervisor.Supervisor{Limits: cgroup.Limits{Memory: 64 << 20, Tasks: 50}}
	if got, want := s.Bound(mission.Bounds{}), "the whole is bounded by memory 64 MiB and 50 tasks (cgroup)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := s.Bound(mission.Bounds{Memory: 128 << 20, Tasks: 60}), "the whole is bounded by memory 128 MiB and 60 tasks (cgroup)"; got != want {
		t.Errorf("of the mission: %q, want %q", got, want)
	}
	if got := new(supervisor.Supervisor).Bound(mission.Bounds{}); !strings.HasPrefix(got, "the whole is bounded by memory ") || !strings.HasSuffix(got, " tasks (cgroup)") {
		t.Errorf("without limits of its own: %q", got)
	}
}

// TestOrdinaryUser: without a cgroup everything works, and the reason is told.
func TestOrdinaryUser(t *testing.T) {
	if os.Geteuid() == 65534 {
		if got, want := new(supervisor.Supervisor).Bound(mission.Bounds{}), "limits are per process, no cgroup bounds the whole (this user may not make cgroups here)"; got != want {
			t.Errorf("%q, want %q", got, want)
		}
		return
	}
	testkit.Need(t, os.Geteuid() == 0, "ROOT, TO BECOME ANOTHER USER")
	dir, err := os.MkdirTemp("", "autoagent-supervisor-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chown(dir, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer self.Close()
	cmd := exec.Command("/proc/self/fd/3", "-test.v", "-test.run", "^(TestForeground|TestOrdinaryUser)$")
	cmd.ExtraFiles = []*os.File{self}
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "TMPDIR="+dir, "HOME="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}, Pdeathsig: unix.SIGKILL}
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Count("\n"+string(out), "\n--- PASS") != 2 {
		t.Errorf("%v\n%s", err, out)
	}
}
