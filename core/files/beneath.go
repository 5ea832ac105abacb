package files

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// ReadBeneath returns the content of a regular file of at most max bytes in a folder that somebody else writes. No element
// below dir is followed if it is a link, also when it is swapped while it is read; FIFOs and devices are not opened for real.
// rel is slash-separated and goes down only.
func ReadBeneath(dir, rel string, max int64) ([]byte, error) {
	path := filepath.Join(dir, rel)
	at, err := openBeneath(dir, rel, unix.O_NONBLOCK)
	if err != nil {
		return nil, err
	}
	return readRegular(os.NewFile(uintptr(at), path), path, max)
}

// ListBeneath returns the names in a folder below one that somebody else writes, sorted, without following a link. One with more
// than max names is ErrTooBig.
func ListBeneath(dir, rel string, max int) ([]string, error) {
	path := filepath.Join(dir, rel)
	at, err := openBeneath(dir, rel, unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(at), path)
	defer f.Close()
	names, err := f.Readdirnames(max + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if len(names) > max {
		return nil, fmt.Errorf("list %s: %w: more than %d files", path, ErrTooBig, max)
	}
	slices.Sort(names)
	return names, nil
}

// openBeneath opens what lies at rel below dir; last are flags for it besides those of reading.
func openBeneath(dir, rel string, last int) (int, error) {
	path := filepath.Join(dir, rel)
	if !fs.ValidPath(rel) {
		return -1, fmt.Errorf("read %s: %w", path, fs.ErrInvalid)
	}
	at, err := unix.Open(dir, unix.O_DIRECTORY|unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, &fs.PathError{Op: "open", Path: dir, Err: err}
	}
	parts := strings.Split(rel, "/")
	for i, part := range parts {
		flags := unix.O_RDONLY | unix.O_CLOEXEC | unix.O_NOFOLLOW
		if i < len(parts)-1 {
			flags |= unix.O_DIRECTORY
		} else {
			flags |= last
		}
		next, err := retryOpenat(at, part, flags)
		unix.Close(at)
		if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENXIO) || errors.Is(err, unix.ENOTDIR) {
			return -1, fmt.Errorf("read %s: %w", path, ErrNotRegular)
		}
		if err != nil {
			return -1, &fs.PathError{Op: "open", Path: path, Err: err}
		}
		at = next
	}
	return at, nil
}

func retryOpenat(at int, name string, flags int) (int, error) {
	for {
		fd, err := unix.Openat(at, name, flags, 0)
		if !errors.Is(err, unix.EINTR) {
			return fd, err
		}
	}
}

// readRegular reads an open file and closes it.
func readRegular(f *os.File, path string, max int64) ([]byte, error) {
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, fmt.Errorf("read %s: %w", path, ErrNotRegular)
	}
	if st.Size() > max {
		return nil, fmt.Errorf("read %s: %w: %d bytes, at most %d", path, ErrTooBig, st.Size(), max)
	}
	data, err := io.ReadAll(io.LimitReader(f, max+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	if int64(len(data)) > max {
		return nil, fmt.Errorf("read %s: %w", path, ErrTooBig)
	}
	return data, nil
}

// PlaceBeneath puts a file into a folder that somebody else writes but that nobody writes now, in place of whatever has its
// name, a folder or a link included. If the folder it lies in is none, it is made anew. Nothing outside of dir is touched.
func PlaceBeneath(dir, rel string, data []byte, perm fs.FileMode) error {
	if !fs.ValidPath(rel) {
		return fmt.Errorf("place %s: %w", rel, fs.ErrInvalid)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	if parent := filepath.Dir(rel); parent != "." {
		if st, err := root.Lstat(parent); err == nil && !st.IsDir() {
			if err := root.Remove(parent); err != nil {
				return err
			}
		}
		if err := root.MkdirAll(parent, 0o700); err != nil {
			return err
		}
	}
	made := rel + ".new"
	for _, name := range []string{made, rel} {
		if st, err := root.Lstat(name); err == nil && (name == made || st.IsDir()) {
			if err := root.RemoveAll(name); err != nil {
				return err
			}
		}
	}
	f, err := root.OpenFile(made, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return root.Rename(made, rel)
}
