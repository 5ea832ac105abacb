package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// leafName is the group into which this process moves, beside the groups with limits.
const leafName = "autoagent-supervisor"

// base is the v2 group below which groups are made, and what was changed in it.
type base struct {
	dir     string
	leaf    string   // this process is in it; empty: it did not have to move
	enabled []string // controllers that were not on for the groups below
}

// newBase is where this process makes groups: in its own one, or in the one that it moved out of.
func newBase(h hierarchy) base {
	if filepath.Base(h.own) == leafName && h.own != h.mount {
		return base{dir: filepath.Dir(h.own), leaf: h.own}
	}
	return base{dir: h.own}
}

// makeV2 makes the group below this process's own. lacks says which of the wanted limits it could not get.
func (h hierarchy) makeV2(name string, wanted []control) (p place, lacks, err error) {
	b := newBase(h)
	if systemdRules() {
		if err := delegated(b.dir, h.mount); err != nil {
			return p, nil, err
		}
	}
	if err := unix.Access(filepath.Join(b.dir, "cgroup.procs"), unix.W_OK); err != nil {
		return p, nil, err // a group could be made, but nothing moved into it
	}
	unlock, err := lock(b.dir)
	if err != nil {
		return p, nil, err
	}
	defer unlock()
	offered, err := words(filepath.Join(b.dir, "cgroup.controllers"))
	if err != nil {
		return p, nil, err
	}
	set, missing := split(wanted, func(c control) bool { return slices.Contains(offered, c.name) })
	if len(missing) > 0 {
		lacks = fmt.Errorf("no %s controller is given to this process's cgroup", names(missing, " and no "))
	}
	if err := b.enable(set); err != nil {
		lacks, set = errors.Join(lacks, err), nil
	}
	p = place{Place: h.place(b.dir, name), set: set, base: b}
	if err = p.make(); err == nil {
		var kind []string
		if kind, err = words(filepath.Join(p.Path, "cgroup.type")); err == nil && !slices.Equal(kind, []string{"domain"}) {
			err = errors.New("this process's cgroup is one of threads")
			_ = unix.Rmdir(p.Path)
		}
	}
	if err != nil {
		b.restore()
	}
	return p, lacks, err
}

// enable turns controllers on for the groups below. The kernel wants no processes in such a group, unless it is the
// first one of the machine.
func (b *base) enable(set []control) error {
	on, err := words(filepath.Join(b.dir, "cgroup.subtree_control"))
	if err != nil {
		return err
	}
	_, off := split(set, func(c control) bool { return slices.Contains(on, c.name) })
	if len(off) == 0 {
		return nil
	}
	if _, err := os.Stat(filepath.Join(b.dir, "cgroup.type")); err == nil {
		pids, err := procs(b.dir)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(pids, func(pid int) bool { return pid != os.Getpid() }) {
			err := errors.New("other processes are in this process's cgroup")
			if systemdRules() {
				err = fmt.Errorf("%w; %s starts a program in one of its own", err, delegatingCommand())
			}
			return err
		}
		if len(pids) > 0 {
			if err := b.moveOut(); err != nil {
				return err
			}
		}
	}
	for _, c := range off {
		if err := write(filepath.Join(b.dir, "cgroup.subtree_control"), "+"+c.name); err != nil {
			b.restore()
			return fmt.Errorf("turn on the %s controller: %w", c.name, err)
		}
		b.enabled = append(b.enabled, c.name)
	}
	return nil
}

func (b *base) moveOut() error {
	leaf := filepath.Join(b.dir, leafName)
	if err := os.Mkdir(leaf, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	if err := enter(filepath.Join(leaf, "cgroup.procs"), os.Getpid()); err != nil {
		_ = unix.Rmdir(leaf)
		return err
	}
	b.leaf = leaf
	return nil
}

// restore undoes enable, unless another group still needs it.
func (b *base) restore() {
	entries, err := os.ReadDir(b.dir)
	for _, e := range entries {
		if e.IsDir() && e.Name() != leafName {
			return
		}
	}
	if err != nil {
		return
	}
	on := b.enabled
	if b.leaf != "" { // it was this process's alone: nobody else can have turned anything on
		on, _ = words(filepath.Join(b.dir, "cgroup.subtree_control"))
	}
	for _, c := range on {
		_ = write(filepath.Join(b.dir, "cgroup.subtree_control"), "-"+c)
	}
	if b.leaf != "" {
		_ = enter(filepath.Join(b.dir, "cgroup.procs"), os.Getpid())
		_ = unix.Rmdir(b.leaf)
		b.leaf = ""
	}
}

// lock keeps others from changing the same group meanwhile; a dead one's lock is free.
func lock(dir string) (unlock func(), err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	for end := time.Now().Add(2 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) || time.Now().After(end) {
			f.Close()
			return nil, fmt.Errorf("lock this process's cgroup: %w", err)
		}
	}
}

// canBeBornInside says whether the kernel has CLONE_INTO_CGROUP and lets this process use it. No file has the number
// that is given, so no process comes of it.
func canBeBornInside() bool {
	args := struct{ flags, pidfd, childTid, parentTid, exit, stack, stackSize, tls, setTid, setTidSize, cgroup uint64 }{
		flags: unix.CLONE_INTO_CGROUP, exit: uint64(unix.SIGCHLD), cgroup: 1<<31 - 1,
	}
	_, _, errno := unix.RawSyscall(unix.SYS_CLONE3, uintptr(unsafe.Pointer(&args)), unsafe.Sizeof(args), 0)
	return errno == unix.EBADF
}

func words(file string) ([]string, error) {
	b, err := os.ReadFile(file)
	return strings.Fields(string(b)), err
}

func names(cs []control, sep string) string {
	var out []string
	for _, c := range cs {
		out = append(out, c.name)
	}
	return strings.Join(out, sep)
}
