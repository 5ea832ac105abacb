package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"example.com/AutoAgentProject/core/files"
	"example.com/AutoAgentProject/core/usererr"
)

// checkoutPrefix begins the name of every published checkout; the commit's short id follows.
const checkoutPrefix = ".result-"

// Publish makes link a symbolic link to a checkout of commit in folder. Whoever follows link sees a whole state at any
// instant. Older checkouts go. A commit that the published one holds already changes nothing, so that of several callers
// the newest work wins. After a kill the next call finishes or begins anew.
func (r Repo) Publish(ctx context.Context, commit, folder, link string) error {
	held, err := hold(ctx, folder)
	if err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	defer held.Close()
	short, err := r.Short(ctx, commit)
	if err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	name := checkoutPrefix + short
	now, err := published(folder, link)
	if err != nil {
		return err
	}
	if now != "" {
		old, err := r.Resolve(ctx, strings.TrimPrefix(now, checkoutPrefix))
		if err == nil {
			newer, err := r.IsAncestor(ctx, commit, old)
			if err != nil {
				return fmt.Errorf("publish: %w", err)
			}
			if newer {
				sweepCheckouts(folder, now)
				return nil
			}
		} else if !errors.Is(err, ErrNoCommit) {
			return fmt.Errorf("publish: %w", err)
		}
	}
	sweepCheckouts(folder, now) // what a killed call left
	part := filepath.Join(folder, name+".part")
	if err := os.Mkdir(part, 0o755); err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	tree := filepath.Join(part, "tree")
	if err := os.Mkdir(tree, 0o755); err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	if err := r.checkout(ctx, held, commit, tree, filepath.Join(part, "index")); err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	if err := syncTree(tree); err != nil { // else a power cut could leave the link to empty files
		return fmt.Errorf("publish: %w", err)
	}
	if err := os.Rename(tree, filepath.Join(folder, name)); err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	if err := swapLink(folder, name, link); err != nil {
		return err
	}
	sweepCheckouts(folder, name)
	return nil
}

// swapLink lets link point at the checkout in one step.
func swapLink(folder, name, link string) error {
	dir := filepath.Dir(link)
	to, err := filepath.Rel(dir, filepath.Join(folder, name))
	if err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	made := filepath.Join(dir, checkoutPrefix+"link")
	if err := os.Remove(made); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("publish: %w", err)
	}
	if err := os.Symlink(to, made); err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	if err := files.SyncDir(folder); err != nil {
		return err
	}
	if err := os.Rename(made, link); err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	return files.SyncDir(dir)
}

// published is the name of the checkout in folder that link shows, empty if there is none.
func published(folder, link string) (name string, err error) {
	to, err := os.Readlink(link)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case errors.Is(err, unix.EINVAL) || err == nil && !strings.HasPrefix(filepath.Base(to), checkoutPrefix):
		return "", usererr.New(usererr.Conflict, "move it away", "%s is in the way: it is not the link that shows the result", link)
	case err != nil:
		return "", fmt.Errorf("publish: %w", err)
	}
	name = filepath.Base(to)
	if st, err := os.Lstat(filepath.Join(folder, name)); err != nil || !st.IsDir() {
		return "", nil
	}
	return name, nil
}

// sweepCheckouts removes every checkout but keep. What cannot be removed now is tried again by the next Publish; the
// published state does not depend on it.
func sweepCheckouts(folder, keep string) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), checkoutPrefix) && e.Name() != keep {
			os.RemoveAll(filepath.Join(folder, e.Name()))
		}
	}
}
