package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/plan"
	"example.com/AutoAgentProject/core/usererr"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// The test binary, started again with these variables, is another process that uses a store.
const (
	childDoes = "STORE_TEST_CHILD"
	childRoot = "STORE_TEST_ROOT"
	childName = "STORE_TEST_NAME"
)

func TestMain(m *testing.M) {
	s, name := Root(os.Getenv(childRoot)).Mission("my-site"), os.Getenv(childName)
	var err error
	switch os.Getenv(childDoes) {
	case "":
		os.Exit(m.Run())
	case "change":
		err = changeAll(context.Background(), s, name)
	case "session":
		err = session(context.Background(), s)
	case "no files left": // nothing can be opened, and that is not the file's fault
		if err = unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 0, Max: 0}); err == nil {
			_, perr := s.Plan()
			_, serr := s.State()
			fmt.Printf("%v %v", usererr.CodeOf(perr), usererr.CodeOf(serr))
		}
	case "stop":
		var made bool
		made, err = s.Stop(mission.Stop{Cause: mission.Aborted, By: name, At: noon})
		fmt.Print(made)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func child(ctx context.Context, does string, s *Store, name string, env ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, os.Args[0])
	c.Env = append(append(os.Environ(), childDoes+"="+does, childRoot+"="+string(s.root), childName+"="+name), env...)
	return c
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// fresh is the store of a mission that was just started.
func fresh(t testing.TB) *Store {
	t.Helper()
	return start(t, t.TempDir())
}

func start(t testing.TB, root string) *Store {
	t.Helper()
	s := Root(root).Mission("my-site")
	ok(t, os.MkdirAll(s.Dir(), 0o700))
	roster, err := mission.ParseRoster("codebuilder:2", []string{"codebuilder"})
	ok(t, err)
	for _, a := range roster {
		ok(t, s.Queue().Make(a.Name))
	}
	ok(t, s.PrepareTombstone())
	ok(t, s.CreateMission(mission.Mission{Version: mission.Version, ID: "my-site", Roster: roster}))
	return s
}

func content(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	ok(t, err)
	return string(b)
}

// damages are the ways in which a file comes to hold nothing sensible.
func damages() map[string]string {
	return map[string]string{
		"NULs": strings.Repeat("\x00", 4096), "empty": "", "cut": `{"a":`, "white space": "  \n", "null": "null", "a list": "[]", "a text": `"x"`,
		"garbage behind": `{"version":1} {`, "two of them": `{"version":1}{"version":1}`, "no version": `{"generation":1}`, "version 0": `{"version":0}`,
		"version 2": `{"version":2,"generation":1}`, "version as text": `{"version":"1"}`, "version null": `{"version":null}`,
	}
}

// nodes are the things that are no files at all, or far too big, made in a file's place.
func nodes() map[string]func(path string) error {
	return map[string]func(string) error{
		"folder":        func(p string) error { return os.MkdirAll(filepath.Join(p, "x"), 0o700) },
		"link":          func(p string) error { return os.Symlink("mission.json", p) },
		"dangling link": func(p string) error { return os.Symlink("nowhere", p) },
		"FIFO":          func(p string) error { return syscall.Mkfifo(p, 0o600) },
		"too big": func(p string) error {
			return errors.Join(os.WriteFile(p, []byte(`{"version":1}`), 0o600), os.Truncate(p, maxDocument+1))
		},
	}
}

// smallDisk is the store of a mission on a disk of one megabyte.
func smallDisk(t *testing.T) *Store {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("autoagent-test", dir, "tmpfs", 0, "size=1m"); err != nil {
		if os.Getenv("CI") == "true" && os.Getuid() == 0 {
			t.Fatalf("no full disk can be made here: %v", err)
		}
		t.Skipf("SKIPPED LOUDLY: no full disk can be made here, mounting needs root: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return start(t, dir)
}

// fill uses every byte of the disk; free gives them back.
func fill(t *testing.T, s *Store) (free func()) {
	t.Helper()
	path := filepath.Join(string(s.root), "filler")
	f, err := os.Create(path)
	ok(t, err)
	for n := 1 << 16; n > 0; {
		if _, err := f.Write(bytes.Repeat([]byte{1}, n)); err != nil {
			n /= 2
		}
	}
	f.Close()
	return func() { ok(t, os.Remove(path)) }
}

// changeAll changes each document ten times: lines, steps, pauses and the clock.
func changeAll(ctx context.Context, s *Store, name string) error {
	for n := range 10 {
		text := strconv.Itoa(n)
		if err := s.ChangeState(ctx, noon, func(st *State) { st.Agents[name+"-"+text] = Line{Text: text} }); err != nil {
			return err
		}
		if err := s.ChangePlan(ctx, func(p *plan.Plan) (bool, error) {
			p.Steps = append(p.Steps, plan.Step{ID: name + "-" + text})
			return true, nil
		}); err != nil {
			return err
		}
		if _, err := s.Pause(ctx, mission.Pause{Cause: name + "-" + text}, noon); err != nil {
			return err
		}
		if _, err := s.Clock(ctx, func(c mission.Clock) mission.Clock { c.Version = 1; c.Used++; return c }); err != nil {
			return err
		}
	}
	return nil
}
