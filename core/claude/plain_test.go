package claude

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/money"
	"example.com/AutoAgentProject/core/runner"
	"example.com/AutoAgentProject/core/testkit"
)

// plain starts programs without walls, in a process group of their own.
type plain struct{}

type plainProcess struct {
	cmd  *exec.Cmd
	done chan struct{}
}

func (plain) Launch(_ context.Context, c runner.Command) (runner.Process, error) {
	cmd := exec.Command(c.Argv[0], c.Argv[1:]...)
	cmd.Dir, cmd.Stdin = c.Dir, c.Stdin
	if c.Stdout != nil {
		cmd.Stdout = c.Stdout
	}
	if c.Stderr != nil {
		cmd.Stderr = c.Stderr
	}
	for _, e := range c.Env { // without walls the program sees the host's paths
		name, value, _ := strings.Cut(e, "=")
		if rest, ok := strings.CutPrefix(value, insideHome); ok {
			value = c.Home + rest
		} else if value == insideTmp {
			value = c.Tmp
		}
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &plainProcess{cmd: cmd, done: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // the status is in ProcessState
		close(p.done)
	}()
	return p, nil
}

func (p *plainProcess) Terminate() error { return syscall.Kill(p.cmd.Process.Pid, syscall.SIGTERM) }

func (p *plainProcess) Kill() {
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) // gone is what it should be
	<-p.done
}

func (p *plainProcess) Wait() (int, error) {
	<-p.done
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	return p.cmd.ProcessState.ExitCode(), nil
}

// price is a small list: sonnet has its real rates, what is not known costs the dearest.
func price(model string, u money.Usage, _ time.Time, _ bool) (money.Nano, bool) {
	in, out, known := int64(15_000), int64(75_000), false
	if strings.HasPrefix(model, "claude-sonnet-5-5") {
		in, out, known = 2_000, 10_000, true
	}
	return money.Nano(in*(u.Input+u.CacheRead/20) + in*5/4*u.CacheWrite5m + in*2*u.CacheWrite1h + out*u.Output), known || u == (money.Usage{})
}

// realProgram is the claude program of this machine.
func realProgram(t *testing.T) string {
	t.Helper()
	file, err := Find(os.Getenv)
	testkit.Need(t, err == nil, "the claude program, version "+PinnedVersion)
	return file
}
