package cell

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"example.com/AutoAgentProject/core/usererr"
)

// abandonDelay is how long a cell that was given up may take to come up and end.
const abandonDelay = 10 * time.Second

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
	// A process group of its own: Ctrl-C at a terminal reaches the engine, which ends its cells in order. No Pdeathsig:
	// bwrap asks for that itself, later. Killed before, it would leave a first process that waits for it for ever.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}

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
	theirs.Close() // so that the channel ends when the shim does
	unwatch := context.AfterFunc(ctx, channel.hangUp)
	err = c.enter(s, channel, view)
	unwatch()
	if err != nil {
		c.abandon(channel)
		st.close()
		return nil, explain(err, contents(complaints))
	}
	stop := context.AfterFunc(ctx, c.kill)
	if c.listener != nil {
		go s.Forward.serve(c.listener)
	}
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
	order := order{Argv: s.Argv, Env: s.Env, Dir: cmp.Or(s.Dir, InsideHome), Limits: s.Limits.orDefault(), Write: v.write, Closed: s.Closed, Trials: s.trials}
	if s.Forward != nil {
		order.Listen = s.Forward.Port
	}
	c.walls, c.listener, err = ch.send(order)
	return err
}

// abandon ends a cell whose program was not started. A shim that nobody listens to ends by itself, and the cell with it.
func (c *Cell) abandon(ch *channel) {
	ch.hangUp()
	c.first.kill()
	select {
	case <-c.ended:
	case <-time.After(abandonDelay):
		_ = c.bwrap.Process.Kill()
		<-c.ended
	}
	c.first.wait()
	c.first.close()
	c.program.close()
}
