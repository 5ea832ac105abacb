package git

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"example.com/AutoAgentProject/core/files"
)

// hold takes the lock of a folder and waits for it until ctx ends. Closing the file gives it back, once the git programs
// that inherited it have ended too: a git that outlived its killed starter is not overtaken.
func hold(ctx context.Context, dir string) (*os.File, error) {
	d, err := os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		err := unix.Flock(int(d.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil:
			return d, nil
		case errors.Is(err, unix.EINTR):
			continue
		case !errors.Is(err, unix.EWOULDBLOCK):
			d.Close()
			return nil, fmt.Errorf("lock %s: %w", dir, err)
		}
		select {
		case <-ctx.Done():
			d.Close()
			return nil, fmt.Errorf("lock %s: %w: %w", dir, files.ErrLocked, context.Cause(ctx))
		case <-time.After(wait):
		}
	}
}

// CompareAndSwap moves a ref from old to new; an empty old means that it must not exist. ErrMoved when it holds something
// else. A ref that holds new already is as it should be: an earlier call got that far.
func (r Repo) CompareAndSwap(ctx context.Context, ref, new, old string) error {
	held, err := hold(ctx, r.Dir)
	if err != nil {
		return fmt.Errorf("move %s: %w", ref, err)
	}
	defer held.Close()
	return r.swap(ctx, held, ref, new, old)
}

// swap is CompareAndSwap under the lock of the repository.
func (r Repo) swap(ctx context.Context, held *os.File, ref, new, old string) error {
	if err := valid(new); err != nil {
		return fmt.Errorf("move %s: %w", ref, err)
	}
	if old == "" {
		old = strings.Repeat("0", 40)
	}
	if err := valid(old); err != nil {
		return fmt.Errorf("move %s: %w", ref, err)
	}
	if err := r.openRef(ctx, ref); err != nil {
		return err
	}
	c := r.call("update-ref", "--no-deref", "--stdin", "-z")
	c.stdin, c.held = strings.NewReader("update "+ref+"\x00"+new+"\x00"+old+"\x00"), held
	if _, err := c.run(ctx); err != nil {
		switch now, rerr := r.Resolve(ctx, ref); {
		case rerr != nil && !errors.Is(rerr, ErrNoCommit):
			return fmt.Errorf("move %s: %w", ref, err)
		case now == new:
		case now != old && !(now == "" && old == strings.Repeat("0", 40)):
			return fmt.Errorf("move %s: %w", ref, ErrMoved)
		default:
			return fmt.Errorf("move %s: %w", ref, err)
		}
	}
	// git syncs the file but not the folder, and the caller counts on the move.
	err := files.SyncDir(filepath.Dir(filepath.Join(r.Dir, filepath.FromSlash(ref))))
	if errors.Is(err, os.ErrNotExist) { // packed
		err = nil
	}
	return err
}

// openRef checks a ref's name and removes the lock files that a killed git left at it. The caller holds the repository's
// lock, under which every writer works, so whoever made them is gone.
func (r Repo) openRef(ctx context.Context, ref string) error {
	if !strings.HasPrefix(ref, "refs/") {
		return fmt.Errorf("%q is no full name of a ref", ref)
	}
	if _, err := r.git(ctx, "check-ref-format", ref); err != nil {
		return fmt.Errorf("%q is no name of a ref", ref)
	}
	for _, name := range []string{ref, "HEAD", "packed-refs"} {
		err := os.Remove(filepath.Join(r.Dir, filepath.FromSlash(name)+".lock"))
		if err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, unix.ENOTDIR) {
			return err
		}
	}
	return nil
}
