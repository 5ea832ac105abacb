package store

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/journal"
	"example.com/AutoAgentProject/core/usererr"
)

// working is a mission whose state was changed a few times.
func working(t testing.TB) *Store {
	t.Helper()
	s := fresh(t)
	ok(t, s.SetPhase(t.Context(), "working", noon))
	ok(t, s.SetLine(t.Context(), "manager", Line{Text: "waits", Doing: "waiting"}, "more\n", noon))
	ok(t, s.SetLine(t.Context(), "codebuilder-1", Line{Text: "works on a", Doing: "working", Step: "a", Run: "r"}, "", noon.Add(time.Minute)))
	return s
}

func TestState(t *testing.T) {
	s := fresh(t)
	if st, err := s.State(); err != nil || st.Generation != 0 || st.Agents == nil || st.Phase != "" {
		t.Errorf("%+v, %v", st, err)
	}
	s = working(t)
	st, err := s.State()
	if err != nil || st.Generation != 3 || st.Phase != "working" || !st.UpdatedAt.Equal(noon.Add(time.Minute)) ||
		st.Agents["codebuilder-1"] != (Line{"works on a", "working", "a", "r", noon.Add(time.Minute)}) {
		t.Errorf("%+v, %v", st, err)
	}
	if got := content(t, filepath.Join(s.Agent("manager"), "detail.md")); got != "waits\n\nmore\n" {
		t.Errorf("%q", got)
	}
	good, err := s.LastGoodState()
	if err != nil || good.Generation != 2 {
		t.Errorf("last good: %+v, %v", good, err)
	}
}

// TestSameAgainWritesNothing: a tick in which nothing changed leaves the disk alone.
func TestSameAgainWritesNothing(t *testing.T) {
	s := working(t)
	before, err := os.Stat(s.file("state.json"))
	ok(t, err)
	ok(t, s.SetLine(t.Context(), "manager", Line{Text: "waits", Doing: "waiting"}, "more\n", noon.Add(time.Hour)))
	ok(t, s.SetPhase(t.Context(), "working", noon.Add(time.Hour)))
	if after, err := os.Stat(s.file("state.json")); err != nil || !os.SameFile(before, after) {
		t.Error("it was written again")
	}
	for n, l := range []Line{{Text: "waits!", Doing: "waiting"}, {Text: "waits", Doing: "idle"}, {Text: "waits", Doing: "waiting", Step: "a"}, {Text: "waits", Doing: "waiting", Run: "r"}} {
		ok(t, s.SetLine(t.Context(), "manager", l, "", noon))
		if st, _ := s.State(); st.Generation != int64(4+n) {
			t.Errorf("%+v: generation %d", l, st.Generation)
		}
	}
}

// TestLinesAreOneLine: what a model said goes to terminals and pages.
func TestLinesAreOneLine(t *testing.T) {
	s := fresh(t)
	for in, want := range map[string]string{
		"one\ntwo\r\nthree": "one two three", "a\x1b[2Jb": "a [2Jb", "a\x00b": "a b", "\t tab \t": "  tab", "": "", "bell\a": "bell", "a\u009b2Jb": "a 2Jb",
		"bad \xff utf8": "bad \uFFFD utf8", strings.Repeat("😀", 300): strings.Repeat("😀", 199) + "…", strings.Repeat("x", 200): strings.Repeat("x", 200),
	} {
		ok(t, s.SetLine(t.Context(), "manager", Line{Text: in}, "", noon))
		st, err := s.State()
		ok(t, err)
		if got := st.Agents["manager"].Text; strings.TrimSpace(got) != strings.TrimSpace(want) {
			t.Errorf("%q became %q", in, got)
		}
	}
}

