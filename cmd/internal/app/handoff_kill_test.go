package app_test

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

	"example.com/AutoAgentProject/core/testkit"
)

// mutating are the system calls by which the disk changes: all of them, and by kind. strace counts the calls of each thread
// by itself; counting each kind by itself too reaches those that come late on a busy thread.
func mutating() []string {
	kinds := []string{"fsync,fdatasync", "write,pwrite64", "rename,renameat,renameat2", "link,linkat", "unlink,unlinkat", "mkdir,mkdirat", "fchmod,fchmodat,ftruncate"}
	return append([]string{strings.Join(kinds, ",")}, kinds...)
}

// point is a moment of a death: the n-th call of these of a thread, before it is carried out.
type point struct {
	calls string
	n     int
}

// killedAt runs a handoff command that is killed there; false: it came to its end.
func killedAt(t *testing.T, at point, dir string, env []string, args ...string) bool {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "strace", append([]string{"-f", "-qqq", "-o", "/dev/null", "-e", "trace=" + at.calls,
		"-e", fmt.Sprintf("inject=%s:signal=KILL:when=%d", at.calls, at.n), filepath.Join(bin, "AutoAgentProject"), "handoff"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1"}, env...)
	out, err := cmd.CombinedOutput()
	var e *exec.ExitError
	switch {
	case err == nil:
		return false
	case !errors.As(err, &e):
		t.Fatal(err)
	case e.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL, e.ExitCode() == 128+int(syscall.SIGKILL):
	case strings.Contains(string(out), "git"): // its git was killed, and it said so
	default:
		t.Fatalf("%q at %v: %v: %s", args, at, err, out)
	}
	return true
}

// kills calls try for each point until it says that nothing was killed: all of them, or some.
func kills(t *testing.T, try func(t *testing.T, at point) bool) {
	t.Helper()
	sets, step := mutating()[:1], 5
	if os.Getenv("AUTOAGENT_FULL") != "" {
		sets, step = mutating(), 1
	}
	for _, calls := range sets {
		at := point{calls, 1}
		for try(t, at) {
			if at.n += step; at.n > 500 {
				t.Fatal("it never ends")
			}
		}
		if t.Logf("%d of %s", at.n, calls); at.n < 6 && calls == sets[0] {
			t.Errorf("only %d calls", at.n)
		}
	}
}

// TestHandoffKilled kills send, next and done of a swarm's role at each call that changes the disk. The same command again
// does what is left: nothing is lost, nothing is there twice.
func TestHandoffKilled(t *testing.T) {
	t.Parallel()
	testkit.Need(t, testkit.OnPath("git") && testkit.OnPath("strace"), "git AND strace")
	roles := [][2]string{{"coder", "task"}, {"cleaner", "batch"}}
	env := func(role string) []string { return []string{"SWARMFORGE_ROLE=" + role} }
	t.Run("send", func(t *testing.T) {
		t.Parallel()
		kills(t, func(t *testing.T, at point) bool {
			w := newSwarm(t, roles)
			w.put(t, "tmp/draft", "type: note\nto: cleaner\npriority: 50\nmessage: hi\n")
			killed := killedAt(t, at, w.root, env("coder"), "--layout", "swarmforge", "send", "tmp/draft")
			if code, _, errs := w.handoff(t, "coder", "send", "tmp/draft"); code != 0 && !strings.Contains(errs, "not found") {
				t.Errorf("%v: again: %d, %s", at, code, errs)
			}
			w.once(t, at, ".swarmforge/handoffs/outbox", 1)
			return killed
		})
	})
	for _, role := range []string{"coder", "cleaner"} {
		for _, verb := range []string{"next", "done"} {
			t.Run(verb+" of "+role, func(t *testing.T) {
				t.Parallel()
				kills(t, func(t *testing.T, at point) bool {
					w := newSwarm(t, roles)
					for i := range 3 {
						w.put(t, fmt.Sprintf(".swarmforge/handoffs/inbox/new/50_%d.handoff", i), fmt.Sprintf("id: %d\nfrom: coder\nto: %s\npriority: 50\ntype: note\nmessage: m\n\nm\n", i, role))
					}
					if verb == "done" {
						w.handoff(t, role, "next")
					}
					killed := killedAt(t, at, w.root, env(role), "--layout", "swarmforge", verb)
					w.workOff(t, at, role)
					w.once(t, at, ".swarmforge/handoffs/inbox", 3)
					return killed
				})
			})
		}
	}
}

// workOff takes and finishes until nothing is left.
func (w swarm) workOff(t *testing.T, at point, role string) {
	t.Helper()
	for range 10 {
		code, out, errs := w.handoff(t, role, "next")
		if code != 0 {
			t.Fatalf("%v: next: %d, %s", at, code, errs)
		}
		if out == "NO_TASK\n" {
			return
		}
		if code, _, errs := w.handoff(t, role, "done"); code != 0 {
			t.Fatalf("%v: done: %d, %s", at, code, errs)
		}
	}
	t.Errorf("%v: it never ends", at)
}

// once checks that so many handoffs lie below a folder, each of them once, and none in inbox/new or in_process.
func (w swarm) once(t *testing.T, at point, below string, want int) {
	t.Helper()
	var got []string
	for _, f := range testkit.Files(t, filepath.Join(w.root, below)) {
		if strings.HasSuffix(f, ".handoff") {
			got = append(got, filepath.Base(f))
		}
		if strings.HasSuffix(f, ".handoff") && below != ".swarmforge/handoffs/outbox" && !strings.HasPrefix(f, "completed/") {
			t.Errorf("%v: %s was left", at, f)
		}
	}
	slices.Sort(got)
	if len(got) != want || len(slices.Compact(slices.Clone(got))) != want {
		t.Errorf("%v: there are %q", at, got)
	}
	if _, err := os.Lstat(filepath.Join(w.root, "tmp", "draft")); err == nil {
		t.Errorf("%v: the draft is still there", at)
	}
}

// TestHandoffKilledInAMission does the same with a mission's mailboxes, where sending delivers and whoever takes has a
// claim.
func TestHandoffKilledInAMission(t *testing.T) {
	t.Parallel()
	testkit.Need(t, testkit.OnPath("git") && testkit.OnPath("strace"), "git AND strace")
	kills(t, func(t *testing.T, at point) bool {
		m := quietMail(t)
		note := "type: note\nto: codebuilder-1,codebuilder-2\npriority: 50\nmessage: hi\n"
		draft := m.draft("manager", note)
		call := func(agent string, args ...string) bool {
			return killedAt(t, at, t.TempDir(), []string{"AUTOAGENT_RUN=r"}, append([]string{"--root", string(m.root), "--mission", "my-site", "--agent", agent}, args...)...)
		}
		killed := call("manager", "send", draft)
		if code, _, errs := m.call("manager", "send", draft); code != 0 && !strings.Contains(errs, "not found") {
			t.Errorf("%v: again: %d, %s", at, code, errs)
		}
		m.call("manager", "next") // whoever comes by delivers what is left
		for _, agent := range []string{"codebuilder-1", "codebuilder-2"} {
			killed = call(agent, "next") || killed
			if code, out, errs := m.callFrom("r", agent, "next"); code != 0 || !strings.HasPrefix(out, "TASK: ") {
				t.Fatalf("%v: next: %d, %q, %s", at, code, out, errs)
			}
			killed = call(agent, "done") || killed
			m.callFrom("r", agent, "done")
			if code, out, errs := m.callFrom("r", agent, "next"); code != 0 || out != "NO_TASK\n" {
				t.Errorf("%v: next at the end: %d, %q, %s", at, code, out, errs)
			}
			var got []string
			for _, f := range testkit.Files(t, filepath.Join(m.st.Agent(agent), "inbox")) {
				if strings.HasSuffix(f, ".handoff") || strings.HasSuffix(f, ".claim") {
					got = append(got, f)
				}
			}
			if len(got) != 1 || !strings.HasPrefix(got[0], "completed/") {
				t.Errorf("%v: %s has %q", at, agent, got)
			}
		}
		return killed
	})
}
