package reporter

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/journal"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/store"
	"example.com/AutoAgentProject/core/tick"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestPick(t *testing.T) {
	e := func(level journal.Level, incident, text string) journal.Event {
		return journal.Event{Level: level, Incident: incident, Text: text}
	}
	told := map[string]bool{"old": true}
	got := Pick([]journal.Event{
		e(journal.Routine, "", "routine"), e("", "", "no level"), e(journal.Milestone, "", "m1"), e(journal.Milestone, "", "m1"),
		e(journal.Blocker, "login", "b1"), e(journal.Blocker, "login", "b1 again"), e(journal.Milestone, "login", "the same incident"),
		e(journal.Routine, "quiet", "routine incident"), e(journal.Blocker, "quiet", "b2"), e(journal.Blocker, "old", "told long ago"), e(journal.End, "", "end"),
	}, told)
	var texts []string
	for _, e := range got {
		texts = append(texts, e.Text)
	}
	if s := strings.Join(texts, "|"); s != "m1|m1|b1|b2|end" {
		t.Error(s)
	}
	if len(told) != 3 || !told["login"] || !told["quiet"] {
		t.Errorf("%v", told)
	}
	if got := Pick(nil, told); got != nil {
		t.Error(got)
	}
}

// begun is the reporter of a fresh mission.
func begun(t *testing.T, root string) Reporter {
	t.Helper()
	st := store.Root(root).Mission("my-site")
	ok(t, st.Queue().Make("reporter"))
	m := mission.Mission{Version: mission.Version, ID: "my-site"}
	return Reporter{&tick.Tick{Store: st, Mission: m, Agent: mission.Agent{Name: "reporter", Role: mission.Reporter},
		Now: func() time.Time { return noon }, Log: slog.New(slog.DiscardHandler)}}
}

func (r Reporter) happened(t *testing.T, level journal.Level, incident, text string) {
	t.Helper()
	ok(t, r.Store.Journal().Add(journal.Event{At: noon, Kind: journal.StepDone, Level: level, Incident: incident, Text: text}))
}

// once is one tick; want is what all messages say, in order.
func (r Reporter) once(t *testing.T, where string, out tick.Outcome, want string) {
	t.Helper()
	got, err := r.Once(t.Context())
	if got != out || err != nil {
		t.Errorf("%s: %v, %v", where, got, err)
	}
	r.said(t, where, want)
}

func (r Reporter) said(t *testing.T, where, want string) {
	t.Helper()
	dir := filepath.Join(r.Store.Notify(), "new")
	entries, err := os.ReadDir(dir)
	ok(t, err)
	var texts []string
	for _, e := range entries {
		if e.Name()[0] == '.' {
			continue // what a dead tick was writing
		}
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		ok(t, err)
		var m Message
		if err := json.Unmarshal(b, &m); err != nil || m.ID+".json" != e.Name() || m.Mission != "my-site" || m.Version != mission.Version || !m.At.Equal(noon) {
			t.Errorf("%s: %s: %s", where, e.Name(), b)
		}
		texts = append(texts, m.Text)
	}
	if s := strings.Join(texts, "|"); s != want {
		t.Errorf("%s: said %q, want %q", where, s, want)
	}
}

func TestOnce(t *testing.T) {
	r := begun(t, t.TempDir())
	r.once(t, "nothing happened", tick.Idle, "")
	r.happened(t, journal.Routine, "", "routine")
	r.once(t, "nothing worth a message", tick.Moved, "")
	r.happened(t, journal.Milestone, "", "one")
	r.happened(t, journal.Blocker, "login", "two\nlines 😀")
	r.once(t, "two", tick.Moved, "one|two\nlines 😀")
	for range 3 {
		r.once(t, "again", tick.Idle, "one|two\nlines 😀")
	}
	r.happened(t, journal.Blocker, "login", "told before")
	r.happened(t, journal.End, "", "end")
	r.once(t, "end", tick.Moved, "one|two\nlines 😀|end")
	// It works after the tombstone too.
	ok(t, r.Store.PrepareTombstone())
	_, err := r.Store.Stop(mission.Stop{Cause: mission.Completed, At: noon})
	ok(t, err)
	r.happened(t, journal.End, "", "after it")
	r.once(t, "after the tombstone", tick.Moved, "one|two\nlines 😀|end|after it")
}

