package preflight

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// existing is the nearest folder at or above path that is there.
func existing(path string) string {
	for path != "/" && path != "." {
		if _, err := os.Stat(path); err == nil {
			return path
		}
		path = filepath.Dir(path)
	}
	return path
}

// owner is the user id that a folder belongs to; -1: there is none.
func owner(path string) int {
	st, err := os.Stat(path)
	if err != nil {
		return -1
	}
	return int(st.Sys().(*syscall.Stat_t).Uid)
}

// spaceOf asks the file system on which path is or would be made.
func spaceOf(path string) (Space, error) {
	path = existing(path)
	var fs unix.Statfs_t
	if err := unix.Statfs(path, &fs); err != nil {
		return Space{}, fmt.Errorf("space at %s: %w", path, err)
	}
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return Space{}, fmt.Errorf("space at %s: %w", path, err)
	}
	return Space{Size: int64(fs.Blocks) * fs.Bsize, Free: int64(fs.Bavail) * fs.Bsize, Inodes: int64(fs.Files), FreeInodes: int64(fs.Ffree), Device: uint64(st.Dev)}, nil
}

// usable says whether a folder is there and lets files be made in it.
func usable(dir string) error {
	st, err := os.Stat(dir)
	switch {
	case err != nil:
		return err
	case !st.IsDir():
		return &os.PathError{Op: "open", Path: dir, Err: unix.ENOTDIR}
	}
	if err := unix.Access(dir, unix.W_OK|unix.X_OK); err != nil {
		return &os.PathError{Op: "write in", Path: dir, Err: err}
	}
	return nil
}

// availableMemory is what the kernel thinks can be used without swapping, in bytes.
func availableMemory() (n int64, known bool) {
	b, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(b)) {
		if _, err := fmt.Sscanf(line, "MemAvailable: %d kB", &n); err == nil {
			return n << 10, true
		}
	}
	return 0, false
}

// clockError is the kernel's bound of how wrong the clock is. Every time service sets it, and without one it grows beyond
// all measure; it is what systemd itself goes by. The flag STA_UNSYNC is also set for other reasons, and
// /run/systemd/timesync/synchronized is of one service alone.
func clockError() (worst time.Duration, known bool) {
	var t unix.Timex
	if _, err := unix.Adjtimex(&t); err != nil { // asks; nothing is set
		return 0, false
	}
	return time.Duration(t.Maxerror) * time.Microsecond, true
}

// staleStarts are the folders in a root that starts left behind which were cut off: nobody holds their lock.
func staleStarts(root string, now time.Time) []string {
	found, _ := filepath.Glob(filepath.Join(root, ".new-*"))
	var out []string
	for _, dir := range found {
		if st, err := os.Stat(dir); err == nil && now.Sub(st.ModTime()) > startsLimit && !locked(filepath.Join(dir, "lock")) {
			out = append(out, filepath.Base(dir))
		}
	}
	return out
}

// locked says whether somebody holds a lock. It makes no file, unlike taking the lock.
func locked(path string) bool {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	return unix.Flock(fd, unix.LOCK_SH|unix.LOCK_NB) != nil
}
