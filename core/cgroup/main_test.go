package cgroup

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/testkit"
)

// roles are what this program does instead of testing, named by its first argument.
var roles = map[string]func(args []string) error{
	"hog":       hog,
	"multiply":  multiply,
	"shell":     func(args []string) error { return syscall.Exec("/bin/sh", []string{"sh", "-c", args[0]}, os.Environ()) },
	"probe":     probe,
	"delegated": delegatedRole,
	"crowded":   crowdedRole,
}

func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		if run, ok := roles[os.Args[1]]; ok {
			if err := run(os.Args[2:]); err != nil {
				fmt.Println("error:", err)
				os.Exit(1)
			}
			os.Exit(0)
		}
	}
	os.Exit(m.Run())
}

// role is this program in a role; it needs no permission for the folder that it lies in.
func role(t *testing.T, name string, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { self.Close() })
	cmd := exec.Command("/proc/self/fd/3", append([]string{name}, args...)...)
	cmd.ExtraFiles = []*os.File{self}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	return cmd
}

// start starts cmd in the group.
func start(t *testing.T, g *Group, cmd *exec.Cmd) *exec.Cmd {
	t.Helper()
	err := g.Start(cmd.SysProcAttr, func() (int, error) {
		if err := cmd.Start(); err != nil {
			return 0, err
		}
		return cmd.Process.Pid, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return cmd
}

// begun starts a script in the group and returns when it says that it is ready. Scripts are such that they end some day
// and stay few, also where the code under test fails to hold them.
func begun(t *testing.T, g *Group, script string) *exec.Cmd {
	t.Helper()
	cmd := role(t, "shell", script)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	start(t, g, cmd)
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("the script said %q, %v", line, err)
	}
	go io.Copy(io.Discard, out)
	return cmd
}

// opened is a group with limits that are in force, or the end of the test.
func opened(t *testing.T, name string, l Limits) *Group {
	t.Helper()
	g, err := Open(fmt.Sprintf("autoagent-test-%s-%d", name, os.Getpid()), l)
	testkit.Need(t, err == nil, fmt.Sprintf("A CGROUP (as root; %v)", err))
	t.Cleanup(func() {
		if err := errors.Join(g.Kill(), g.Close()); err != nil {
			t.Errorf("at the end: %v", err)
		}
	})
	testkit.Need(t, g.Lacks() == "", "A CGROUP WITH LIMITS (as root; "+g.Lacks()+")")
	return g
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

// read returns a file of the group in the hierarchy that has it.
func read(t *testing.T, g *Group, file string) string {
	t.Helper()
	for _, p := range g.places {
		if b, err := os.ReadFile(filepath.Join(p.Path, file)); err == nil {
			return strings.TrimSpace(string(b))
		}
	}
	t.Fatalf("the group has no %s", file)
	return ""
}

// hog takes memory until it has 200 MiB.
func hog([]string) error {
	var all [][]byte
	for range 200 {
		b := make([]byte, 1<<20)
		for i := 0; i < len(b); i += 4096 {
			b[i] = 1
		}
		all = append(all, b)
	}
	fmt.Println(len(all), "MiB")
	return nil
}

// multiply has as many children as it gets, but no more than a machine bears where nothing bounds it.
func multiply([]string) error {
	for n := 0; n < most; {
		if exec.Command("sleep", "60").Start() == nil {
			n++
		} else {
			time.Sleep(time.Millisecond)
		}
	}
	time.Sleep(time.Minute)
	return nil
}

const most = 200

// probe says what Probe says, and what it left.
func probe([]string) error {
	bounds, lacks := Probe(Limits{Memory: 1 << 30, Tasks: 100})
	fmt.Printf("bounds %q lacks %q\n", bounds, lacks)
	return nil
}
