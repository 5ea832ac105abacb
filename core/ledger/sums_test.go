package ledger

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"

	"example.com/AutoAgentProject/core/money"
	"example.com/AutoAgentProject/core/usererr"
)

// eager opens a ledger that writes sums after each record.
func eager(path string) *Ledger {
	l := Open(path)
	l.every = 1
	return l
}

// TestSumsChangeNothing: two ledgers get the same calls at random, one of them by processes that each begin at the sums.
// Both answer the same and come to the same, to the byte.
func TestSumsChangeNothing(t *testing.T) {
	for seed := range uint64(3) {
		r := rand.New(rand.NewPCG(seed, 3))
		plain := fresh(t, 50_000)
		path := filepath.Join(t.TempDir(), "ledger.jsonl")
		ok(t, eager(path).Create(t.Context(), money.Amount{Unit: money.NanoUSD, N: 50_000}, at(0)))
		for i := range 120 {
			run := fmt.Sprintf("r%d", r.IntN(40))
			s := Spent{Nano: money.Nano(r.IntN(300)), Tokens: int64(r.IntN(50)), ByModel: map[string]money.Usage{fmt.Sprintf("m%d", r.IntN(3)): {Input: int64(r.IntN(50))}}}
			if r.IntN(5) == 0 {
				s.Unpriced = []string{fmt.Sprintf("x%d", r.IntN(3))}
			}
			call := func(l *Ledger) string { return "" }
			switch r.IntN(6) {
			case 0, 1:
				q := ReserveRequest{Run: run, Agent: "a" + run, Step: "s", StepLimit: int64(100 + r.IntN(300)), MinRun: 50, AgentsDue: 1, Now: at(i)}
				call = func(l *Ledger) string {
					n, d, err := l.Reserve(t.Context(), q)
					return fmt.Sprint(n, d, usererr.CodeOf(err))
				}
			case 2:
				call = func(l *Ledger) string { return fmt.Sprint(usererr.CodeOf(l.Launch(t.Context(), run, at(i)))) }
			case 3, 4:
				call = func(l *Ledger) string { return fmt.Sprint(l.Spend(t.Context(), run, s, at(i))) }
			case 5:
				call = func(l *Ledger) string { return fmt.Sprint(l.Release(t.Context(), run, "x", at(i))) }
			}
			if a, b := call(plain), call(eager(path)); a != b {
				t.Fatalf("seed %d, call %d: %s without sums, %s with them", seed, i, a, b)
			}
			if a, b := read(t, plain), read(t, Open(path)); !reflect.DeepEqual(a, b) {
				t.Fatalf("seed %d, call %d:\n%+v without sums\n%+v with them", seed, i, a, b)
			}
		}
		a, _ := os.ReadFile(plain.path)
		b, _ := os.ReadFile(path)
		if !bytes.Equal(a, b) {
			t.Fatalf("seed %d: the ledgers differ", seed)
		}
		if _, err := os.Stat(path + sumsSuffix); err != nil {
			t.Fatal("there are no sums:", err)
		}
	}
}

// TestSumsAreUsed: what stands before the sums is not read again.
func TestSumsAreUsed(t *testing.T) {
	path := written(t, 1000)
	ok(t, eager(path).Spend(t.Context(), "new", Spent{Nano: 1}, at(2000)))
	want := read(t, Open(path))
	data, err := os.ReadFile(path)
	ok(t, err)
	ok(t, os.WriteFile(path, append(bytes.Replace(data[:5000], []byte(`"kind"`), []byte(`"mind"`), 1), data[5000:]...), 0o600))
	if got := read(t, Open(path)); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if _, _, err := Open(path).Entries(); usererr.CodeOf(err) != usererr.Unreadable {
		t.Errorf("who needs all of it is not told: %v", err)
	}
	if err := Open(path).Spend(t.Context(), "5e550000-0000-4000-8000-000000000001", Spent{Nano: 1 << 40}, at(2001)); usererr.CodeOf(err) != usererr.Unreadable {
		t.Errorf("a spend that needs an old record: %v", err)
	}
}

