package cgroup

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// hierarchy is one tree of groups and where this process is in it.
type hierarchy struct {
	v2          bool
	controllers []string // v1: those that belong to it
	mount       string
	own         string // folder of this process's group
}

func (h hierarchy) has(c control) bool { return slices.Contains(h.controllers, c.name) }

func (h hierarchy) place(parent, name string) Place {
	p := Place{V2: h.v2, Mount: h.mount, Path: filepath.Join(parent, name)}
	p.Inode, _ = inode(h.mount) // 0 is never right: later nobody takes the tree for known
	return p
}

// own returns the hierarchies in which this process can be seen.
func own() ([]hierarchy, error) {
	self, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, err
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	var out []hierarchy
	for _, h := range hierarchies(self, mounts) {
		known := func(k hierarchy) bool { return k.v2 == h.v2 && slices.Equal(k.controllers, h.controllers) }
		if slices.ContainsFunc(out, known) {
			continue
		}
		// A mount can be hidden by another, or be one of another container.
		if pids, err := procs(h.own); err == nil && slices.Contains(pids, os.Getpid()) {
			out = append(out, h)
		}
	}
	if len(out) == 0 {
		return nil, errors.New("no cgroup file system is mounted here")
	}
	return out, nil
}

// hierarchies joins /proc/self/cgroup, which knows the group, and /proc/self/mountinfo, which knows the folder. A mount
// shows a tree from its root or, in containers, from some group on.
func hierarchies(self, mountinfo []byte) []hierarchy {
	var out []hierarchy
	for line := range strings.Lines(string(self)) {
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(f) != 3 {
			continue
		}
		h := hierarchy{v2: f[0] == "0" && f[1] == ""}
		if !h.v2 {
			h.controllers = strings.Split(f[1], ",")
		}
		for m := range strings.Lines(string(mountinfo)) {
			before, after, ok := strings.Cut(m, " - ")
			b, a := strings.Fields(before), strings.Fields(after)
			if !ok || len(b) < 5 || len(a) < 3 {
				continue
			}
			options := strings.Split(a[2], ",")
			lacks := func(c string) bool { return !slices.Contains(options, c) }
			if h.v2 && a[0] != "cgroup2" || !h.v2 && (a[0] != "cgroup" || slices.ContainsFunc(h.controllers, lacks)) {
				continue
			}
			if rel, ok := within(unescape(b[3]), f[2]); ok {
				h.mount = unescape(b[4])
				h.own = filepath.Join(h.mount, rel)
				out = append(out, h)
			}
		}
	}
	return out
}

// within returns the way from the group that a mount shows to another one. A path that begins with /.. lies outside of
// the namespace.
func within(top, group string) (string, bool) {
	if strings.HasPrefix(top, "/..") || strings.HasPrefix(group, "/..") {
		return "", false
	}
	rel, err := filepath.Rel(top, group)
	return rel, err == nil && rel != ".." && !strings.HasPrefix(rel, "../")
}

// unescape undoes the octal escapes of mountinfo.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// procs returns the processes of one group, without those of the groups below.
func procs(dir string) ([]int, error) {
	b, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	if err != nil {
		return nil, err
	}
	var out []int
	for f := range strings.FieldsSeq(string(b)) {
		pid, err := strconv.Atoi(f)
		if err != nil {
			return nil, err
		}
		out = append(out, pid)
	}
	return out, nil
}

// write writes into a file of the kernel; it never makes one.
func write(file, value string) error {
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}

func inode(path string) (uint64, error) {
	var st unix.Stat_t
	err := unix.Stat(path, &st)
	return st.Ino, err
}
