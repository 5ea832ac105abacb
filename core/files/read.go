package files

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// ErrTooBig and ErrNotRegular are what Read refuses.
var (
	ErrTooBig     = errors.New("too big")
	ErrNotRegular = errors.New("not a regular file")
)

// Passing says whether an error of Read comes from a limit of this process or machine: it says nothing about the file.
func Passing(err error) bool {
	return errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) || errors.Is(err, unix.ENOMEM)
}

// Read returns the content of a regular file of at most max bytes. A last element that is a symbolic link, a FIFO,
// a device or a folder is refused without being opened for real.
func Read(path string, max int64) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENXIO) {
			return nil, fmt.Errorf("read %s: %w", path, ErrNotRegular)
		}
		return nil, err
	}
	return readRegular(f, path, max)
}
