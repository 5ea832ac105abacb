package ledger

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/money"
)

// written makes a ledger of n records: runs that reserve, are launched and settled.
func written(tb testing.TB, n int) string {
	tb.Helper()
	var b bytes.Buffer
	put := func(r Record, seq int) {
		line, err := encode(r, int64(seq), at(seq))
		if err != nil {
			tb.Fatal(err)
		}
		b.Write(append(line, '\n'))
	}
	put(Record{Kind: Budget, Cap: 1000 * int64(money.USD), Unit: money.NanoUSD}, 1)
	for seq := 2; seq <= n; seq++ {
		i := (seq - 2) / 3
		r := Record{Run: fmt.Sprintf("5e550000-0000-4000-8000-%012d", i), Agent: fmt.Sprintf("codebuilder-%d", i%5), Step: fmt.Sprintf("step-%d", i%40)}
		switch (seq - 2) % 3 {
		case 0:
			r.Kind, r.Model, r.Cap, r.Unit = Reserve, "claude-opus-5-5", 50_000_000, money.NanoUSD
		case 1:
			r.Kind = Launch
		case 2:
			r.Kind, r.Nano, r.Tokens, r.Source = Spend, 1_000_000, 2000, "gateway"
			r.ByModel = map[string]money.Usage{"claude-opus-5-5": {Input: 500, Output: 500, CacheRead: 1000}}
		}
		put(r, seq)
	}
	path := filepath.Join(tb.TempDir(), "ledger.jsonl")
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		tb.Fatal(err)
	}
	return path
}

// BenchmarkCheck is what a tick does about its budget, in a process that knows nothing yet: it reads the state and reserves,
// in a ledger that others have been writing to. of-whole is its part of reading the whole file in the same run.
func BenchmarkCheck(b *testing.B) {
	for _, n := range []int{100, 100_000} {
		path := written(b, n)
		began := time.Now()
		if err := Open(path).whole(); err != nil {
			b.Fatal(err)
		}
		whole := time.Since(began)
		if err := Open(path).Spend(b.Context(), "earlier", Spent{Nano: 1}, at(n)); err != nil {
			b.Fatal(err)
		}
		i := 0
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				i++
				l := Open(path)
				if _, err := l.Read(); err != nil {
					b.Fatal(err)
				}
				q := ReserveRequest{Run: fmt.Sprintf("r%d-%d", b.N, i), Agent: "manager", Step: "plan", StepLimit: 1, MinRun: 1, AgentsDue: 1, Now: at(n)}
				if _, d, err := l.Reserve(b.Context(), q); err != nil || d != money.Admit {
					b.Fatal(d, err)
				}
			}
			b.ReportMetric(float64(b.Elapsed())/float64(b.N)/float64(whole), "of-whole")
		})
	}
}

// BenchmarkRead is the first read of a process: the whole file.
func BenchmarkRead(b *testing.B) {
	for _, n := range []int{100, 100_000} {
		path := written(b, n)
		info, err := os.Stat(path)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.SetBytes(info.Size())
			for b.Loop() {
				if l := Open(path); l.whole() != nil || l.past.seq != int64(n) {
					b.Fatal(n)
				}
			}
		})
	}
}

// BenchmarkReserve is a reservation by a process that has read the ledger before.
func BenchmarkReserve(b *testing.B) {
	for _, n := range []int{100, 100_000} {
		l := Open(written(b, n))
		if _, err := l.Read(); err != nil {
			b.Fatal(err)
		}
		i := 0
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				i++
				q := ReserveRequest{Run: fmt.Sprintf("r%d", i), Agent: "manager", Step: "plan", StepLimit: 1, MinRun: 1, AgentsDue: 1, Now: at(n)}
				if _, d, err := l.Reserve(b.Context(), q); err != nil || d != money.Admit {
					b.Fatal(d, err)
				}
			}
		})
	}
}
