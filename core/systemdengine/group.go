package systemdengine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/coreos/go-systemd/v22/dbus"
	"golang.org/x/sys/unix"

	"example.com/AutoAgentProject/core/cgroup"
	"example.com/AutoAgentProject/core/mission"
)

// group finds the control group of the mission's slice, in every tree in which the manager may keep it. Where the
// manager's groups cannot be seen, nothing can be said: that is an error.
func (b *bus) group(ctx context.Context, id string) (*cgroup.Group, error) {
	root := ""
	err := b.do(ctx, "find its control group", func(_ context.Context, c *dbus.Conn) error {
		text, err := c.GetManagerProperty("ControlGroup")
		if err != nil {
			return err
		}
		root, err = strconv.Unquote(text)
		return err
	})
	if err != nil {
		return nil, err
	}
	trees, err := trees()
	if err != nil {
		return nil, err
	}
	slice := mission.Slice(id)
	r := cgroup.Record{Name: slice}
	for _, t := range trees {
		at := filepath.Join(t.Mount, root)
		if _, err := os.Lstat(filepath.Join(at, "init.scope")); err != nil {
			continue // not the tree in which this manager keeps its own processes
		}
		t.Path = filepath.Join(at, below(slice))
		r.Places = append(r.Places, t)
	}
	if len(r.Places) == 0 {
		return nil, fmt.Errorf("the control groups of systemd (%s) cannot be seen here", filepath.Join("/", root))
	}
	return cgroup.Find(slice, &r)
}

// below is where a slice's control group lies: each dash in its name is one step down.
func below(slice string) string {
	name := strings.TrimSuffix(slice, ".slice")
	path := ""
	for i, c := range name {
		if c == '-' {
			path = filepath.Join(path, name[:i]+".slice")
		}
	}
	return filepath.Join(path, slice)
}

// trees are the mounts of cgroup v2 and of systemd's own v1 tree that show what this process is in.
func trees() ([]cgroup.Place, error) {
	mounts, err1 := os.ReadFile("/proc/self/mountinfo")
	groups, err2 := os.ReadFile("/proc/self/cgroup")
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	own := map[bool]string{} // by v2
	for line := range strings.Lines(string(groups)) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) == 3 && (f[1] == "" || f[1] == "name=systemd") {
			own[f[1] == ""] = f[2]
		}
	}
	var out []cgroup.Place
	for line := range strings.Lines(string(mounts)) {
		before, after, _ := strings.Cut(line, " - ")
		b, a := strings.Fields(before), strings.Fields(after)
		if len(b) < 5 || len(a) < 3 || b[3] != "/" {
			continue
		}
		v2 := a[0] == "cgroup2"
		if !v2 && (a[0] != "cgroup" || !slices.Contains(strings.Split(a[2], ","), "name=systemd")) {
			continue
		}
		path, ok := own[v2]
		if !ok || !holdsSelf(filepath.Join(b[4], path)) {
			continue
		}
		var st unix.Stat_t
		if err := unix.Stat(b[4], &st); err != nil {
			return nil, fmt.Errorf("look at the cgroups in %s: %w", b[4], err)
		}
		out = append(out, cgroup.Place{V2: v2, Mount: b[4], Inode: st.Ino})
	}
	if len(out) == 0 {
		return nil, errors.New("no cgroup file system is mounted here")
	}
	return out, nil
}

// holdsSelf says whether a group's folder lists this process: a mount can be hidden, or be one of another container.
func holdsSelf(dir string) bool {
	b, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	return err == nil && slices.Contains(strings.Fields(string(b)), strconv.Itoa(os.Getpid()))
}
