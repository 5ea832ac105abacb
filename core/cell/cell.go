// Package cell is the one place that starts an untrusted program: an agent program, a verify command, git inside an
// agent's clone. Every engine uses it alike. The program runs under bwrap in namespaces of its own, sees an allow-list
// of the host's files, writes only where it is told it may, and everything it ever started ends with it.
//
// Between bwrap and the program stands our own executable, the shim (see ShimMain): it sets the limits, Landlock and a
// system call filter, tells the starter what really holds, and becomes the program.
package cell

import (
	"io"
	"net"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Bind shows a file or folder of the host at another path inside.
type Bind struct {
	Host, Inside string // absolute paths
	Write        bool
}

// Spec is one program to start. All paths are absolute. Nothing of the host is visible inside beyond the system's
// programs, a few files of /etc, and what Spec names.
type Spec struct {
	Argv      []string             // program and arguments; a name without a slash is searched in the PATH of Env
	Env       []string             // the whole environment of the program; it is never part of an argument list
	Dir       string               // working folder, a path inside
	Writable  []string             // files or folders the program may change, at the same path inside
	ReadOnly  []string             // files or folders it may read, at the same path inside
	Binds     []Bind               // what is to be seen at another path
	Home      string               // folder of the host that is /home/agent inside; empty: one in memory
	Tmp       string               // folder of the host that is /tmp inside; empty: one in memory
	Limits    Limits               // zero fields: the defaults
	NoNetwork bool                 // a network of its own with nothing but loopback; else the host's
	Closed    []uint16             // TCP ports that cannot be connected to, where ClosesPorts
	Forward   *Forward             // with NoNetwork: the one way out of it; nil: none
	Stdin     io.Reader            // nil: empty. An *os.File is handed over as it is
	Stdout    io.Writer            // nil: /dev/null. An *os.File is handed over as it is
	Stderr    io.Writer            // the same; if it equals Stdout one pipe serves both
	OnStart   func(Identity) error // called when the cell stands but the program is not started; an error stops it unstarted

	trials []trial // instead of a program the shim tries these; see Probe
}

// Paths inside that every cell has.
const (
	InsideHome = "/home/agent"
	InsideTmp  = "/tmp"
)

// outputDelay is how long Wait lets the copying of output go on after everything inside is dead. Only a descriptor
// that was passed out of the cell can make it last longer.
const outputDelay = 5 * time.Second

// Status is how the program ended.
type Status struct {
	Exit   int            // exit status, -1 when a signal ended it
	Signal syscall.Signal // the signal, 0 when it exited. As in a shell, an exit status of 128+n counts as signal n
}

// Walls is what really holds around a program, as its shim found.
type Walls struct {
	Landlock int  `json:"landlock"` // the kernel's Landlock version in force; 0: none, the mounts alone keep it from writing
	Scoped   bool `json:"scoped"`   // Landlock also cuts off signals and abstract sockets of the host
	Ports    bool `json:"ports"`    // Landlock also keeps it from the closed ports
	Seccomp  bool `json:"seccomp"`  // the system call filter is in force; no program starts without it
}

// Cell is a started program and all it started itself.
type Cell struct {
	id      Identity
	walls   Walls
	bwrap   *exec.Cmd
	first   pidfd // first process of the PID namespace: its end is everyone's
	program pidfd
	streams *streams

	listener net.Listener  // of Spec.Forward; nil: none
	ended    chan struct{} // closed when bwrap has ended
	done     chan struct{} // closed when nothing is left; status and err are valid
	status   Status
	err      error
}

// finish waits for the end of everything and records how the program ended.
func (c *Cell) finish() {
	<-c.ended
	// bwrap's end kills the first process, and the kernel ends it only after all others of its namespace.
	c.first.kill()
	c.first.wait()
	if c.listener != nil {
		c.listener.Close()
	}
	c.err = c.streams.finish(outputDelay)
	c.status = statusOf(c.bwrap.ProcessState.Sys().(syscall.WaitStatus))
	c.first.close()
	c.program.close()
}

func statusOf(ws syscall.WaitStatus) Status {
	if ws.Signaled() {
		return Status{Exit: -1, Signal: ws.Signal()}
	}
	if n := ws.ExitStatus() - 128; n >= 1 && n <= 31 {
		return Status{Exit: -1, Signal: syscall.Signal(n)}
	}
	return Status{Exit: ws.ExitStatus()}
}

// Terminate sends SIGTERM to the program, not to what it started. After its end it returns os.ErrProcessDone.
func (c *Cell) Terminate() error { return c.program.signal(unix.SIGTERM) }

func (c *Cell) kill() {
	c.first.kill()
	_ = c.bwrap.Process.Kill()
}

// Kill ends the program and everything it ever started, and returns when all of it is gone.
func (c *Cell) Kill() {
	c.kill()
	<-c.done
}

// Wait waits for the end of the program. When it returns, everything the program left behind is dead, and all output is
// copied. An error tells that output could not be copied or was held open from outside of the cell; the Status is
// right all the same. A Stdin that is no *os.File may still be blocked in one Read.
func (c *Cell) Wait() (Status, error) {
	<-c.done
	return c.status, c.err
}

// Identity names the cell for a later process.
func (c *Cell) Identity() Identity { return c.id }

// Walls tells what holds around the program.
func (c *Cell) Walls() Walls { return c.walls }
