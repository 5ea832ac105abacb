package proc

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"
)

// clockTick is the unit of processor times in /proc: USER_HZ, which Linux keeps at 100 for programs on every machine.
const clockTick = time.Second / 100

// Work is the processor time used so far by what the main program of a PID namespace started, alive or waited for. first is the
// namespace's first process; its oldest child is the program, whose own time does not count. It grows, unless a process
// is adopted whose end nobody waited for yet.
func Work(first int) (time.Duration, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return 0, err
	}
	all := map[int]times{}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		t, err := readTimes(pid)
		if Gone(err) {
			continue
		}
		if err != nil {
			return 0, err
		}
		all[pid] = t
	}
	root, ok := all[first]
	if !ok {
		return 0, fmt.Errorf("process %d is gone", first)
	}
	program := 0
	for pid, t := range all {
		if t.parent == first && (program == 0 || t.start < all[program].start) {
			program = pid
		}
	}
	sum := root.waited + all[program].waited
	for pid, t := range all {
		if pid != first && pid != program && below(pid, first, all) {
			sum += t.own + t.waited
		}
	}
	return time.Duration(sum) * clockTick, nil
}

// times of a process, in clock ticks.
type times struct {
	parent      int
	start       uint64
	own, waited uint64 // its own, and of children it waited for
}

func readTimes(pid int) (times, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return times{}, err
	}
	f := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	if len(f) < 20 {
		return times{}, fmt.Errorf("/proc/%d/stat: unknown form", pid)
	}
	n := make([]uint64, 20)
	for _, i := range []int{1, 11, 12, 13, 14, 19} { // parent, utime, stime, cutime, cstime, starttime
		if n[i], err = strconv.ParseUint(string(f[i]), 10, 64); err != nil {
			return times{}, fmt.Errorf("/proc/%d/stat: %w", pid, err)
		}
	}
	return times{parent: int(n[1]), start: n[19], own: n[11] + n[12], waited: n[13] + n[14]}, nil
}

func below(pid, top int, all map[int]times) bool {
	for hops := 0; pid > 1 && hops < 1000; hops++ {
		if pid = all[pid].parent; pid == top {
			return true
		}
	}
	return false
}
