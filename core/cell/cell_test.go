package cell

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/usererr"
)

func TestHowItEnds(t *testing.T) {
	clone := t.TempDir()
	if err := os.WriteFile(filepath.Join(clone, "data"), []byte("no program"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		argv []string
		want Status
		says string
	}{
		{"zero", []string{"true"}, Status{}, ""},
		{"a number", []string{"sh", "-c", "exit 7"}, Status{Exit: 7}, ""},
		{"the largest number", []string{"sh", "-c", "exit 255"}, Status{Exit: 255}, ""},
		{"TERM", []string{"sh", "-c", "kill -TERM $$"}, Status{Exit: -1, Signal: syscall.SIGTERM}, ""},
		{"KILL", []string{"sh", "-c", "kill -KILL $$"}, Status{Exit: -1, Signal: syscall.SIGKILL}, ""},
		{"no such program", []string{"no-such-program-here"}, Status{Exit: 127}, "autoagent: exec no-such-program-here: no such file or directory\n"},
		{"no such path", []string{"./none"}, Status{Exit: 127}, "autoagent: exec ./none: no such file or directory\n"},
		{"not executable", []string{"./data"}, Status{Exit: 126}, "autoagent: exec ./data: permission denied\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text, status := inside(t, Spec{Argv: c.argv, Env: testEnv(), Dir: clone, Writable: []string{clone}})
			if status != c.want || text != c.says {
				t.Errorf("got %+v %q, want %+v %q", status, text, c.want, c.says)
			}
		})
	}
}

