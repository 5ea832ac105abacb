package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"example.com/AutoAgentProject/core/files"
	"example.com/AutoAgentProject/core/mission"
)

// tombstoneSize is what is preallocated for stop.json, so that stopping works on a full disk.
const tombstoneSize = 4096

// PrepareTombstone preallocates the file that becomes stop.json. It is repeatable.
func (s *Store) PrepareTombstone() error {
	err := files.Publish(s.file("stop.prepared"), bytes.Repeat([]byte{' '}, tombstoneSize), 0o600)
	if errors.Is(err, files.ErrExists) {
		return nil
	}
	return err
}

// Stopped returns the tombstone, or nil. A tombstone that cannot be read still stops: its cause is then empty.
func (s *Store) Stopped() (*mission.Stop, error) {
	b, err := files.Read(s.file("stop.json"), 2*tombstoneSize)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var t mission.Stop
	if err != nil || json.Unmarshal(b, &t) != nil {
		return &mission.Stop{Reason: "the tombstone cannot be read"}, nil
	}
	return &t, nil
}

// Stop sets the tombstone. The first one wins: made is false if there is one already. It takes no lock, and it needs
// no free space: the prepared file is claimed by a rename, overwritten in place and renamed to stop.json.
func (s *Store) Stop(t mission.Stop) (made bool, err error) {
	t.Version, t.At = mission.Version, t.At.UTC()
	if len(t.Reason) > 1000 {
		t.Reason = strings.ToValidUTF8(t.Reason[:1000], "") + "…"
	}
	body, err := json.Marshal(t)
	if err != nil || len(body) >= tombstoneSize {
		return false, fmt.Errorf("tombstone: %d bytes: %w", len(body), err)
	}
	final := s.file("stop.json")
	if _, err := os.Lstat(final); err == nil {
		return false, nil
	}
	mine := s.file(fmt.Sprintf("stop.%d-%d", os.Getpid(), time.Now().UnixNano()))
	if err := s.claimPrepared(mine); err != nil {
		if err := os.WriteFile(mine, nil, 0o600); err != nil { // no prepared file is left
			return false, fmt.Errorf("tombstone: %w", err)
		}
	}
	if err := overwrite(mine, append(body, bytes.Repeat([]byte{' '}, tombstoneSize-len(body))...)); err != nil {
		return false, fmt.Errorf("tombstone: %w", err)
	}
	err = unix.Renameat2(unix.AT_FDCWD, mine, unix.AT_FDCWD, final, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EEXIST) {
		os.Remove(mine)
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("tombstone: %w", err)
	}
	_ = files.SyncDir(s.Dir()) // already in force for everybody; a full disk must not turn it into a failure
	return true, nil
}

// claimPrepared takes the prepared file, or one that a stopper who died left behind.
func (s *Store) claimPrepared(mine string) error {
	if err := os.Rename(s.file("stop.prepared"), mine); err == nil {
		return nil
	}
	left, _ := filepath.Glob(s.file("stop.[0-9]*-*"))
	for _, f := range left {
		var pid int
		fmt.Sscanf(filepath.Base(f), "stop.%d-", &pid)
		if pid > 0 && errors.Is(unix.Kill(pid, 0), unix.ESRCH) && os.Rename(f, mine) == nil {
			return nil
		}
	}
	return fs.ErrNotExist
}

func overwrite(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.WriteAt(data, 0); err != nil {
		return err
	}
	return f.Sync()
}
