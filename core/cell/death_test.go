package cell

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// stayBehind starts children in every way that escapes a process group, and one that ignores TERM; each is a sleep with
// the mark as its argument. It then makes the file up.
func stayBehind(mark string) string {
	return fmt.Sprintf(`
		setsid nohup sleep %[1]s >/dev/null 2>&1 &
		(setsid sh -c 'sleep %[1]s & exit 0' &)
		setsid sh -c 'trap "" TERM HUP INT; sleep %[1]s; sleep %[1]s' &
		while [ $(ls -d /proc/[0-9]* | wc -l) -lt 8 ]; do sleep 0.01; done
		touch up
	`, mark)
}

func TestItsEndIsEveryonesEnd(t *testing.T) {
	for name, end := range map[string]func(*Cell){
		"by itself":     func(*Cell) {},
		"Kill":          func(c *Cell) { c.Kill() },
		"Identity.Kill": func(c *Cell) { _ = c.Identity().Kill() },
		"bwrap killed":  func(c *Cell) { _ = c.bwrap.Process.Kill() },
		"TERM ignored":  func(c *Cell) { _ = c.Terminate(); c.Kill() },
	} {
		t.Run(name, func(t *testing.T) {
			needBwrap(t)
			clone, m := t.TempDir(), mark(1)
			script := stayBehind(m)
			if name != "by itself" {
				script += "trap '' TERM; while :; do sleep 1000; done"
			}
			var out bytes.Buffer // a pipe that the children left behind hold open
			s := shell(script, clone)
			s.Stdout, s.Stderr = &out, &out
			c, err := Start(t.Context(), s)
			if err != nil {
				t.Fatal(err)
			}
			eventually(t, "its children are up", exists(filepath.Join(clone, "up")))
			if n := living(m); name != "by itself" && n < 3 {
				t.Errorf("only %d children were there to be killed", n)
			}
			end(c)
			status, err := c.Wait()
			if err != nil {
				t.Error(err)
			}
			if n := living(m); n != 0 {
				t.Errorf("%d processes survived", n)
			}
			if alive, err := c.Identity().Alive(); alive || err != nil {
				t.Errorf("its identity: alive %v, error %v", alive, err)
			}
			want := Status{Exit: -1, Signal: syscall.SIGKILL}
			if name == "by itself" {
				want = Status{}
			}
			if status != want {
				t.Errorf("got %+v, want %+v; it printed %q", status, want, out.String())
			}
		})
	}
}

// starter runs this binary as a process that starts a cell and waits to be killed.
func starter(t *testing.T, e errand) *exec.Cmd {
	t.Helper()
	b, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), actVar + "=start", "CELL_TEST_ERRAND=" + string(b)}
	cmd.Stderr = os.Stderr
	return cmd
}

func TestKilledStarter(t *testing.T) {
	needBwrap(t)
	clone, m := t.TempDir(), mark(2)
	cmd := starter(t, errand{Script: stayBehind(m) + "while :; do sleep 1000; done", Clone: clone})
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill()
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err != nil {
		t.Fatal(err)
	}
	var id Identity
	if err := json.Unmarshal(line, &id); err != nil {
		t.Fatal(err)
	}
	eventually(t, "its children are up", exists(filepath.Join(clone, "up")))
	if alive, err := id.Alive(); !alive || err != nil {
		t.Fatalf("before: alive %v, error %v", alive, err)
	}
	if n := living(m); n < 3 {
		t.Fatalf("only %d children were there to be killed", n)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	eventually(t, "all is gone, by its identity", func() bool {
		alive, err := id.Alive()
		return !alive && err == nil
	})
	if n := living(m); n != 0 {
		t.Errorf("%d processes survived", n)
	}
	if err := id.Kill(); err != nil {
		t.Errorf("kill what is gone: %v", err)
	}
}

// Whenever in its life a starter is killed, nothing is left.
func TestStarterKilledAtAnyMoment(t *testing.T) {
	needBwrap(t)
	clone, m := t.TempDir(), mark(3)
	e := errand{
		Script: fmt.Sprintf("setsid nohup sleep %s & sleep %s", m, m), Clone: clone,
		Binds: []Bind{{Host: clone, Inside: "/opt-" + m}}, // bwrap itself bears the mark, too
	}
	began := time.Now()
	for i := range 12 {
		cmd := starter(t, e)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(i) * 3 * time.Millisecond)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	eventually(t, "nothing is left", func() bool { return living(m) == 0 })
	t.Logf("12 starters came and went in %s", time.Since(began).Round(time.Millisecond))
}

// Whenever its context ends, Start and Wait come back and nothing is left.
func TestContextEndsAtAnyMoment(t *testing.T) {
	needBwrap(t)
	m := mark(6)
	s := shell(fmt.Sprintf("setsid nohup sleep %s & sleep %s", m, m), "")
	s.Binds = []Bind{{Host: t.TempDir(), Inside: "/opt-" + m}}
	for i := range 12 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*3*time.Millisecond)
		o, err := Run(ctx, s, 1000)
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) || o.Status.Exit != -1 {
			t.Errorf("after %d ms: %+v, error %v", i*3, o.Status, err)
		}
		eventually(t, "nothing is left", func() bool { return living(m) == 0 })
	}
}
