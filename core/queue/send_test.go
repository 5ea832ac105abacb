package queue

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/AutoAgentProject/core/handoff"
)

func draftPath(q Queue) string { return filepath.Join(filepath.Dir(q.Agents), "draft") }

func draftFor(t testing.TB, q Queue) {
	t.Helper()
	ok(t, os.WriteFile(draftPath(q), []byte("a draft"), 0o600))
}

// made is the message of the draft.
func made(seq int) (string, handoff.Envelope) {
	return handoff.Message{Type: handoff.Note, From: "manager", To: []string{"coder"}, Priority: "50", Text: "hi"}.Envelope(seq, noon)
}

// submit sends the draft, and once more if it is still there, as whoever sends it does who was killed.
func submit(q Queue) error {
	_, err := q.Submit(context.Background(), "manager", draftPath(q), made)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// submitted sends the draft again and checks that there is one handoff of it.
func submitted(t *testing.T, where string, q Queue) {
	t.Helper()
	for range 2 {
		ok(t, submit(q))
	}
	if n, err := list(q.outbox("manager", "new")); err != nil || len(n) != 1 {
		t.Errorf("%s: the outbox holds %v, %v", where, n, err)
	}
	draftFor(t, q) // another draft sweeps what the first one left
	ok(t, submit(q))
	if n, err := os.ReadDir(q.outbox("manager", "tmp")); err != nil || len(n) != 0 {
		t.Errorf("%s: tmp holds %v, %v", where, n, err)
	}
	if n, err := list(q.outbox("manager", "new")); err != nil || len(n) != 2 {
		t.Errorf("%s: a second draft: the outbox holds %v, %v", where, n, err)
	}
	if _, err := os.Lstat(draftPath(q)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s: the draft is still there: %v", where, err)
	}
}

func TestSubmit(t *testing.T) {
	q := fresh(t)
	draftFor(t, q)
	path, err := q.Submit(t.Context(), "manager", draftPath(q), made)
	if want := filepath.Join(q.outbox("manager", "new"), "50_20260301T120000Z_000001_from_manager_to_coder.handoff"); err != nil || path != want {
		t.Errorf("%s, %v", path, err)
	}
	submitted(t, "sent", q)
}

// TestSubmitBesideAnotherCounter: a name that somebody else took is left to them.
func TestSubmitBesideAnotherCounter(t *testing.T) {
	q := Queue{Swarm: map[string]string{"manager": t.TempDir()}}
	ok(t, q.makeOutbox("manager"))
	other, _ := made(1)
	path := filepath.Join(q.outbox("manager", "sent"), other)
	ok(t, os.WriteFile(path, []byte("theirs"), 0o600))
	draft := filepath.Join(t.TempDir(), "draft")
	ok(t, os.WriteFile(draft, nil, 0o600))
	got, err := q.Submit(t.Context(), "manager", draft, made)
	if want, _ := made(2); err != nil || filepath.Base(got) != want || content(t, path) != "theirs" {
		t.Error(got, err)
	}
}

// TestSubmitWaitsForAHelper that holds SwarmForge's lock, and not for ever.
func TestSubmitWaitsForAHelper(t *testing.T) {
	q := Queue{Swarm: map[string]string{"manager": t.TempDir()}}
	ok(t, q.makeOutbox("manager"))
	lock := filepath.Join(q.home("manager"), "sequence.lock")
	ok(t, os.Mkdir(lock, 0o755))
	draft := filepath.Join(t.TempDir(), "draft")
	ok(t, os.WriteFile(draft, nil, 0o600))
	ctx, done := context.WithCancel(t.Context())
	done() // a helper that never ends, for the shortest wait
	got, err := q.Submit(ctx, "manager", draft, made)
	if want, _ := made(1); err != nil || filepath.Base(got) != want {
		t.Error(got, err)
	}
	if _, err := os.Stat(lock); err != nil {
		t.Errorf("a lock of somebody else was removed: %v", err)
	}
}

// TestSubmitRefuses what is no plain draft.
func TestSubmitRefuses(t *testing.T) {
	q := fresh(t)
	dir := t.TempDir()
	target, link := filepath.Join(dir, "t"), filepath.Join(dir, "link")
	ok(t, os.WriteFile(target, nil, 0o600))
	ok(t, os.Symlink(target, link))
	for _, path := range []string{dir, link, filepath.Join(dir, "none")} {
		if got, err := q.Submit(t.Context(), "manager", path, made); err == nil {
			t.Errorf("%s: %s", path, got)
		}
	}
	holds(t, q, "manager")
}

// batch takes and completes everything, batch by batch.
func batch(q Queue) error {
	owner := Holder{}
	var err error
	if owner.Owner, err = procSelf(); err != nil {
		return err
	}
	for {
		u, dead, err := q.Next("coder", Batch, owner, noon)
		if err != nil || len(dead) > 0 {
			return fmt.Errorf("dead %q: %w", dead, err)
		}
		if u == nil {
			return nil
		}
		if _, err := q.Done("coder", Batch, owner, nil, noon); err != nil {
			return err
		}
	}
}

// batched checks that all of three is completed, everything once.
func batched(t *testing.T, where string, q Queue) {
	t.Helper()
	var done []string
	for _, b := range batches(q.inbox("coder", "completed")) {
		names, err := list(b)
		ok(t, err)
		done = append(done, names...)
		for _, n := range names {
			u, err := text(filepath.Join(b, n))
			if _, dequeued := u.Field("dequeued_at"); err != nil || !dequeued || u.Or("completed_at", "") == "" {
				t.Errorf("%s: %s: %v, %s", where, n, err, u)
			}
		}
	}
	if got := len(done); got != 3 || strings.Count(strings.Join(done, " "), "50_a") != 1 {
		t.Errorf("%s: completed are %q", where, done)
	}
	for _, box := range []string{"new", "in_process", "failed"} {
		entries, err := os.ReadDir(q.inbox("coder", box))
		ok(t, err)
		for _, e := range entries {
			if e.Name()[0] != '.' || e.IsDir() {
				t.Errorf("%s: %s holds %s", where, box, e.Name())
			}
		}
	}
}

func TestBatchesToTheEnd(t *testing.T) {
	q := fresh(t)
	three(t, q)
	for range 2 {
		ok(t, batch(q))
		batched(t, "no death", q)
	}
}
