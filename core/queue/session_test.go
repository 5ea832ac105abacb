package queue

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"example.com/AutoAgentProject/core/handoff"

	"example.com/AutoAgentProject/core/proc"
)

// session is all that happens to two envelopes, one of them to two recipients: sent, delivered, claimed, let go,
// claimed, completed. Done again after a death it does what is left.
func session(q Queue) error {
	owner, err := proc.Self()
	if err != nil {
		return err
	}
	for _, id := range []string{"a", "b"} {
		name, e := note("manager", map[string]string{"a": "coder,reviewer", "b": "coder"}[id], id)
		if err := q.Send("manager", name, e); err != nil {
			return err
		}
	}
	if _, err := q.Deliver("manager", noon); err != nil {
		return err
	}
	for _, agent := range []string{"coder", "reviewer"} {
		for {
			held, dead, err := q.Claim(agent, owner, noon)
			if err != nil || len(dead) > 0 {
				return fmt.Errorf("dead %q, %w", dead, err)
			}
			if held == nil {
				break
			}
			if err := q.Release(agent, held.Name); err != nil {
				return err
			}
			if held, _, err = q.Claim(agent, owner, noon); err != nil {
				return err
			}
			if err := q.Complete(agent, held.Name, noon); err != nil {
				return err
			}
		}
	}
	return nil
}

// ended checks the only end that a session may come to.
func ended(t *testing.T, where string, q Queue) {
	t.Helper()
	want := map[string][]string{
		"manager":  {"outbox/sent/50_a" + handoff.Suffix, "outbox/sent/50_a" + handoff.Suffix + ".receipts", "outbox/sent/50_b" + handoff.Suffix, "outbox/sent/50_b" + handoff.Suffix + ".receipts"},
		"coder":    {"inbox/completed/50_a" + handoff.Suffix, "inbox/completed/50_b" + handoff.Suffix},
		"reviewer": {"inbox/completed/50_a" + handoff.Suffix},
	}
	for agent, files := range want {
		got := slices.DeleteFunc(tree(t, q, agent), func(f string) bool { return filepath.Base(f)[0] == '.' }) // what a dead tick was writing
		if !slices.Equal(got, files) {
			t.Errorf("%s: %s holds %q", where, agent, got)
			return
		}
	}
	for name, to := range map[string]string{"50_a" + handoff.Suffix: "coder reviewer", "50_b" + handoff.Suffix: "coder"} {
		got := strings.Fields(receipts(t, q, "manager", "sent", name)) // in the order in which they could be delivered
		if slices.Sort(got); strings.Join(got, " ") != to {
			t.Errorf("%s: %s has receipts of %q", where, name, got)
		}
	}
	for _, f := range want["coder"] {
		e, err := read(filepath.Join(q.Agents, "coder", f))
		if err != nil || e.Get("enqueued_at") == "" || e.Get("dequeued_at") == "" || e.Get("completed_at") == "" {
			t.Errorf("%s: %s: %v, %+v", where, f, err, e.Headers)
		}
	}
}

func TestSession(t *testing.T) {
	q := fresh(t)
	for n := range 3 {
		ok(t, session(q))
		ended(t, fmt.Sprint("session ", n), q)
	}
}

// bury is a tick that meets a poisoned file and a handoff whose third holder died.
func bury(q Queue) error {
	owner, err := proc.Self()
	if err != nil {
		return err
	}
	held, _, err := q.Claim("coder", owner, noon)
	if held != nil {
		return fmt.Errorf("held %s", held.Name)
	}
	return err
}

// graves prepares what bury finds, and buried checks its end.
func graves(t *testing.T, q Queue) {
	t.Helper()
	_, e := note("manager", "coder", "third")
	path := filepath.Join(q.inbox("coder", "in_process"), "50_third"+handoff.Suffix)
	ok(t, os.WriteFile(path, e.ForRecipient("coder", noon).Bytes(), 0o600))
	ok(t, writeClaim(path, Claim{Owner: dead(t, 1), Attempt: MaxAttempts}))
	ok(t, os.WriteFile(filepath.Join(q.inbox("coder", "new"), "50_bad"+handoff.Suffix), []byte("{"), 0o600))
}

func buried(t *testing.T, where string, q Queue) {
	t.Helper()
	got := slices.DeleteFunc(tree(t, q, "coder"), func(f string) bool { return filepath.Base(f)[0] == '.' })
	want := []string{"inbox/failed/50_bad" + handoff.Suffix, "inbox/failed/50_bad" + handoff.Suffix + ".error", "inbox/failed/50_third" + handoff.Suffix, "inbox/failed/50_third" + handoff.Suffix + ".error"}
	if !slices.Equal(got, want) {
		t.Errorf("%s: coder holds %q", where, got)
	}
}

func TestBury(t *testing.T) {
	q := fresh(t)
	graves(t, q)
	for n := range 3 {
		ok(t, bury(q))
		buried(t, fmt.Sprint("tick ", n), q)
	}
}
