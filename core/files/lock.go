package files

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// ErrLocked is returned by TryLock when another process holds the lock.
var ErrLocked = errors.New("locked by another process")

// TryLock takes an exclusive flock on path, which it makes if needed, or returns ErrLocked at once.
// The kernel drops the lock when the process dies, however it dies.
func TryLock(path string) (unlock func(), err error) {
	return tryLock(path, os.O_CREATE|os.O_RDWR)
}

// LockFolder waits for the lock on a folder itself, which leaves no file behind. It has to be there.
func LockFolder(ctx context.Context, dir string) (unlock func(), err error) {
	return wait(ctx, dir, func() (func(), error) { return tryLock(dir, os.O_RDONLY|unix.O_DIRECTORY) })
}

func tryLock(path string, flags int) (unlock func(), err error) {
	f, err := os.OpenFile(path, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, ErrLocked
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return func() { f.Close() }, nil
}

// Lock waits for the lock until ctx ends. Locks are held for file operations, never for a run.
func Lock(ctx context.Context, path string) (unlock func(), err error) {
	return wait(ctx, path, func() (func(), error) { return TryLock(path) })
}

func wait(ctx context.Context, path string, try func() (func(), error)) (unlock func(), err error) {
	pause := time.Millisecond
	for {
		unlock, err := try()
		if !errors.Is(err, ErrLocked) {
			return unlock, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("lock %s: %w: %w", path, ErrLocked, context.Cause(ctx))
		case <-time.After(pause):
		}
		pause = min(pause*2, 50*time.Millisecond)
	}
}
