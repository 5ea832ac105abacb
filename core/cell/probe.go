package cell

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Attempt is one thing that a probe tried from inside of a cell.
type Attempt struct {
	Name   string // "write outside the clone"
	Held   bool   // the wall held; for what must be possible: it was
	Detail string // what was tried and what came of it
}

// trial is an attempt as the shim is told to make it.
type trial struct {
	Name string `json:"name"`
	Do   string `json:"do"`
	Path string `json:"path,omitempty"`
	File string `json:"file,omitempty"` // name of the file to be made
	PID  int    `json:"pid,omitempty"`
	NS   uint64 `json:"ns,omitempty"` // the starter's PID namespace
}

// The kinds of trials.
const (
	doCreate    = "create"    // make a file in the folder Path: it must not appear outside
	doMayCreate = "maycreate" // the same: it must succeed
	doLinkOut   = "linkout"   // make a link in the folder Path that leads out of it, and a file through it: the same
	doRead      = "read"      // see Path: must fail
	doWrite     = "write"     // open the file Path for writing: must fail
	doSignal    = "signal"    // signal process PID: must fail
	doConnect   = "connect"   // connect to the socket Path: must fail
	doLandlock  = "landlock"  // make a file where only Landlock forbids it: must fail
	doSeccomp   = "seccomp"   // use system calls that only the filter forbids: must fail
	doMore      = "more"      // have capabilities, or be able to gain some: must not
	doPort      = "port"      // connect by TCP to the port PID of this machine, in each way there is: must fail
	doAbstract  = "abstract"  // connect to the abstract socket Path: must fail
)

const (
	portTrial     = "reach a service of this machine"
	abstractTrial = "reach an abstract socket outside"
	landlockTrial = "write what Landlock forbids"
	// landlockedFolder is writable in every cell, but left out of the Landlock rules of a cell that tries walls.
	landlockedFolder = "/var/tmp"
)

// wallTrials need nothing but a cell.
func wallTrials() []trial {
	return []trial{
		{Name: landlockTrial, Do: doLandlock, Path: landlockedFolder},
		{Name: "use a forbidden system call", Do: doSeccomp},
		{Name: "write a program of the system", Do: doCreate, Path: "/usr/bin"},
		{Name: "change a setting of the kernel", Do: doWrite, Path: "/proc/sys/kernel/core_pattern"},
		{Name: "read the password hashes", Do: doRead, Path: "/etc/shadow"},
		{Name: "have capabilities", Do: doMore},
		{Name: "see the cgroups", Do: doRead, Path: "/sys/fs/cgroup"},
		{Name: "reach Docker", Do: doConnect, Path: "/run/docker.sock"},
		{Name: "read credentials of services", Do: doRead, Path: "/run/credentials"},
		{Name: "write shared memory of others", Do: doCreate, Path: "/dev/shm"},
		{Name: "write temporary files of others", Do: doCreate, Path: "/tmp"},
		{Name: "write locks of others", Do: doCreate, Path: "/run/lock"},
	}
}

// Probe starts a cell as an agent would get it, with the folder clone writable, and tries from inside to get at what
// must be out of reach: missionsDir (the missions' data), secrets (files and folders, that need not exist), processes, the
// message buses; one attempt of each class. Every attempt is reported; a caller starts nothing when one has not held. It
// takes well under a second.
func Probe(ctx context.Context, missionsDir, clone string, secrets ...string) ([]Attempt, error) {
	self := os.Getpid()
	ns, err := namespace(self)
	if err != nil {
		return nil, err
	}
	runtimeDir := fmt.Sprintf("/run/user/%d", os.Geteuid())
	trials := append([]trial{
		{Name: "write in the clone", Do: doMayCreate, Path: clone},
		{Name: "write outside the clone", Do: doCreate, Path: filepath.Dir(clone)},
		{Name: "write outside through a link", Do: doLinkOut, Path: clone},
		{Name: "read mission data", Do: doRead, Path: missionsDir},
		{Name: "write mission data", Do: doCreate, Path: missionsDir},
		{Name: "signal a process outside", Do: doSignal, PID: self, NS: ns},
		{Name: "reach the system bus", Do: doConnect, Path: "/run/dbus/system_bus_socket"},
		{Name: "reach the user bus", Do: doConnect, Path: runtimeDir + "/bus"},
		{Name: "reach the user's systemd", Do: doConnect, Path: runtimeDir + "/systemd/private"},
		{Name: "read the memory of a process outside", Do: doRead, Path: fmt.Sprintf("/proc/%d/environ", self), NS: ns},
	}, wallTrials()...)
	if name, l, err := abstractSocket(); err == nil {
		defer l.Close()
		trials = append(trials, trial{Name: abstractTrial, Do: doAbstract, Path: name})
	}
	var closed []uint16
	if l, err := net.Listen("tcp", "127.0.0.1:0"); err == nil {
		defer l.Close()
		port := l.Addr().(*net.TCPAddr).Port
		closed = append(closed, uint16(port))
		trials = append(trials, trial{Name: portTrial, Do: doPort, PID: port})
	}
	for _, s := range secrets {
		if s == "" {
			continue
		}
		if !below(clone, s) { // else the way to the clone is in it
			trials = append(trials, trial{Name: "read " + s, Do: doRead, Path: s})
		}
		if isDir(s) {
			trials = append(trials, trial{Name: "write into " + s, Do: doCreate, Path: s})
		}
	}
	attempts, walls, err := try(ctx, Spec{Dir: clone, Writable: []string{clone}, Closed: closed, trials: trials})
	for i, a := range attempts {
		if a.Name == landlockTrial && walls.Landlock == 0 {
			attempts[i].Detail = "the kernel has no Landlock of use: the mounts alone keep the cell from writing"
			attempts[i].Held = true
		}
		if a.Name == portTrial && !walls.Ports {
			attempts[i].Detail = "the kernel's Landlock does not close ports"
			attempts[i].Held = true
		}
		if a.Name == abstractTrial && !walls.Scoped {
			attempts[i].Detail = "the kernel's Landlock does not cut off abstract sockets"
			attempts[i].Held = true
		}
	}
	return attempts, err
}

