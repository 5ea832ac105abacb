package usage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Scan counts the transcripts below a folder. Brought up to date again it reads only what is new. What it has counted
// stays, whatever becomes of the files: spend never goes down.
type Scan struct {
	*Count
	under     string // only records whose working folder is there or below; empty: all
	files     map[string]*file
	malformed int64

	unreadable []string // of the last time
	vanished   int
}

// file is how far a transcript was read.
type file struct {
	Device, Inode uint64
	Offset        int64
	Before        string // hash of what stands before the offset: still the same file?
	Times         int    // it was begun from its start, for being another one
	Tail          bool   // an unfinished line follows

	seen bool // in the walk that goes on
}

// NewScan counts nothing yet. under is a cleaned path, or empty.
func NewScan(under string) *Scan {
	return &Scan{Count: NewCount(), under: under, files: map[string]*file{}}
}

// Unreadable are the files and folders that could not be read the last time: what they hold is missing.
func (s *Scan) Unreadable() []string { return s.unreadable }

// Update reads what is new in the files named *.jsonl at any depth below dir/projects, or below dir if it has no such
// folder. Links are not followed. An error means that there is no such folder or ctx ended.
func (s *Scan) Update(ctx context.Context, dir string) error {
	root, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return err
	}
	if st, err := os.Stat(filepath.Join(root, "projects")); err == nil && st.IsDir() {
		root = filepath.Join(root, "projects")
	}
	if st, err := os.Stat(root); err != nil {
		return err
	} else if !st.IsDir() {
		return &fs.PathError{Op: "scan", Path: dir, Err: unix.ENOTDIR}
	}
	s.unreadable, s.vanished = nil, 0
	for _, f := range s.files {
		f.seen = false
	}
	err = filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, fs.ErrNotExist): // removed meanwhile
			return nil
		case err != nil:
			s.unreadable = append(s.unreadable, p)
			return nil
		case !d.Type().IsRegular() || !strings.HasSuffix(p, ".jsonl"):
			return nil
		}
		name, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		if err := s.file(p, name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			s.unreadable = append(s.unreadable, p)
		}
		return nil
	})
	for _, f := range s.files {
		if !f.seen {
			s.vanished++
		}
	}
	slices.Sort(s.unreadable)
	return err
}

// file reads what is new in one file.
func (s *Scan) file(p, name string) error {
	in, err := os.OpenFile(p, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer in.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(in.Fd()), &st); err != nil {
		return err
	}
	f := s.files[name]
	if f == nil {
		f = &file{Device: uint64(st.Dev), Inode: st.Ino}
		s.files[name] = f
		s.dirty = true
	}
	f.seen = true
	if mark, err := before(in, min(f.Offset, st.Size)); err != nil {
		return err
	} else if f.Device != uint64(st.Dev) || f.Inode != st.Ino || st.Size < f.Offset || mark != f.Before {
		*f = file{Device: uint64(st.Dev), Inode: st.Ino, Times: f.Times + 1, seen: true}
	}
	source := fmt.Sprintf("%s\x00%d", name, f.Times)
	t := newText(in, f.Offset, st.Size)
	got := t.records(func(l *line) {
		if l.kind == "user" {
			s.Break(source, l.sidechain)
			return
		}
		if r, ok := l.record(source); ok && s.belongs(l.cwd) {
			s.Add(r)
		}
	})
	s.malformed += got.malformed
	if got.offset != f.Offset || got.tail != f.Tail {
		s.dirty = true
	}
	f.Offset, f.Tail = got.offset, got.tail
	mark, err := before(in, f.Offset)
	if err != nil {
		return err
	}
	f.Before = mark
	return t.err
}

// before is a hash of the bytes that end at the offset. A file that is written anew, in place, shows itself by it.
func before(f *os.File, offset int64) (string, error) {
	b := make([]byte, min(offset, 512))
	if len(b) == 0 {
		return "", nil
	}
	if _, err := f.ReadAt(b, offset-int64(len(b))); err != nil {
		return "", err
	}
	k := keyOf(string(b))
	return fmt.Sprintf("%x", k[:]), nil
}

// belongs says whether a working folder is the one asked for, or below it.
func (s *Scan) belongs(cwd string) bool {
	if s.under == "" {
		return true
	}
	if !strings.HasPrefix(cwd, "/") {
		return false
	}
	cwd = path.Clean(cwd)
	return cwd == s.under || strings.HasPrefix(cwd, strings.TrimSuffix(s.under, "/")+"/")
}