func TestThreeMegabytesEachWay(t *testing.T) {
	needBwrap(t)
	in := bytes.Repeat([]byte("0123456789abcde\n"), 3<<20/16)
	var out, errs bytes.Buffer
	s := Spec{Argv: []string{"sh", "-c", "tee /dev/stderr"}, Env: testEnv(), Stdin: bytes.NewReader(in), Stdout: &out, Stderr: &errs}
	c, err := Start(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	if status, err := c.Wait(); err != nil || status != (Status{}) {
		t.Fatal(status, err)
	}
	if !bytes.Equal(out.Bytes(), in) || !bytes.Equal(errs.Bytes(), in) {
		t.Errorf("%d bytes became %d on stdout and %d on stderr", len(in), out.Len(), errs.Len())
	}
}

func TestFilesAreHandedOver(t *testing.T) {
	needBwrap(t)
	dir := t.TempDir()
	out, err := os.Create(filepath.Join(dir, "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var none *os.File
	c, err := Start(t.Context(), Spec{Argv: []string{"cat"}, Env: testEnv(), Stdin: r, Stdout: out, Stderr: none})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(w, "through a pipe"); err != nil {
		t.Fatal(err)
	}
	w.Close()
	if status, err := c.Wait(); err != nil || status != (Status{}) {
		t.Fatal(status, err)
	}
	if b, _ := os.ReadFile(out.Name()); string(b) != "through a pipe" {
		t.Errorf("the file has %q", b)
	}
}

// A program that does not read, a reader that never ends, a writer that fails: none of them holds Wait.
func TestStubbornStreams(t *testing.T) {
	needBwrap(t)
	never, hold := io.Pipe()
	defer hold.Close()
	c, err := Start(t.Context(), Spec{Argv: []string{"true"}, Env: testEnv(), Stdin: never})
	if err != nil {
		t.Fatal(err)
	}
	if status, err := c.Wait(); err != nil || status != (Status{}) {
		t.Error(status, err)
	}
	c, err = Start(t.Context(), Spec{Argv: []string{"yes"}, Env: testEnv(), Stdout: brokenWriter{}})
	if err != nil {
		t.Fatal(err)
	}
	status, err := c.Wait()
	if !errors.Is(err, errBroken) {
		t.Errorf("got error %v", err)
	}
	if status == (Status{}) {
		t.Error("yes ended well")
	}
}

var errBroken = errors.New("broken")

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errBroken }

func TestOutputHeldFromOutside(t *testing.T) {
	var own fileSet
	defer own.close()
	var out bytes.Buffer
	st, err := newStreams(Spec{Stdout: &out}, nil, &own)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := st.child[1].WriteString("before"); err != nil {
		t.Fatal(err)
	}
	st.run()
	if err := st.finish(50 * time.Millisecond); err == nil || !strings.Contains(err.Error(), "held open") {
		t.Errorf("got error %v", err)
	}
}

func TestExactlyTheEnvironment(t *testing.T) {
	want := []string{"A=b", "EMPTY=", "LD_PRELOAD=/nowhere.so", "PATH=/usr/bin:/bin", "TWO=x y\nz"}
	var out bytes.Buffer
	s := Spec{Argv: []string{"env", "-0"}, Env: want, Stdout: &out, Stderr: io.Discard}
	mustRun(t, s)
	got := strings.Split(strings.TrimSuffix(out.String(), "\x00"), "\x00")
	if strings.Join(sorted(got), "|") != strings.Join(want, "|") {
		t.Errorf("got %q, want %q", sorted(got), want)
	}
}

// Neither bwrap nor the first process of the cell has the program's environment, in environment or arguments.
func TestEnvironmentIsNowhereElse(t *testing.T) {
	needBwrap(t)
	c, err := Start(t.Context(), Spec{Argv: []string{"sleep", "1000"}, Env: testEnv("SECRET=example-of-a-token")})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Kill()
	for _, pid := range []int{c.bwrap.Process.Pid, c.Identity().PID} {
		for _, file := range []string{"environ", "cmdline"} {
			b, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Contains(b, []byte("SECRET")) || bytes.Contains(b, []byte("example-of-a-token")) {
				t.Errorf("%s of %d shows it: %q", file, pid, b)
			}
		}
	}
}

func TestNoDescriptorGetsIn(t *testing.T) {
	leak, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer leak.Close()
	if _, err := unixDupWithoutCloexec(leak); err != nil {
		t.Fatal(err)
	}
	got := strings.Fields(mustRun(t, Spec{Argv: []string{"sh", "-c", "ls /proc/$$/fd"}, Env: testEnv()}))
	if strings.Join(got, " ") != "0 1 2" {
		t.Errorf("the program has descriptors %v", got)
	}
}

func unixDupWithoutCloexec(f *os.File) (int, error) {
	var fd int
	var err error
	raw, _ := f.SyscallConn()
	ctlErr := raw.Control(func(from uintptr) { fd, err = syscall.Dup(int(from)) })
	return fd, errors.Join(err, ctlErr)
}

func TestContext(t *testing.T) {
	needBwrap(t)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Start(ended, Spec{Argv: []string{"true"}, Env: testEnv()}); !errors.Is(err, context.Canceled) {
		t.Errorf("started with an ended context: %v", err)
	}
	clone := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		for !exists(filepath.Join(clone, "up"))() {
			time.Sleep(time.Millisecond)
		}
		cancel()
	}()
	s := shell("echo half; touch up; sleep 1000", clone)
	o, err := Run(ctx, s, 100)
	if !errors.Is(err, context.Canceled) || o.Status != (Status{Exit: -1, Signal: syscall.SIGKILL}) || string(o.Text) != "half\n" {
		t.Errorf("got %+v %q, error %v", o.Status, o.Text, err)
	}
}

func TestOnStart(t *testing.T) {
	needBwrap(t)
	clone := t.TempDir()
	s := shell("touch ran", clone)
	var told Identity
	refusal := errors.New("not recorded")
	s.OnStart = func(id Identity) error {
		told = id
		if alive, err := id.Alive(); !alive || err != nil {
			t.Errorf("told before it stands: %v %v", alive, err)
		}
		return refusal
	}
	if _, err := Start(t.Context(), s); !errors.Is(err, refusal) {
		t.Errorf("got error %v", err)
	}
	if exists(filepath.Join(clone, "ran"))() {
		t.Error("the program ran although its start was refused")
	}
	if alive, err := told.Alive(); alive || err != nil {
		t.Errorf("after the refusal: alive %v, error %v", alive, err)
	}
}

func TestTerminate(t *testing.T) {
	needBwrap(t)
	clone := t.TempDir()
	s := shell(`trap 'echo got it; exit 3' TERM; touch up; while :; do sleep 0.01; done`, clone)
	var out bytes.Buffer
	s.Stdout = &out
	c, err := Start(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the program is up", exists(filepath.Join(clone, "up")))
	if err := c.Terminate(); err != nil {
		t.Fatal(err)
	}
	if status, err := c.Wait(); err != nil || status != (Status{Exit: 3}) || out.String() != "got it\n" {
		t.Errorf("got %+v, %q, error %v", status, out.String(), err)
	}
	if err := c.Terminate(); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("after the end: %v", err)
	}
	c.Kill() // nothing to do, and no harm
}

func TestRefusedSpecs(t *testing.T) {
	needBwrap(t)
	clone, outside := t.TempDir(), t.TempDir()
	if err := os.Symlink(outside, filepath.Join(clone, "planted")); err != nil {
		t.Fatal(err)
	}
	ok := []string{"true"}
	for name, s := range map[string]Spec{
		"no program":      {},
		"missing folder":  {Argv: ok, Writable: []string{"/no/such/folder"}},
		"relative path":   {Argv: ok, Writable: []string{"folder"}},
		"the whole host":  {Argv: ok, ReadOnly: []string{"/"}},
		"proc":            {Argv: ok, ReadOnly: []string{"/proc"}},
		"a device":        {Argv: ok, Writable: []string{"/dev/null"}},
		"two minds":       {Argv: ok, Writable: []string{clone}, ReadOnly: []string{clone}},
		"a planted link":  {Argv: ok, Writable: []string{clone}, ReadOnly: []string{filepath.Join(clone, "planted")}},
		"no such Dir":     {Argv: ok, Dir: "/no/such/folder"},
		"Dir not visible": {Argv: ok, Dir: clone},
	} {
		if c, err := Start(t.Context(), s); err == nil {
			c.Kill()
			t.Errorf("%s: it started", name)
		}
	}
	_, err := Start(t.Context(), Spec{Argv: ok, ReadOnly: []string{"/"}})
	if usererr.CodeOf(err) != usererr.Usage {
		t.Errorf("the whole host: code %d of %v", usererr.CodeOf(err), err)
	}
}

func BenchmarkCell(b *testing.B) {
	needBwrap(b)
	b.Run("cell", func(b *testing.B) {
		for b.Loop() {
			if o, err := Run(b.Context(), Spec{Argv: []string{"/bin/true"}}, 0); err != nil || o.Status != (Status{}) {
				b.Fatal(o.Status, err)
			}
		}
	})
	b.Run("plain", func(b *testing.B) {
		for b.Loop() {
			p, err := os.StartProcess("/bin/true", []string{"true"}, &os.ProcAttr{})
			if err != nil {
				b.Fatal(err)
			}
			if _, err := p.Wait(); err != nil {
				b.Fatal(err)
			}
		}
	})
}
