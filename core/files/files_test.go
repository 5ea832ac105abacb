package files

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// content checks what a file holds.
func content(t testing.TB, path, want string) {
	t.Helper()
	if b, err := os.ReadFile(path); err != nil || string(b) != want {
		t.Errorf("%s: %q, %v; want %q", filepath.Base(path), cut(b), err, want)
	}
}

func cut(b []byte) []byte { return b[:min(len(b), 200)] }

// only checks that a folder holds exactly these entries, in order, hidden ones too.
func only(t testing.TB, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	ok(t, err)
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("%s holds %q, want %q", filepath.Base(dir), got, want)
	}
}

// asUser goes on where file modes count: root is above them.
func asUser(t testing.TB) {
	if os.Getuid() == 0 {
		t.Skip("SKIPPED LOUDLY: file modes do not bind root; run this test as an ordinary user")
	}
}

func TestReplace(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	for _, data := range []string{"one", "", strings.Repeat("long", 100_000), "two\x00\n"} {
		ok(t, Replace(path, []byte(data), 0o600))
		content(t, path, data)
		only(t, dir, "a")
		if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o600 {
			t.Error(st.Mode(), err)
		}
	}
}

// TestReplaceReplacesALink: a link is replaced by the file; what it pointed to is not written.
func TestReplaceReplacesALink(t *testing.T) {
	dir := t.TempDir()
	target, path := filepath.Join(dir, "z"), filepath.Join(dir, "a")
	ok(t, os.WriteFile(target, []byte("kept"), 0o644))
	ok(t, os.Symlink(target, path))
	ok(t, Replace(path, []byte("new"), 0o600))
	content(t, target, "kept")
	if st, err := os.Lstat(path); err != nil || !st.Mode().IsRegular() || st.Mode().Perm() != 0o600 {
		t.Error(st.Mode(), err)
	}
	ok(t, os.Remove(path))
	ok(t, os.Link(target, path))
	ok(t, Replace(path, []byte("new"), 0o600))
	content(t, target, "kept")
}

func TestReplaceFails(t *testing.T) {
	dir := t.TempDir()
	ok(t, os.Mkdir(filepath.Join(dir, "folder"), 0o700))
	for name, path := range map[string]string{
		"over a folder":        filepath.Join(dir, "folder"),
		"in no folder":         filepath.Join(dir, "none", "a"),
		"in a file":            filepath.Join(dir, "kept", "a"),
		"with a name too long": filepath.Join(dir, strings.Repeat("n", 256)),
	} {
		ok(t, os.WriteFile(filepath.Join(dir, "kept"), []byte("old"), 0o600))
		if err := Replace(path, []byte("new"), 0o600); err == nil || !strings.Contains(err.Error(), "replace ") {
			t.Errorf("%s: %v", name, err)
		}
		content(t, filepath.Join(dir, "kept"), "old")
		only(t, dir, "folder", "kept")
	}
}

func TestReplaceInALockedFolder(t *testing.T) {
	asUser(t)
	dir := t.TempDir()
	ok(t, os.WriteFile(filepath.Join(dir, "a"), []byte("old"), 0o600))
	ok(t, os.Chmod(dir, 0o555))
	defer os.Chmod(dir, 0o755)
	if err := Replace(filepath.Join(dir, "a"), []byte("new"), 0o600); !errors.Is(err, fs.ErrPermission) {
		t.Error(err)
	}
	content(t, filepath.Join(dir, "a"), "old")
	only(t, dir, "a")
}

// TestReadersSeeOldOrNew: nobody ever reads half a file.
func TestReadersSeeOldOrNew(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	ok(t, Replace(path, bytes.Repeat([]byte("0"), 50_000), 0o600))
	stop := make(chan struct{})
	var wait sync.WaitGroup
	for range 2 {
		wait.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				b, err := Read(path, 1<<20)
				if err != nil || len(b) != 50_000 || !bytes.Equal(b, bytes.Repeat(b[:1], 50_000)) {
					t.Errorf("%d bytes, %v", len(b), err)
					return
				}
			}
		})
	}
	for n := range 40 {
		ok(t, Replace(path, bytes.Repeat([]byte{'0' + byte(n%10)}, 50_000), 0o600))
	}
	close(stop)
	wait.Wait()
}

