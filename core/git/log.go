package git

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// emptyTree is the id of the tree without a file; every git knows it.
const emptyTree = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"

// Commit is one entry of a log.
type Commit struct {
	ID      string
	Parents []string
	Author  Who
	At      time.Time // when it was written, UTC
	Subject string
	Body    string
}

// Log lists the commits that to holds and from does not, newest first. An empty from lists all.
func (r Repo) Log(ctx context.Context, from, to string) ([]Commit, error) {
	if err := valid(to); err != nil {
		return nil, err
	}
	args := []string{"log", "-z", "--topo-order", "--no-color", "--format=tformat:%H%x00%P%x00%an%x00%ae%x00%at%x00%s%x00%b", to}
	if from != "" {
		if err := valid(from); err != nil {
			return nil, err
		}
		args = append(args, "^"+from)
	}
	out, err := r.call(append(args, "--")...).run(ctx)
	if err != nil {
		return nil, err
	}
	const n = 7
	f := strings.Split(out, "\x00")
	var log []Commit
	for ; len(f) >= n; f = f[n:] {
		at, err := strconv.ParseInt(f[4], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("git log: commit %s: %w", f[0], err)
		}
		log = append(log, Commit{
			ID: f[0], Parents: strings.Fields(f[1]), Author: Who{f[2], f[3]}, At: time.Unix(at, 0).UTC(),
			Subject: f[5], Body: strings.TrimSpace(f[6]),
		})
	}
	return log, nil
}

// FileStat counts the lines of one file that differ. Both counts are -1 for a binary file.
type FileStat struct {
	Path           string
	Added, Deleted int
}

// DiffStat lists the files that differ between two commits, by path; a renamed file is one that went and one that came.
// An empty a is the tree without a file.
func (r Repo) DiffStat(ctx context.Context, a, b string) ([]FileStat, error) {
	if err := valid(b); err != nil {
		return nil, err
	}
	if a == "" {
		a = emptyTree
	}
	if err := valid(a); err != nil {
		return nil, err
	}
	out, err := r.call("diff-tree", "-r", "-z", "--numstat", "--no-renames", "--no-ext-diff", "--no-textconv", a, b, "--").run(ctx)
	if err != nil {
		return nil, err
	}
	var stats []FileStat
	for _, line := range fields(out) {
		f := strings.SplitN(line, "\t", 3)
		if len(f) != 3 {
			return nil, fmt.Errorf("git diff-tree printed %q", line)
		}
		s := FileStat{Path: f[2], Added: -1, Deleted: -1}
		if f[0] != "-" {
			if s.Added, err = strconv.Atoi(f[0]); err != nil {
				return nil, err
			}
			if s.Deleted, err = strconv.Atoi(f[1]); err != nil {
				return nil, err
			}
		}
		stats = append(stats, s)
	}
	return stats, nil
}
