package wake

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// received counts the bytes that wait at a socket.
func received(t *testing.T, c *net.UnixConn) int {
	t.Helper()
	n, buf := 0, make([]byte, 64)
	for {
		ok(t, c.SetReadDeadline(time.Now().Add(20*time.Millisecond)))
		k, _, err := c.ReadFromUnix(buf)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return n
		}
		ok(t, err)
		n += k
	}
}

// folders are short and long ones: a socket's address has room for 108 bytes.
func folders(t *testing.T) []string {
	t.Helper()
	base := t.TempDir()
	out := []string{base}
	for _, length := range []int{94, 95, 96, 99, 104, 108, 109, 200, 2000} {
		dir := base
		for len(dir)+len("/wake") < length {
			dir = filepath.Join(dir, strings.Repeat("d", min(200, max(1, length-len(dir)-len("/wake")-1))))
		}
		ok(t, os.MkdirAll(dir, 0o700))
		out = append(out, dir)
	}
	return out
}

func TestWake(t *testing.T) {
	for _, dir := range folders(t) {
		path := filepath.Join(dir, "wake")
		ok(t, Send(path)) // before anybody listens
		c, err := Listen(path)
		if err != nil {
			t.Errorf("%d bytes: %v", len(path), err)
			continue
		}
		if st, err := os.Lstat(path); err != nil || st.Mode().Perm() != 0o600 || st.Mode().Type() != os.ModeSocket {
			t.Errorf("%d bytes: %v, %v", len(path), st, err)
		}
		ok(t, Send(path))
		ok(t, Send(path))
		if n := received(t, c); n != 2 {
			t.Errorf("%d bytes: %d wake-ups", len(path), n)
		}
		c.Close()
		ok(t, Send(path)) // nobody listens any more, the file is still there
		// The next listener takes its place.
		c, err = Listen(path)
		ok(t, err)
		ok(t, Send(path))
		if n := received(t, c); n != 1 {
			t.Errorf("%d bytes, after a restart: %d wake-ups", len(path), n)
		}
		c.Close()
	}
}

func TestFullQueue(t *testing.T) {
	path := filepath.Join(t.TempDir(), "wake")
	c, err := Listen(path)
	ok(t, err)
	defer c.Close()
	for range 2000 { // more than any queue holds; it neither waits nor fails
		ok(t, Send(path))
	}
	if n := received(t, c); n == 0 || n == 2000 {
		t.Errorf("%d wake-ups: this test did not fill the queue", n)
	}
}

// TestNoFolder: a mission that is gone wakes nobody, and nothing is made in its place or anywhere else.
func TestNoFolder(t *testing.T) {
	base := t.TempDir()
	for _, dir := range []string{filepath.Join(base, "gone"), filepath.Join(base, strings.Repeat("g", 200))} {
		path := filepath.Join(dir, "wake")
		if err := Send(path); err != nil {
			t.Errorf("%d bytes: %v", len(path), err)
		}
		if c, err := Listen(path); err == nil {
			c.Close()
			t.Errorf("%d bytes: it listens in no folder", len(path))
		}
	}
	if entries, _ := os.ReadDir(base); len(entries) != 0 {
		t.Errorf("there is %v", entries)
	}
}

// TestCutNameIsNobody: the beginning of a long name may be the name of something else.
func TestCutNameIsNobody(t *testing.T) {
	base := t.TempDir()
	for len(base) < 80 {
		base = filepath.Join(base, "dddddddddd")
	}
	ok(t, os.MkdirAll(base, 0o700))
	other := filepath.Join(base, strings.Repeat("o", 99-len(base)-1))
	c, err := Listen(other)
	ok(t, err)
	defer c.Close()
	ok(t, Send(other+"ther/gone/wake"))
	if n := received(t, c); n != 0 {
		t.Errorf("%s was woken", other)
	}
}

func TestNoSocket(t *testing.T) {
	dir := t.TempDir()
	ok(t, os.WriteFile(filepath.Join(dir, "file"), []byte("kept"), 0o600))
	for _, name := range []string{"file", "."} { // harmless, and told or not: nothing is written
		_ = Send(filepath.Join(dir, name))
	}
	if b, err := os.ReadFile(filepath.Join(dir, "file")); err != nil || string(b) != "kept" {
		t.Errorf("%q, %v", b, err)
	}
	ok(t, os.MkdirAll(filepath.Join(dir, "wake", "full"), 0o700))
	if c, err := Listen(filepath.Join(dir, "wake")); err == nil {
		c.Close()
		t.Error("a full folder was removed")
	}
}
