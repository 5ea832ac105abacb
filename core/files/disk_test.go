package files

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// childOperation does one operation on path in this process: with data that tells old from new.
func childOperation(does, path string) error {
	switch does {
	case "replace":
		return Replace(path, []byte("new"), 0o600)
	case "publish":
		return Publish(path, []byte("new"), 0o600)
	case "move":
		return Move(path, path+".moved")
	case "append":
		return Append(path, []byte("new"))
	case "remove":
		return Remove(path)
	case "aside":
		_, err := SetAside(path, time.Unix(0, 0))
		return err
	}
	return fmt.Errorf("what is %q?", does)
}

// smallDisk mounts a file system of one megabyte.
func smallDisk(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("autoagent-test", dir, "tmpfs", 0, "size=1m"); err != nil {
		if os.Getenv("CI") == "true" && os.Getuid() == 0 {
			t.Fatalf("no full disk can be made here: %v", err)
		}
		t.Skipf("SKIPPED LOUDLY: no full disk can be made here, mounting needs root: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// fill uses every byte of the disk that holds dir; free gives them back.
func fill(t *testing.T, dir string) (free func()) {
	t.Helper()
	path := filepath.Join(dir, "filler")
	f, err := os.Create(path)
	ok(t, err)
	for n := 1 << 16; n > 0; {
		if _, err := f.Write(bytes.Repeat([]byte{1}, n)); err != nil {
			n /= 2
		}
	}
	f.Close()
	return func() { ok(t, os.Remove(path)) }
}

// TestFullDisk: each operation says ENOSPC, the old content stands, nothing temporary stays, and with space it works.
func TestFullDisk(t *testing.T) {
	dir := smallDisk(t)
	at := func(name string) string { return filepath.Join(dir, name) }
	ok(t, Replace(at("a"), []byte("old"), 0o600))
	ok(t, Append(at("lines"), []byte("old")))
	free := fill(t, dir)
	big := bytes.Repeat([]byte("n"), 5000)
	for name, err := range map[string]error{
		"replace": Replace(at("a"), big, 0o600), "publish": Publish(at("p"), big, 0o600), "append": Append(at("lines"), big),
	} {
		if !errors.Is(err, unix.ENOSPC) {
			t.Errorf("%s: %v", name, err)
		}
	}
	content(t, at("a"), "old")
	only(t, dir, "a", "filler", "lines")
	// Moving, removing and locking need no space.
	ok(t, Move(at("a"), at("b")))
	ok(t, Remove(at("b")))
	unlock, err := TryLock(at("lock"))
	ok(t, err)
	unlock()
	free()
	ok(t, Replace(at("a"), big, 0o600))
	ok(t, Publish(at("p"), big, 0o600))
	ok(t, Append(at("lines"), []byte("new")))
	b, err := os.ReadFile(at("lines"))
	ok(t, err)
	lines := strings.Split(string(b), "\n")
	if lines[0] != "old" || lines[len(lines)-2] != "new" || strings.Trim(strings.Join(lines[1:len(lines)-2], ""), "n") != "" {
		t.Errorf("%q", cut(b))
	}
	only(t, dir, "a", "lines", "lock", "p")
}
