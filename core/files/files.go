// Package files is the only way this project changes the disk: replace a file, publish a new one, move one, append a
// line, hold a lock. Each call is durable when it returns (file and folder synced) and atomic for whoever reads.
package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/google/renameio/v2"
	"golang.org/x/sys/unix"
)

// ErrExists is returned by Publish and Move when the target is there already. It is never overwritten.
var ErrExists = errors.New("exists already")

// Replace puts data in place of whatever path holds: temporary file in the same folder, write, fsync, rename, fsync of
// the folder. On an error the old content stands. renameio does all but the folder's sync.
func Replace(path string, data []byte, perm fs.FileMode) error {
	if err := step("replace", path); err != nil {
		return err
	}
	f, err := renameio.NewPendingFile(path, renameio.WithTempDir(filepath.Dir(path)), renameio.WithPermissions(perm))
	if err != nil {
		return fmt.Errorf("replace %s: %w", path, err)
	}
	defer f.Cleanup()
	if _, err := f.Write(data); err != nil {
		return fmt.Errorf("replace %s: %w", path, err)
	}
	if err := step("replace-rename", path); err != nil {
		return err
	}
	if err := f.CloseAtomicallyReplace(); err != nil {
		return fmt.Errorf("replace %s: %w", path, err)
	}
	if err := step("replaced", path); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(path))
}

// Publish makes a new file that readers see whole or not at all: temporary file, fsync, link to its name, unlink, fsync
// of the folder. A rename would silently win over an existing file; link says ErrExists.
func Publish(path string, data []byte, perm fs.FileMode) error {
	if err := step("publish", path); err != nil {
		return err
	}
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, ".tmp-*")
	if err != nil {
		return fmt.Errorf("publish %s: %w", path, err)
	}
	defer os.Remove(f.Name())
	defer f.Close()
	if err := f.Chmod(perm); err != nil {
		return fmt.Errorf("publish %s: %w", path, err)
	}
	if _, err := f.Write(data); err != nil {
		return fmt.Errorf("publish %s: %w", path, err)
	}
	if err := f.Sync(); err != nil {
		return fmt.Errorf("publish %s: %w", path, err)
	}
	if err := step("publish-link", path); err != nil {
		return err
	}
	if err := os.Link(f.Name(), path); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("publish %s: %w", path, ErrExists)
		}
		return fmt.Errorf("publish %s: %w", path, err)
	}
	if err := step("published", path); err != nil {
		return err
	}
	return SyncDir(dir)
}

// Move renames a file within one file system, never over an existing one, and syncs both folders.
func Move(from, to string) error {
	if err := step("move", from); err != nil {
		return err
	}
	err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
	if err != nil {
		if errors.Is(err, unix.EEXIST) {
			return fmt.Errorf("move %s to %s: %w", from, to, ErrExists)
		}
		return fmt.Errorf("move %s to %s: %w", from, to, err)
	}
	if err := step("moved", to); err != nil {
		return err
	}
	if err := SyncDir(filepath.Dir(to)); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(from))
}

// Append adds one line (a newline is added) with a single write and syncs it. A crash or a full disk can leave a torn
// line; it stays, and the next line stands alone. Readers of such files must expect torn lines and empty ones: an empty
// one comes from seeing another writer's line half written.
func Append(path string, line []byte) error {
	if err := step("append", path); err != nil {
		return err
	}
	_, statErr := os.Lstat(path)
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
	if err != nil {
		return fmt.Errorf("append to %s: %w", path, err)
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return fmt.Errorf("append to %s: %w", path, err)
	}
	if !st.Mode().IsRegular() {
		return fmt.Errorf("append to %s: %w", path, ErrNotRegular)
	}
	buf := make([]byte, 0, len(line)+2)
	last := []byte{'\n'}
	if _, err := f.ReadAt(last, st.Size()-1); err == nil && last[0] != '\n' {
		buf = append(buf, '\n')
	}
	buf = append(append(buf, line...), '\n')
	if _, err := f.Write(buf); err != nil {
		return fmt.Errorf("append to %s: %w", path, err)
	}
	if err := f.Sync(); err != nil {
		return fmt.Errorf("append to %s: %w", path, err)
	}
	if err := step("appended", path); err != nil {
		return err
	}
	if errors.Is(statErr, fs.ErrNotExist) {
		return SyncDir(filepath.Dir(path))
	}
	return nil
}

// Remove removes a file and syncs its folder; a file that is not there is no error.
func Remove(path string) error {
	if err := step("remove", path); err != nil {
		return err
	}
	if err := os.Remove(path); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	return SyncDir(filepath.Dir(path))
}

// SetAside keeps an unreadable file as evidence under a new name, <path>.bad-<UTC time>, and returns that name.
func SetAside(path string, now time.Time) (string, error) {
	to := path + ".bad-" + now.UTC().Format("20060102T150405.000Z")
	return to, Move(path, to)
}

// MakeDir makes a folder and its parents and syncs the folder that holds it.
func MakeDir(path string, perm fs.FileMode) error {
	if err := os.MkdirAll(path, perm); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(path))
}

// SyncDir makes the entries of a folder durable.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("sync folder %s: %w", dir, err)
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, unix.EINVAL) { // some file systems cannot
		return fmt.Errorf("sync folder %s: %w", dir, err)
	}
	return nil
}