func TestPublish(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	ok(t, Publish(path, []byte("one"), 0o640))
	if err := Publish(path, []byte("two"), 0o600); !errors.Is(err, ErrExists) {
		t.Error(err)
	}
	content(t, path, "one")
	only(t, dir, "a")
	if st, _ := os.Stat(path); st.Mode().Perm() != 0o640 {
		t.Error(st.Mode())
	}
	if st, _ := os.Stat(path); st.Sys().(*syscall.Stat_t).Nlink != 1 {
		t.Error("the temporary name is still linked")
	}
	// A link that points nowhere, and a folder, are in the way too.
	ok(t, os.Symlink("nowhere", filepath.Join(dir, "b")))
	ok(t, os.Mkdir(filepath.Join(dir, "c"), 0o700))
	for _, name := range []string{"b", "c"} {
		if err := Publish(filepath.Join(dir, name), nil, 0o600); !errors.Is(err, ErrExists) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := Publish(filepath.Join(dir, "none", "a"), nil, 0o600); err == nil || errors.Is(err, ErrExists) {
		t.Error(err)
	}
	only(t, dir, "a", "b", "c")
}

// TestOnePublisherWins: of many at once exactly one makes the file, and it is whole.
func TestOnePublisherWins(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	var wait sync.WaitGroup
	won := make(chan byte, 20)
	for i := range byte(20) {
		wait.Go(func() {
			switch err := Publish(path, bytes.Repeat([]byte{'a' + i}, 5000), 0o600); {
			case err == nil:
				won <- 'a' + i
			case !errors.Is(err, ErrExists):
				t.Error(err)
			}
		})
	}
	wait.Wait()
	close(won)
	if len(won) != 1 {
		t.Fatalf("%d made it", len(won))
	}
	content(t, path, strings.Repeat(string(<-won), 5000))
	only(t, dir, "a")
}

func TestMove(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	ok(t, os.Mkdir(at("d"), 0o700))
	ok(t, os.WriteFile(at("a"), []byte("a"), 0o600))
	ok(t, os.WriteFile(at("b"), []byte("b"), 0o600))
	ok(t, os.Symlink("nowhere", at("l")))
	for _, to := range []string{"b", "l", "d"} {
		if err := Move(at("a"), at(to)); !errors.Is(err, ErrExists) {
			t.Errorf("over %s: %v", to, err)
		}
	}
	if err := Move(at("none"), at("x")); !errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrExists) {
		t.Error(err)
	}
	if err := Move(at("a"), at("none/x")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	content(t, at("a"), "a")
	ok(t, Move(at("a"), at("d/a")))
	ok(t, Move(at("l"), at("d/l"))) // the link itself
	ok(t, Move(at("d"), at("e")))
	only(t, dir, "b", "e")
	only(t, at("e"), "a", "l")
}

func TestAppend(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	for _, line := range []string{"one", "two", "", "three"} {
		ok(t, Append(path, []byte(line)))
	}
	content(t, path, "one\ntwo\n\nthree\n")
	if st, _ := os.Stat(path); st.Mode().Perm() != 0o600 {
		t.Error(st.Mode())
	}
	ok(t, os.Symlink(path, filepath.Join(dir, "l")))
	if Append(filepath.Join(dir, "l"), []byte("x")) == nil {
		t.Error("it wrote through a link")
	}
	ok(t, syscall.Mkfifo(filepath.Join(dir, "p"), 0o600))
	if Append(filepath.Join(dir, "p"), []byte("x")) == nil {
		t.Error("it wrote into a FIFO")
	}
	if Append(dir, []byte("x")) == nil {
		t.Error("it wrote into a folder")
	}
	content(t, path, "one\ntwo\n\nthree\n")
}

// TestAppendAfterAHalfLine: what a crash or a full disk left costs that line, never the next one.
func TestAppendAfterAHalfLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	ok(t, os.WriteFile(path, []byte("one\nhal"), 0o600))
	ok(t, Append(path, []byte("two")))
	ok(t, Append(path, []byte("three")))
	content(t, path, "one\nhal\ntwo\nthree\n")
}

func TestManyAppendAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	var wait sync.WaitGroup
	for i := range byte(20) {
		wait.Go(func() {
			for range 5 {
				if err := Append(path, bytes.Repeat([]byte{'a' + i}, 3000)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wait.Wait()
	b, err := os.ReadFile(path)
	ok(t, err)
	lines := strings.FieldsFunc(string(b), func(r rune) bool { return r == '\n' })
	for _, l := range lines {
		if len(l) != 3000 || l != strings.Repeat(l[:1], 3000) {
			t.Errorf("a line of %d bytes is torn", len(l))
		}
	}
	if len(lines) != 100 {
		t.Errorf("%d lines", len(lines))
	}
}

func TestRemove(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	ok(t, os.WriteFile(path, nil, 0o600))
	for range 2 {
		ok(t, Remove(path))
	}
	only(t, dir)
	ok(t, os.MkdirAll(filepath.Join(dir, "d", "full"), 0o700))
	if Remove(filepath.Join(dir, "d")) == nil {
		t.Error("it removed a full folder")
	}
}

func TestSetAside(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "state.json")
	ok(t, os.WriteFile(path, []byte("\x00\x00"), 0o640))
	at := time.Date(2026, 3, 1, 12, 0, 0, 5e6, time.FixedZone("x", 3600))
	to, err := SetAside(path, at)
	ok(t, err)
	if filepath.Base(to) != "state.json.bad-20260301T110000.005Z" {
		t.Error(to)
	}
	content(t, to, "\x00\x00")
	ok(t, os.WriteFile(path, []byte("second"), 0o600))
	if _, err := SetAside(path, at); !errors.Is(err, ErrExists) {
		t.Errorf("evidence was overwritten: %v", err)
	}
	content(t, path, "second")
	content(t, to, "\x00\x00")
}

func TestMakeDir(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b")
	for range 2 {
		ok(t, MakeDir(path, 0o700))
	}
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o700 {
		t.Error(st.Mode(), err)
	}
	ok(t, os.WriteFile(filepath.Join(path, "f"), nil, 0o600))
	if MakeDir(filepath.Join(path, "f"), 0o700) == nil {
		t.Error("a file is taken for a folder")
	}
	if err := SyncDir(filepath.Join(path, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}
