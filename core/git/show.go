package git

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"strings"
	"time"
)

// What people look at in a repository, bounded: however much a mission made, no more than asked for is read.

// File is one file of a commit.
type File struct {
	Path string
	Mode string // 100644, 100755, 120000 (a link), 160000 (another repository)
	Size int64  // in bytes; -1 where git tells none
}

// full stops git when enough of its output was read.
type full struct {
	buf  bytes.Buffer
	left int
	stop context.CancelFunc
	cut  bool
}

func (f *full) Write(p []byte) (int, error) {
	n := min(len(p), f.left)
	f.buf.Write(p[:n])
	if f.left -= n; n < len(p) {
		f.cut = true
		f.stop()
	}
	return len(p), nil
}

// bounded runs git and returns at most max bytes of its output, and whether there would have been more.
func (r Repo) bounded(ctx context.Context, max int, args ...string) (string, bool, error) {
	limited, stop := context.WithCancel(ctx)
	defer stop()
	out := &full{left: max, stop: stop}
	c := r.call(args...)
	c.env = append(c.env, "GIT_OPTIONAL_LOCKS=0")
	c.stdout = out
	if _, err := c.run(limited); err != nil && !(out.cut && errors.Is(err, context.Canceled)) {
		return "", false, err
	}
	return out.buf.String(), out.cut, nil
}

// Recent lists the newest n commits that to holds and from does not, along the first parents, and whether there are more.
// An empty from lists all.
func (r Repo) Recent(ctx context.Context, from, to string, n int) ([]Commit, bool, error) {
	if err := valid(to); err != nil {
		return nil, false, err
	}
	args := []string{"log", "-z", "--first-parent", "--no-color", "-n", strconv.Itoa(n + 1), "--format=tformat:%H%x00%P%x00%an%x00%ae%x00%at%x00%s%x00", to}
	if from != "" {
		if err := valid(from); err != nil {
			return nil, false, err
		}
		args = append(args, "^"+from)
	}
	out, cut, err := r.bounded(ctx, 4<<20, append(args, "--")...)
	if err != nil {
		return nil, false, err
	}
	var log []Commit
	for f := strings.Split(out, "\x00"); len(f) >= 7; f = f[7:] {
		at, err := strconv.ParseInt(f[4], 10, 64)
		if err != nil {
			break // what was cut
		}
		log = append(log, Commit{ID: f[0], Parents: strings.Fields(f[1]), Author: Who{f[2], f[3]}, At: time.Unix(at, 0).UTC(), Subject: f[5]})
	}
	if len(log) > n {
		return log[:n], true, nil
	}
	return log, cut, nil
}

// Files lists the first n files of a commit by path, and whether there are more.
func (r Repo) Files(ctx context.Context, commit string, n int) ([]File, bool, error) {
	if err := valid(commit); err != nil {
		return nil, false, err
	}
	out, cut, err := r.bounded(ctx, 1<<20, "ls-tree", "-r", "-l", "-z", "--full-tree", commit)
	if err != nil {
		return nil, false, err
	}
	var list []File
	for i, e := range fields(out) {
		head, path, whole := strings.Cut(e, "\t")
		f := strings.Fields(head)
		if !whole || len(f) != 4 {
			break
		}
		if i == n {
			return list, true, nil
		}
		size, err := strconv.ParseInt(f[3], 10, 64)
		if err != nil {
			size = -1
		}
		list = append(list, File{Path: path, Mode: f[0], Size: size})
	}
	if cut && len(list) > 0 { // the last name may be cut
		list = list[:len(list)-1]
	}
	return list, cut, nil
}

// Patch is how b differs from a, as people read it, at most max bytes of it, and whether there is more. An empty a is the
// tree without a file.
func (r Repo) Patch(ctx context.Context, a, b string, max int) (string, bool, error) {
	if a == "" {
		a = emptyTree
	}
	if err := valid(a, b); err != nil {
		return "", false, err
	}
	return r.bounded(ctx, max, "diff-tree", "-r", "-p", "--no-color", "--no-renames", "--no-ext-diff", "--no-textconv", "--unified=2", a, b, "--")
}
