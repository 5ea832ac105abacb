package cgroup

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"example.com/AutoAgentProject/core/testkit"
)

// someControls are limits of controllers that v2 has on this machine. Where v1 holds the two that matter, a third one
// follows the same rules of the kernel.
func someControls(offered []string) []control {
	var out []control
	for _, c := range append(Limits{Memory: 1 << 30, Tasks: 80}.controls(),
		control{name: "hugetlb", words: taskWords, v2: []setting{{"hugetlb.2MB.max", "4194304", false}}}) {
		if slices.Contains(offered, c.name) {
			out = append(out, c)
		}
	}
	return out
}

// delegation makes a v2 group that is given to a user with controllers, as systemd does it, and returns its folder.
func delegation(t *testing.T, name string, uid int) string {
	t.Helper()
	trees, err := own()
	i := slices.IndexFunc(trees, func(h hierarchy) bool { return h.v2 })
	testkit.Need(t, err == nil && i >= 0 && os.Geteuid() == 0, "ROOT AND A CGROUP2 FILE SYSTEM")
	h := trees[i]
	offered, err := words(filepath.Join(h.own, "cgroup.controllers"))
	if err != nil {
		t.Fatal(err)
	}
	control := filepath.Join(h.own, "cgroup.subtree_control")
	on, err := words(control)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range someControls(offered) {
		if !slices.Contains(on, c.name) {
			testkit.Need(t, write(control, "+"+c.name) == nil, "A CGROUP WITHOUT OTHER PROCESSES")
			t.Cleanup(func() { _ = write(control, "-"+c.name) })
		}
	}
	dir := filepath.Join(h.own, fmt.Sprintf("autoagent-test-%s-%d", name, os.Getpid()))
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p := place{Place: h.place(h.own, filepath.Base(dir))}
		if err := p.clear(); err != nil {
			t.Error(err)
		}
	})
	offered, _ = words(filepath.Join(dir, "cgroup.controllers"))
	testkit.Need(t, len(someControls(offered)) > 0, "A CONTROLLER OF CGROUP V2")
	for _, f := range []string{"", "cgroup.procs", "cgroup.subtree_control", "cgroup.threads"} {
		if err := os.Chown(filepath.Join(dir, f), uid, uid); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// inDelegation runs a role as the user in the group.
func inDelegation(t *testing.T, dir string, uid int, name string) {
	t.Helper()
	d, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	cmd := role(t, name, dir)
	cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(d.Fd())
	cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// TestDelegated: who is alone in a group that was given to it bounds its missions, beside itself, and puts all back.
func TestDelegated(t *testing.T) {
	for _, uid := range []int{0, 65534} {
		t.Run(fmt.Sprint("uid ", uid), func(t *testing.T) {
			dir := delegation(t, "delegated", uid)
			inDelegation(t, dir, uid, "delegated")
			if entries, err := filepath.Glob(dir + "/*/"); err != nil || len(entries) > 0 {
				t.Errorf("left: %v, %v", entries, err)
			}
		})
	}
}

func delegatedRole(args []string) error {
	dir := args[0]
	offered, err := words(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return err
	}
	want := someControls(offered)
	if len(want) == 0 {
		return errors.New("no controllers")
	}
	var bad []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			bad = append(bad, fmt.Errorf(format, args...))
		}
	}
	one, err := open("one", want)
	if err != nil {
		return err
	}
	two, err := open("two", want)
	if err != nil {
		return err
	}
	for _, g := range []*Group{one, two} {
		check(g.lacks == "" && len(g.Bounds()) == len(want), "%s: bounds %q, lacks %q", g.name, g.Bounds(), g.lacks)
		check(g.places[len(g.places)-1].Path == filepath.Join(dir, g.name), "%s is at %v", g.name, g.Record())
	}
	self, _ := os.ReadFile("/proc/self/cgroup")
	check(strings.Contains(string(self), "/"+filepath.Base(dir)+"/"+leafName+"\n"), "this process is at %s", self)
	cmd := exec.Command("sleep", "60")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: unix.SIGKILL}
	err = one.Start(cmd.SysProcAttr, func() (int, error) {
		err := cmd.Start()
		if err != nil {
			return 0, err
		}
		return cmd.Process.Pid, nil
	})
	if err != nil {
		return err
	}
	if b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", cmd.Process.Pid)); !strings.Contains(string(b), "/one\n") {
		check(false, "the child is at %s", b)
	}
	for _, c := range want { // as a manager of cgroups does that gave nothing away
		check(write(filepath.Join(dir, "cgroup.subtree_control"), "-"+c.name) == nil, "take %s away", c.name)
	}
	check(len(one.Bounds()) == 0, "taken away: bounds %q", one.Bounds())
	if err := one.Start(&syscall.SysProcAttr{}, func() (int, error) { return os.Getpid(), nil }); err != nil {
		return err
	}
	check(len(one.Bounds()) == len(want), "put back: bounds %q, want %d", one.Bounds(), len(want))
	check(two.Hold() == nil && len(two.Bounds()) == len(want), "put back for the other one: bounds %q", two.Bounds())
	check(one.Kill() == nil, "kill")
	_ = cmd.Wait()
	check(one.Close() == nil, "close one")
	check(len(two.Bounds()) == len(want), "after the other one's end: bounds %q", two.Bounds())
	check(two.Close() == nil, "close two")
	check(two.Close() == nil, "close two again")
	self, _ = os.ReadFile("/proc/self/cgroup")
	check(strings.HasSuffix(string(self), "/"+filepath.Base(dir)+"\n"), "at the end this process is at %s", self)
	on, err := words(filepath.Join(dir, "cgroup.subtree_control"))
	check(err == nil && len(on) == 0, "left on: %v, %v", on, err)
	return errors.Join(bad...)
}

