package cgroup

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// MemoryKills counts the processes that the kernel ended for want of memory, in this process's own cgroup and those below
// it, since it was made; 0 where nothing counts them. Only how it changes tells something.
func MemoryKills() int64 {
	trees, err := own()
	if err != nil {
		return 0
	}
	var most int64
	for _, h := range trees {
		file := "memory.events"
		if !h.v2 {
			file = "memory.oom_control" // from Linux 4.13 on, without the groups below
		}
		most = max(most, counter(filepath.Join(h.own, file), "oom_kill"))
	}
	return most
}

// counter reads the number behind a name.
func counter(file, name string) int64 {
	b, _ := os.ReadFile(file)
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) == 2 && f[0] == name {
			n, _ := strconv.ParseInt(f[1], 10, 64)
			return n
		}
	}
	return 0
}
