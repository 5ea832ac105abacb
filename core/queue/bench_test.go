package queue

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/files"
	"example.com/AutoAgentProject/core/handoff"
)

// post is a whole durable send to one recipient: number, envelope, copy, mark, receipt.
func post(ctx context.Context, q Queue, from string) error {
	seq, err := q.Sequence(ctx, from)
	if err != nil {
		return err
	}
	name, e := handoff.Message{Type: handoff.Note, From: from, To: []string{"coder"}, Priority: "50", Text: "hi"}.Envelope(seq, time.Now())
	if err := q.Send(from, name, e); err != nil {
		return err
	}
	_, err = q.Deliver(from, time.Now())
	return err
}

// postFiles is how many files a post makes.
const postFiles = 5

// bare writes, syncs and renames that many files and syncs the folder after each, with nothing around it.
func bare(dir string, n int) error {
	data := make([]byte, 300)
	for i := range n {
		tmp := filepath.Join(dir, "tmp")
		f, err := os.Create(tmp)
		if err != nil {
			return err
		}
		if _, err := f.Write(data); err != nil {
			return err
		}
		if err := f.Sync(); err != nil {
			return err
		}
		if err := f.Close(); err != nil {
			return err
		}
		if err := os.Rename(tmp, filepath.Join(dir, fmt.Sprint(i, time.Now().UnixNano()))); err != nil {
			return err
		}
		if err := files.SyncDir(dir); err != nil {
			return err
		}
	}
	return nil
}

// alternate runs two things in turn, so that what else the machine does hits both alike, and returns their times.
func alternate(b *testing.B, n int, a, other func() error) (ta, tb time.Duration) {
	b.Helper()
	for range n {
		for i, f := range []func() error{a, other} {
			begin := time.Now()
			if err := f(); err != nil {
				b.Fatal(err)
			}
			if i == 0 {
				ta += time.Since(begin)
			} else {
				tb += time.Since(begin)
			}
		}
	}
	return ta, tb
}

// BenchmarkSend: rate/bare is the rate of durable sends to one recipient over that of the bare loop with as many files.
func BenchmarkSend(b *testing.B) {
	q, dir := fresh(b), b.TempDir()
	b.ResetTimer()
	ours, base := alternate(b, b.N, func() error { return post(b.Context(), q, "manager") }, func() error { return bare(dir, postFiles) })
	b.ReportMetric(float64(base)/float64(ours), "rate/bare")
}

// BenchmarkBesideMany: slowdown is how much longer it takes when completed/ holds 100,000 instead of 10: to send, and to
// send, take and finish.
func BenchmarkBesideMany(b *testing.B) {
	few, many := fresh(b), fresh(b)
	fill(b, few, 10)
	fill(b, many, 100_000)
	by := Holder{Owner: self(b)}
	send := func(q Queue) func() error { return func() error { return post(b.Context(), q, "manager") } }
	work := func(q Queue) func() error {
		return func() error {
			if err := post(b.Context(), q, "manager"); err != nil {
				return err
			}
			if _, _, err := q.Next("coder", Task, by, time.Now()); err != nil {
				return err
			}
			_, err := q.Done("coder", Task, by, nil, time.Now())
			return err
		}
	}
	for name, do := range map[string]func(Queue) func() error{"send": send, "work": work} {
		b.Run(name, func(b *testing.B) {
			slow, fast := alternate(b, b.N, do(many), do(few))
			b.ReportMetric(float64(slow)/float64(fast), "slowdown")
		})
	}
}

// fill puts handoffs into coder's completed/, as if they had been worked off.
func fill(b *testing.B, q Queue, n int) {
	b.Helper()
	for i := range n {
		name, e := handoff.Message{Type: handoff.Note, From: "manager", To: []string{"coder"}, Priority: "50", Text: "hi"}.Envelope(i, noon)
		for _, path := range []string{filepath.Join(q.inbox("coder", "completed"), name), q.idMark("coder", e.Get("id"))} {
			ok(b, os.WriteFile(path, nil, 0o600))
		}
	}
}

// BenchmarkFiftySenders: fifty senders with one recipient at once. speedup is their common rate over that of one alone.
func BenchmarkFiftySenders(b *testing.B) {
	const senders = 50
	q := fresh(b)
	for i := range senders {
		ok(b, q.Make(fmt.Sprintf("sender-%d", i)))
	}
	b.ResetTimer()
	together, alone := alternate(b, b.N, func() error {
		var wait sync.WaitGroup
		errs := make([]error, senders)
		for i := range senders {
			wait.Go(func() { errs[i] = post(b.Context(), q, fmt.Sprintf("sender-%d", i)) })
		}
		wait.Wait()
		for _, err := range errs {
			if err != nil {
				return err
			}
		}
		return nil
	}, func() error {
		for range senders {
			if err := post(b.Context(), q, "manager"); err != nil {
				return err
			}
		}
		return nil
	})
	b.ReportMetric(float64(alone)/float64(together), "speedup")
}
