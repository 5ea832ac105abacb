//go:build testonly

package files

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// The steps of each operation, what stands before it, and what may stand after a failure or death at any of them: the
// old or the new, whole.
var operations = []struct {
	name     string
	old      string   // content before; "-" for no file
	steps    []string // all of them
	new      []string // the steps after which the new stands
	oldFiles string   // the folder then
	newFiles string
	newText  string
}{
	{"replace", "old", []string{"replace", "replace-rename", "replaced"}, []string{"replaced"}, "a", "a", "new"},
	{"publish", "-", []string{"publish", "publish-link", "published"}, []string{"published"}, "", "a", "new"},
	{"move", "old", []string{"move", "moved"}, []string{"moved"}, "a", "a.moved", "old"},
	{"append", "old\n", []string{"append", "appended"}, []string{"appended"}, "a", "a", "old\nnew\n"},
	{"remove", "old", []string{"remove"}, nil, "a", "", ""},
	{"aside", "old", []string{"move", "moved"}, []string{"moved"}, "a", "a.bad-19700101T000000.000Z", "old"},
}

// TestFailingSteps lets each step of each operation fail with each error, by name.
func TestFailingSteps(t *testing.T) {
	for _, op := range operations {
		for _, s := range op.steps {
			for _, errno := range []syscall.Errno{syscall.ENOSPC, syscall.EIO, syscall.EACCES} {
				dir := t.TempDir()
				path := filepath.Join(dir, "a")
				before(t, path, op.old)
				out, err := child(t.Context(), op.name, path, fmt.Sprintf("AUTOAGENT_TESTONLY_FAIL=%s:%s:%d", s, dir, errno)).CombinedOutput()
				if err == nil || !strings.Contains(string(out), errno.Error()) || !strings.Contains(string(out), path) {
					t.Errorf("%s, %s, %v: %v, said %q", op.name, s, errno, err, out)
				}
				after(t, fmt.Sprintf("%s failed at %s", op.name, s), dir, op.old, contains(op.new, s), op.oldFiles, op.newFiles, op.newText, false)
			}
		}
	}
}

// TestKilledSteps kills the process at each step of each operation, and counts the steps.
func TestKilledSteps(t *testing.T) {
	for _, op := range operations {
		for n := 1; ; n++ {
			dir := t.TempDir()
			path, trace := filepath.Join(dir, "a"), filepath.Join(t.TempDir(), "steps")
			before(t, path, op.old)
			err := child(t.Context(), op.name, path, fmt.Sprintf("AUTOAGENT_TESTONLY_KILL=%d", n), "AUTOAGENT_TESTONLY_STEPS="+trace).Run()
			if err == nil {
				if n-1 != len(op.steps) {
					t.Errorf("%s has %d steps", op.name, n-1)
				}
				break
			}
			if e, isExit := err.(*exec.ExitError); !isExit || e.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
				t.Fatalf("%s, step %d: %v", op.name, n, err)
			}
			b, _ := os.ReadFile(trace)
			name := strings.Fields(string(b))[3*n-2]
			if n > len(op.steps) || name != op.steps[n-1] {
				t.Errorf("%s: step %d is %s", op.name, n, name)
				continue
			}
			after(t, fmt.Sprintf("%s killed at %s", op.name, name), dir, op.old, contains(op.new, name), op.oldFiles, op.newFiles, op.newText, true)
		}
	}
}

func contains(list []string, s string) bool {
	return strings.Contains(" "+strings.Join(list, " ")+" ", " "+s+" ")
}

func before(t *testing.T, path, old string) {
	t.Helper()
	if old != "-" {
		ok(t, os.WriteFile(path, []byte(old), 0o600))
	}
}

// after checks that the old or the new stands, whole. A killed process may leave hidden files, a failed one none.
func after(t *testing.T, where, dir, old string, isNew bool, oldFiles, newFiles, newText string, killed bool) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	ok(t, err)
	var names []string
	for _, e := range entries {
		if !killed || !strings.HasPrefix(e.Name(), ".") {
			names = append(names, e.Name())
		}
	}
	want, text := oldFiles, old
	if isNew {
		want, text = newFiles, newText
	}
	if got := strings.Join(names, " "); got != want {
		t.Errorf("%s: the folder holds %q, want %q", where, got, want)
	} else if len(names) == 1 {
		content(t, filepath.Join(dir, names[0]), text)
	}
}
