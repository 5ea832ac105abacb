package cell

import (
	"cmp"
	"fmt"
	"math"
	"os"

	"golang.org/x/sys/unix"
)

// Limits bounds a cell by the kernel's resource limits. A zero field takes the package's default; the starter's own
// hard limits hold in any case. Limits of memory for the cell as a whole are the unit's, by cgroup.
type Limits struct {
	Processes uint64 `json:"processes"`  // processes and threads in the cell; the kernel does not apply it to uid 0 outside
	OpenFiles uint64 `json:"open_files"` // descriptors of one process
	FileBytes uint64 `json:"file_bytes"` // size of one file
	DataBytes uint64 `json:"data_bytes"` // private memory of one process, touched or not; NoLimit for address sanitizers
}

// NoLimit in a field of Limits leaves that field to the starter's own hard limit.
const NoLimit uint64 = math.MaxUint64

// The defaults: far above what builds, node and the agent programs need, far below what takes a machine down.
const (
	DefaultProcesses uint64 = 4096
	DefaultOpenFiles uint64 = 65536
	DefaultFileBytes uint64 = 16 << 30
	DefaultDataBytes uint64 = 32 << 30
)

func (l Limits) orDefault() Limits {
	return Limits{
		Processes: cmp.Or(l.Processes, DefaultProcesses),
		OpenFiles: cmp.Or(l.OpenFiles, DefaultOpenFiles),
		FileBytes: cmp.Or(l.FileBytes, DefaultFileBytes),
		DataBytes: cmp.Or(l.DataBytes, DefaultDataBytes),
	}
}

// apply sets the limits for this process and all it becomes or starts. There are no core dumps: they hold secrets.
func (l Limits) apply() error {
	for _, r := range []struct {
		name     string
		resource int
		value    uint64
	}{
		{"processes", unix.RLIMIT_NPROC, l.Processes},
		{"open files", unix.RLIMIT_NOFILE, l.OpenFiles},
		{"file size", unix.RLIMIT_FSIZE, l.FileBytes},
		{"data size", unix.RLIMIT_DATA, l.DataBytes},
		{"core size", unix.RLIMIT_CORE, 0},
	} {
		var now unix.Rlimit
		if err := unix.Getrlimit(r.resource, &now); err != nil {
			return fmt.Errorf("limit of %s: %w", r.name, os.NewSyscallError("getrlimit", err))
		}
		v := min(r.value, now.Max)
		if err := unix.Setrlimit(r.resource, &unix.Rlimit{Cur: v, Max: v}); err != nil {
			return fmt.Errorf("limit of %s: %w", r.name, os.NewSyscallError("setrlimit", err))
		}
	}
	return nil
}
