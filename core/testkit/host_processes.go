package testkit

import (
	"cmp"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Proc is a process of a host.
type Proc struct {
	PID    int // on the outer machine
	Inside int // in the host; a process of a PID namespace below has one there too
	Parent int // on the outer machine
	UID    int
	Args   []string
	Cgroup string // as seen inside, /system.slice/x.service for example
}

// Processes returns everything alive in the host, also in PID namespaces inside it, as the outer machine sees it.
func (h *Host) Processes() []Proc {
	h.t.Helper()
	if h.pid == 0 {
		return nil
	}
	root := "/" + h.name
	if h.o.NoControllers {
		root += "/" + bareRoot
	}
	host, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", h.pid))
	if err != nil {
		h.t.Fatalf("host: %v", err)
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		h.t.Fatalf("host: %v", err)
	}
	levels := map[string]int{host: 0} // PID namespace to how far it is below the host's; -1: it is not
	var out []Proc
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		dir := "/proc/" + e.Name()
		ns, err := os.Readlink(dir + "/ns/pid")
		if err != nil {
			continue // gone
		}
		level, ok := levels[ns]
		if !ok {
			level = levelBelow(dir+"/ns/pid", host)
			levels[ns] = level
		}
		if level < 0 {
			continue
		}
		if p, ok := readProc(pid, level, root); ok {
			out = append(out, p)
		}
	}
	return out
}

// levelBelow counts the steps from the PID namespace of a file up to the one of that name; -1: it is not above.
func levelBelow(file, name string) int {
	fd, err := unix.Open(file, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	for level := 0; err == nil; level++ {
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err == nil && fmt.Sprintf("pid:[%d]", st.Ino) == name {
			unix.Close(fd)
			return level
		}
		up, e := unix.IoctlRetInt(fd, unix.NS_GET_PARENT)
		unix.Close(fd)
		fd, err = up, e // EPERM above our own namespace
	}
	return -1
}

// readProc reads a process that is level PID namespaces below its host's, whose cgroups are below root; false: it is gone
// or a zombie.
func readProc(pid, level int, root string) (Proc, bool) {
	p := Proc{PID: pid}
	dir := fmt.Sprintf("/proc/%d/", pid)
	status, err1 := os.ReadFile(dir + "status")
	cgroups, err2 := os.ReadFile(dir + "cgroup")
	args, err3 := os.ReadFile(dir + "cmdline")
	if err1 != nil || err2 != nil || err3 != nil {
		return p, false
	}
	for line := range strings.Lines(string(status)) {
		key, value, _ := strings.Cut(line, ":")
		f := strings.Fields(value)
		switch {
		case len(f) == 0:
		case key == "State" && (f[0] == "Z" || f[0] == "X"):
			return p, false
		case key == "PPid":
			p.Parent, _ = strconv.Atoi(f[0])
		case key == "Uid":
			p.UID, _ = strconv.Atoi(f[0])
		case key == "NSpid" && len(f) > level:
			p.Inside, _ = strconv.Atoi(f[len(f)-1-level])
		}
	}
	for line := range strings.Lines(string(cgroups)) {
		if path, ok := strings.CutPrefix(line, "0::"); ok {
			_, inside, _ := strings.Cut(strings.TrimSpace(path), root)
			p.Cgroup = cmp.Or(inside, "/")
		}
	}
	p.Args = strings.Split(strings.TrimSuffix(string(args), "\x00"), "\x00")
	return p, true
}
