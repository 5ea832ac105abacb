//go:build testonly

package store

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestKilledAtEachStep kills a session at each of its steps on the disk, with a good state and with a damaged one. Done
// again it comes to the same end, and the evidence is kept once.
func TestKilledAtEachStep(t *testing.T) {
	for _, damaged := range []bool{false, true} {
		n := 1
		for ; ; n++ {
			s := working(t)
			if damaged {
				ok(t, os.WriteFile(s.file("state.json"), []byte("\x00\x00\x00"), 0o600))
			}
			err := child(t.Context(), "session", s, "", fmt.Sprintf("AUTOAGENT_TESTONLY_KILL=%d", n)).Run()
			if err == nil {
				break
			}
			where := fmt.Sprintf("damaged %v, killed at step %d", damaged, n)
			ok(t, session(t.Context(), s))
			ended(t, where, s, damaged)
			if kept, _ := filepath.Glob(s.file("state.json.bad-*")); (len(kept) == 1) != damaged || len(kept) > 1 {
				t.Errorf("%s: kept %q", where, kept)
			}
		}
		if n < 15 {
			t.Errorf("a session has %d steps only", n-1)
		}
	}
}

// TestStepsThatFail lets each write of each document fail; what stood there stands.
func TestStepsThatFail(t *testing.T) {
	for _, step := range []string{"replace", "replace-rename", "replaced"} {
		for _, doc := range []string{"plan.json", "state.json", "detail.md", "pauses.json", "clock.json"} {
			for _, errno := range []syscall.Errno{syscall.ENOSPC, syscall.EIO, syscall.EACCES} {
				s := working(t)
				where := fmt.Sprintf("%s of %s failed with %v", step, doc, errno)
				if err := child(t.Context(), "session", s, "", fmt.Sprintf("AUTOAGENT_TESTONLY_FAIL=%s:%s:%d", step, doc, errno)).Run(); err == nil {
					t.Errorf("%s: nothing failed", where)
				}
				if left, _ := filepath.Glob(s.file(".*json*")); len(left) > 0 {
					t.Errorf("%s: left %q", where, left)
				}
				ok(t, session(t.Context(), s))
				ended(t, where, s, false)
			}
		}
	}
}