// abstractSocket is a socket of the host without a path, for a cell to try.
func abstractSocket() (name string, l net.Listener, err error) {
	name = fmt.Sprintf("@autoagent-probe-%d-%d", os.Getpid(), time.Now().UnixNano())
	l, err = net.Listen("unix", name)
	return name, l, err
}

func try(ctx context.Context, s Spec) ([]Attempt, Walls, error) {
	var out bytes.Buffer
	s.Stdout = &out
	for i := range s.trials {
		s.trials[i].File = fmt.Sprintf(".autoagent-probe-%d-%d-%d", os.Getpid(), time.Now().UnixNano(), i)
	}
	c, err := Start(ctx, s)
	if err != nil {
		return nil, Walls{}, err
	}
	status, err := c.Wait()
	if err != nil || status.Exit != 0 {
		return nil, c.Walls(), fmt.Errorf("probe a cell: it ended with %+v: %w", status, errors.Join(err, ctx.Err()))
	}
	var attempts []Attempt
	if err := json.Unmarshal(out.Bytes(), &attempts); err != nil || len(attempts) != len(s.trials) {
		return nil, c.Walls(), fmt.Errorf("probe a cell: %d of %d answers: %w", len(attempts), len(s.trials), err)
	}
	for i, t := range s.trials {
		t.settle(&attempts[i])
	}
	return attempts, c.Walls(), nil
}

// settle looks from outside what came of an attempt to write: a cell has folders in memory where the host has its own.
func (t trial) settle(a *Attempt) {
	dir := t.Path
	switch t.Do {
	case doCreate:
	case doLinkOut:
		dir = filepath.Dir(t.Path)
	default:
		return
	}
	switch _, err := os.Lstat(filepath.Join(dir, t.File)); {
	case err == nil:
		_ = os.Remove(filepath.Join(dir, t.File))
		a.Held, a.Detail = false, a.Detail+": it is there outside"
	case !a.Held:
		a.Held, a.Detail = true, a.Detail+", in the memory of the cell"
	}
}

// tryAll is the inside of a probe. It returns the exit status of the shim.
func tryAll(trials []trial) int {
	attempts := make([]Attempt, len(trials))
	for i, t := range trials {
		held, detail := t.try()
		attempts[i] = Attempt{Name: t.Name, Held: held, Detail: detail}
	}
	if err := json.NewEncoder(os.Stdout).Encode(attempts); err != nil {
		return exitNotStarted
	}
	return 0
}