// TestDiedBeforeTheCursor: the messages are there, the cursor is not, and meanwhile more has happened.
func TestDiedBeforeTheCursor(t *testing.T) {
	r := begun(t, t.TempDir())
	cursor := filepath.Join(r.Store.Notify(), "cursor.json")
	want := ""
	for n := range 4 {
		before, err := os.ReadFile(cursor)
		if n > 0 {
			ok(t, err)
		}
		r.happened(t, journal.Blocker, fmt.Sprint("incident-", n/2), fmt.Sprint("b", n))
		r.happened(t, journal.Milestone, "", fmt.Sprint("m", n))
		if n%2 == 0 {
			want += fmt.Sprintf("|b%d", n)
		}
		want += fmt.Sprintf("|m%d", n)
		want = strings.TrimPrefix(want, "|")
		r.once(t, fmt.Sprint("tick ", n), tick.Moved, want)
		if n == 0 {
			ok(t, os.Remove(cursor))
		} else {
			ok(t, os.WriteFile(cursor, before, 0o600))
		}
		if n == 2 { // one message got lost with its tick too
			entries, _ := os.ReadDir(filepath.Join(r.Store.Notify(), "new"))
			ok(t, os.Remove(filepath.Join(r.Store.Notify(), "new", entries[len(entries)-1].Name())))
		}
		r.happened(t, journal.Milestone, "", fmt.Sprint("late", n))
		want += fmt.Sprintf("|late%d", n)
		r.once(t, fmt.Sprint("after the death of tick ", n), tick.Moved, want)
	}
}

// TestDamagedCursor: it is kept, everything is looked at again, and nothing is told again.
func TestDamagedCursor(t *testing.T) {
	for _, damage := range []string{"", "{", "\x00\x00\x00\x00", `{"version":2,"offset":5}`} {
		r := begun(t, t.TempDir())
		for _, text := range []string{"one", "two", "three"} {
			r.happened(t, journal.Blocker, text, text)
			r.once(t, "before", tick.Moved, map[string]string{"one": "one", "two": "one|two", "three": "one|two|three"}[text])
		}
		cursor := filepath.Join(r.Store.Notify(), "cursor.json")
		ok(t, os.WriteFile(cursor, []byte(damage), 0o600))
		r.happened(t, journal.Blocker, "two", "two once more")
		r.happened(t, journal.End, "", "end")
		r.once(t, fmt.Sprintf("%q", damage), tick.Moved, "one|two|three|end")
		kept, _ := filepath.Glob(cursor + ".bad-*")
		if len(kept) != 1 {
			t.Errorf("%q: kept %q", damage, kept)
		} else if b, err := os.ReadFile(kept[0]); err != nil || string(b) != damage {
			t.Errorf("%q: kept %q, %v", damage, b, err)
		}
	}
}

// TestHalfAnEvent is told when it is whole; a broken line costs only itself.
func TestHalfAnEvent(t *testing.T) {
	r := begun(t, t.TempDir())
	r.happened(t, journal.Milestone, "", "one")
	r.once(t, "one", tick.Moved, "one")
	f, err := os.OpenFile(r.Store.Journal().Path, os.O_APPEND|os.O_WRONLY, 0)
	ok(t, err)
	defer f.Close()
	_, err = f.WriteString(`{"version":1,"at":"2026-03-01T12:00:00Z","kind":"x","level":"blocker","text":"tw`)
	ok(t, err)
	r.once(t, "half", tick.Idle, "one")
	_, err = f.WriteString("o\"}\ngarbage\n")
	ok(t, err)
	r.happened(t, journal.Milestone, "", "three")
	r.once(t, "whole", tick.Moved, "one|two|three")
}