// TestCrowded: beside processes of others there are no limits, but a group in which everything is found.
func TestCrowded(t *testing.T) {
	dir := delegation(t, "crowded", 0)
	other := exec.Command("sleep", "60")
	other.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { other.Process.Kill(); other.Wait() })
	if err := enter(filepath.Join(dir, "cgroup.procs"), other.Process.Pid); err != nil {
		t.Fatal(err)
	}
	inDelegation(t, dir, 0, "crowded")
	if b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", other.Process.Pid)); !strings.Contains(string(b), "/"+filepath.Base(dir)+"\n") {
		t.Errorf("the other process was moved to %s", b)
	}
}

func crowdedRole(args []string) error {
	offered, err := words(filepath.Join(args[0], "cgroup.controllers"))
	if err != nil {
		return err
	}
	g, err := open("crowded", someControls(offered))
	if err != nil {
		return err
	}
	if !strings.HasPrefix(g.lacks, "other processes are in this process's cgroup") || len(g.Bounds()) > 0 {
		return fmt.Errorf("bounds %q, lacks %q", g.Bounds(), g.lacks)
	}
	on, err := words(filepath.Join(args[0], "cgroup.subtree_control"))
	if err != nil || len(on) > 0 {
		return fmt.Errorf("turned on: %v, %w", on, err)
	}
	if err := errors.Join(g.Kill(), g.Close()); err != nil {
		return err
	}
	// What is not on offer is said to be missing.
	g, err = open("crowded", []control{{name: "example", v2: []setting{{"example.max", "1", false}}}})
	if err != nil {
		return err
	}
	if want := "no example controller is given to this process's cgroup"; g.lacks != want {
		return fmt.Errorf("lacks %q", g.lacks)
	}
	return g.Close()
}

// TestSystemdsMark: systemd marks the groups that it gives away.
func TestSystemdsMark(t *testing.T) {
	dir := delegation(t, "mark", 0)
	unit := filepath.Join(dir, "a.scope")
	below := filepath.Join(unit, "b")
	if err := os.MkdirAll(below, 0o755); err != nil {
		t.Fatal(err)
	}
	mount := filepath.Dir(dir)
	if err := delegated(below, mount); err == nil || !strings.Contains(err.Error(), "a.scope") {
		t.Errorf("not given away: %v", err)
	}
	manager := filepath.Join(dir, "user@7.service")
	user := filepath.Join(manager, "app.slice", "b.scope")
	if err := os.MkdirAll(user, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := delegated(user, mount); err != nil {
		t.Errorf("below a user's manager: %v", err)
	}
	if err := delegated(manager, mount); err == nil {
		t.Error("a user's manager itself counts as given away")
	}
	if err := delegated(dir, mount); err == nil {
		t.Error("no unit at all counts as given away")
	}
	for _, attr := range []string{"trusted.delegate", "user.delegate"} {
		if err := unix.Setxattr(unit, attr, []byte("1"), 0); err != nil {
			t.Fatal(err)
		}
		if err := delegated(below, mount); err != nil {
			t.Errorf("%s: %v", attr, err)
		}
		if err := unix.Removexattr(unit, attr); err != nil {
			t.Fatal(err)
		}
	}
}
