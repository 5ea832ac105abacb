package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"example.com/AutoAgentProject/core/files"
	"example.com/AutoAgentProject/core/mission"
)

func stop(reason string) mission.Stop {
	return mission.Stop{Cause: mission.Budget, Reason: reason, By: "quota", At: noon}
}

// stopped reads the tombstone, which must be there.
func stopped(t testing.TB, s *Store) mission.Stop {
	t.Helper()
	got, err := s.Stopped()
	ok(t, err)
	if got == nil {
		t.Fatal("there is no tombstone")
	}
	return *got
}

// left lists what of stopping lies around besides stop.json.
func left(t testing.TB, s *Store) string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(strings.NewReplacer("[", `\[`, "*", `\*`, "?", `\?`).Replace(s.Dir()), "stop.*"))
	ok(t, err)
	var out []string
	for _, n := range names {
		if filepath.Base(n) != "stop.json" {
			out = append(out, filepath.Base(n))
		}
	}
	return strings.Join(out, " ")
}

func TestTombstone(t *testing.T) {
	s := fresh(t)
	for range 2 {
		ok(t, s.PrepareTombstone())
	}
	if got, err := s.Stopped(); got != nil || err != nil {
		t.Fatal(got, err)
	}
	made, err := s.Stop(mission.Stop{Cause: mission.Budget, Reason: "$1.00 of $1.00 is used", By: "quota", At: noon.In(time.FixedZone("x", 3600))})
	if !made || err != nil {
		t.Fatal(made, err)
	}
	want := stop("$1.00 of $1.00 is used")
	want.Version = mission.Version
	if got := stopped(t, s); got != want || left(t, s) != "" {
		t.Errorf("%+v, left %q", got, left(t, s))
	}
	// The first one wins, also when it is prepared again.
	ok(t, s.PrepareTombstone())
	if made, err := s.Stop(mission.Stop{Cause: mission.Aborted, At: noon}); made || err != nil {
		t.Error(made, err)
	}
	if got := stopped(t, s); got != want {
		t.Errorf("%+v", got)
	}
}

