package cell

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The test binary is also the program inside of some cells, and the process outside that is killed.
const actVar = "CELL_TEST_ACT"

func TestMain(m *testing.M) {
	ShimMain()
	switch os.Getenv(actVar) {
	case "":
		os.Exit(m.Run())
	case "syscalls":
		actSyscalls()
	case "many":
		actMany()
	case "start":
		actStart()
	}
}

// needBwrap skips where cells cannot work, except in CI, where they must.
func needBwrap(t testing.TB) {
	t.Helper()
	if _, err := exec.LookPath("bwrap"); err != nil {
		missing(t, "bwrap is not installed: NOTHING about cells is tested (apt-get install bubblewrap)")
	}
}

func missing(t testing.TB, sentence string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal(sentence)
	}
	t.Skip(sentence)
}

func program(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		missing(t, name+" is not installed: its life in a cell is NOT tested")
	}
	return path
}

func python(t *testing.T) string {
	t.Helper()
	const path = "/usr/bin/python3"
	if !exists(path)() {
		missing(t, path+" is not there: some walls are NOT tested")
	}
	return path
}

// testEnv is an environment in which the system's programs are found.
func testEnv(more ...string) []string {
	return append([]string{"PATH=/usr/local/go/bin:/usr/local/bin:/usr/bin:/bin", "HOME=" + InsideHome, "LANG=C.UTF-8"}, more...)
}

func shell(script string, clone string) Spec {
	s := Spec{Argv: []string{"sh", "-c", script}, Env: testEnv()}
	if clone != "" {
		s.Dir, s.Writable = clone, []string{clone}
	}
	return s
}

// inside runs s and returns what it printed and how it ended.
func inside(t *testing.T, s Spec) (string, Status) {
	t.Helper()
	needBwrap(t)
	o, err := Run(t.Context(), s, 1<<20)
	if err != nil {
		t.Fatalf("run %q: %v", s.Argv, err)
	}
	return string(o.Text), o.Status
}

// mustRun is inside for what must exit with 0.
func mustRun(t *testing.T, s Spec) string {
	t.Helper()
	text, status := inside(t, s)
	if status != (Status{}) {
		t.Fatalf("%q ended with %+v:\n%s", s.Argv, status, text)
	}
	return text
}

// ourselves makes the test binary the program of a cell.
func ourselves(t *testing.T, act string, env ...string) Spec {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return Spec{Argv: []string{"/run/ourselves"}, Env: testEnv(append(env, actVar+"="+act)...), Binds: []Bind{{Host: exe, Inside: "/run/ourselves"}}}
}

// living counts the processes of the machine whose arguments contain mark, by a way that owes nothing to the package.
func living(mark string) int {
	n := 0
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range files {
		if b, err := os.ReadFile(f); err == nil && bytes.Contains(b, []byte(mark)) && filepath.Base(filepath.Dir(f)) != fmt.Sprint(os.Getpid()) {
			n++
		}
	}
	return n
}

// mark is an argument of sleep that no other process has.
func mark(n int) string { return fmt.Sprintf("%d.%d", 70000+n, time.Now().UnixNano()) }

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for until := time.Now().Add(30 * time.Second); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("not within 30 s: %s", what)
		}
	}
}

func exists(path string) func() bool {
	return func() bool {
		_, err := os.Lstat(path)
		return err == nil
	}
}

// TestAsOrdinaryUser runs all tests again without root's rights.
func TestAsOrdinaryUser(t *testing.T) {
	needBwrap(t)
	if os.Geteuid() != 0 {
		t.Skip("the tests run as an ordinary user already; as root they are NOT run")
	}
	const nobody = 65534
	dir, err := os.MkdirTemp("/tmp", "cell-user-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	b, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "cell.test")
	if err := os.WriteFile(binary, b, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, do := range []func() error{
		func() error { return os.Chmod(dir, 0o755) },
		func() error { return os.Mkdir(filepath.Join(dir, "tmp"), 0o700) },
		func() error { return os.Chown(filepath.Join(dir, "tmp"), nobody, nobody) },
	} {
		if err := do(); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), binary, "-test.v")
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + filepath.Join(dir, "tmp"), "CI=" + os.Getenv("CI")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("as uid %d: %v\n%s", nobody, err, out)
	}
	for line := range strings.Lines(string(out)) {
		if strings.HasPrefix(line, "--- SKIP") || strings.Contains(line, "NOT") {
			t.Logf("as uid %d: %s", nobody, strings.TrimSpace(line))
		}
	}
	if n := strings.Count(string(out), "--- PASS"); n < 20 {
		t.Fatalf("as uid %d only %d tests passed:\n%s", nobody, n, out)
	}
}

