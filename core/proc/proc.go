// Package proc names a process so that a later reader can tell for certain whether it still lives: process ids are
// used again, the pair of boot and start time is not.
package proc

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
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
	st, err := ReadStat(pid)
	return ID{Boot: boot, PID: pid, Start: st.Start}, err
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
	st, err := ReadStat(p.PID)
	if Gone(err) {
		if kerr := unix.Kill(p.PID, 0); kerr == nil || errors.Is(kerr, unix.EPERM) {
			return false, fmt.Errorf("process %d is there and hidden", p.PID) // /proc with hidepid
		}
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return st.Start == p.Start && st.State != 'Z' && st.State != 'X', nil
}

// Signal sends sig to exactly this process; nothing happens if it is gone or its number belongs to another one.
func (p ID) Signal(sig unix.Signal) error {
	fd, err := unix.PidfdOpen(p.PID, 0)
	if errors.Is(err, unix.ESRCH) || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOENT) { // gone, or a thread now
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

// Stat is what /proc/<pid>/stat says of a process.
type Stat struct {
	State  byte // R, S, D, Z, …
	Parent int
	Start  uint64 // clock ticks since boot
}

// ReadStat looks at a process. The program's name in the file may hold anything, so the fields are counted from its
// closing parenthesis.
func ReadStat(pid int) (Stat, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return Stat{}, err
	}
	f := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	if len(f) < 20 {
		return Stat{}, fmt.Errorf("/proc/%d/stat: unknown form", pid)
	}
	parent, err1 := strconv.Atoi(string(f[1]))
	start, err2 := strconv.ParseUint(string(f[19]), 10, 64)
	return Stat{State: f[0][0], Parent: parent, Start: start}, errors.Join(err1, err2)
}

// BelongsTo says whether all user ids of a process are uid. A process that is gone is nobody's.
func BelongsTo(pid, uid int) (bool, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if Gone(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	for line := range strings.Lines(string(b)) {
		if ids, ok := strings.CutPrefix(line, "Uid:"); ok {
			f := strings.Fields(ids)
			return len(f) == 4 && !slices.ContainsFunc(f, func(s string) bool { return s != strconv.Itoa(uid) }), nil
		}
	}
	return false, fmt.Errorf("/proc/%d/status: unknown form", pid)
}

// Gone says whether an error of looking at a process means that it is not there.
func Gone(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) }

// Mono is the monotonic clock, which stands still while the machine sleeps.
func Mono() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(err) // the kernel has no such failure
	}
	return time.Duration(ts.Nano())
}
