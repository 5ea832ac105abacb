package proc

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The test binary, started again with this variable, is another process.
const childDoes = "PROC_TEST_CHILD"

func TestMain(m *testing.M) {
	switch does := os.Getenv(childDoes); {
	case does == "":
		os.Exit(m.Run())
	case does == "wait":
		select {}
	case strings.HasPrefix(does, "alive:"): // as somebody who sees no other user's processes
		var id ID
		if err := json.Unmarshal([]byte(strings.TrimPrefix(does, "alive:")), &id); err != nil {
			panic(err)
		}
		alive, err := id.Alive()
		fmt.Printf("alive %v, unknown %v", alive, err != nil)
	}
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// start starts a program that ends when it is told to.
func start(t *testing.T, argv ...string) (*exec.Cmd, ID) {
	t.Helper()
	c := exec.Command(argv[0], argv[1:]...)
	c.Env = append(os.Environ(), childDoes+"=wait")
	ok(t, c.Start())
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	id, err := Of(c.Process.Pid)
	ok(t, err)
	return c, id
}

func TestAlive(t *testing.T) {
	self, err := Self()
	ok(t, err)
	c, id := start(t, os.Args[0])
	for name, x := range map[string]struct {
		id   ID
		want bool
	}{
		"this process":         {self, true},
		"a child":              {id, true},
		"its number, reused":   {ID{id.Boot, id.PID, id.Start + 1}, false},
		"its number, before":   {ID{id.Boot, id.PID, id.Start - 1}, false},
		"in another boot":      {ID{"00000000-0000-0000-0000-000000000000", id.PID, id.Start}, false},
		"in no boot":           {ID{"", id.PID, id.Start}, false},
		"nobody":               {ID{}, false},
		"number 0":             {ID{id.Boot, 0, 0}, false},
		"a negative number":    {ID{id.Boot, -id.PID, id.Start}, false},
		"a number never given": {ID{id.Boot, 1 << 30, 1}, false},
	} {
		if alive, err := x.id.Alive(); err != nil || alive != x.want {
			t.Errorf("%s: %v, %v", name, alive, err)
		}
	}
	ok(t, c.Process.Kill())
	for !zombie(t, id.PID) { // it is dead, and its entry is still there
		time.Sleep(time.Millisecond)
	}
	if alive, err := id.Alive(); err != nil || alive {
		t.Errorf("a zombie: %v, %v", alive, err)
	}
	_ = c.Wait()
	if alive, err := id.Alive(); err != nil || alive {
		t.Errorf("gone: %v, %v", alive, err)
	}
	if _, err := Of(id.PID); err == nil {
		t.Error("a process that is gone has a name")
	}
}

func zombie(t *testing.T, pid int) bool {
	t.Helper()
	st, err := ReadStat(pid)
	ok(t, err)
	return st.State == 'Z'
}

// TestNamesOfPrograms: a program's name stands in the middle of the line that is read, and may hold anything.
func TestNamesOfPrograms(t *testing.T) {
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	bin, err := os.ReadFile(sleep)
	ok(t, err)
	for _, name := range []string{"a b", ") Z 1 1 1", "(", "))", "S 1 (", "new\nline", "z) Z"} {
		path := filepath.Join(t.TempDir(), name)
		ok(t, os.WriteFile(path, bin, 0o755))
		if _, err := exec.Command(path, "0").CombinedOutput(); err != nil {
			t.Skipf("SKIPPED LOUDLY: a copy of %s does not run here: %v", sleep, err)
		}
		c, id := start(t, path, "30")
		if alive, err := id.Alive(); err != nil || !alive {
			t.Errorf("%q: %v, %v", name, alive, err)
		}
		ok(t, id.Signal(unix.SIGKILL))
		_ = c.Wait()
	}
}

func TestSignal(t *testing.T) {
	c, id := start(t, os.Args[0])
	for _, other := range []ID{{}, {id.Boot, id.PID, id.Start + 1}, {"other", id.PID, id.Start}, {id.Boot, -id.PID, id.Start}, {id.Boot, 1 << 30, 1}, {id.Boot, 0, 0}} {
		ok(t, other.Signal(unix.SIGKILL))
	}
	if alive, err := id.Alive(); err != nil || !alive {
		t.Fatalf("another's signal hit it: %v, %v", alive, err)
	}
	ok(t, id.Signal(unix.SIGTERM))
	err := c.Wait()
	var e *exec.ExitError
	if !errors.As(err, &e) || e.Sys().(syscall.WaitStatus).Signal() != syscall.SIGTERM {
		t.Error(err)
	}
	ok(t, id.Signal(unix.SIGKILL)) // gone
}

// TestSignalOfAThread: numbers of threads are numbers too; a signal meant for a dead process must not end them.
func TestSignalOfAThread(t *testing.T) {
	boot, err := Boot()
	ok(t, err)
	tasks, err := os.ReadDir("/proc/self/task")
	ok(t, err)
	for _, task := range tasks {
		var tid int
		fmt.Sscan(task.Name(), &tid)
		if tid == os.Getpid() {
			continue
		}
		if err := (ID{boot, tid, 1}).Signal(unix.SIGKILL); err != nil {
			t.Errorf("thread %d: %v", tid, err)
		}
	}
}

func TestBootAndMono(t *testing.T) {
	a, err := Boot()
	ok(t, err)
	if b, _ := Boot(); len(a) != 36 || a != b {
		t.Errorf("%q %q", a, b)
	}
	before := Mono()
	time.Sleep(time.Millisecond)
	if d := Mono() - before; d < time.Millisecond || before <= 0 {
		t.Errorf("%v after %v", d, before)
	}
}

func TestIDAsText(t *testing.T) {
	id := ID{"b", 1 << 22, 1<<64 - 1}
	b, err := json.Marshal(id)
	ok(t, err)
	var back ID
	if err := json.Unmarshal(b, &back); err != nil || back != id || string(b) != `{"boot":"b","pid":4194304,"start":18446744073709551615}` {
		t.Errorf("%s: %+v, %v", b, back, err)
	}
}

// TestHiddenProcessIsNotDead: where /proc hides other users' processes, one that lives is unknown, never dead.
func TestHiddenProcessIsNotDead(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("SKIPPED LOUDLY: only root can show this test a /proc that hides")
	}
	self, err := Self()
	ok(t, err)
	b, err := json.Marshal(self)
	ok(t, err)
	gone, err := json.Marshal(ID{self.Boot, 1 << 30, 1})
	ok(t, err)
	// As root in a mount namespace of its own; then as somebody else.
	bin := filepath.Join(t.TempDir(), "proc.test")
	data, err := os.ReadFile(os.Args[0])
	ok(t, err)
	ok(t, os.WriteFile(bin, data, 0o755))
	for dir := filepath.Dir(bin); dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		ok(t, os.Chmod(dir, 0o755))
	}
	for id, want := range map[string]string{string(b): "alive false, unknown true", string(gone): "alive false, unknown false"} {
		c := exec.Command("unshare", "-m", "sh", "-c", `mount -t proc -o hidepid=2 proc /proc && exec setpriv --reuid 65534 --regid 65534 --clear-groups "$0"`, bin)
		c.Env = append(os.Environ(), childDoes+"=alive:"+id)
		out, err := c.Output()
		if err != nil {
			t.Skipf("SKIPPED LOUDLY: no /proc that hides can be made here: %v: %s", err, out)
		}
		if string(out) != want {
			t.Errorf("%s: %s, want %s", id, out, want)
		}
	}
}