func (t trial) try() (held bool, detail string) {
	switch t.Do {
	case doMayCreate:
		err := t.create(t.Path)
		_ = os.Remove(filepath.Join(t.Path, t.File))
		return err == nil, outcome("create a file in "+t.Path, err)
	case doCreate:
		err := t.create(t.Path)
		return err != nil, outcome("create a file in "+t.Path, err)
	case doLandlock:
		err := t.create(t.Path)
		return errors.Is(err, unix.EACCES), outcome("create a file in "+t.Path, err)
	case doLinkOut:
		link := filepath.Join(t.Path, t.File+"-link")
		if err := os.Symlink(filepath.Dir(t.Path), link); err != nil {
			return false, outcome("create a link in "+t.Path, err)
		}
		defer os.Remove(link)
		err := t.create(link)
		return err != nil, outcome("create a file through a link in "+t.Path, err)
	case doMore:
		return tryMore()
	case doRead:
		if t.NS != 0 && strings.HasPrefix(t.Path, fmt.Sprintf("/proc/%d/", os.Getpid())) {
			return true, "its number is one of the cell's"
		}
		f, err := os.Open(t.Path)
		if err == nil {
			_, err = f.Readdirnames(1)
			f.Close()
			if !errors.Is(err, io.EOF) { // an empty folder tells nothing
				return false, t.Path + " is there"
			}
		}
		return true, outcome("read "+t.Path, err)
	case doWrite:
		f, err := os.OpenFile(t.Path, os.O_WRONLY, 0)
		if err == nil {
			f.Close()
		}
		return err != nil, outcome("open "+t.Path+" for writing", err)
	case doSignal:
		return t.signal()
	case doConnect, doAbstract:
		c, err := net.Dial("unix", t.Path)
		if err == nil {
			c.Close()
		}
		return err != nil, outcome("connect to "+t.Path, err)
	case doPort:
		return tryPort(t.PID)
	case doSeccomp:
		return trySeccomp()
	}
	return false, "unknown trial " + t.Do
}

// signal sends no signal, it only asks whether one could be sent.
func (t trial) signal() (held bool, detail string) {
	ns, err := namespace(os.Getpid())
	if err != nil || ns == t.NS {
		return false, outcome("be in a PID namespace of its own", errors.Join(err, errors.New("it is the host's")))
	}
	if t.PID == 1 || t.PID == os.Getpid() {
		return true, fmt.Sprintf("number %d is a process of the cell", t.PID)
	}
	err = unix.Kill(t.PID, 0)
	return errors.Is(err, unix.ESRCH), outcome(fmt.Sprintf("signal process %d", t.PID), err)
}

// tryPort connects in all ways that Landlock does or does not see.
func tryPort(port int) (held bool, detail string) {
	to := &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}
	for _, way := range []struct {
		name     string
		protocol int
		connect  func(fd int) error
	}{
		{"connect by TCP", unix.IPPROTO_TCP, func(fd int) error { return unix.Connect(fd, to) }},
		{"connect by MPTCP", unix.IPPROTO_MPTCP, func(fd int) error { return unix.Connect(fd, to) }},
		{"connect by sending", unix.IPPROTO_TCP, func(fd int) error { return unix.Sendto(fd, []byte{0}, unix.MSG_FASTOPEN, to) }},
	} {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, way.protocol)
		if err == nil {
			err = way.connect(fd)
			unix.Close(fd)
		}
		if err == nil {
			return false, outcome(way.name, nil)
		}
	}
	return true, fmt.Sprintf("port %d is closed", port)
}

// trySeccomp makes calls that succeed for every user where no filter is, and therefore must not here.
func trySeccomp() (held bool, detail string) {
	if _, err := unix.AddKey("user", "autoagent-probe", []byte("x"), unix.KEY_SPEC_PROCESS_KEYRING); !errors.Is(err, unix.EPERM) {
		return false, outcome("add a key", err)
	}
	if err := unix.PtraceAttach(1); !errors.Is(err, unix.EPERM) {
		return false, outcome("trace a process", err)
	}
	if _, _, errno := unix.Syscall(unix.SYS_CLONE3, 0, 0, 0); errno != unix.ENOSYS {
		return false, outcome("clone3", errno)
	}
	err := unix.Unshare(unix.CLONE_NEWUSER)
	return errors.Is(err, unix.EPERM), outcome("make a user namespace", err)
}

// tryMore looks whether the program has capabilities or could get some by a program with setuid.
func tryMore() (held bool, detail string) {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return false, outcome("read its own status", err)
	}
	for line := range strings.Lines(string(b)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		value = strings.TrimSpace(value)
		if strings.HasPrefix(name, "Cap") && strings.Trim(value, "0") != "" || name == "NoNewPrivs" && value != "1" {
			return false, name + " is " + value
		}
	}
	return true, "it has none and cannot gain any"
}

func (t trial) create(dir string) error {
	f, err := os.OpenFile(filepath.Join(dir, t.File), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err == nil {
		f.Close()
	}
	return err
}

func outcome(what string, err error) string {
	if err == nil {
		return what + ": done"
	}
	var errno unix.Errno
	if errors.As(err, &errno) {
		err = errno // the rest is in what already
	}
	return what + ": " + err.Error()
}
