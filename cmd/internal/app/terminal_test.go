package app_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"example.com/AutoAgentProject/core/plan"
	"example.com/AutoAgentProject/core/store"
	"example.com/AutoAgentProject/core/testkit"
)

// terminal is a person's side of a pseudo-terminal.
type terminal struct {
	f    *os.File
	mu   sync.Mutex
	seen bytes.Buffer
	more *sync.Cond
	done bool
}

// onTerminal starts one of our programs with a terminal of that many columns as its input and outputs.
func onTerminal(t *testing.T, columns uint16, env []string, args ...string) (*terminal, *exec.Cmd) {
	t.Helper()
	f, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	testkit.Need(t, err == nil, "pseudo-terminals")
	number, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(f.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(int(f.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: columns})
	}
	if err != nil {
		t.Fatal(err)
	}
	tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(bin, "AutoAgentProject"), args...)
	cmd.Env = append(env, "PATH="+os.Getenv("PATH"))
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	tty.Close()
	x := &terminal{f: f}
	x.more = sync.NewCond(&x.mu)
	go func() {
		buf := make([]byte, 4096)
		for {
			n, err := f.Read(buf) // EIO when nobody has it open any more
			x.mu.Lock()
			x.seen.Write(buf[:n])
			x.done = err != nil
			x.more.Broadcast()
			x.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() { f.Close() })
	return x, cmd
}

// wait returns what was seen as soon as it holds text, or everything when the program ended.
func (x *terminal) wait(text string) string {
	x.mu.Lock()
	defer x.mu.Unlock()
	for !x.done && (text == "" || !strings.Contains(x.seen.String(), text)) {
		x.more.Wait()
	}
	return x.seen.String()
}

func TestColour(t *testing.T) {
	testkit.Need(t, testkit.OnPath("git"), "git")
	dir := t.TempDir()
	if err := newMission(store.Root(dir), filepath.Join(dir, "login.json"), "my-site"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		env    []string
		colour bool
	}{
		{"terminal", []string{"TERM=xterm"}, true},
		{"NO_COLOR", []string{"TERM=xterm", "NO_COLOR=1"}, false},
		{"empty NO_COLOR", []string{"TERM=xterm", "NO_COLOR="}, true},
		{"dumb terminal", []string{"TERM=dumb"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			x, cmd := onTerminal(t, 60, append(c.env, "HOME="+dir), "status", "my-site", "--root", dir)
			out := x.wait("")
			if err := cmd.Wait(); err != nil {
				t.Fatal(err, out)
			}
			if !strings.Contains(out, "Build a page") {
				t.Errorf("no status:\n%s", out)
			}
			if strings.Contains(out, "\uFFFD") {
				t.Errorf("our own codes are taken for an attack:\n%q", out)
			}
			if got := strings.Contains(out, "\x1b["); got != c.colour {
				t.Errorf("colour %v, want %v:\n%q", got, c.colour, out)
			}
		})
	}
}

// TestNarrow: on a terminal lines are cut to its width and do not break the tables.
func TestNarrow(t *testing.T) {
	testkit.Need(t, testkit.OnPath("git"), "git")
	dir := t.TempDir()
	if err := newMission(store.Root(dir), filepath.Join(dir, "login.json"), "my-site"); err != nil {
		t.Fatal(err)
	}
	goal := strings.Repeat("面包店 ", 40)
	if err := os.WriteFile(store.Root(dir).Mission("my-site").Goal(), []byte(goal), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"status", "list"} {
		x, cmd := onTerminal(t, 60, []string{"TERM=xterm", "NO_COLOR=1", "HOME=" + dir}, command, "--root", dir)
		out := x.wait("")
		if err := cmd.Wait(); err != nil {
			t.Fatal(err, out)
		}
		for line := range strings.SplitSeq(out, "\n") {
			if n := len([]rune(strings.TrimRight(line, "\r"))) + strings.Count(line, "面包店")*3; n > 61 {
				t.Errorf("%s: %d columns: %q", command, n, line)
			}
		}
	}
}

// TestHiddenLogin: what is pasted at the terminal is not shown.
func TestHiddenLogin(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "login.json")
	x, cmd := onTerminal(t, 80, []string{"TERM=xterm", "HOME=" + dir, "AUTOAGENT_CREDENTIALS=" + file}, "login")
	x.wait("not shown")
	waitNoEcho(t, x.f)
	if _, err := io.WriteString(x.f, exampleToken+"\r"); err != nil {
		t.Fatal(err)
	}
	out := x.wait("")
	if err := cmd.Wait(); err != nil {
		t.Fatal(err, out)
	}
	if strings.Contains(out, "EXAMPLE") || !strings.Contains(out, "Stored a token") {
		t.Errorf("the terminal shows %q", out)
	}
	if b, err := os.ReadFile(file); err != nil || !bytes.Contains(b, []byte(exampleToken)) {
		t.Errorf("%s, %v", b, err)
	}
}

// waitNoEcho waits until the program has switched the echo off, as a person does who reads the prompt first.
func waitNoEcho(t *testing.T, f *os.File) {
	t.Helper()
	for range 10_000 {
		state, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
		if err != nil {
			t.Fatal(err)
		}
		if state.Lflag&unix.ECHO == 0 {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatal("the echo stays on")
}

// TestWatchScreen: a person sees all missions, opens one, sees what happens to it, goes back and leaves; the mission goes on.
func TestWatchScreen(t *testing.T) {
	testkit.Need(t, testkit.OnPath("git"), "git")
	dir := t.TempDir()
	w := testkit.Tell(t, store.Root(dir), "my-site", "Build \x1b[31ma site\n", time.Now(), time.Hour)
	w.Step("one", "The first step", "codebuilder", "codebuilder-1", plan.Working, time.Hour)
	w.Ticked()
	w.Write("working")
	x, cmd := onTerminal(t, 100, []string{"TERM=xterm-256color", "HOME=" + dir}, "watch", "--root", dir)
	press := func(keys, until string) {
		t.Helper()
		x.clear()
		if _, err := x.f.WriteString(keys); err != nil {
			t.Fatal(err)
		}
		if out := x.wait(until); !strings.Contains(out, until) {
			t.Fatalf("no %q:\n%q", until, out)
		}
	}
	if out := x.wait("my-site"); !strings.Contains(out, "\x1b[?1049h") {
		t.Errorf("%q", out)
	}
	press("\r", "The first step")
	x.clear()
	w.Line("codebuilder-1", "working", "works on one: almost there", "one", "", time.Second)
	w.Write("working")
	if out := x.wait("almost there"); strings.Contains(out, "\x1b[31ma site") {
		t.Errorf("the goal speaks to the terminal: %q", out)
	}
	press("\x1b", "Missions:")
	press("q", "\x1b[?1049l")
	x.wait("")
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if stop, err := w.St.Stopped(); stop != nil || err != nil {
		t.Error(stop, err)
	}
}

// clear forgets what was seen so far.
func (x *terminal) clear() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.seen.Reset()
}
