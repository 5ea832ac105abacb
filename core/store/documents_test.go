package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"example.com/AutoAgentProject/core/files"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/plan"
	"example.com/AutoAgentProject/core/usererr"
)

// document is one of the files that are kept as they are when they cannot be read.
type document struct {
	name   string
	read   func(*Store) error
	change func(context.Context, *Store) error
}

var documents = []document{
	{"mission.json", func(s *Store) error { _, err := s.Mission(); return err },
		func(_ context.Context, s *Store) error {
			return s.CreateMission(mission.Mission{Version: 1, ID: "my-site"})
		}},
	{"plan.json", func(s *Store) error { _, err := s.Plan(); return err },
		func(ctx context.Context, s *Store) error {
			return s.ChangePlan(ctx, func(p *plan.Plan) (bool, error) { p.Round++; return true, nil })
		}},
	{"clock.json", func(s *Store) error { _, err := s.Clock(context.Background(), nil); return err },
		func(ctx context.Context, s *Store) error {
			_, err := s.Clock(ctx, func(c mission.Clock) mission.Clock { return c.Advance("b", 1, noon, false) })
			return err
		}},
	{"pauses.json", func(s *Store) error { _, err := s.Pauses(noon); return err },
		func(ctx context.Context, s *Store) error {
			_, err := s.Pause(ctx, mission.Pause{Cause: "human"}, noon)
			return errors.Join(err, s.Unpause(ctx, "human", noon))
		}},
}

// TestUnreadable: no document that cannot be read is replaced, by nobody; each error says which file it is.
func TestUnreadable(t *testing.T) {
	for _, d := range documents {
		s := fresh(t)
		path := s.file(d.name)
		check := func(how string, same func() bool) {
			t.Helper()
			err := d.read(s)
			if usererr.CodeOf(err) != usererr.Unreadable || !strings.Contains(err.Error(), path) {
				t.Errorf("%s, %s: read: %v", d.name, how, err)
			}
			if err := d.change(t.Context(), s); err == nil {
				t.Errorf("%s, %s: it was changed", d.name, how)
			}
			if !same() {
				t.Errorf("%s, %s: it was replaced", d.name, how)
			}
		}
		for how, data := range damages() {
			ok(t, os.WriteFile(path, []byte(data), 0o600))
			check(how, func() bool { return content(t, path) == data })
		}
		for how, put := range nodes() {
			ok(t, os.RemoveAll(path))
			ok(t, put(path))
			st, err := os.Lstat(path)
			ok(t, err)
			check(how, func() bool {
				now, err := os.Lstat(path)
				return err == nil && os.SameFile(st, now) && now.Mode() == st.Mode()
			})
		}
		if left, _ := filepath.Glob(s.file(".*")); len(left) > 0 {
			t.Errorf("%s: left %q", d.name, left)
		}
	}
}

// TestTooManyOpenFiles: what this process cannot read now is not damaged.
func TestTooManyOpenFiles(t *testing.T) {
	s := working(t)
	ok(t, changeAll(t.Context(), s, "x"))
	out, err := child(t.Context(), "no files left", s, "").Output()
	if want := fmt.Sprint(usererr.Failed, " ", usererr.Failed); err != nil || string(out) != want {
		t.Errorf("%v: %s, want %s", err, out, want)
	}
}

