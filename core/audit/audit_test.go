package audit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

func TestCompare(t *testing.T) {
	file := Stamp{Inode: 1, Mode: 0o644, Size: 3, Ctime: 7}
	with := func(f func(*Stamp)) Stamp { s := file; f(&s); return s }
	dir := Stamp{Inode: 2, Mode: os.ModeDir | 0o755}
	for _, c := range []struct {
		name          string
		before, after Snapshot
		want          string
	}{
		{"the same", Snapshot{"a": file, "d": dir}, Snapshot{"a": file, "d": dir}, "[]"},
		{"new", Snapshot{}, Snapshot{"b": file, "a": file}, "[a is new b is new]"},
		{"gone", Snapshot{"a": file}, Snapshot{}, "[a is gone]"},
		{"size", Snapshot{"a": file}, Snapshot{"a": with(func(s *Stamp) { s.Size = 4 })}, "[a was changed]"},
		{"ctime alone", Snapshot{"a": file}, Snapshot{"a": with(func(s *Stamp) { s.Ctime = 8 })}, "[a was changed]"},
		{"mode", Snapshot{"a": file}, Snapshot{"a": with(func(s *Stamp) { s.Mode = 0o600 })}, "[a was changed]"},
		{"another file", Snapshot{"a": file}, Snapshot{"a": with(func(s *Stamp) { s.Inode = 9 })}, "[a was replaced]"},
		{"a link instead", Snapshot{"a": file}, Snapshot{"a": with(func(s *Stamp) { s.Mode = os.ModeSymlink })}, "[a was replaced]"},
		{"mode of a folder", Snapshot{"d": dir}, Snapshot{"d": {Inode: 2, Mode: os.ModeDir | 0o777}}, "[d was changed]"},
	} {
		if got := fmt.Sprint(Compare(c.before, c.after)); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestTake(t *testing.T) {
	dir := t.TempDir()
	for _, d := range []string{"a/b/c", "skipped/x"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write := func(name string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"f", "a/f", "a/b/f", "a/b/c/f"} {
		write(name)
	}
	outside := t.TempDir()
	if err := os.Symlink(outside, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	set := []Part{{Path: dir, Depth: 2, Skip: func(n string) bool { return n == "skipped" }}, {Path: filepath.Join(dir, "none")}}
	look := func() Snapshot {
		t.Helper()
		s, err := Take(t.Context(), set)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	before := look()
	if len(before) != 6 { // itself, a, a/f, a/b, f, link
		t.Errorf("%d files: %v", len(before), before)
	}
	write("a/b/g")                                                                // too deep
	write("skipped/f")                                                            // left out
	if err := os.WriteFile(filepath.Join(outside, "f"), nil, 0o644); err != nil { // behind a link
		t.Fatal(err)
	}
	if got := Compare(before, look()); len(got) > 0 {
		t.Errorf("changes outside of the set: %v", got)
	}
	write("a/g")
	if err := os.Chmod(filepath.Join(dir, "f"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("[%[1]s/a/g is new %[1]s/f was changed %[1]s/link is gone]", dir)
	if got := fmt.Sprint(Compare(before, look())); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	set[0].Files = true
	if s := look(); len(s) != 3 { // f, a/f, a/g
		t.Errorf("files alone: %v", s)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Take(ended, set); !errors.Is(err, context.Canceled) {
		t.Errorf("with an ended context: %v", err)
	}
}

func BenchmarkTake(b *testing.B) {
	dir := b.TempDir()
	for i := range 500 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), nil, 0o644); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		if _, err := Take(b.Context(), []Part{{Path: dir, Depth: 1}}); err != nil {
			b.Fatal(err)
		}
	}
}
