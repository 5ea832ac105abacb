package queue

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/files"
	"example.com/AutoAgentProject/core/handoff"
	"example.com/AutoAgentProject/core/proc"
)

func procSelf() (proc.ID, error) { return proc.Self() }

// rounds is how many operations one process does.
const rounds = 40

// random does operations at random, as one of many processes: send, deliver, take, finish, let go, put back what failed.
// Whoever holds something notes it outside of the queue; two holders at once are an error.
func random(q Queue) error {
	owner, err := proc.Self()
	if err != nil {
		return err
	}
	seed, _ := strconv.ParseUint(os.Getenv("QUEUE_TEST_SEED"), 10, 64)
	r := rand.New(rand.NewPCG(seed, uint64(owner.PID)))
	ctx := context.Background()
	for n := range rounds {
		from, agent := agents[r.IntN(len(agents))], agents[r.IntN(len(agents))]
		mode := []Mode{Task, Batch}[len(agent)%2] // an agent has one
		switch r.IntN(6) {
		case 0, 1:
			to := []string{"coder", "reviewer", "tester"}[:1+r.IntN(3)]
			seq, err := q.Sequence(ctx, from)
			if err != nil {
				return err
			}
			m := handoff.Message{Type: handoff.Note, From: from, To: to, Priority: fmt.Sprintf("%02d", 50+r.IntN(3)), Text: fmt.Sprint(owner.PID, " ", n)}
			name, e := m.Envelope(seq, time.Now())
			if err := noteSent(q, name, to); err != nil {
				return err
			}
			if err := q.Send(from, name, e); err != nil {
				return err
			}
		case 2:
			if _, err := q.Deliver(from, time.Now()); err != nil {
				return err
			}
		default:
			by := Holder{Owner: owner, Run: fmt.Sprint(owner.PID, "-", n)} // each time another holder
			u, dead, err := q.Next(agent, mode, by, time.Now())
			if errors.Is(err, ErrBusy) {
				continue
			}
			if err != nil || len(dead) > 0 {
				return fmt.Errorf("next of %s: dead %q, %w", agent, dead, err)
			}
			if u == nil {
				continue
			}
			if err := alone(q, agent, func() error {
				_, err := q.Done(agent, mode, by, nil, time.Now())
				return err
			}); err != nil {
				return err
			}
		}
	}
	return nil
}

// noteSent keeps a record of what was sent, outside of the queue.
func noteSent(q Queue, name string, to []string) error {
	return files.Append(filepath.Join(filepath.Dir(q.Agents), "record"), []byte(name+" "+strings.Join(to, ",")))
}

// alone runs f while a file says who works for the agent: there must be none yet.
func alone(q Queue, agent string, f func() error) error {
	path := filepath.Join(filepath.Dir(q.Agents), "works-"+agent)
	h, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("two hold work of %s at once: %w", agent, err)
	}
	h.Close()
	if err := files.Append(filepath.Join(filepath.Dir(q.Agents), "works"), []byte(agent)); err != nil { // takes a while
		return err
	}
	if err := os.Remove(path); err != nil { // before Done: after it another one may hold the next
		return err
	}
	return f()
}

// TestRandomOperations: several processes, anything in any order. Each task has one holder at a time, nothing is lost,
// nothing comes twice, each recipient gets it once.
func TestRandomOperations(t *testing.T) {
	q := fresh(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	var wait sync.WaitGroup
	for i := range 6 {
		wait.Go(func() {
			if out, err := child(t.Context(), "random", q, fmt.Sprint("QUEUE_TEST_SEED=", seed+uint64(i))).CombinedOutput(); err != nil {
				t.Errorf("process %d: %v: %s", i, err, out)
			}
		})
	}
	wait.Wait()
	for _, a := range agents {
		deliver(t, q, a)
	}
	got := map[string][]string{}
	for _, a := range agents {
		entries, err := q.Entries(a)
		ok(t, err)
		for _, e := range entries {
			switch e.Box {
			case "sent":
				slices.SortFunc(e.Receipts, func(a, b Receipt) int { return strings.Compare(a.Recipient, b.Recipient) })
				var have []string
				for _, r := range e.Receipts {
					have = append(have, r.Recipient)
				}
				if want := e.Text.Recipients(); !slices.Equal(have, want) {
					t.Errorf("%s has receipts of %q, want %q", e.Name(), have, want)
				}
			case "new", "in_process", "completed":
				got[e.Name()] = append(got[e.Name()], a)
			default:
				t.Errorf("%s of %s holds %s: %s", e.Box, a, e.Name(), e.Error)
			}
		}
	}
	sent := 0
	for line := range strings.Lines(content(t, filepath.Join(filepath.Dir(q.Agents), "record"))) {
		name, to, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name == "" {
			continue
		}
		sent++
		slices.Sort(got[name])
		if strings.Join(got[name], ",") != to {
			t.Errorf("%s is with %q, want %s", name, got[name], to)
		}
		delete(got, name)
	}
	if len(got) > 0 || sent < 20 {
		t.Errorf("%d were sent; nobody sent %v", sent, got)
	}
}