// actSyscalls makes forbidden calls and prints what each answered.
func actSyscalls() {
	ret := func(name string, errno unix.Errno) { fmt.Printf("%s=%d\n", name, int(errno)) }
	call := func(name string, nr uintptr, args ...uintptr) {
		var a [6]uintptr
		copy(a[:], args)
		_, _, errno := unix.Syscall6(nr, a[0], a[1], a[2], a[3], a[4], a[5])
		ret(name, errno)
	}
	call("ptrace", unix.SYS_PTRACE, unix.PTRACE_TRACEME)
	call("mount", unix.SYS_MOUNT)
	call("setns", unix.SYS_SETNS, 0, 0)
	call("add_key", unix.SYS_ADD_KEY)
	call("bpf", unix.SYS_BPF)
	call("io_uring_setup", unix.SYS_IO_URING_SETUP)
	call("userfaultfd", unix.SYS_USERFAULTFD)
	call("unshare-user", unix.SYS_UNSHARE, unix.CLONE_NEWUSER)
	call("unshare-mounts", unix.SYS_UNSHARE, unix.CLONE_NEWNS)
	call("clone-user", unix.SYS_CLONE, unix.CLONE_NEWUSER|unix.CLONE_FS) // without a filter EINVAL, never a child
	call("vsock", unix.SYS_SOCKET, unix.AF_VSOCK, unix.SOCK_STREAM)
	call("tiocsti", unix.SYS_IOCTL, 0, unix.TIOCSTI)
	call("tiocsti-high", unix.SYS_IOCTL, 0, unix.TIOCSTI|1<<40)
	call("ioctl", unix.SYS_IOCTL, 0, unix.TCGETS)
	call("unshare-files", unix.SYS_UNSHARE, unix.CLONE_FILES)
	call("clone3", unix.SYS_CLONE3, 0, 0)
}

// actMany starts processes and opens files until it is refused, and tells how far it came.
func actMany() {
	files := 0
	var kept []*os.File
	for ; files < 100000; files++ {
		f, err := os.Open(os.DevNull)
		if err != nil {
			break
		}
		kept = append(kept, f)
	}
	for _, f := range kept {
		f.Close()
	}
	processes := 0
	for ; processes < 400; processes++ {
		if exec.Command("sleep", "1000").Start() != nil {
			break
		}
	}
	fmt.Printf("files=%d processes=%d\n", files, processes)
}

// errand is what a process is to start in a cell.
type errand struct {
	Script, Clone string
	Binds         []Bind
}

// actStart starts the cell of the errand in its environment, prints its Identity, and waits to be killed.
func actStart() {
	var e errand
	if err := json.Unmarshal([]byte(os.Getenv("CELL_TEST_ERRAND")), &e); err != nil {
		panic(err)
	}
	s := shell(e.Script, e.Clone)
	s.Binds = e.Binds
	c, err := Start(context.Background(), s)
	if err != nil {
		panic(err)
	}
	if err := json.NewEncoder(os.Stdout).Encode(c.Identity()); err != nil {
		panic(err)
	}
	_, _ = c.Wait()
	select {}
}

// values parses lines of name=value.
func values(text string) map[string]string {
	m := map[string]string{}
	for _, f := range strings.Fields(text) {
		if k, v, ok := strings.Cut(f, "="); ok {
			m[k] = v
		}
	}
	return m
}

func sorted(s []string) []string {
	s = slices.Clone(s)
	slices.Sort(s)
	return s
}
