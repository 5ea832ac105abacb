package app

import (
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"example.com/AutoAgentProject/core/proc"
	"example.com/AutoAgentProject/core/store"
)

// beside is a poller in a process of its own that ends when this one does.
type beside struct {
	c    *cli
	root store.Root
	cmd  *exec.Cmd
	pipe io.Closer
}

// start starts it. It is told that this process ends by the end of its standard input.
func (b *beside) start() proc.ID {
	self, err := os.Executable()
	if err == nil {
		b.cmd = exec.Command(self, "poller", "--until-eof", "--root", string(b.root))
		b.cmd.Env = tickEnvironment(b.c.env.Getenv)
		if path := b.c.env.Getenv("AUTOAGENT_CONFIG"); path != "" {
			b.cmd.Env = append(b.cmd.Env, "AUTOAGENT_CONFIG="+path)
		}
		b.cmd.Dir, b.cmd.SysProcAttr = "/", &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is none of its business
		if b.pipe, err = b.cmd.StdinPipe(); err == nil {
			err = b.cmd.Start()
		}
	}
	if err != nil {
		b.c.progress("messages stay in notify/: %v", err)
		b.cmd = nil
		return proc.ID{}
	}
	id, err := proc.Of(b.cmd.Process.Pid)
	if err != nil {
		b.c.progress("messages stay in notify/: %v", err)
	}
	return id
}

// end waits until it has brought the last message out.
func (b *beside) end() {
	if b.cmd == nil {
		return
	}
	_ = b.pipe.Close()
	slow := time.AfterFunc(lastWords+5*time.Second, func() { _ = b.cmd.Process.Kill() })
	_ = b.cmd.Wait() // whatever it says: the supervisor may have collected it
	slow.Stop()
}
