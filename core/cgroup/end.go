package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// KillTime is how long Kill waits for the last process to be gone.
const KillTime = 10 * time.Second

// Kill kills everything in the group and returns when it is empty. Nothing can be started in it afterwards: first of all
// its processes lose the right to have children, so that one that multiplies loses.
func (g *Group) Kill() error {
	for end := time.Now().Add(KillTime); ; time.Sleep(5 * time.Millisecond) {
		for _, p := range g.places {
			_ = write(filepath.Join(p.Path, "pids.max"), "0") // where it counts tasks
		}
		for _, p := range g.places {
			p.kill()
		}
		empty, err := g.Empty()
		if err != nil || empty {
			return err
		}
		if time.Now().After(end) {
			return fmt.Errorf("processes in the cgroup %s do not die", g.places[0].Path)
		}
	}
}

// kill sends SIGKILL to what is in it now.
func (p place) kill() {
	if p.V2 {
		if err := write(filepath.Join(p.Path, "cgroup.kill"), "1"); err == nil {
			return
		}
	}
	p.killListed()
}

// killListed does without the cgroup.kill of Linux 5.14 and later.
func (p place) killListed() {
	if p.V2 {
		_ = write(filepath.Join(p.Path, "cgroup.freeze"), "1") // the frozen die all the same
	}
	dirs, _ := p.tree() // Empty complains
	for _, dir := range dirs {
		killEach(dir)
	}
}

// killEach kills the processes of one group, and no other process that gets the number of one of them meanwhile: of a
// process that is held by its pidfd and whose number is in the group afterwards, either both are one, or it is dead.
func killEach(dir string) {
	before, _ := procs(dir)
	for some := range slices.Chunk(before, 200) {
		held := map[int]int{}
		for _, pid := range some {
			if fd, err := unix.PidfdOpen(pid, 0); err == nil && pid != os.Getpid() {
				held[pid] = fd
			}
		}
		now, _ := procs(dir)
		for pid, fd := range held {
			if slices.Contains(now, pid) {
				_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
			}
			unix.Close(fd)
		}
	}
}

// Empty says whether no process is in the group or below it. An error means unknown, never empty.
func (g *Group) Empty() (bool, error) {
	for _, p := range g.places {
		if empty, err := p.empty(); err != nil || !empty {
			return false, err
		}
	}
	return true, nil
}

func (p place) empty() (bool, error) {
	if p.V2 {
		events, err := words(filepath.Join(p.Path, "cgroup.events"))
		if err != nil {
			return p.removed(err)
		}
		i := slices.Index(events, "populated")
		if i < 0 || i+1 == len(events) {
			return false, fmt.Errorf("cgroup %s: unknown form of cgroup.events", p.Path)
		}
		return events[i+1] == "0", nil
	}
	dirs, err := p.tree()
	if err != nil {
		return p.removed(err)
	}
	for _, dir := range dirs {
		pids, err := procs(dir)
		if err != nil && dir != p.Path && errors.Is(err, fs.ErrNotExist) {
			continue // a group below that was removed, for which it had to be empty
		}
		if err != nil {
			return p.removed(err)
		}
		if len(pids) > 0 {
			return false, nil
		}
	}
	return true, nil
}

// removed takes a group that is not there for empty, as the kernel removes no other, but only if its tree is there.
func (p place) removed(err error) (bool, error) {
	if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENODEV) {
		return false, err
	}
	if verr := p.visible(); verr != nil {
		return false, verr
	}
	if _, err := os.Lstat(p.Path); errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	return false, err
}

// tree returns the group's folder and those below it, the deepest first.
func (p place) tree() ([]string, error) {
	var out []string
	err := filepath.WalkDir(p.Path, func(path string, d fs.DirEntry, err error) error {
		if err != nil && path != p.Path && errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && d.IsDir() {
			out = append(out, path)
		}
		return err
	})
	slices.Reverse(out)
	return out, err
}

// Close removes the group, which must be empty, and puts back what Open changed for it.
func (g *Group) Close() error {
	if empty, err := g.Empty(); err == nil && !empty {
		return fmt.Errorf("remove the cgroup %s: %w", g.places[0].Path, unix.EBUSY)
	}
	var errs []error
	for _, p := range g.places {
		if err := p.remove(); err != nil {
			errs = append(errs, fmt.Errorf("remove a cgroup: %w", err))
			continue
		}
		if !p.V2 {
			continue
		}
		if p.base.dir == "" { // another process's
			_ = unix.Rmdir(filepath.Join(filepath.Dir(p.Path), leafName))
			continue
		}
		if unlock, err := lock(p.base.dir); err == nil {
			p.base.restore()
			unlock()
		}
	}
	return errors.Join(errs...)
}

// remove removes the folders. The kernel may take a moment to let go of the dead.
func (p place) remove() error {
	for end := time.Now().Add(2 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		dirs, err := p.tree()
		for _, dir := range dirs {
			if err == nil {
				err = unix.Rmdir(dir)
			}
		}
		if errors.Is(err, fs.ErrNotExist) {
			_, err = p.removed(err)
		}
		if !errors.Is(err, unix.EBUSY) || time.Now().After(end) {
			if err != nil {
				return fmt.Errorf("%s: %w", p.Path, err)
			}
			return nil
		}
	}
}