// TestAnyReasonFits: whatever the reason is made of, the mission stops.
func TestAnyReasonFits(t *testing.T) {
	for name, reason := range map[string]string{
		"none": "", "long": strings.Repeat("x", 1<<20), "angle brackets": strings.Repeat("<", 1000), "NULs": strings.Repeat("\x00", 5000),
		"quotes": strings.Repeat(`"\`, 3000), "emoji": strings.Repeat("😀", 3000), "not UTF-8": strings.Repeat("\xff", 3000), "line separators": strings.Repeat("\u2028", 3000),
	} {
		s := fresh(t)
		if made, err := s.Stop(stop(reason)); !made || err != nil {
			t.Errorf("%s: %v, %v", name, made, err)
			continue
		}
		got := stopped(t, s)
		if got.Cause != mission.Budget || (len(reason) > 0 && len(got.Reason) == 0) || got.Reason != strings.ToValidUTF8(got.Reason, "") {
			t.Errorf("%s: %+v", name, got)
		}
		if st, err := os.Stat(s.file("stop.json")); err != nil || st.Size() != tombstoneSize {
			t.Errorf("%s: %d bytes, %v", name, st.Size(), err)
		}
	}
}

// TestFirstTombstoneWins: many at once, in this process and others.
func TestFirstTombstoneWins(t *testing.T) {
	for _, prepared := range []bool{true, false} {
		s := fresh(t)
		if !prepared {
			ok(t, os.Remove(s.file("stop.prepared")))
		}
		won := make(chan string, 20)
		var wait sync.WaitGroup
		for i := range 6 {
			wait.Go(func() {
				made, err := s.Stop(mission.Stop{Cause: mission.Aborted, By: fmt.Sprint("g", i), At: noon})
				if err != nil {
					t.Error(err)
				}
				if made {
					won <- fmt.Sprint("g", i)
				}
			})
			wait.Go(func() {
				out, err := child(t.Context(), "stop", s, fmt.Sprint("p", i)).Output()
				if err != nil {
					t.Errorf("%v: %s", err, out)
				}
				if string(out) == "true" {
					won <- fmt.Sprint("p", i)
				}
			})
		}
		wait.Wait()
		close(won)
		if len(won) != 1 {
			t.Fatalf("prepared %v: %d made it", prepared, len(won))
		}
		if by, got := <-won, stopped(t, s); got.By != by || got.Cause != mission.Aborted {
			t.Errorf("prepared %v: %s won, %+v", prepared, by, got)
		}
		if got := left(t, s); got != "" {
			t.Errorf("prepared %v: left %q", prepared, got)
		}
	}
}

// claimed leaves behind what a stopper leaves that died after it had claimed the prepared file.
func claimed(t testing.TB, s *Store, data string) {
	t.Helper()
	path := s.file(fmt.Sprintf("stop.%d-1772366400000000000", 1<<30))
	ok(t, os.Rename(s.file("stop.prepared"), path))
	if data == "" {
		return
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	ok(t, err)
	defer f.Close()
	_, err = f.WriteAt([]byte(data), 0)
	ok(t, err)
}

func TestDeadStopper(t *testing.T) {
	for _, data := range []string{"", `{"version":1,"cause":"abor`, strings.Repeat("\x00", tombstoneSize)} {
		s := fresh(t)
		claimed(t, s, data)
		if got, err := s.Stopped(); got != nil || err != nil {
			t.Fatal(got, err)
		}
		if made, err := s.Stop(stop("r")); !made || err != nil {
			t.Error(made, err)
		}
		if got := stopped(t, s); got.Reason != "r" || left(t, s) != "" {
			t.Errorf("%+v, left %q", got, left(t, s))
		}
	}
}

// TestLivingStopper: what another one works on is not taken from it.
func TestLivingStopper(t *testing.T) {
	s := fresh(t)
	other := s.file(fmt.Sprintf("stop.%d-1", os.Getppid()))
	ok(t, os.Rename(s.file("stop.prepared"), other))
	if made, err := s.Stop(stop("r")); !made || err != nil {
		t.Error(made, err)
	}
	if _, err := os.Stat(other); err != nil {
		t.Error(err)
	}
}

// TestAnyRoot: a root may be called anything.
func TestAnyRoot(t *testing.T) {
	s := start(t, filepath.Join(t.TempDir(), "a [x]*? $HOME %h"))
	claimed(t, s, "")
	if made, err := s.Stop(stop("r")); !made || err != nil || left(t, s) != "" {
		t.Errorf("%v, %v, left %q", made, err, left(t, s))
	}
}

// TestUnreadableTombstone still stops, and stays as it is.
func TestUnreadableTombstone(t *testing.T) {
	check := func(how string, s *Store, same func() bool) {
		t.Helper()
		if got, err := s.Stopped(); got == nil || err != nil {
			t.Errorf("%s: %+v, %v", how, got, err)
		}
		if made, err := s.Stop(stop("r")); made || err != nil {
			t.Errorf("%s: %v, %v", how, made, err)
		}
		if !same() {
			t.Errorf("%s: it was replaced", how)
		}
	}
	for how, data := range damages() {
		s := fresh(t)
		ok(t, os.WriteFile(s.file("stop.json"), []byte(data), 0o600))
		check(how, s, func() bool { return content(t, s.file("stop.json")) == data })
	}
	for how, put := range nodes() {
		s := fresh(t)
		ok(t, put(s.file("stop.json")))
		before, err := os.Lstat(s.file("stop.json"))
		ok(t, err)
		check(how, s, func() bool { now, err := os.Lstat(s.file("stop.json")); return err == nil && os.SameFile(before, now) })
	}
}

// TestNoMissionNoTombstone: a folder that is gone is not made again, and counts as stopped.
func TestNoMissionNoTombstone(t *testing.T) {
	s := Root(t.TempDir()).Mission("my-site")
	if made, err := s.Stop(stop("r")); made || err == nil {
		t.Error(made, err)
	}
	if got, err := s.Stopped(); got == nil || got.Cause != mission.Damage || err != nil || s.Exists() {
		t.Error(got, err)
	}
}

// TestStopOnAFullDisk: the tombstone needs no space, whoever died before; nothing else is changed.
func TestStopOnAFullDisk(t *testing.T) {
	s := smallDisk(t)
	ok(t, s.SetPhase(t.Context(), "working", noon))
	free := fill(t, s)
	if err := s.SetPhase(t.Context(), "verifying", noon); !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("the disk is not full: %v", err)
	}
	if st, err := s.State(); err != nil || st.Phase != "working" {
		t.Errorf("%+v, %v", st, err)
	}
	claimed(t, s, `{"ver`)
	if made, err := s.Stop(stop(strings.Repeat("r", 5000))); !made || err != nil {
		t.Fatal(made, err)
	}
	if got := stopped(t, s); got.Cause != mission.Budget {
		t.Errorf("%+v", got)
	}
	free()
	ok(t, s.SetPhase(t.Context(), "stopping", noon))
	// Without anything prepared it says so, stops nothing by halves, leaves nothing, and works later.
	ok(t, files.Remove(s.file("stop.json")))
	free = fill(t, s)
	for range 2 {
		if made, err := s.Stop(stop("r")); made || !errors.Is(err, unix.ENOSPC) {
			t.Error(made, err)
		}
	}
	if got, err := s.Stopped(); got != nil || err != nil {
		t.Error(got, err)
	}
	free()
	if made, err := s.Stop(stop("r")); !made || err != nil || left(t, s) != "" {
		t.Errorf("%v, %v, left %q", made, err, left(t, s))
	}
}