// TestDamagedState: reading says so and changes nothing; the next change keeps the evidence, rebuilds what can be
// rebuilt, and tells.
func TestDamagedState(t *testing.T) {
	for how, data := range damages() {
		s := working(t)
		path := s.file("state.json")
		ok(t, os.WriteFile(path, []byte(data), 0o600)) // in place, as a power loss does it
		if _, err := s.State(); usererr.CodeOf(err) != usererr.Unreadable || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", how, err)
		}
		if good, err := s.LastGoodState(); err != nil || good.Generation != 2 {
			t.Errorf("%s: last good: %+v, %v", how, good, err)
		}
		if content(t, path) != data {
			t.Errorf("%s: reading changed it", how)
		}
		ok(t, s.SetLine(t.Context(), "quota", Line{Text: "counts"}, "", noon.Add(time.Hour)))
		checkRebuilt(t, how, s)
		if kept, _ := filepath.Glob(path + ".bad-*"); len(kept) != 1 || content(t, kept[0]) != data {
			t.Errorf("%s: kept %q", how, kept)
		}
		events, _, _, err := s.Journal().Read(0)
		if err != nil || len(events) != 1 || events[0].Kind != journal.StateSetAside || events[0].Level != journal.Milestone || !strings.Contains(events[0].Text, "state.json.bad-") {
			t.Errorf("%s: told %+v, %v", how, events, err)
		}
	}
}

func checkRebuilt(t *testing.T, how string, s *Store) {
	t.Helper()
	st, err := s.State()
	if err != nil || st.Generation <= 3 || st.Phase != "working" || st.Agents["codebuilder-1"].Text != "works on a" || st.Agents["manager"].Text != "waits" || st.Agents["quota"].Text != "counts" {
		t.Errorf("%s: rebuilt %+v, %v", how, st, err)
	}
}

func TestStateThatIsNoFile(t *testing.T) {
	for how, put := range nodes() {
		s := working(t)
		path := s.file("state.json")
		ok(t, os.Remove(path))
		ok(t, put(path))
		if _, err := s.State(); usererr.CodeOf(err) != usererr.Unreadable {
			t.Errorf("%s: %v", how, err)
		}
		ok(t, s.SetLine(t.Context(), "quota", Line{Text: "counts"}, "", noon))
		checkRebuilt(t, how, s)
		if kept, _ := filepath.Glob(path + ".bad-*"); len(kept) != 1 {
			t.Errorf("%s: kept %q", how, kept)
		}
	}
}

// TestStateThatIsGone: set aside by a tick that died then, or removed. It is rebuilt all the same.
func TestStateThatIsGone(t *testing.T) {
	s := working(t)
	ok(t, os.Remove(s.file("state.json")))
	ok(t, s.SetLine(t.Context(), "quota", Line{Text: "counts"}, "", noon))
	checkRebuilt(t, "gone", s)
	if events, _, _, _ := s.Journal().Read(0); len(events) != 1 || events[0].Kind != journal.StateSetAside {
		t.Errorf("told %+v", events)
	}
}

// TestNothingLeftToRebuildFrom: with the last good copy bad too, and the mission itself, there is still a state.
func TestNothingLeftToRebuildFrom(t *testing.T) {
	s := working(t)
	for _, name := range []string{"state.json", "state.good.json", "mission.json"} {
		ok(t, os.WriteFile(s.file(name), []byte("{"), 0o600))
	}
	ok(t, s.SetLine(t.Context(), "quota", Line{Text: "counts"}, "", noon))
	if st, err := s.State(); err != nil || st.Generation != 1 || st.Agents["quota"].Text != "counts" {
		t.Errorf("%+v, %v", st, err)
	}
	if content(t, s.file("mission.json")) != "{" {
		t.Error("the mission was touched")
	}
}

// TestDamagedAgain: each evidence is kept.
func TestDamagedAgain(t *testing.T) {
	s := working(t)
	for n := range 3 {
		ok(t, os.WriteFile(s.file("state.json"), []byte{byte('a' + n)}, 0o600))
		ok(t, s.SetPhase(t.Context(), "working", noon.Add(time.Duration(n)*time.Second)))
	}
	if kept, _ := filepath.Glob(s.file("state.json.bad-*")); len(kept) != 3 {
		t.Errorf("kept %q", kept)
	}
}
