package audit

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Part is a folder, or a single file, of a set.
type Part struct {
	Path  string
	Depth int                    // 0: the path itself, 1: and what is in it, and so on
	Files bool                   // folders are gone through but do not count themselves
	Skip  func(name string) bool // leaves out a file or folder, named relative to Path, and all in it; nil: nothing
}

// Most bounds how many files a set may hold: a look must stay cheap beside a run.
const Most = 20_000

// ErrTooMany says that a set holds more than Most.
var ErrTooMany = errors.New("too many files to look at")

// Take looks at a set. Links are looked at, never followed. What is not there or cannot be listed is left out: nobody of
// this user's can have written there.
func Take(ctx context.Context, set []Part) (Snapshot, error) {
	out := Snapshot{}
	for _, p := range set {
		if err := p.take(ctx, out, p.Path, "", 0); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (p Part) take(ctx context.Context, out Snapshot, path, name string, depth int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	info, err := os.Lstat(path)
	if err != nil {
		return nil
	}
	if len(out) >= Most {
		return fmt.Errorf("%w: %s", ErrTooMany, p.Path)
	}
	if !p.Files || !info.IsDir() {
		out[path] = stamp(info)
	}
	if !info.IsDir() || depth >= p.Depth {
		return nil
	}
	names, err := list(path)
	if err != nil {
		return nil
	}
	for _, n := range names {
		rel := strings.TrimPrefix(name+"/"+n, "/")
		if p.Skip != nil && p.Skip(rel) {
			continue
		}
		if err := p.take(ctx, out, filepath.Join(path, n), rel, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// list names what is in a folder, unsorted, and no more than could be looked at.
func list(path string) ([]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := f.Readdirnames(Most + 1)
	if len(names) > 0 {
		err = nil
	}
	return names, err
}

func stamp(info fs.FileInfo) Stamp {
	s := Stamp{Mode: info.Mode()}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		s.Inode, s.Ctime = st.Ino, st.Ctim.Nano()
	}
	if info.IsDir() {
		s.Ctime = 0
	} else {
		s.Size = info.Size()
	}
	return s
}
