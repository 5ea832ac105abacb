package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// DocsRef is the ref that keeps the documents and specifications of a mission, beside its product.
func DocsRef(id string) string { return "refs/autoagent/" + id + "/docs" }

// CheckpointDocsRef is the ref that keeps what DocsRef kept at a checkpoint.
func CheckpointDocsRef(id, n string) string { return "refs/autoagent/" + id + "/checkpoints/docs/" + n }

// AddDocument adds a file to what a ref keeps, by compare-and-swap, and returns what lies there now: a file of that path that is
// there already stays as it is, so that the call is repeatable.
func (r Repo) AddDocument(ctx context.Context, ref, path string, data []byte, who Who, message string, at time.Time) ([]byte, error) {
	for range 50 {
		old, err := r.Resolve(ctx, ref)
		if err != nil && !errors.Is(err, ErrNoCommit) {
			return nil, err
		}
		if old != "" {
			kept, err := r.Document(ctx, old, path)
			if !errors.Is(err, fs.ErrNotExist) {
				return kept, err
			}
		}
		new, err := r.withFile(ctx, old, path, data, who, message, at)
		if err != nil {
			return nil, fmt.Errorf("keep %s: %w", path, err)
		}
		if err = r.CompareAndSwap(ctx, ref, new, old); errors.Is(err, ErrMoved) {
			continue
		}
		return data, err
	}
	return nil, fmt.Errorf("keep %s: %w", path, ErrMoved)
}

// maxKept is the largest document that is read, in bytes.
const maxKept = 1 << 20

// Document reads a file of a ref or commit. It is fs.ErrNotExist if there is no such file.
func (r Repo) Document(ctx context.Context, rev, path string) ([]byte, error) {
	if err := plainPath(path); err != nil {
		return nil, err
	}
	commit, err := r.Resolve(ctx, rev)
	if errors.Is(err, ErrNoCommit) {
		return nil, fmt.Errorf("%s: %w", path, fs.ErrNotExist)
	}
	if err != nil {
		return nil, err
	}
	out, err := r.call("ls-tree", "-l", "-z", "--full-tree", commit, "--", path).run(ctx)
	if err != nil {
		return nil, err
	}
	head, _, _ := strings.Cut(strings.TrimSuffix(out, "\x00"), "\t")
	f := strings.Fields(head) // mode, type, id, size
	if len(f) != 4 || f[1] != "blob" {
		return nil, fmt.Errorf("%s: %w", path, fs.ErrNotExist)
	}
	if n, err := strconv.Atoi(f[3]); err != nil || n > maxKept {
		return nil, fmt.Errorf("%s has %s bytes, at most %d are read", path, f[3], maxKept)
	}
	out, err = r.call("cat-file", "blob", f[2]).run(ctx)
	return []byte(out), err
}

// WithFile returns a commit on top of another one that holds a file besides; the other one itself if it has it already. Where a
// file stands in place of one of its folders, it is an error.
func (r Repo) WithFile(ctx context.Context, commit, path string, data []byte, who Who, message string, at time.Time) (string, error) {
	if err := valid(commit); err != nil {
		return "", err
	}
	if old, err := r.Document(ctx, commit, path); err == nil && string(old) == string(data) {
		return commit, nil
	}
	return r.withFile(ctx, commit, path, data, who, message, at)
}

// withFile makes the commit; an empty parent makes the first one.
func (r Repo) withFile(ctx context.Context, parent, path string, data []byte, who Who, message string, at time.Time) (string, error) {
	if err := plainPath(path); err != nil {
		return "", err
	}
	c := r.call("hash-object", "-w", "--no-filters", "--stdin")
	c.stdin = strings.NewReader(string(data))
	out, err := c.run(ctx)
	if err != nil {
		return "", err
	}
	blob := strings.TrimSpace(out)
	scratch, err := newScratch(r.Dir)
	if err != nil {
		return "", err
	}
	defer scratch.remove()
	indexed := func(args ...string) (string, error) {
		c := r.call(args...)
		c.env = append(c.env, "GIT_INDEX_FILE="+filepath.Join(scratch.dir, "index"))
		c.held = scratch.held
		out, err := c.run(ctx)
		return strings.TrimSpace(out), err
	}
	var parents []string
	if parent != "" {
		if _, err := indexed("read-tree", parent); err != nil {
			return "", err
		}
		parents = []string{parent}
	}
	if _, err := indexed("update-index", "--add", "--cacheinfo", "100644,"+blob+","+path); err != nil {
		return "", err
	}
	tree, err := indexed("write-tree")
	if err != nil {
		return "", err
	}
	return r.commit(ctx, tree, parents, who, message, at)
}

// plainPath refuses a path that git would read as more than one, or as none.
func plainPath(path string) error {
	if !fs.ValidPath(path) || path == "." || strings.ContainsAny(path, "*?[\\\x00\n:") {
		return fmt.Errorf("%q is no path of a document", path)
	}
	return nil
}
