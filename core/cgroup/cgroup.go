// Package cgroup puts a mission into one control group below this process's own: its limits bound all processes of the
// mission together, and none of them can leave it, however it detached itself from its parent.
package cgroup

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// ErrGone says that somebody removed the group. It can be opened anew.
var ErrGone = errors.New("the cgroup was removed")

// Group is one group, in each hierarchy that has a part of it.
type Group struct {
	name   string
	places []place
	lacks  string
}

// place is the group in one hierarchy.
type place struct {
	Place
	set  []control // what is limited here
	home string    // v1: this process's own group
	base base      // v2
}

// Open makes the group of that name below this process's own cgroup and limits it. What an earlier process left in a
// group of this name is killed. The error is the reason why there is no group, fit for a sentence; a group that bounds
// less than l says why in Lacks.
//
// With cgroup v2, a group with limits may have no processes beside it: this process moves into a group next to the new
// one until Close. If other processes are there, the group is made without limits.
func Open(name string, l Limits) (*Group, error) { return open(name, l.controls()) }

func open(name string, wanted []control) (*Group, error) {
	trees, err := own()
	if err != nil {
		return nil, err
	}
	g := &Group{name: name}
	var why reasons
	for _, h := range trees {
		here, rest := split(wanted, h.has)
		if h.v2 || len(here) == 0 {
			continue
		}
		wanted = rest
		p, err := h.makeV1(name, here)
		if err != nil {
			why.add(err)
			continue
		}
		g.places = append(g.places, p)
	}
	v2 := errors.New("no cgroup file system with a controller for it is mounted")
	for _, h := range trees {
		if !h.v2 {
			continue
		}
		p, lacks, err := h.makeV2(name, wanted)
		if v2 = errors.Join(lacks, err); err == nil {
			g.places = append(g.places, p)
		}
	}
	if len(wanted) > 0 || len(g.places) == 0 { // else v2 would only have been one more way to find everything
		why.add(v2)
	}
	g.lacks = why.String()
	if len(g.places) == 0 {
		return nil, errors.New(g.lacks)
	}
	return g, nil
}

// Probe says what a group would bound, and why not all of l. It leaves nothing behind.
func Probe(l Limits) (bounds []string, lacks string) {
	g, err := Open("autoagent-probe-"+strings.ToLower(rand.Text()[:8]), l)
	if err != nil {
		return nil, err.Error()
	}
	bounds, lacks = g.Bounds(), g.lacks
	if err := g.Close(); err != nil {
		return nil, err.Error()
	}
	return bounds, lacks
}

// Lacks says in words why the group does not bound all that was asked; empty: it does.
func (g *Group) Lacks() string { return g.lacks }

// Start calls start, which starts a process with attr on the calling thread, in such a way that the process is in the
// group from its first moment on; only a kernel before 5.7 with cgroup v2 moves it in right after. If start succeeds and
// Start does not, the process runs and is the caller's to end.
func (g *Group) Start(attr *syscall.SysProcAttr, start func() (pid int, err error)) error {
	runtime.LockOSThread()
	var entered, later []place
	for _, p := range g.places {
		err := p.hold()
		switch {
		case err != nil:
		case !p.V2: // a child is born where the thread is that forks, and v1 lets single threads move
			if err = enter(filepath.Join(p.Path, "tasks"), unix.Gettid()); err == nil {
				entered = append(entered, p)
			}
		case canBeBornInside():
			var dir *os.File
			if dir, err = os.Open(p.Path); err == nil {
				defer dir.Close()
				attr.UseCgroupFD, attr.CgroupFD = true, int(dir.Fd())
			}
		default:
			later = append(later, p)
		}
		if err != nil {
			return errors.Join(gone(err), leave(entered))
		}
	}
	pid, err := start()
	if err = errors.Join(err, leave(entered)); err != nil {
		return err
	}
	return add(later, pid)
}

// leave takes this thread, which is locked to its goroutine, out of the group. Where that is refused, it stays locked
// and ends with the goroutine.
func leave(entered []place) (err error) {
	for _, p := range entered {
		err = errors.Join(err, enter(filepath.Join(p.home, "tasks"), unix.Gettid()))
	}
	if err == nil {
		runtime.UnlockOSThread()
	}
	return err
}

// Add moves a process into the group; its children of before stay where they are.
func (g *Group) Add(pid int) error { return add(g.places, pid) }

func add(places []place, pid int) error {
	for _, p := range places {
		if err := enter(filepath.Join(p.Path, "cgroup.procs"), pid); err != nil {
			return err
		}
	}
	return nil
}

func enter(file string, id int) error {
	if err := write(file, strconv.Itoa(id)); err != nil {
		return fmt.Errorf("enter a cgroup: %w", gone(err))
	}
	return nil
}

// gone marks the errors that a removed group makes.
func gone(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) {
		return fmt.Errorf("%w: %w", ErrGone, err)
	}
	return err
}

// makeV1 makes the group in a hierarchy of its own controllers.
func (h hierarchy) makeV1(name string, here []control) (place, error) {
	p := place{Place: h.place(h.own, name), home: h.own, set: here}
	err := p.make()
	if err == nil {
		if err = p.visit(); err != nil {
			_ = p.remove()
		}
	}
	return p, err
}

// visit proves that a thread may come and go: that there is a folder is not enough. A thread that cannot go back ends
// with its goroutine.
func (p place) visit() error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		err := enter(filepath.Join(p.Path, "tasks"), unix.Gettid())
		if err == nil {
			err = leave([]place{p})
		}
		done <- err
	}()
	return <-done
}

// make makes the folder, empty and with its limits in force.
func (p place) make() error {
	if err := p.clear(); err != nil {
		return err
	}
	if err := os.Mkdir(p.Path, 0o755); err != nil {
		return err
	}
	for _, c := range p.set {
		if err := c.apply(p.Place); err != nil {
			_ = unix.Rmdir(p.Path)
			return err
		}
	}
	return nil
}

// clear ends and removes a group of the same name.
func (p place) clear() error {
	if _, err := os.Lstat(p.Path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	old := &Group{places: []place{p}}
	if err := old.Kill(); err != nil {
		return err
	}
	return p.remove()
}
