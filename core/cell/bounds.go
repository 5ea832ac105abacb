package cell

import (
	"bytes"
	"fmt"
	"os"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Bounds tells what bounds a cell with these limits that this process starts: the cgroup where one does, else the resource
// limits.
func Bounds(l Limits) []string {
	l = l.orDefault()
	processes := fmt.Sprintf("processes: %d (resource limit)", l.Processes)
	if os.Geteuid() == 0 {
		processes = "processes: not by itself, the kernel exempts uid 0"
	}
	memory := fmt.Sprintf("memory: %d MiB for each process (resource limit)", l.DataBytes>>20)
	self, _ := os.ReadFile("/proc/self/cgroup")
	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	if root, group := cgroup2(self, mounts); root != "" {
		if n, ok := lowest(root, group, "pids.max"); ok {
			processes = fmt.Sprintf("processes: %d (cgroup)", n)
		}
		if n, ok := lowest(root, group, "memory.max"); ok {
			memory = fmt.Sprintf("memory: %d MiB in all (cgroup)", n>>20)
		}
	}
	return []string{processes, memory,
		fmt.Sprintf("open files: %d for each process (resource limit)", min(l.OpenFiles, hardLimit(unix.RLIMIT_NOFILE))),
		fmt.Sprintf("file size: %d MiB (resource limit)", l.FileBytes>>20)}
}

// hardLimit is what this process itself may not pass.
func hardLimit(resource int) uint64 {
	var r unix.Rlimit
	if unix.Getrlimit(resource, &r) != nil {
		return NoLimit
	}
	return r.Max
}

// cgroup2 finds where the cgroup2 tree is mounted and this process's group in it. There may be several mounts of other
// kinds, and the path of this one is not the same everywhere.
func cgroup2(self, mountinfo []byte) (root, group string) {
	for line := range strings.Lines(string(self)) {
		if g, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			group = g
		}
	}
	for line := range bytes.Lines(mountinfo) {
		before, after, ok := bytes.Cut(line, []byte(" - "))
		fields := bytes.Fields(before)
		if ok && len(fields) > 4 && bytes.HasPrefix(after, []byte("cgroup2 ")) {
			return string(fields[4]), group
		}
	}
	return "", ""
}

// lowest is the smallest number in the file of that name in the group and those above it.
func lowest(root, group, file string) (uint64, bool) {
	var low uint64
	found := false
	for g := path.Clean("/" + group); ; g = path.Dir(g) {
		if b, err := os.ReadFile(path.Join(root, g, file)); err == nil {
			if n, err := strconv.ParseUint(strings.TrimSpace(string(b)), 10, 64); err == nil && (!found || n < low) {
				low, found = n, true
			}
		}
		if g == "/" {
			return low, found
		}
	}
}
