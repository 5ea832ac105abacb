package journal

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T) Journal { return Journal{filepath.Join(t.TempDir(), "events.jsonl")} }

// texts reads from offset on and returns what the events say.
func texts(t *testing.T, j Journal, offset int64) (said string, next int64, bad int) {
	t.Helper()
	events, next, bad, err := j.Read(offset)
	ok(t, err)
	var out []string
	for _, e := range events {
		out = append(out, e.Text)
	}
	return strings.Join(out, "|"), next, bad
}

func TestAddAndRead(t *testing.T) {
	j := open(t)
	if said, next, bad := texts(t, j, 0); said != "" || next != 0 || bad != 0 {
		t.Errorf("before the first: %q %d %d", said, next, bad)
	}
	e := Event{At: time.Date(2026, 3, 1, 13, 0, 0, 1, time.FixedZone("x", 3600)), Kind: StepDone, Level: Milestone, Agent: "codebuilder-1",
		Step: "a", Run: "r", Text: "line one\nline two 😀 \x00 \"q\" <b>\u2028", Incident: "i"}
	ok(t, j.Add(e))
	ok(t, j.Add(Event{Kind: RunEnded, Text: "second"}))
	events, next, bad, err := j.Read(0)
	ok(t, err)
	if len(events) != 2 || bad != 0 {
		t.Fatal(events, bad)
	}
	e.Version, e.At = 1, e.At.UTC()
	if events[0] != e {
		t.Errorf("%+v", events[0])
	}
	b, err := os.ReadFile(j.Path)
	ok(t, err)
	if events[1].Level != Routine || events[1].Version != 1 || events[1].Offset != int64(strings.Index(string(b), "\n")+1) {
		t.Errorf("%+v", events[1])
	}
	if strings.Count(string(b), "\n") != 2 || !strings.Contains(string(b), `"at":"2026-03-01T12:00:00.000000001Z"`) || next != int64(len(b)) {
		t.Errorf("%s", b)
	}
	if said, again, _ := texts(t, j, next); said != "" || again != next {
		t.Errorf("nothing new: %q, %d", said, again)
	}
	ok(t, j.Add(Event{Kind: RunEnded, Text: "third"}))
	if said, _, _ := texts(t, j, next); said != "third" {
		t.Error(said)
	}
}

// TestHalfLine: a line that is being written is read when it is whole; one whose writer died costs only itself.
func TestHalfLine(t *testing.T) {
	j := open(t)
	ok(t, j.Add(Event{Kind: RunEnded, Text: "first"}))
	whole, err := os.ReadFile(j.Path)
	ok(t, err)
	for cut := 1; cut < len(whole); cut++ {
		ok(t, os.WriteFile(j.Path, append([]byte(string(whole)), whole[:cut]...), 0o600))
		if said, next, bad := texts(t, j, 0); said != "first" || next != int64(len(whole)) || bad != 0 {
			t.Fatalf("cut at %d: %q, %d, %d", cut, said, next, bad)
		}
		ok(t, j.Add(Event{Kind: Paused, Level: Blocker, Text: "needed"}))
		want, wantBad := "needed", 1
		if cut == len(whole)-1 { // only its newline was missing
			want, wantBad = "first|needed", 0
		}
		if said, _, bad := texts(t, j, int64(len(whole))); said != want || bad != wantBad {
			t.Fatalf("cut at %d: %q, %d", cut, said, bad)
		}
	}
}

func TestLinesThatAreNoEvents(t *testing.T) {
	j := open(t)
	good := `{"version":1,"kind":"step_done","level":"routine","text":"%s"}`
	lines := []string{
		fmt.Sprintf(good, "one"), "", "   ", "garbage", strings.Repeat("\x00", 4096), "8", "null", `"text"`, `[1]`, `{}`, `{"kind":""}`, `{"kind":1}`,
		"\xff\xfe", fmt.Sprintf(good, strings.Repeat("x", 1<<20)), fmt.Sprintf(good, "two"),
	}
	ok(t, os.WriteFile(j.Path, []byte(strings.Join(lines, "\n")+"\n"), 0o600))
	said, next, bad := texts(t, j, 0)
	if said != "one|"+strings.Repeat("x", 1<<20)+"|two" || bad != 10 {
		t.Errorf("%d bytes said, %d bad", len(said), bad)
	}
	if st, _ := os.Stat(j.Path); next != st.Size() {
		t.Errorf("next %d of %d", next, st.Size())
	}
}

func TestManyWriters(t *testing.T) {
	j := open(t)
	var wait sync.WaitGroup
	for i := range 10 {
		wait.Go(func() {
			for n := range 10 {
				if err := j.Add(Event{Kind: RunEnded, Text: fmt.Sprintf("%d-%d %s", i, n, strings.Repeat("x", 500))}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	// A reader meanwhile sees each event once, whole, by going on where it was.
	seen := map[string]bool{}
	var at int64
	for len(seen) < 100 {
		events, next, bad, err := j.Read(at)
		ok(t, err)
		if bad > 0 || next < at {
			t.Fatalf("%d bad, %d after %d", bad, next, at)
		}
		for _, e := range events {
			if seen[e.Text] {
				t.Errorf("%s twice", e.Text[:4])
			}
			seen[e.Text] = true
			if again, _, _, err := j.Read(e.Offset); err != nil || again[0].Text != e.Text {
				t.Errorf("%s does not begin at %d", e.Text[:4], e.Offset)
			}
		}
		at = next
		time.Sleep(time.Millisecond)
	}
	wait.Wait()
}

func TestCannotBeRead(t *testing.T) {
	j := Journal{t.TempDir()}
	if _, _, _, err := j.Read(0); err == nil {
		t.Error("a folder was read")
	}
	if err := j.Add(Event{Kind: RunEnded}); err == nil {
		t.Error("an event was added to a folder")
	}
}

// TestFull: a record that got too long takes no more routine events, says so once, and keeps what a person has to know.
func TestFull(t *testing.T) {
	j := Journal{Path: filepath.Join(t.TempDir(), "events.jsonl")}
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	ok := func(err error) { t.Helper(); ok(t, err) }
	ok(j.Add(Event{At: at, Kind: RunStarted, Text: "first"}))
	f, err := os.OpenFile(j.Path, os.O_WRONLY, 0)
	ok(err)
	ok(f.Truncate(maxSize - 1)) // a hole: no line
	_, err = f.WriteAt([]byte("\n"), maxSize-1)
	ok(err)
	ok(f.Close())
	for range 100 {
		ok(j.Add(Event{At: at, Kind: RunStarted, Text: "left out"}))
	}
	ok(j.Add(Event{At: at, Kind: StepDone, Level: Milestone, Text: "a milestone"}))
	ok(j.Add(Event{At: at, Kind: Unpaused, Incident: "x", Over: true, Text: "it is over"}))
	ok(j.Add(Event{At: at, Kind: MissionStopped, Level: End, Text: "the end"}))
	events, _, _, err := j.Read(0)
	ok(err)
	var kinds []string
	for _, e := range events {
		kinds = append(kinds, e.Kind)
	}
	if want := []string{RunStarted, EventsLeftOut, StepDone, Unpaused, MissionStopped}; !slices.Equal(kinds, want) {
		t.Errorf("%v, want %v", kinds, want)
	}
}
