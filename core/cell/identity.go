package cell

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

// Identity names a cell so that a later process can prove that it is gone. PID is the first process of the cell's PID
// namespace: the kernel ends the namespace with it, and does not end it before all others in it. Neither a number of a
// process nor that of a namespace alone would do: both are given to others later.
type Identity struct {
	Boot  string `json:"boot"`  // boot id of the kernel
	PID   int    `json:"pid"`   // as seen by the starter
	Start uint64 `json:"start"` // its start in clock ticks since boot
	NS    uint64 `json:"ns"`    // inode of the PID namespace
}

// killDelay is how long Identity.Kill waits for a killed cell to be gone.
const killDelay = 30 * time.Second

func identify(pid int) (Identity, error) {
	boot, err := bootID()
	if err != nil {
		return Identity{}, err
	}
	st, err := readStat(pid)
	if err != nil {
		return Identity{}, err
	}
	ns, err := namespace(pid)
	return Identity{Boot: boot, PID: pid, Start: st.start, NS: ns}, err
}

// Alive says whether any process of the cell still lives. An error means unknown, never gone.
func (i Identity) Alive() (bool, error) {
	if i.PID <= 0 {
		return false, nil
	}
	boot, err := bootID()
	if err != nil {
		return false, err
	}
	if boot != i.Boot {
		return false, nil
	}
	st, err := readStat(i.PID)
	if gone(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if st.start != i.Start || st.state == 'Z' || st.state == 'X' {
		return false, nil
	}
	// The same number and the same tick: only a clock that cannot tell them apart is left.
	ns, err := namespace(i.PID)
	if gone(err) {
		return false, nil
	}
	return err == nil && ns == i.NS, err
}

// Kill ends the cell if it still lives and returns when all of it is gone. It touches no other process.
func (i Identity) Kill() error {
	if i.PID <= 0 {
		return nil
	}
	p, err := openPidfd(i.PID) // from here on the number cannot come to mean somebody else unnoticed
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("kill cell %d: %w", i.PID, err)
	}
	defer p.close()
	alive, err := i.Alive()
	if err != nil {
		return fmt.Errorf("kill cell %d: %w", i.PID, err)
	}
	if !alive {
		return nil
	}
	if err := p.signal(unix.SIGKILL); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill cell %d: %w", i.PID, err)
	}
	if !p.waitFor(killDelay) {
		return fmt.Errorf("kill cell %d: still there after %s", i.PID, killDelay)
	}
	return nil
}

func gone(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) }

func bootID() (string, error) {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(b)), err
}

func namespace(pid int) (uint64, error) {
	var st unix.Stat_t
	path := fmt.Sprintf("/proc/%d/ns/pid", pid)
	if err := unix.Stat(path, &st); err != nil {
		return 0, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	return st.Ino, nil
}

type procStat struct {
	state  byte
	parent int
	start  uint64
}

// readStat reads the fields of /proc/<pid>/stat. The program's name in it may hold anything, so they are counted from
// its closing parenthesis.
func readStat(pid int) (procStat, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return procStat{}, err
	}
	f := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	if len(f) < 20 {
		return procStat{}, fmt.Errorf("/proc/%d/stat: unexpected form", pid)
	}
	parent, err1 := strconv.Atoi(string(f[1]))
	start, err2 := strconv.ParseUint(string(f[19]), 10, 64)
	return procStat{state: f[0][0], parent: parent, start: start}, errors.Join(err1, err2)
}

func parentOf(pid int) (int, error) {
	st, err := readStat(pid)
	return st.parent, err
}

// waitAsleep waits until bwrap's first process sleeps in its wait for children. Only then it has asked the kernel to be
// killed with its parent; before, a kill -9 of us would leave the cell behind.
func waitAsleep(pid int) error {
	for until := time.Now().Add(10 * time.Second); ; {
		st, err := readStat(pid)
		if err != nil {
			return err
		}
		if st.state == 'S' {
			return nil
		}
		if time.Now().After(until) {
			return fmt.Errorf("the first process of the cell stays in state %c", st.state)
		}
		time.Sleep(50 * time.Microsecond)
	}
}
