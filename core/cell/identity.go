package cell

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"example.com/AutoAgentProject/core/proc"
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
	boot, err := proc.Boot()
	if err != nil {
		return Identity{}, err
	}
	st, err := proc.ReadStat(pid)
	if err != nil {
		return Identity{}, err
	}
	ns, err := namespace(pid)
	return Identity{Boot: boot, PID: pid, Start: st.Start, NS: ns}, err
}

// Alive says whether any process of the cell still lives. An error means unknown, never gone.
func (i Identity) Alive() (bool, error) {
	if i.PID <= 0 {
		return false, nil
	}
	boot, err := proc.Boot()
	if err != nil {
		return false, err
	}
	if boot != i.Boot {
		return false, nil
	}
	st, err := proc.ReadStat(i.PID)
	if proc.Gone(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if st.Start != i.Start || st.State == 'Z' || st.State == 'X' {
		return false, nil
	}
	// The same number and the same tick: only a clock that cannot tell them apart is left.
	ns, err := namespace(i.PID)
	if proc.Gone(err) {
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

func namespace(pid int) (uint64, error) {
	var st unix.Stat_t
	path := fmt.Sprintf("/proc/%d/ns/pid", pid)
	if err := unix.Stat(path, &st); err != nil {
		return 0, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	return st.Ino, nil
}

func parentOf(pid int) (int, error) {
	st, err := proc.ReadStat(pid)
	return st.Parent, err
}

// waitAsleep waits until bwrap's first process sleeps in its wait for children. Only then it has asked the kernel to be
// killed with its parent; before, a kill -9 of us would leave the cell behind.
func waitAsleep(pid int) error {
	for until := time.Now().Add(10 * time.Second); ; {
		st, err := proc.ReadStat(pid)
		if err != nil {
			return err
		}
		if st.State == 'S' {
			return nil
		}
		if time.Now().After(until) {
			return fmt.Errorf("the first process of the cell stays in state %c", st.State)
		}
		time.Sleep(50 * time.Microsecond)
	}
}