// TestBadSums: sums that are damaged, or of another ledger, are as none, and are replaced.
func TestBadSums(t *testing.T) {
	path := written(t, 400)
	plain := read(t, Open(path))
	other := written(t, 400)
	data, err := os.ReadFile(other)
	ok(t, err)
	last := bytes.LastIndex(data, []byte(`"nano_usd":1000000`))
	ok(t, os.WriteFile(other, append(data[:last], bytes.Replace(data[last:], []byte("1000000"), []byte("9000000"), 1)...), 0o600))
	ok(t, eager(other).Spend(t.Context(), "new", Spent{Nano: 5, Tokens: 5}, at(2000))) // as long as the other
	foreign, err := os.ReadFile(other + sumsSuffix)
	ok(t, err)
	ok(t, eager(path).Release(t.Context(), "none", "", at(1))) // adds nothing
	if _, err := os.Stat(path + sumsSuffix); err == nil {
		t.Fatal("sums without a record")
	}
	ok(t, eager(path).Spend(t.Context(), "new", Spent{Nano: 5, Tokens: 5}, at(2000)))
	good, err := os.ReadFile(path + sumsSuffix)
	ok(t, err)
	want := read(t, Open(path))
	if want.Nano != plain.Nano+5 {
		t.Fatalf("%+v", want)
	}
	bad := map[string][]byte{"another ledger's": foreign, "empty": {}, "null": []byte("null"), "other sums": bytes.Replace(good, []byte(`"nano_usd":`), []byte(`"nano_usd":1`), 1),
		"other version": bytes.Replace(good, []byte(`"v":1`), []byte(`"v":2`), 1), "NULs": make([]byte, 4096)}
	for cut := 0; cut < len(good); cut += 41 {
		bad[fmt.Sprint("cut at ", cut)] = good[:cut]
	}
	for name, b := range bad {
		if bytes.Equal(b, good) {
			t.Fatalf("%s: the edit finds nothing to change", name)
		}
		ok(t, os.WriteFile(path+sumsSuffix, b, 0o600))
		if got := read(t, Open(path)); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
	ok(t, os.Remove(path+sumsSuffix))
	ok(t, os.Symlink("/dev/zero", path+sumsSuffix))
	if got := read(t, Open(path)); !reflect.DeepEqual(got, want) {
		t.Errorf("a link: %+v", got)
	}
}

// TestCutBeforeTheSums: a ledger that is shorter than its sums is no ledger that was only appended to; it is read whole.
func TestCutBeforeTheSums(t *testing.T) {
	path := written(t, 400)
	data, err := os.ReadFile(path)
	ok(t, err)
	ok(t, eager(path).Spend(t.Context(), "new", Spent{Nano: 5}, at(2000)))
	want := read(t, Open(written(t, 400)))
	ok(t, os.WriteFile(path, data, 0o600))
	if got := read(t, Open(path)); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestIDSet(t *testing.T) {
	s := newIDSet(5000)
	for i := range 5000 {
		s.add(fmt.Sprint("in", i))
	}
	wrong := 0
	for i := range 5000 {
		if !s.has(fmt.Sprint("in", i)) {
			t.Fatalf("%d is lost", i)
		}
		if s.has(fmt.Sprint("out", i)) {
			wrong++
		}
	}
	if wrong > 50 {
		t.Errorf("%d of 5000 are taken for members", wrong)
	}
	if !(idSet{}).has("x") {
		t.Error("a set that cannot tell says no")
	}
}

// TestSetGrows: when there are more runs than the set has room for, a larger one is made.
func TestSetGrows(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.jsonl")
	ok(t, eager(path).Create(t.Context(), money.Amount{Unit: money.NanoUSD, N: 1 << 50}, at(0)))
	var b strings.Builder
	data, err := os.ReadFile(path)
	ok(t, err)
	b.Write(data)
	seq := int64(1)
	add := func(n int) {
		for range n {
			seq++
			line, err := encode(Record{Kind: Spend, Run: fmt.Sprint("r", seq), Nano: 1}, seq, at(1))
			ok(t, err)
			b.Write(append(line, '\n'))
		}
		ok(t, os.WriteFile(path, []byte(b.String()), 0o600))
	}
	add(10)
	small := 0
	for _, n := range []int{0, 3000} {
		add(n)
		l := eager(path)
		ok(t, l.Spend(t.Context(), fmt.Sprint("extra", n), Spent{Nano: 1}, at(2)))
		seq++
		data, err := os.ReadFile(path)
		ok(t, err)
		b.Reset()
		b.Write(data)
		p := Open(path)
		read(t, p)
		bits := len(p.past.base.Known.Bits)
		if n == 0 {
			small = bits
		} else if bits <= small || p.past.base.Known.N < 3000 {
			t.Errorf("%d bytes for 10 runs, %d for 3000 (%d known)", small, bits, p.past.base.Known.N)
		}
		if got := read(t, p).Nano; got != money.Nano(seq-1) {
			t.Errorf("%d spent, want %d", got, seq-1)
		}
	}
}

// TestSumsUnderManyWriters: ledgers that write at the same time, each with its own idea of what it has read, leave sums
// that say the same as the records.
func TestSumsUnderManyWriters(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.jsonl")
	ok(t, eager(path).Create(t.Context(), money.Amount{Unit: money.NanoUSD, N: 1_000_000}, at(0)))
	var all sync.WaitGroup
	for w := range 6 {
		all.Go(func() {
			l := eager(path)
			for i := range 12 {
				if i%3 == 0 {
					l = eager(path)
				}
				run := fmt.Sprintf("r%d-%d", w, i)
				q := ReserveRequest{Run: run, Agent: "a", Step: "s", StepLimit: 100, MinRun: 1, AgentsDue: 1, Now: at(i)}
				if _, d, err := l.Reserve(t.Context(), q); err != nil || d != money.Admit {
					t.Error(d, err)
				}
				if i%2 == 0 {
					if err := l.Spend(t.Context(), run, Spent{Nano: 10, Tokens: 1}, at(i)); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	all.Wait()
	quick, whole := Open(path), Open(path)
	got := read(t, quick)
	ok(t, whole.whole())
	if want := whole.past.book(); !reflect.DeepEqual(got, want) || quick.past.base == nil || got.Used.N != 6*6*10 || len(got.OpenRuns) != 36 {
		t.Errorf("%+v with sums, want %+v", got, want)
	}
}
