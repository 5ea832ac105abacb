package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Checkout writes the files of a commit into an empty folder, which is made if it is not there: the very bytes of the
// commit, symbolic links as links, nothing left out, no .git. A folder of another repository inside is an empty folder.
func (r Repo) Checkout(ctx context.Context, commit, dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return fmt.Errorf("check out: %w", err)
	}
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("check out: %w", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("check out: %w", err)
	}
	if len(entries) > 0 {
		return fmt.Errorf("check out: %s is not empty", dir)
	}
	// Beside the folder, so that after a kill it goes with it, or with the next call.
	scratch := filepath.Join(filepath.Dir(dir), "."+filepath.Base(dir)+".index")
	if err := os.RemoveAll(scratch); err != nil {
		return fmt.Errorf("check out: %w", err)
	}
	if err := os.Mkdir(scratch, 0o700); err != nil {
		return fmt.Errorf("check out: %w", err)
	}
	defer os.RemoveAll(scratch)
	return r.checkout(ctx, nil, commit, dir, filepath.Join(scratch, "index"))
}

// checkout is Checkout with a place for the temporary index.
func (r Repo) checkout(ctx context.Context, held *os.File, commit, dir, index string) error {
	if err := valid(commit); err != nil {
		return fmt.Errorf("check out: %w", err)
	}
	var err error
	if dir, err = filepath.Abs(dir); err != nil {
		return fmt.Errorf("check out: %w", err)
	}
	if index, err = filepath.Abs(index); err != nil {
		return fmt.Errorf("check out: %w", err)
	}
	for _, args := range [][]string{{"read-tree", commit}, {"checkout-index", "--all", "--quiet"}} {
		c := r.call(append([]string{"-c", "core.bare=false", "--work-tree=" + dir}, args...)...)
		c.env = append(c.env, "GIT_INDEX_FILE="+index)
		c.held = held
		if _, err := c.run(ctx); err != nil {
			return fmt.Errorf("check out %s: %w", commit, err)
		}
	}
	return nil
}
