package files

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	for _, data := range []string{"", "x", strings.Repeat("x", 1000)} {
		ok(t, os.WriteFile(path, []byte(data), 0o600))
		if b, err := Read(path, 1000); err != nil || string(b) != data {
			t.Errorf("%d bytes: %d, %v", len(data), len(b), err)
		}
	}
	if _, err := Read(path, 999); !errors.Is(err, ErrTooBig) {
		t.Error(err)
	}
	if _, err := Read(path+"x", 999); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// TestReadRefuses: whatever is no plain file is refused at once; nothing hangs, nothing is followed.
func TestReadRefuses(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	ok(t, os.WriteFile(at("a"), []byte("x"), 0o600))
	ok(t, os.Symlink(at("a"), at("link")))
	ok(t, os.Symlink(at("none"), at("dangling")))
	ok(t, os.Symlink("loop", at("loop")))
	ok(t, os.Symlink("/dev/zero", at("link to a device")))
	ok(t, os.Mkdir(at("folder"), 0o700))
	ok(t, syscall.Mkfifo(at("fifo"), 0o600))
	l, err := net.Listen("unix", at("socket"))
	ok(t, err)
	defer l.Close()
	for _, path := range []string{at("link"), at("dangling"), at("loop"), at("link to a device"), at("folder"), at("fifo"), at("socket"), "/dev/null", "/dev/zero"} {
		if b, err := Read(path, 1000); !errors.Is(err, ErrNotRegular) || b != nil {
			t.Errorf("%s: %q, %v", path, b, err)
		}
	}
}

// TestReadOfAFileThatSaysItIsEmpty: sizes are not believed.
func TestReadOfAFileThatSaysItIsEmpty(t *testing.T) {
	const path = "/proc/self/status"
	if b, err := Read(path, 1<<16); err != nil || len(b) == 0 {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	if _, err := Read(path, 10); !errors.Is(err, ErrTooBig) {
		t.Error(err)
	}
}

func TestReadWhatIsForbidden(t *testing.T) {
	asUser(t)
	path := filepath.Join(t.TempDir(), "a")
	ok(t, os.WriteFile(path, []byte("x"), 0))
	if _, err := Read(path, 1000); !errors.Is(err, fs.ErrPermission) {
		t.Error(err)
	}
}
