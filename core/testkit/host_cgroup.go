package testkit

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	cgroupPrefix = "autoagent-host-"
	outsiders    = "outside" // where processes go that Run and Start bring into a host
	bareRoot     = "bare"
)

// hostCgroup is the root of a host's cgroups in one hierarchy.
type hostCgroup struct {
	v2      bool
	bare    bool   // one level down from where there are controllers
	dir     string // what the mount point is called inside
	options string // of the mount
	top     string // the folder on the outer machine that is made for the host
	path    string // its root, in top or top itself; of a hierarchy, the folder in which hosts are made
}

// hierarchies finds the cgroup file systems of the outer machine: the host gets a root of its own in each, or systemd
// would mount the one it misses and use it where the outer machine does. Controllers of cgroup v1 are mounted as such,
// beside a v2 tree that tracks the processes; without any, v2 stands alone.
func hierarchies(noControllers bool) ([]hostCgroup, error) {
	mounts, err1 := os.ReadFile("/proc/self/mountinfo")
	own, err2 := os.ReadFile("/proc/self/cgroup")
	controllers, _ := os.ReadFile("/proc/cgroups") // where there is no v1, maybe not even this
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for line := range strings.Lines(string(controllers)) {
		known[strings.Fields(line)[0]] = true
	}
	var v2 hostCgroup
	var v1 []hostCgroup
	for line := range strings.Lines(string(mounts)) {
		left, right, _ := strings.Cut(line, " - ")
		f, fs := strings.Fields(left), strings.Fields(right)
		if len(f) < 6 || len(fs) < 3 || !slices.Contains(strings.Split(f[5], ","), "rw") {
			continue
		}
		root, at := f[3], f[4]
		switch {
		case fs[0] == "cgroup2" && !v2.v2:
			// At the top: a cgroup with processes in it, such as our own, cannot share its controllers out.
			v2 = hostCgroup{v2: true, dir: "unified", options: "-", path: at}
		case fs[0] == "cgroup":
			c := hostCgroup{}
			if options := strings.Split(fs[2], ","); slices.Contains(options, "name=systemd") {
				c.dir, c.options = "systemd", "none,name=systemd"
			} else {
				c.dir = strings.Join(slices.DeleteFunc(options, func(o string) bool { return !known[o] }), ",")
				c.options = c.dir
			}
			c.path = below(at, root, ownCgroup(string(own), strings.TrimPrefix(c.options, "none,")))
			if c.dir != "" && !slices.ContainsFunc(v1, func(o hostCgroup) bool { return o.dir == c.dir }) {
				v1 = append(v1, c)
			}
		}
	}
	switch {
	case !v2.v2:
		return nil, errors.New("no cgroup2 file system is mounted")
	case len(v1) == 0 || noControllers:
		v2.dir, v2.bare = ".", noControllers
		return []hostCgroup{v2}, nil
	case !slices.ContainsFunc(v1, func(c hostCgroup) bool { return c.dir == "systemd" }):
		return nil, errors.New("controllers are mounted as cgroup v1 without name=systemd")
	}
	return append(v1, v2), nil
}

// ownCgroup finds this process's cgroup in the v1 hierarchy with those controllers, in /proc/self/cgroup.
func ownCgroup(text, controllers string) string {
	for line := range strings.Lines(text) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) == 3 && f[1] == controllers {
			return f[2]
		}
	}
	return "/"
}

// below is the folder of a cgroup in a mount whose top is the cgroup root; the top itself if it is not in there.
func below(at, root, cgroup string) string {
	rel, err := filepath.Rel(root, cgroup)
	if err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
		return at
	}
	return filepath.Join(at, rel)
}

// makeCgroups makes the root of a host in each hierarchy, and removes what a killed test left there. What was made is
// returned with an error, too.
func makeCgroups(trees []hostCgroup, name string) (made []hostCgroup, err error) {
	for _, c := range trees {
		sweepCgroups(c.path)
		above := c.path
		c.top = filepath.Join(above, name)
		if c.path = c.top; c.bare {
			c.path = filepath.Join(c.top, bareRoot)
		}
		made = append(made, c)
		if err := errors.Join(os.MkdirAll(c.path, 0o755), os.Chmod(c.top, 0o755), os.Chmod(c.path, 0o755)); err != nil {
			return made, err
		}
		if !c.v2 {
			if err := shareCPUs(above, c.path); err != nil {
				return made, err
			}
		}
	}
	return made, nil
}

// shareCPUs gives a new v1 group the processors of the one above, and so those below it: without any, it takes no process.
func shareCPUs(top, path string) error {
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		b, err := os.ReadFile(filepath.Join(top, file))
		if err != nil {
			return nil // another controller
		}
		if err := os.WriteFile(filepath.Join(path, file), b, 0); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(path, "cgroup.clone_children"), []byte("1"), 0)
}

// sweepCgroups removes the empty hosts of processes that are gone.
func sweepCgroups(dir string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		rest, ok := strings.CutPrefix(e.Name(), cgroupPrefix)
		first, _, _ := strings.Cut(rest, "-")
		pid, err := strconv.Atoi(first)
		if !ok || err != nil || !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			continue
		}
		top, used := filepath.Join(dir, e.Name()), false // by a host of another container, maybe
		_ = filepath.WalkDir(top, func(p string, d fs.DirEntry, err error) error {
			if err == nil && d.Name() == "cgroup.procs" {
				b, err := os.ReadFile(p)
				used = used || err != nil || len(b) > 0
			}
			return nil
		})
		if !used {
			_ = removeCgroup(top)
		}
	}
}

// removeCgroup removes a cgroup and all below it; they must be empty.
func removeCgroup(path string) error {
	var dirs []string
	err := filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			dirs = append(dirs, p)
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, d := range slices.Backward(dirs) {
		if err := os.Remove(d); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func (h *Host) removeCgroups() {
	h.t.Helper()
	for _, c := range h.cgroups {
		var err error
		for range 500 { // a process that came in by Run is only now reaped outside
			if err = removeCgroup(c.top); err == nil {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		if err != nil {
			h.t.Errorf("host: %v", err)
		}
	}
	h.cgroups = nil
}

// CgroupRoot returns the folder on the outer machine below which the host's systemd tracks its processes.
func (h *Host) CgroupRoot() string {
	for _, c := range h.cgroups {
		if c.v2 {
			return c.path
		}
	}
	return ""
}

// Bounds says whether units of the system manager can be bounded by a controller, "memory" or "pids" for example. Units of a
// user's manager can only if it is one of cgroup v2.
func (h *Host) Bounds(controller string) bool {
	for _, c := range h.cgroups {
		if !c.v2 && slices.Contains(strings.Split(c.dir, ","), controller) {
			return true
		}
		b, _ := os.ReadFile(filepath.Join(c.path, "cgroup.controllers"))
		if c.v2 && slices.Contains(strings.Fields(string(b)), controller) {
			return true
		}
	}
	return false
}
