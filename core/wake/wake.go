// Package wake tells an agent that there is something for it: one byte to its datagram socket. A wake-up is a hint,
// never a delivery: it may be lost, and a failed one fails nothing.
package wake

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Send writes one byte to the socket at path. Nobody listening, or a full queue (it will wake up anyway), is no error.
func Send(path string) error {
	short, done, err := shorten(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("wake %s: %w", path, err)
	}
	defer done()
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	err = unix.Sendto(fd, []byte{'w'}, unix.MSG_NOSIGNAL, &unix.SockaddrUnix{Name: short})
	switch {
	case err == nil, errors.Is(err, unix.EAGAIN), errors.Is(err, unix.ENOBUFS),
		errors.Is(err, unix.ENOENT), errors.Is(err, unix.ECONNREFUSED):
		return nil
	}
	return fmt.Errorf("wake %s: %w", path, err)
}

// Listen makes the socket at path, taking the place of one that a dead listener left behind.
func Listen(path string) (*net.UnixConn, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	short, done, err := shorten(path)
	if err != nil {
		return nil, err
	}
	defer done()
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: short, Net: "unixgram"})
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// shorten gives a name for path that fits into the 108 bytes of a socket address, through an open folder.
func shorten(path string) (string, func(), error) {
	if len(path) < 100 {
		return path, func() {}, nil
	}
	d, err := os.Open(filepath.Dir(path))
	if err != nil {
		return "", nil, err
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", d.Fd(), filepath.Base(path)), func() { d.Close() }, nil
}
