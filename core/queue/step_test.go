//go:build testonly

package queue

import (
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// killed runs a child that dies at its n-th step on the disk; false: it came to its end before.
func killed(t *testing.T, does string, q Queue, n int) bool {
	t.Helper()
	out, err := child(t.Context(), does, q, fmt.Sprintf("AUTOAGENT_TESTONLY_KILL=%d", n)).CombinedOutput()
	if err == nil {
		return false
	}
	var e *exec.ExitError
	if !errors.As(err, &e) || e.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("%s at step %d: %v: %s", does, n, err, out)
	}
	return true
}

// TestKilledAtEachStep kills a session at each of its steps, once and twice, and lets the next tick finish it.
func TestKilledAtEachStep(t *testing.T) {
	t.Parallel()
	last := 0
	for n := 1; ; n++ {
		for deaths := 1; deaths < MaxAttempts; deaths++ {
			q := fresh(t)
			for range deaths {
				if killed(t, "session", q, n) {
					last = n
				}
			}
			ok(t, session(q))
			ended(t, fmt.Sprintf("killed at step %d, %d times", n, deaths), q)
		}
		if last < n {
			break
		}
	}
	if last < 40 {
		t.Errorf("a session has %d steps only", last)
	}
}

// TestKilledWhileBurying does the same with what goes to failed/.
func TestKilledWhileBurying(t *testing.T) {
	t.Parallel()
	last := 0
	for n := 1; ; n++ {
		q := fresh(t)
		graves(t, q)
		if !killed(t, "bury", q, n) {
			break
		}
		last = n
		ok(t, bury(q))
		buried(t, fmt.Sprintf("killed at step %d", n), q)
	}
	if last < 8 {
		t.Errorf("burying has %d steps only", last)
	}
}

// TestStepsThatFail lets each kind of step fail for one recipient's folder; the next tick finishes.
func TestStepsThatFail(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"publish", "publish-link", "published", "replace", "replace-rename", "replaced", "move", "moved", "remove"} {
		for _, where := range []string{"coder/inbox", "reviewer/inbox", "manager/outbox"} {
			for _, errno := range []syscall.Errno{syscall.ENOSPC, syscall.EIO, syscall.EACCES} {
				q := fresh(t)
				out, err := child(t.Context(), "session", q, fmt.Sprintf("AUTOAGENT_TESTONLY_FAIL=%s:%s:%d", step, where, errno)).CombinedOutput()
				if fails := step != "remove" || where != "manager/outbox"; (err != nil) != fails {
					t.Errorf("%s in %s: %v: %s", step, where, err, out)
				}
				ok(t, session(q))
				ended(t, fmt.Sprintf("%s failed in %s", step, where), q)
			}
		}
	}
}

// TestKilledWhileSubmitting: the same draft, sent again after a death at any step, is one handoff.
func TestKilledWhileSubmitting(t *testing.T) {
	t.Parallel()
	last := 0
	for n := 1; ; n++ {
		q := fresh(t)
		draftFor(t, q)
		if !killed(t, "submit", q, n) {
			break
		}
		last = n
		submitted(t, fmt.Sprintf("killed at step %d", n), q)
	}
	if last < 9 {
		t.Errorf("sending a draft has %d steps only", last)
	}
}

// TestKilledInABatch: taken and completed as a whole, whatever step a death comes at.
func TestKilledInABatch(t *testing.T) {
	t.Parallel()
	last := 0
	for n := 1; ; n++ {
		q := fresh(t)
		three(t, q)
		if !killed(t, "batch", q, n) {
			break
		}
		last = n
		if n%3 == 0 {
			killed(t, "batch", q, n) // and once more
		}
		ok(t, batch(q))
		batched(t, fmt.Sprintf("killed at step %d", n), q)
	}
	if last < 20 {
		t.Errorf("two batches have %d steps only", last)
	}
}

// TestStepsThatFailOnTheWay lets each kind of step fail while a draft is sent and while batches are worked off; the next
// one does what is left.
func TestStepsThatFailOnTheWay(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"publish", "publish-link", "published", "replace", "replace-rename", "replaced", "move", "moved", "remove"} {
		for _, errno := range []syscall.Errno{syscall.ENOSPC, syscall.EIO, syscall.EACCES} {
			for does, where := range map[string]string{"submit": "manager/", "batch": "coder/"} {
				q := fresh(t)
				three(t, q)
				draftFor(t, q)
				out, err := child(t.Context(), does, q, fmt.Sprintf("AUTOAGENT_TESTONLY_FAIL=%s:%s:%d", step, where, errno)).CombinedOutput()
				fails := map[string]string{"submit": "publish publish-link published replace replace-rename replaced remove", "batch": "replace replace-rename replaced move moved remove"}[does]
				if got := err != nil; got != slices.Contains(strings.Fields(fails), step) {
					t.Errorf("%s failed in %s: %v: %s", step, does, err, out)
				}
				where := fmt.Sprintf("%s failed in %s", step, does)
				if does == "submit" {
					submitted(t, where, q)
					continue
				}
				ok(t, batch(q))
				batched(t, where, q)
			}
		}
	}
}
