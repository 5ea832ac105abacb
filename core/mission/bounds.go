package mission

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Bounds is what a mission may take of the machine, all agents together. Zero fields take the engine's default.
type Bounds struct {
	Memory    int64 `json:"memory,omitempty"`     // bytes; also the most private memory of one process in a cell
	Tasks     int   `json:"tasks,omitempty"`      // processes and threads
	CPUWeight int   `json:"cpu_weight,omitempty"` // 1 to 10000 against 100 of others; where systemd ticks
}

// The smallest bounds with which the agent program still works.
const (
	LeastMemory = 1 << 30
	LeastTasks  = 128
	mostTasks   = 1 << 22 // of the kernel
	mostWeight  = 10000
)

// Wrong says what is wrong with the bounds, empty: nothing.
func (b Bounds) Wrong() string {
	switch {
	case b.Memory != 0 && b.Memory < LeastMemory:
		return fmt.Sprintf("memory is less than the %d GiB that the agent program needs", LeastMemory>>30)
	case b.Tasks != 0 && (b.Tasks < LeastTasks || b.Tasks > mostTasks):
		return fmt.Sprintf("tasks %d is not from %d to %d", b.Tasks, LeastTasks, mostTasks)
	case b.CPUWeight < 0 || b.CPUWeight > mostWeight:
		return fmt.Sprintf("cpu_weight %d is not from 1 to %d", b.CPUWeight, mostWeight)
	}
	return ""
}

var memoryText = regexp.MustCompile(`^([0-9]{1,7}(?:\.[0-9]{1,3})?) ?([KMGT])(?:iB)?$`)

// ParseMemory reads an amount of memory: a number and KiB, MiB, GiB or TiB, of which the iB may be left out. Empty is 0.
func ParseMemory(s string) (int64, error) {
	if s == "" {
		return 0, nil
	}
	found := memoryText.FindStringSubmatch(s)
	if found == nil {
		return 0, fmt.Errorf("%q is no amount of memory, write for example 4GiB", s)
	}
	n, err := strconv.ParseFloat(found[1], 64)
	shift := 10 * (1 + strings.Index("KMGT", found[2]))
	if bytes := int64(n * float64(int64(1)<<shift)); err == nil && bytes > 0 && n < 1<<20 {
		return bytes, nil
	}
	return 0, fmt.Errorf("%q is no amount of memory that a machine has", s)
}
