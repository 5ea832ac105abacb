package git

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// maxHeader bounds the header of a bundle, in bytes.
const maxHeader = 1 << 20

// FetchBundle takes the one commit that a bundle from a clone brings and keeps it under ref in this repository, whatever
// ref held before. No name in the bundle counts. Every object is checked, and so is that none is missing; the size of the
// file is the caller's to limit.
func (r Repo) FetchBundle(ctx context.Context, bundleFile, ref string) (commit string, err error) {
	f, err := os.Open(bundleFile)
	if err != nil {
		return "", fmt.Errorf("take a bundle: %w", err)
	}
	defer f.Close()
	commit, needs, length, err := readHeader(f)
	if err != nil {
		return "", fmt.Errorf("take a bundle: %w", err)
	}
	for _, n := range needs {
		if _, err := r.Resolve(ctx, n); err != nil {
			return "", fmt.Errorf("take a bundle: it builds on: %w", err)
		}
	}
	if _, err := f.Seek(length, io.SeekStart); err != nil {
		return "", fmt.Errorf("take a bundle: %w", err)
	}
	// Not "git fetch": before git 2.46 it does not check the objects of a bundle, whatever transfer.fsckObjects says. Big
	// files are streamed, not held in memory.
	c := r.call("index-pack", "--stdin", "--fix-thin", "--strict")
	c.args = append([]string{"-c", "core.bigFileThreshold=32m"}, c.args...)
	c.stdin = f
	if _, err := c.run(ctx); err != nil {
		return "", fmt.Errorf("take a bundle: %w", err)
	}
	if kind, err := r.git(ctx, "cat-file", "-t", commit); err != nil || kind != "commit" {
		return "", errors.Join(fmt.Errorf("take a bundle: it brings no commit %s", commit), err)
	}
	if _, err := r.git(ctx, "rev-list", "--objects", "--quiet", commit, "--not", "--all"); err != nil {
		return "", fmt.Errorf("take a bundle: it is incomplete: %w", err)
	}
	held, err := hold(ctx, r.Dir)
	if err != nil {
		return "", fmt.Errorf("take a bundle: %w", err)
	}
	defer held.Close()
	old, err := r.Resolve(ctx, ref)
	if err != nil && !errors.Is(err, ErrNoCommit) {
		return "", fmt.Errorf("take a bundle: %w", err)
	}
	return commit, r.swap(ctx, held, ref, commit, old)
}

// readHeader reads what stands before the pack: the commits that the bundle builds on and the one that it brings.
func readHeader(f io.Reader) (commit string, needs []string, length int64, err error) {
	in := bufio.NewReader(io.LimitReader(f, maxHeader))
	for n := 0; ; n++ {
		line, err := in.ReadString('\n')
		if err != nil {
			return "", nil, 0, fmt.Errorf("its header ends too soon: %w", err)
		}
		length += int64(len(line))
		line = strings.TrimSuffix(line, "\n")
		id, _, _ := strings.Cut(line, " ")
		switch need, is := strings.CutPrefix(id, "-"); {
		case n == 0:
			if line != "# v2 git bundle" {
				return "", nil, 0, errors.New("it is no bundle of version 2")
			}
		case line == "":
			if commit == "" {
				return "", nil, 0, errors.New("it brings nothing")
			}
			return commit, needs, length, nil
		case is:
			if err := valid(need); err != nil {
				return "", nil, 0, err
			}
			needs = append(needs, need)
		case commit != "":
			return "", nil, 0, errors.New("it brings more than one ref")
		default:
			if err := valid(id); err != nil {
				return "", nil, 0, err
			}
			commit = id
		}
	}
}
