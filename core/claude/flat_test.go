package claude

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/runner"
)

// TestLongLine: a line beyond all measure is a mark, and what comes after it counts.
func TestLongLine(t *testing.T) {
	for _, n := range []int{maxLine - 1, maxLine, 20 << 20} {
		in := io.MultiReader(strings.NewReader("a\n"), &zeros{left: int64(n)}, strings.NewReader("\nb"))
		var got []string
		if err := readLines(in, func(line []byte) bool { got = append(got, string(line)); return true }); err != nil {
			t.Fatal(err)
		}
		if len(got) != 3 || got[0] != "a" || got[2] != "b" {
			t.Fatalf("%d bytes: %d lines", n, len(got))
		}
		if cut := strings.Contains(got[1], `"type":"cut"`); cut != (n >= maxLine) || !cut && len(got[1]) != n {
			t.Errorf("%d bytes: %.80s", n, got[1])
		}
	}
}

type zeros struct{ left int64 }

func (z *zeros) Read(p []byte) (int, error) {
	if z.left == 0 {
		return 0, io.EOF
	}
	n := min(int64(len(p)), z.left)
	z.left -= n
	for i := range p[:n] {
		p[i] = '0'
	}
	return int(n), nil
}

// TestFlat: an output of hundreds of megabytes, or lines of 20 MB, take no more memory than a small one does, leave a bounded
// transcript, and are counted to the end.
func TestFlat(t *testing.T) {
	lines := 70
	if os.Getenv("AUTOAGENT_FULL") != "" {
		lines = 500
	}
	peak := func(part string) uint64 {
		t.Helper()
		runtime.GC()
		var most atomic.Uint64
		done, ended := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(ended)
			for every := time.NewTicker(5 * time.Millisecond); ; <-every.C {
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				most.Store(max(most.Load(), m.HeapInuse))
				select {
				case <-done:
					return
				default:
				}
			}
		}()
		transcript, err := os.Create(filepath.Join(t.TempDir(), "stream.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		defer transcript.Close()
		j := fakeJob(t, part)
		j.Transcript, j.Wall, j.Silence = transcript, 5*time.Minute, 5*time.Minute
		j.Event = func(runner.Event) {}
		c := fakeRunner(t)
		res := mustRun(t, c, j)
		close(done)
		<-ended
		if res.Verdict != runner.Done || res.Spend.Tokens != 1050 {
			t.Errorf("%s: %+v", part, res)
		}
		size, err := transcript.Seek(0, io.SeekEnd)
		if err != nil || size > 80<<20 {
			t.Errorf("%s: the transcript has %d MB, %v", part, size>>20, err)
		}
		if _, err := transcript.Seek(0, io.SeekStart); err != nil {
			t.Fatal(err)
		}
		if s, started, err := c.Recount(transcript); err != nil || !started || s.Tokens != 1050 {
			t.Errorf("%s: recount %+v, %v", part, s, err)
		}
		t.Logf("%s: %d MB of memory, transcript of %d MB", part, most.Load()>>20, size>>20)
		return most.Load()
	}
	small := peak("pour 10 1024")
	for _, part := range []string{fmt.Sprintf("pour %d 1024", lines), "pour 4 20480"} {
		if big := peak(part); big > 3*small+2*maxLine {
			t.Errorf("%s took %d MB, a small output %d MB", part, big>>20, small>>20)
		}
	}
}
