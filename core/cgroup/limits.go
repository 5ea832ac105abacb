package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Limits bound everything in a group together; 0: not limited.
type Limits struct {
	Memory int64 // bytes
	Tasks  int64 // processes and threads
}

// DefaultTasks is the number of tasks of a mission unless told otherwise.
const DefaultTasks = 4096

// Default is DefaultTasks and three quarters of the memory that this process may use: the machine's, or less where a
// group above says so.
func Default() Limits {
	l := Limits{Tasks: DefaultTasks}
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return l
	}
	all := int64(info.Totalram) * int64(info.Unit)
	trees, _ := own() // none: the machine's it is
	for _, h := range trees {
		file := "memory.limit_in_bytes"
		if h.v2 {
			file = "memory.max"
		}
		if n, ok := lowest(h.own, h.mount, file); ok {
			all = min(all, n)
		}
	}
	l.Memory = all / 4 * 3
	return l
}

// control is one limit, in the files of both versions. The first file is the limit itself.
type control struct {
	name   string // of the controller
	words  func(n int64) string
	v1, v2 []setting
}

type setting struct {
	file, value string
	optional    bool // not every kernel has it
}

// controls are the limits that are asked for. Swap must not widen the limit of memory.
func (l Limits) controls() []control {
	var out []control
	if l.Memory > 0 {
		n := strconv.FormatInt(l.Memory, 10)
		out = append(out, control{"memory", memoryWords,
			[]setting{{"memory.limit_in_bytes", n, false}, {"memory.memsw.limit_in_bytes", n, true}},
			[]setting{{"memory.max", n, false}, {"memory.swap.max", "0", true}}})
	}
	if l.Tasks > 0 {
		s := []setting{{"pids.max", strconv.FormatInt(l.Tasks, 10), false}}
		out = append(out, control{"pids", taskWords, s, s})
	}
	return out
}

func (c control) settings(v2 bool) []setting {
	if v2 {
		return c.v2
	}
	return c.v1
}

// apply sets the limit and looks whether it is there.
func (c control) apply(p Place) error {
	for _, s := range c.settings(p.V2) {
		err := write(filepath.Join(p.Path, s.file), s.value)
		if err != nil && !(s.optional && errors.Is(err, fs.ErrNotExist)) {
			return err
		}
	}
	if _, ok := limit(filepath.Join(p.Path, c.settings(p.V2)[0].file)); !ok {
		return fmt.Errorf("the %s controller takes no limit", c.name)
	}
	return nil
}

// Bounds says in words what bounds the group as a whole at this moment: the group's limits, or those of a group above
// where they are lower.
func (g *Group) Bounds() []string {
	found := map[string]string{}
	for _, p := range g.places {
		for _, c := range p.set {
			file := c.settings(p.V2)[0].file
			if _, ok := limit(filepath.Join(p.Path, file)); !ok {
				continue
			}
			if n, ok := lowest(p.Path, p.Mount, file); ok {
				found[c.name] = c.words(n)
			}
		}
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(found)) {
		out = append(out, found[name])
	}
	return out
}

// Hold puts the limits back where somebody took them away: systemd does so, when it reloads, in what it did not give
// away for good, and a user's own manager does not always tell.
func (g *Group) Hold() error {
	for _, p := range g.places {
		if err := p.hold(); err != nil {
			return err
		}
	}
	return nil
}

func (p place) hold() error {
	_, lost := split(p.set, func(c control) bool {
		_, ok := limit(filepath.Join(p.Path, c.settings(p.V2)[0].file))
		return ok
	})
	if len(lost) == 0 {
		return nil
	}
	if p.V2 {
		b := p.base
		if err := b.enable(lost); err != nil {
			return err
		}
	}
	for _, c := range lost {
		if err := c.apply(p.Place); err != nil {
			return fmt.Errorf("put the limits of a cgroup back: %w", gone(err))
		}
	}
	return nil
}

// lowest is the smallest limit of the group and those above it.
func lowest(dir, mount, file string) (int64, bool) {
	low, found := int64(math.MaxInt64), false
	for ; ; dir = filepath.Dir(dir) {
		if n, ok := limit(filepath.Join(dir, file)); ok && n < low {
			low, found = n, true
		}
		if dir == mount || dir == "/" {
			return low, found
		}
	}
}

// limit reads one limit. None is written as "max", or in v1 as a number near the largest one.
func limit(file string) (int64, bool) {
	b, err := os.ReadFile(file)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	return n, err == nil && n < 1<<60
}

func memoryWords(n int64) string {
	if n < 1<<30 {
		return fmt.Sprintf("memory %d MiB", n>>20)
	}
	return fmt.Sprintf("memory %.1f GiB", math.Floor(float64(n)/(1<<30)*10)/10)
}

func taskWords(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s + " tasks"
}

// split parts the controls by ok.
func split(all []control, ok func(control) bool) (yes, no []control) {
	for _, c := range all {
		if ok(c) {
			yes = append(yes, c)
		} else {
			no = append(no, c)
		}
	}
	return yes, no
}

// reasons are collected for one sentence.
type reasons []string

func (r *reasons) add(err error) {
	if err == nil {
		return
	}
	s := strings.ReplaceAll(err.Error(), "\n", "; ") // of joined errors
	switch {
	case errors.Is(err, fs.ErrPermission):
		s = "this user may not make cgroups here"
	case errors.Is(err, unix.EROFS):
		s = "the cgroup file system is read-only"
	}
	if !slices.Contains(*r, s) {
		*r = append(*r, s)
	}
}

func (r reasons) String() string { return strings.Join(r, "; ") }
