package usage

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// big writes transcripts of n records of some 5 KB in a few files, as a long use of the program leaves them behind.
func big(tb testing.TB, n int) (dir string, size int64) {
	tb.Helper()
	dir = tb.TempDir()
	fill := strings.Repeat(`a line of \"code\"\n`, 240)
	for part := range 4 {
		var b strings.Builder
		for i := part; i < n; i += 4 {
			b.WriteString(strings.Replace(told(fmt.Sprintf("msg_%d", i), i), "quoted", fill, 1))
			b.WriteByte('\n')
		}
		put(tb, filepath.Join(dir, fmt.Sprintf("%d.jsonl", part)), b.String())
		size += int64(b.Len())
	}
	return dir, size
}

// BenchmarkScan is the first scan: everything is read.
func BenchmarkScan(b *testing.B) {
	dir, size := big(b, 8000)
	b.SetBytes(size)
	for b.Loop() {
		if n := summary(scanned(b, dir, "")).Totals.Messages; n != 8000 {
			b.Fatal(n)
		}
	}
}

// BenchmarkScanAgain is what a call costs after one record was added, with a state that is read and written; of-first is
// its part of the first scan in the same run.
func BenchmarkScanAgain(b *testing.B) {
	for _, n := range []int{1000, 8000} {
		dir, _ := big(b, n)
		state := filepath.Join(b.TempDir(), "state")
		began := time.Now()
		if err := scanned(b, dir, "").Save(state); err != nil {
			b.Fatal(err)
		}
		first := time.Since(began)
		f, err := os.OpenFile(filepath.Join(dir, "0.jsonl"), os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			b.Fatal(err)
		}
		defer f.Close()
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			i := 0
			for b.Loop() {
				i++
				if _, err := fmt.Fprintln(f, told(fmt.Sprintf("msg_more_%d_%d", b.N, i), 1)); err != nil {
					b.Fatal(err)
				}
				s, err := LoadScan(state, "")
				if err != nil {
					b.Fatal(err)
				}
				update(b, s, dir)
				if err := s.Save(state); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed())/float64(b.N)/float64(first), "of-first")
		})
	}
}
