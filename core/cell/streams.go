package cell

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// fileSet keeps the descriptors that only a child needs, to be closed once it runs.
type fileSet struct{ files []*os.File }

func (s *fileSet) add(f *os.File) { s.files = append(s.files, f) }

func (s *fileSet) open(name string, flag int) (*os.File, error) {
	f, err := os.OpenFile(name, flag, 0)
	if err == nil {
		s.add(f)
	}
	return f, err
}

// memory makes a file without a name that holds content.
func (s *fileSet) memory(name string, content []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	f := os.NewFile(uintptr(fd), name)
	s.add(f)
	if _, err := f.Write(content); err != nil {
		return nil, err
	}
	_, err = f.Seek(0, io.SeekStart)
	return f, err
}

// contents returns the first 4 KiB of a file, wherever its offset stands.
func contents(f *os.File) string {
	b := make([]byte, 4096)
	n, _ := f.ReadAt(b, 0)
	return string(b[:n])
}

func (s *fileSet) close() {
	for _, f := range s.files {
		f.Close()
	}
}

// streams carries stdin, stdout and stderr between the starter's readers and writers and the program's descriptors.
type streams struct {
	child   [3]*os.File // what the program gets as 0, 1 and 2
	ours    []*os.File  // our ends of pipes
	pending []func()    // copying to be done
	outputs sync.WaitGroup
	mu      sync.Mutex
	errs    []error
}

func newStreams(s Spec, null *os.File, own *fileSet) (*streams, error) {
	st := &streams{}
	if err := st.make(s, null, own); err != nil {
		st.close()
		return nil, err
	}
	return st, nil
}

func (st *streams) make(s Spec, null *os.File, own *fileSet) (err error) {
	if st.child[0], err = st.input(s.Stdin, null, own); err != nil {
		return err
	}
	if st.child[1], err = st.output(s.Stdout, null, own); err != nil {
		return err
	}
	if same(s.Stdout, s.Stderr) {
		st.child[2] = st.child[1]
		return nil
	}
	st.child[2], err = st.output(s.Stderr, null, own)
	return err
}

// same tells whether a and b are one writer; types that cannot be compared are two.
func same(a, b io.Writer) (is bool) {
	defer func() { _ = recover() }()
	return a != nil && a == b
}

func (st *streams) input(r io.Reader, null *os.File, own *fileSet) (*os.File, error) {
	if r == nil {
		return null, nil
	}
	if f, ok := r.(*os.File); ok {
		return orNull(f, null), nil
	}
	theirs, ours, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	own.add(theirs)
	st.ours = append(st.ours, ours)
	// Nobody waits for this one: a reader may block for ever, and a program need not read all it is given.
	st.pending = append(st.pending, func() {
		go func() {
			_, _ = io.Copy(ours, r)
			ours.Close()
		}()
	})
	return theirs, nil
}

func (st *streams) output(w io.Writer, null *os.File, own *fileSet) (*os.File, error) {
	if w == nil {
		return null, nil
	}
	if f, ok := w.(*os.File); ok {
		return orNull(f, null), nil
	}
	ours, theirs, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	own.add(theirs)
	st.ours = append(st.ours, ours)
	st.pending = append(st.pending, func() {
		st.outputs.Go(func() {
			_, err := io.Copy(w, ours)
			ours.Close() // a program that goes on writing gets SIGPIPE
			if err != nil && !errors.Is(err, os.ErrClosed) {
				st.fail(fmt.Errorf("copy output of the cell: %w", err))
			}
		})
	})
	return theirs, nil
}

func orNull(f, null *os.File) *os.File {
	if f == nil {
		return null
	}
	return f
}

func (st *streams) fail(err error) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.errs = append(st.errs, err)
}

// run starts the copying.
func (st *streams) run() {
	for _, start := range st.pending {
		start()
	}
}

// finish waits until all output is copied, at most delay, and releases what is left.
func (st *streams) finish(delay time.Duration) error {
	copied := make(chan struct{})
	go func() {
		st.outputs.Wait()
		close(copied)
	}()
	late := time.NewTimer(delay)
	defer late.Stop()
	select {
	case <-copied:
	case <-late.C:
		st.fail(errors.New("output of the cell is still held open by another process"))
	}
	st.close()
	st.mu.Lock()
	defer st.mu.Unlock()
	return errors.Join(st.errs...)
}

func (st *streams) close() {
	for _, f := range st.ours {
		f.Close()
	}
}
