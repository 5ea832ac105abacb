// Package cell is the one place that starts an untrusted program: an agent program, a verify command, git inside an
// agent's clone. Every engine uses it alike. The program runs under bwrap in namespaces of its own, sees an allow-list
// of the host's files, writes only where it is told it may, and everything it ever started ends with it.
//
// Between bwrap and the program stands our own executable, the shim (see ShimMain): it sets the limits, Landlock and a
// system call filter, tells the starter what really holds, and becomes the program.
package cell

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"example.com/AutoAgentProject/core/usererr"
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
	ended   chan struct{} // closed when bwrap has ended
	done    chan struct{} // closed when nothing is left; status and err are valid
	status  Status
	err     error
}

// Start starts a program behind the walls and returns when they stand and the program is about to run. A program that
// cannot be executed is no error of Start: it exits with 127 (not found) or 126 and a line on its stderr. When ctx
// ends the cell is killed. The caller must call Wait. Errors that a person can mend are *usererr.Error.
func Start(ctx context.Context, s Spec) (*Cell, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if len(s.Argv) == 0 && s.trials == nil {
		return nil, errors.New("start a cell: no program is named")
	}
	c, err := start(ctx, s)
	if err == nil {
		return c, nil
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	var u *usererr.Error
	if errors.As(err, &u) || s.trials != nil {
		return nil, err
	}
	return nil, fmt.Errorf("start %s in a cell: %w", s.Argv[0], err)
}

func start(ctx context.Context, s Spec) (*Cell, error) {
	bwrap, err := findBwrap()
	if err != nil {
		return nil, err
	}
	var own fileSet // descriptors that only the child needs
	defer own.close()
	view, err := newView(s, &own)
	if err != nil {
		return nil, err
	}
	channel, theirs, err := newChannel()
	if err != nil {
		return nil, err
	}
	defer channel.Close()
	own.add(theirs)
	shim, err := own.open("/proc/self/exe", unix.O_PATH) // also when the file was replaced meanwhile
	if err != nil {
		return nil, err
	}
	null, err := own.open(os.DevNull, os.O_RDWR)
	if err != nil {
		return nil, err
	}
	complaints, err := own.memory("bwrap-stderr", nil)
	if err != nil {
		return nil, err
	}
	st, err := newStreams(s, null, &own)
	if err != nil {
		return nil, err
	}

	cmd := exec.Command(bwrap)
	cmd.Args = append(cmd.Args, view.args...)
	cmd.Args = append(cmd.Args, "--", fmt.Sprintf("/proc/self/fd/%d", shimFD), shimMarker)
	cmd.Env = []string{} // nothing of the program's environment may influence bwrap
	cmd.Dir = "/"
	cmd.Stdin, cmd.Stdout, cmd.Stderr = null, null, complaints
	cmd.ExtraFiles = append([]*os.File{theirs, shim, st.child[0], st.child[1], st.child[2]}, view.files...)
	// A process group of its own: Ctrl-C at a terminal reaches the engine, which ends its cells in order.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}

	c := &Cell{bwrap: cmd, streams: st, ended: make(chan struct{}), done: make(chan struct{})}
	started := make(chan error)
	go func() {
		// The signal at the parent's death is sent when the *thread* that started the child ends.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // the status is in cmd.ProcessState
			close(c.ended)
		}
	}()
	if err := <-started; err != nil {
		st.close()
		return nil, fmt.Errorf("start bwrap: %w", err)
	}
	unwatch := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })
	theirs.Close() // so that the channel ends when the shim does

	err = c.enter(s, channel, view)
	unwatch()
	if err != nil {
		_ = cmd.Process.Kill()
		<-c.ended
		c.first.kill()
		c.first.wait()
		st.close()
		c.first.close()
		c.program.close()
		return nil, explain(err, contents(complaints))
	}
	stop := context.AfterFunc(ctx, c.kill)
	st.run()
	go func() {
		c.finish()
		stop()
		close(c.done)
	}()
	return c, nil
}

// enter meets the shim, learns who is who, and lets it go on to the program.
func (c *Cell) enter(s Spec, ch *channel, v *view) error {
	pid, err := ch.hello()
	if err != nil {
		return err
	}
	if c.program, err = openPidfd(pid); err != nil {
		return err
	}
	first, err := parentOf(pid)
	if err != nil {
		return err
	}
	if c.first, err = openPidfd(first); err != nil {
		return err
	}
	if c.id, err = identify(first); err != nil {
		return err
	}
	if now, err := parentOf(pid); err != nil || now != first {
		return errors.Join(errNoAnswer, err)
	}
	if err := waitAsleep(first); err != nil {
		return err
	}
	if s.OnStart != nil {
		if err := s.OnStart(c.id); err != nil {
			return err
		}
	}
	order := order{Argv: s.Argv, Env: s.Env, Dir: cmp.Or(s.Dir, InsideHome), Limits: s.Limits.orDefault(), Write: v.write, Trials: s.trials}
	c.walls, err = ch.send(order)
	return err
}

// finish waits for the end of everything and records how the program ended.
func (c *Cell) finish() {
	<-c.ended
	// bwrap's end kills the first process, and the kernel ends it only after all others of its namespace.
	c.first.kill()
	c.first.wait()
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