// TestMissing: what is not there yet is empty, except for the mission itself.
func TestMissing(t *testing.T) {
	s := Root(t.TempDir()).Mission("my-site")
	if _, err := s.Mission(); !errors.Is(err, ErrNoMission) || usererr.CodeOf(err) != usererr.NotFound || s.Exists() {
		t.Error(err)
	}
	ok(t, os.MkdirAll(s.Dir(), 0o700))
	if _, err := s.Mission(); errors.Is(err, ErrNoMission) || usererr.CodeOf(err) != usererr.Unreadable || !s.Exists() {
		t.Error(err)
	}
	for _, d := range documents[1:] {
		if err := d.read(s); err != nil {
			t.Errorf("%s: %v", d.name, err)
		}
		if _, err := os.Lstat(s.file(d.name)); err == nil {
			t.Errorf("%s: reading made it", d.name)
		}
	}
	if p, err := s.Plan(); err != nil || p.Round != 0 || p.Version != mission.Version {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestMissionIsFixed(t *testing.T) {
	s := fresh(t)
	before := content(t, s.file("mission.json"))
	if err := s.CreateMission(mission.Mission{Version: 1, ID: "my-site", Verify: "other"}); !errors.Is(err, files.ErrExists) {
		t.Error(err)
	}
	if content(t, s.file("mission.json")) != before {
		t.Error("it was changed")
	}
	// A folder that was copied to another name is not that mission.
	ok(t, os.Rename(s.Dir(), filepath.Join(s.root.Home(), "other")))
	if _, err := s.root.Mission("other").Mission(); usererr.CodeOf(err) != usererr.Unreadable || !strings.Contains(err.Error(), "my-site") {
		t.Error(err)
	}
}

func TestChangePlan(t *testing.T) {
	s := fresh(t)
	ok(t, s.ChangePlan(t.Context(), func(p *plan.Plan) (bool, error) { p.Round = 1; p.Acceptance = []string{"a < b && c"}; return true, nil }))
	before := content(t, s.file("plan.json"))
	if !strings.Contains(before, "a < b && c") {
		t.Error("it is not fit to be read by people")
	}
	boom := errors.New("boom")
	if err := s.ChangePlan(t.Context(), func(p *plan.Plan) (bool, error) { p.Round = 9; return true, boom }); !errors.Is(err, boom) {
		t.Error(err)
	}
	ok(t, s.ChangePlan(t.Context(), func(p *plan.Plan) (bool, error) { p.Round = 9; return false, nil }))
	if got := content(t, s.file("plan.json")); got != before {
		t.Errorf("it became %s", got)
	}
	// The lock is free again, and whoever waits for it too long is told.
	unlock, err := files.TryLock(s.file("lock"))
	ok(t, err)
	defer unlock()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.ChangePlan(ctx, func(p *plan.Plan) (bool, error) { return true, nil }); !errors.Is(err, files.ErrLocked) {
		t.Error(err)
	}
}

// TestManyChangeAtOnce: several processes and goroutines; no change is lost, the generation counts each, and a reader
// never sees half a file.
func TestManyChangeAtOnce(t *testing.T) {
	s := fresh(t)
	stop := make(chan struct{})
	var readers, writers sync.WaitGroup
	readers.Go(func() {
		var last int64
		for {
			st, err := s.State()
			if err != nil || st.Generation < last {
				t.Errorf("generation %d after %d, %v", st.Generation, last, err)
				return
			}
			last = st.Generation
			if _, err := s.Plan(); err != nil {
				t.Error(err)
				return
			}
			select {
			case <-stop:
				return
			default:
			}
		}
	})
	for i := range 3 {
		writers.Go(func() {
			if out, err := child(t.Context(), "change", s, fmt.Sprint("p", i)).CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
		writers.Go(func() {
			if err := changeAll(t.Context(), s, fmt.Sprint("g", i)); err != nil {
				t.Error(err)
			}
		})
	}
	writers.Wait()
	close(stop)
	readers.Wait()
	st, err := s.State()
	ok(t, err)
	p, err := s.Plan()
	ok(t, err)
	pauses, err := s.Pauses(noon)
	ok(t, err)
	c, err := s.Clock(t.Context(), nil)
	ok(t, err)
	if st.Generation != 60 || len(st.Agents) != 60 || len(p.Steps) != 60 || len(pauses) != 60 || c.Used != 60 {
		t.Errorf("generation %d, %d lines, %d steps, %d pauses, %d on the clock", st.Generation, len(st.Agents), len(p.Steps), len(pauses), c.Used)
	}
}

func TestIDs(t *testing.T) {
	root := Root(t.TempDir())
	if ids, err := root.IDs(); ids != nil || err != nil {
		t.Error(ids, err)
	}
	for _, name := range []string{"b", "a-2", "A", "x--y", ".hidden", "a_b", strings.Repeat("l", 41), "..."} {
		ok(t, os.MkdirAll(filepath.Join(root.Home(), name), 0o700))
	}
	ok(t, os.WriteFile(filepath.Join(root.Home(), "file"), nil, 0o600))
	ok(t, os.Symlink("/etc", filepath.Join(root.Home(), "link")))
	if ids, err := root.IDs(); err != nil || !slices.Equal(ids, []string{"a-2", "b"}) {
		t.Errorf("%q, %v", ids, err)
	}
	ok(t, os.RemoveAll(root.Home()))
	ok(t, os.WriteFile(root.Home(), nil, 0o600))
	if _, err := root.IDs(); err == nil {
		t.Error("a file holds missions")
	}
}

func TestNotes(t *testing.T) {
	s := fresh(t)
	type note struct {
		Version int    `json:"version"`
		Text    string `json:"text"`
	}
	ok(t, s.Save("agents/manager/hold.json", note{1, "x"}))
	var n note
	if err := s.Load("agents/manager/hold.json", &n); err != nil || n.Text != "x" {
		t.Errorf("%+v, %v", n, err)
	}
	if err := s.Load("none.json", &n); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	ok(t, s.Save("other.json", note{2, "x"}))
	if err := s.Load("other.json", &n); usererr.CodeOf(err) != usererr.Unreadable {
		t.Errorf("another version: %v", err)
	}
}
