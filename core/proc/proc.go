// Package proc names a process so that a later reader can tell for certain whether it still lives: process ids are
// used again, the pair of boot and start time is not.
package proc

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// ID is one process of one boot.
type ID struct {
	Boot  string `json:"boot"`  // /proc/sys/kernel/random/boot_id
	PID   int    `json:"pid"`   //
	Start uint64 `json:"start"` // start time in clock ticks since boot
}

// Boot returns the id of this boot of the machine.
func Boot() (string, error) {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(b)), err
}

// Self is the running process.
func Self() (ID, error) { return Of(os.Getpid()) }

// Of names a living process.
func Of(pid int) (ID, error) {
	boot, err := Boot()
	if err != nil {
		return ID{}, err
	}
	start, _, err := stat(pid)
	return ID{Boot: boot, PID: pid, Start: start}, err
}

// Alive says whether the process still runs (a zombie does not). An error means unknown, never dead.
func (p ID) Alive() (bool, error) {
	if p.PID <= 0 {
		return false, nil
	}
	boot, err := Boot()
	if err != nil {
		return false, err
	}
	if boot != p.Boot {
		return false, nil
	}
	start, state, err := stat(p.PID)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return start == p.Start && state != 'Z' && state != 'X', nil
}

// Signal sends sig to exactly this process; nothing happens if it is gone or its number belongs to another one.
func (p ID) Signal(sig unix.Signal) error {
	fd, err := unix.PidfdOpen(p.PID, 0)
	if errors.Is(err, unix.ESRCH) || errors.Is(err, unix.EINVAL) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	alive, err := p.Alive() // after the pidfd: from here on the number cannot change its owner unnoticed
	if err != nil || !alive {
		return err
	}
	if err := unix.PidfdSendSignal(fd, sig, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return err
	}
	return nil
}

// stat reads state and start time (fields 3 and 22) of /proc/<pid>/stat; the name in field 2 may hold anything.
func stat(pid int) (start uint64, state byte, err error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0, err
	}
	i := bytes.LastIndexByte(b, ')')
	f := strings.Fields(string(b[i+1:]))
	if i < 0 || len(f) < 20 {
		return 0, 0, fmt.Errorf("/proc/%d/stat: unknown form", pid)
	}
	start, err = strconv.ParseUint(f[19], 10, 64)
	return start, f[0][0], err
}

// Mono is the monotonic clock, which stands still while the machine sleeps.
func Mono() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(err) // the kernel has no such failure
	}
	return time.Duration(ts.Nano())
}
