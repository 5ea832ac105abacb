package cell

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// pidfd refers to one process for ever; the zero value refers to none.
type pidfd struct{ f *os.File }

func openPidfd(pid int) (pidfd, error) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return pidfd{}, os.NewSyscallError("pidfd_open", err)
	}
	return pidfd{os.NewFile(uintptr(fd), "pidfd")}, nil
}

// do calls f with the descriptor, unless it is closed.
func (p pidfd) do(f func(fd int) error) error {
	if p.f == nil {
		return os.ErrProcessDone
	}
	raw, err := p.f.SyscallConn()
	if err != nil {
		return os.ErrProcessDone
	}
	var result error
	if err := raw.Control(func(fd uintptr) { result = f(int(fd)) }); err != nil {
		return os.ErrProcessDone
	}
	return result
}

func (p pidfd) signal(s unix.Signal) error {
	err := p.do(func(fd int) error { return unix.PidfdSendSignal(fd, s, nil, 0) })
	if errors.Is(err, unix.ESRCH) {
		return os.ErrProcessDone
	}
	return err
}

func (p pidfd) kill() { _ = p.signal(unix.SIGKILL) }

// wait waits for the end of the process.
func (p pidfd) wait() {
	for !p.waitFor(time.Hour) {
	}
}

// waitFor waits for the end of the process and tells whether it came in time.
func (p pidfd) waitFor(d time.Duration) bool {
	over := false
	err := p.do(func(fd int) error {
		for until := time.Now().Add(d); !over; {
			left := max(0, time.Until(until))
			n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int((left+time.Millisecond-1)/time.Millisecond))
			if err != nil && !errors.Is(err, unix.EINTR) {
				return err
			}
			over = n > 0
			if left == 0 {
				return nil
			}
		}
		return nil
	})
	return over || errors.Is(err, os.ErrProcessDone)
}

func (p pidfd) close() {
	if p.f != nil {
		p.f.Close()
	}
}
