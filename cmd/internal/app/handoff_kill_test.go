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

// traced is a handoff command under strace, which injects something into some of its calls.
func traced(t *testing.T, calls, inject, dir string, env []string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), "strace", append([]string{"-f", "-qqq", "-o", "/dev/null", "-e", "trace=" + calls,
		"-e", "inject=" + calls + ":" + inject, filepath.Join(bin, "AutoAgentProject"), "handoff"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1"}, env...)
	return cmd
}

// killedAt runs a handoff command that is killed there; false: it came to its end.
func killedAt(t *testing.T, at point, dir string, env []string, args ...string) bool {
	t.Helper()
	out, err := traced(t, at.calls, fmt.Sprintf("signal=KILL:when=%d", at.n), dir, env, args...).CombinedOutput()
	var e *exec.ExitError
	switch {
	case err == nil:
		return false
	case !errors.As(err, &e):
		t.Fatal(err)
	case e.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL, e.ExitCode() == 128+int(syscall.SIGKILL):
	case strings.Contains(string(out), "git"), strings.Contains(string(out), "in a cell"): // its git or its cell was killed, and it said so
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
		return throughTheMail(t, at, func(env []string, args ...string) bool { return killedAt(t, at, t.TempDir(), env, args...) })
	})
}

// throughTheMail lets a note go to two agents who take and finish it. Each command is done twice: first by ill, to which something
// happens, then whole; ill says whether it did. In the end each has finished the note, once.
func throughTheMail(t *testing.T, at point, ill func(env []string, args ...string) bool) (happened bool) {
	t.Helper()
	m := quietMail(t)
	draft := m.draft("manager", "type: note\nto: codebuilder-1,codebuilder-2\npriority: 50\nmessage: hi\n")
	call := func(agent string, args ...string) {
		if ill([]string{"AUTOAGENT_RUN=r"}, append([]string{"--root", string(m.root), "--mission", "my-site", "--agent", agent}, args...)...) {
			happened = true
		}
	}
	call("manager", "send", draft)
	if code, _, errs := m.call("manager", "send", draft); code != 0 && !strings.Contains(errs, "not found") {
		t.Errorf("%v: again: %d, %s", at, code, errs)
	}
	m.call("manager", "next") // whoever comes by delivers what is left
	for _, agent := range []string{"codebuilder-1", "codebuilder-2"} {
		call(agent, "next")
		if code, out, errs := m.callFrom("r", agent, "next"); code != 0 || !strings.HasPrefix(out, "TASK: ") {
			t.Fatalf("%v: next: %d, %q, %s", at, code, out, errs)
		}
		call(agent, "done")
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
	return happened
}

// TestHandoffWritesThatFail lets the n-th call of each kind fail with each error, as a full, a broken or a forbidden disk does, reading too. The command says so or does without; the next one does what is left.
func TestHandoffWritesThatFail(t *testing.T) {
	t.Parallel()
	testkit.Need(t, testkit.OnPath("git") && testkit.OnPath("strace"), "git AND strace")
	kinds, errnos, step := append(mutating()[1:], "read,pread64"), []string{"ENOSPC", "EIO", "EACCES"}, 9
	whole := os.Getenv("AUTOAGENT_FULL") != ""
	if whole {
		kinds, step = append(kinds, "openat", "getdents64"), 1
	}
	for i, calls := range kinds {
		for j, errno := range errnos {
			if !whole && i%len(errnos) != j { // one error for each kind
				continue
			}
			t.Run(calls+" "+errno, func(t *testing.T) {
				t.Parallel()
				for at := (point{calls, 1}); ; at.n += step {
					fails := func(env []string, args ...string) bool {
						log := filepath.Join(t.TempDir(), "trace")
						cmd := traced(t, calls, fmt.Sprintf("error=%s:when=%d", errno, at.n), t.TempDir(), env, args...)
						cmd.Args[slices.Index(cmd.Args, "/dev/null")] = log
						var e *exec.ExitError
						if err := cmd.Run(); err != nil && !errors.As(err, &e) {
							t.Fatal(err)
						}
						said, err := os.ReadFile(log)
						must(t, err)
						return strings.Contains(string(said), "INJECTED")
					}
					if !throughTheMail(t, at, fails) {
						t.Logf("%d calls", at.n)
						break
					}
					if at.n > 500 {
						t.Fatal("it never ends")
					}
				}
			})
		}
	}
}

// forked is a swarm with work of coder that cleaner has in hand and that merges without conflicts.
func forked(t *testing.T) (w swarm, mine, theirs string) {
	t.Helper()
	w = newSwarm(t, [][2]string{{"coder", "task"}, {"cleaner", "task"}})
	w.git(t, w.root, "config", "user.name", "Pat Example")
	w.git(t, w.root, "config", "user.email", "pat@example.com")
	for _, branch := range []string{"theirs", "main"} {
		w.git(t, w.root, "checkout", "--quiet", "-B", branch, w.head)
		w.put(t, branch+".txt", branch)
		w.git(t, w.root, "add", branch+".txt")
		w.git(t, w.root, "commit", "--quiet", "-m", branch+"\n\nBy coder.")
	}
	mine, theirs = w.git(t, w.root, "rev-parse", "main"), w.git(t, w.root, "rev-parse", "theirs")
	w.put(t, ".swarmforge/handoffs/inbox/in_process/50_a.handoff", "id: a\nfrom: coder\nto: cleaner\npriority: 50\ntype: git_handoff\ntask: t\ncommit: "+theirs[:10]+"\n\nx\n")
	return w, mine, theirs
}

// TestHandoffKilledWhileMerging: whenever a merge dies, the branch is where it was or at the whole merge, the task is still held once,
// and the next merge does it, or says what a person has to see to and changes nothing.
func TestHandoffKilledWhileMerging(t *testing.T) {
	t.Parallel()
	testkit.Need(t, testkit.OnPath("git") && testkit.OnPath("strace"), "git AND strace")
	kills(t, func(t *testing.T, at point) bool {
		w, mine, theirs := forked(t)
		killed := killedAt(t, at, w.root, []string{"SWARMFORGE_ROLE=cleaner"}, "--layout", "swarmforge", "merge")
		whole := func() bool {
			return w.git(t, w.root, "rev-list", "--parents", "-1", "HEAD") == w.git(t, w.root, "rev-parse", "HEAD")+" "+mine+" "+theirs
		}
		if head := w.git(t, w.root, "rev-parse", "HEAD"); head != mine && !whole() {
			t.Fatalf("%v: HEAD is %s", at, head)
		}
		before := w.git(t, w.root, "rev-parse", "HEAD")
		code, _, errs := w.handoff(t, "cleaner", "merge")
		if code != 0 { // the tree is a person's: what git left in it is theirs to clear
			if code != 1 || errs == "" || w.git(t, w.root, "rev-parse", "HEAD") != before {
				t.Errorf("%v: again: %d, %q", at, code, errs)
			}
			for _, lock := range []string{"index.lock", "HEAD.lock", "refs/heads/main.lock", "ORIG_HEAD.lock"} {
				_ = os.Remove(filepath.Join(w.root, ".git", lock))
			}
			w.git(t, w.root, "reset", "--quiet", "--hard")
			w.git(t, w.root, "clean", "--quiet", "--force", "-d")
			if code, _, errs := w.handoff(t, "cleaner", "merge"); code != 0 {
				t.Errorf("%v: cleared: %d, %q", at, code, errs)
			}
		}
		if !whole() || w.git(t, w.root, "status", "--porcelain") != "" {
			t.Errorf("%v: in the end %s\n%s", at, w.git(t, w.root, "log", "--oneline", "--graph"), w.git(t, w.root, "status", "--porcelain"))
		}
		w.workOff(t, at, "cleaner")
		w.once(t, at, ".swarmforge/handoffs/inbox", 1)
		return killed
	})
}

// TestHandoffKilledWithGit does the same in a mission, where git runs in cells: work is sent, merged and handed on, each step killed
// at some call. Whatever dies, the same command again ends it: no person has to clear anything.
func TestHandoffKilledWithGit(t *testing.T) {
	t.Parallel()
	testkit.Need(t, testkit.OnPath("git") && testkit.OnPath("strace") && testkit.OnPath("bwrap"), "git, strace AND bwrap")
	calls, step := mutating()[0], 45
	if os.Getenv("AUTOAGENT_FULL") != "" {
		step = 1
	}
	for n := 1; ; n += step {
		at, m := point{calls, n}, newMail(t)
		commit := m.commit("codebuilder-1", "cart.txt", "Add the cart\n\nBy codebuilder-1.")
		draft := m.draft("codebuilder-1", work("codebuilder-2", "cart", commit))
		call := func(agent string, args ...string) bool {
			return killedAt(t, at, t.TempDir(), []string{"AUTOAGENT_RUN=r"}, append([]string{"--root", string(m.root), "--mission", "my-site", "--agent", agent}, args...)...)
		}
		killed := call("codebuilder-1", "send", draft)
		if code, _, errs := m.call("codebuilder-1", "send", draft); code != 0 && !strings.Contains(errs, "not found") {
			t.Errorf("%v: send again: %d, %s", at, code, errs)
		}
		if code, out, errs := m.callFrom("r", "codebuilder-2", "next"); code != 0 || !strings.Contains(out, "TASK_NAME: cart\n") {
			t.Fatalf("%v: next: %d, %q, %s", at, code, out, errs)
		}
		killed = call("codebuilder-2", "merge") || killed
		if code, out, errs := m.callFrom("r", "codebuilder-2", "merge"); code != 0 {
			t.Errorf("%v: merge again: %d, %q, %s", at, code, out, errs)
		}
		dir := m.st.Clone("codebuilder-2")
		if b, err := os.ReadFile(filepath.Join(dir, "cart.txt")); err != nil || !strings.HasPrefix(string(b), "Add the cart") || m.git(dir, "status", "--porcelain") != "" {
			t.Errorf("%v: the clone holds %q, %v, %q", at, b, err, m.git(dir, "status", "--porcelain"))
		}
		m.git(m.st.Repo(), "fsck", "--no-dangling", "--strict")
		if code, out, errs := m.callFrom("r", "codebuilder-2", "done", "--merge-only"); code != 0 || !strings.HasSuffix(out, "NO_TASK\n") {
			t.Errorf("%v: done: %d, %q, %s", at, code, out, errs)
		}
		if !killed {
			break
		}
		if n > 2000 {
			t.Fatal("it never ends")
		}
	}
}
