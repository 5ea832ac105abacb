//go:build testonly

package ledger

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestKilledAtEachStep kills a session at its first step on the disk, at its second, and so on. Done again from the
// start it comes to the same end each time, and no money is counted twice or lost.
func TestKilledAtEachStep(t *testing.T) {
	killed := 0
	for n := 1; ; n++ {
		path := filepath.Join(t.TempDir(), "ledger.jsonl")
		err := child(t.Context(), "session", path, "", fmt.Sprintf("AUTOAGENT_TESTONLY_KILL=%d", n)).Run()
		if err == nil {
			break
		}
		killed++
		l := Open(path)
		if _, err := os.Lstat(path); err == nil {
			if b := read(t, l); b.Used.N+b.Reserved.N > 120 {
				t.Errorf("killed at step %d: used %d, reserved %d", n, b.Used.N, b.Reserved.N)
			}
		}
		ok(t, session(l))
		if b := read(t, Open(path)); b.Used.N != 30 || b.Reserved.N != 0 || b.Budget.N != 200 || b.Tokens != 3 || b.Records != 7 {
			t.Errorf("killed at step %d, done again: %+v", n, b)
		}
	}
	if killed < 14 {
		t.Errorf("killed only %d times", killed)
	}
}

// TestStepsThatFail lets each kind of step fail with a full disk, once.
func TestStepsThatFail(t *testing.T) {
	for _, step := range []string{"publish", "publish-link", "published", "append", "appended"} {
		path := filepath.Join(t.TempDir(), "ledger.jsonl")
		env := fmt.Sprintf("AUTOAGENT_TESTONLY_FAIL=%s:ledger.jsonl:%d", step, int(syscall.ENOSPC))
		if err := child(t.Context(), "session", path, "", env).Run(); err == nil {
			t.Errorf("%s: nothing failed", step)
		}
		l := Open(path)
		ok(t, session(l))
		if b := read(t, l); b.Used.N != 30 || b.Reserved.N != 0 || b.Budget.N != 200 {
			t.Errorf("%s, done again: %+v", step, b)
		}
	}
}
