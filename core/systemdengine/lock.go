package systemdengine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"example.com/AutoAgentProject/core/units"
	"example.com/AutoAgentProject/core/usererr"
)

const (
	rootsLock = "/run/forge-autoagent.lock"
	lockWait  = 3 * time.Minute // a start with all its checks takes less
)

// lockUnits lets one at a time put units in place. In the system manager that is a file that only root can open: whoever may
// open a file may lock it, and everybody can open the folder of units. A user's folder is locked itself.
func (e *Engine) lockUnits(ctx context.Context) (func(), error) {
	return e.lockFor(ctx, lockWait)
}

func (e *Engine) lockFor(ctx context.Context, limit time.Duration) (func(), error) {
	path := e.Settings.UnitDir
	if err := os.MkdirAll(path, 0o755); err != nil {
		return nil, unwritable(err, path)
	}
	flags := os.O_RDONLY
	if e.Settings.Manager == units.System {
		path, flags = rootsLock, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW
	}
	f, err := os.OpenFile(path, flags, 0o600)
	if errors.Is(err, fs.ErrPermission) {
		return nil, usererr.Wrap(err, usererr.Environment, "sudo does it", "only root puts units of the system's manager in place")
	}
	if err != nil {
		return nil, unwritable(err, path)
	}
	for end := time.Now().Add(limit); ; time.Sleep(10 * time.Millisecond) {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil:
			return func() { f.Close() }, nil
		case errors.Is(err, unix.EINTR):
		case !errors.Is(err, unix.EWOULDBLOCK) || ctx.Err() != nil:
			f.Close()
			return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), ctx.Err())
		case time.Now().After(end):
			defer f.Close()
			return nil, usererr.New(usererr.Later, "try again when it has ended", "%s has put units in place for more than %s, and only one at a time can (lock on %s)", holder(f), limit, path)
		}
	}
}

// holder is who holds the lock on a file, as far as the kernel tells.
func holder(f *os.File) string {
	var st unix.Stat_t
	locks, err := os.ReadFile("/proc/locks")
	if err != nil || unix.Fstat(int(f.Fd()), &st) != nil {
		return "another process"
	}
	for line := range strings.Lines(string(locks)) {
		// 1: FLOCK  ADVISORY  WRITE 123 fe:01:456 0 EOF
		w := strings.Fields(line)
		if len(w) < 6 || w[1] != "FLOCK" || !strings.HasSuffix(w[5], fmt.Sprintf(":%d", st.Ino)) {
			continue
		}
		name, _ := os.ReadFile("/proc/" + w[4] + "/comm")
		if name = bytes.TrimSpace(name); len(name) > 0 {
			return fmt.Sprintf("process %s (%s)", w[4], name)
		}
		return "process " + w[4]
	}
	return "another process"
}
