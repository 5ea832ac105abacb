package queue

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"example.com/AutoAgentProject/core/handoff"
	"time"

	"example.com/AutoAgentProject/core/files"
	"example.com/AutoAgentProject/core/proc"
)

const each = 4 // envelopes of its own that one of the crowd sends

// crowd is one of many ticks at once. It sends envelopes of its own and ones that all the others send too, delivers,
// and works through whatever inbox is free.
func crowd(ctx context.Context, q Queue, who string) error {
	owner, err := proc.Self()
	if err != nil {
		return err
	}
	for n := range each {
		seq, err := q.Sequence(ctx, "manager")
		if err != nil {
			return err
		}
		to := agents[1+seq%3]
		name, _, e := handoff.NewWork(handoff.Work{From: "manager", To: to, Priority: 50, Task: fmt.Sprint(who, "-", n), Commit: "0123456789", Seq: seq, At: noon})
		if err := q.Send("manager", name, e); err != nil {
			return err
		}
		shared, e := note("manager", "coder,reviewer,tester", fmt.Sprint("shared-", n))
		if err := q.Send("manager", shared, e); err != nil {
			return err
		}
		if _, err := q.Deliver("manager", noon); err != nil {
			return err
		}
		if err := workOff(q, owner); err != nil {
			return err
		}
	}
	return nil
}

// workOff completes what lies in the inboxes, each under its agent's lock, as a tick does.
func workOff(q Queue, owner proc.ID) error {
	for _, a := range agents[1:] {
		unlock, err := files.TryLock(filepath.Join(q.Agents, a, "tick.lock"))
		if err != nil {
			continue // another tick is at it
		}
		for {
			held, dead, err := q.Claim(a, owner, time.Now())
			if err != nil || len(dead) > 0 {
				unlock()
				return fmt.Errorf("%s: dead %q, %w", a, dead, err)
			}
			if held == nil {
				break
			}
			if err := q.Complete(a, held.Name, time.Now()); err != nil {
				unlock()
				return err
			}
		}
		unlock()
	}
	return nil
}

// TestFiftySenders: fifty senders with one recipient at once. Each handoff comes once, and they are taken by priority, time and sequence.
func TestFiftySenders(t *testing.T) {
	const senders, each = 50, 2
	q := fresh(t)
	var wait sync.WaitGroup
	for i := range senders {
		from := fmt.Sprint("sender-", i)
		ok(t, q.Make(from))
		wait.Go(func() {
			for n := range each {
				seq, err := q.Sequence(t.Context(), from)
				if err != nil {
					t.Error(err)
					return
				}
				name, e := handoff.Message{Type: handoff.Note, From: from, To: []string{"coder"}, Priority: fmt.Sprintf("%02d", (i+n)%4*25), Text: "m"}.Envelope(seq, time.Now())
				if err := q.Send(from, name, e); err != nil {
					t.Error(err)
				}
				if _, err := q.Deliver(from, time.Now()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wait.Wait()
	var taken []string
	by := Holder{Owner: self(t)}
	for {
		u, dead, err := q.Next("coder", Task, by, time.Now())
		if err != nil || len(dead) > 0 {
			t.Fatal(dead, err)
		}
		if u == nil {
			break
		}
		taken = append(taken, filepath.Base(u.Items[0].Path))
		_, err = q.Done("coder", Task, by, nil, time.Now())
		ok(t, err)
	}
	if !slices.IsSorted(taken) || len(taken) != senders*each || len(slices.Compact(slices.Clone(taken))) != senders*each {
		t.Errorf("%d were taken, %q", len(taken), taken)
	}
}

// TestTwentyAtOnce: ten processes and ten goroutines. Nothing is lost, nothing is delivered or done twice, no number is
// given twice, each recipient has one receipt.
func TestTwentyAtOnce(t *testing.T) {
	q := fresh(t)
	var wait sync.WaitGroup
	for i := range 10 {
		wait.Go(func() {
			if out, err := child(t.Context(), "crowd", q).CombinedOutput(); err != nil {
				t.Errorf("process %d: %v: %s", i, err, out)
			}
		})
		wait.Go(func() {
			if err := crowd(t.Context(), q, fmt.Sprint("goroutine-", i)); err != nil {
				t.Errorf("goroutine %d: %v", i, err)
			}
		})
	}
	wait.Wait()
	deliver(t, q, "manager")
	ok(t, workOff(q, self(t)))
	done := map[string]int{}
	for _, a := range agents[1:] {
		for _, f := range tree(t, q, a) {
			name, completed := strings.CutPrefix(f, "inbox/completed/")
			if !completed {
				t.Errorf("%s holds %s", a, f)
			}
			done[name]++
		}
	}
	shared, single := 0, 0
	for name, n := range done {
		if strings.Contains(name, "shared-") {
			shared++
			if n != 3 {
				t.Errorf("%d have %s", n, name)
			}
			if got := strings.Fields(receipts(t, q, "manager", "sent", name)); !slices.Equal(got, []string{"coder", "reviewer", "tester"}) {
				t.Errorf("receipts of %q for %s", got, name)
			}
			continue
		}
		single++
		if r := receipts(t, q, "manager", "sent", name); n != 1 || !strings.Contains(name, "_to_"+r+".") {
			t.Errorf("%d have %s, receipts of %s", n, name, r)
		}
	}
	if shared != each || single != 20*each {
		t.Errorf("%d shared ones and %d others", shared, single)
	}
	if entries, _ := os.ReadDir(q.outbox("manager", "new")); len(entries) != 0 {
		t.Errorf("left in the outbox: %v", entries)
	}
}
