package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
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

// Stopped returns the tombstone, or nil. A tombstone that cannot be read still stops: its cause is then empty. So does a
// mission whose folder is gone.
func (s *Store) Stopped() (*mission.Stop, error) {
	b, err := files.Read(s.file("stop.json"), 2*tombstoneSize)
	if errors.Is(err, fs.ErrNotExist) {
		if !s.Exists() {
			return &mission.Stop{Cause: mission.Damage, Reason: "its folder is gone"}, nil
		}
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
	body, err := tombstone(t)
	if err != nil {
		return false, err
	}
	final := s.file("stop.json")
	if exists(final) {
		return false, nil
	}
	mine := s.file(fmt.Sprintf("stop.%d-%d", os.Getpid(), time.Now().UnixNano()))
	claimed := s.claimPrepared(mine) == nil
	if !claimed { // no prepared file is left
		err = os.WriteFile(mine, nil, 0o600)
	}
	if err == nil {
		err = overwrite(mine, body)
	}
	if err == nil {
		err = unix.Renameat2(unix.AT_FDCWD, mine, unix.AT_FDCWD, final, unix.RENAME_NOREPLACE)
	}
	if err == nil {
		_ = files.SyncDir(s.Dir()) // already in force for everybody; a full disk must not turn it into a failure
		return true, nil
	}
	if claimed && !errors.Is(err, unix.EEXIST) {
		_ = os.Rename(mine, s.file("stop.prepared")) // for the next try
	} else {
		_ = os.Remove(mine)
	}
	if exists(final) { // somebody else was faster
		return false, nil
	}
	return false, fmt.Errorf("tombstone: %w", err)
}

// tombstone is the content of stop.json, at its full size. A reason that does not fit is cut: it never prevents a stop.
func tombstone(t mission.Stop) ([]byte, error) {
	t.Version, t.At = mission.Version, t.At.UTC()
	t.Reason = strings.ToValidUTF8(t.Reason, "\uFFFD")
	for limit := 1000; ; limit /= 2 {
		if len(t.Reason) > limit {
			t.Reason = strings.ToValidUTF8(t.Reason[:limit], "") + "…"
		}
		body, err := json.Marshal(t)
		if err != nil {
			return nil, fmt.Errorf("tombstone: %w", err)
		}
		if pad := tombstoneSize - len(body); pad >= 0 {
			return append(body, bytes.Repeat([]byte{' '}, pad)...), nil
		}
		if limit == 0 {
			return nil, fmt.Errorf("tombstone: %d bytes without a reason", len(body))
		}
	}
}

// claimPrepared takes the prepared file, or one that a stopper who died left behind.
func (s *Store) claimPrepared(mine string) error {
	if err := os.Rename(s.file("stop.prepared"), mine); err == nil {
		return nil
	}
	entries, err := os.ReadDir(s.Dir())
	if err != nil {
		return err
	}
	for _, e := range entries {
		var pid int
		var at int64
		if n, _ := fmt.Sscanf(e.Name(), "stop.%d-%d", &pid, &at); n < 2 || pid <= 0 {
			continue
		}
		if errors.Is(unix.Kill(pid, 0), unix.ESRCH) && os.Rename(s.file(e.Name()), mine) == nil {
			return nil
		}
	}
	return fs.ErrNotExist
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
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
