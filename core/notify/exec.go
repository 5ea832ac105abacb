package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// Payload is what the channels exec and webhook get, as one JSON object.
type Payload struct {
	Version int    `json:"version"`
	Mission string `json:"mission,omitempty"` // missing: the message tells of several
	Level   string `json:"level"`             // milestone, blocker, end
	Text    string `json:"text"`              // the whole message
	Parts   []Part `json:"parts"`
	Again   bool   `json:"again"` // it may have been handed over already
}

func payload(m Message) ([]byte, error) {
	text, _ := m.Text()
	if m.Again {
		text += AgainMark
	}
	return json.Marshal(Payload{Version, m.Mission, string(m.Level), text, m.Parts, m.Again})
}

// Exec hands each message to a program of the person's, as JSON on its standard input. Exit status 0 means that it
// arrived, 75 that it should be tried again later, anything else that it was refused for good.
type Exec struct {
	Program string // absolute
	Env     []string
	Timeout time.Duration // 0: execTimeout
}

const (
	execTimeout = 30 * time.Second
	tempFail    = 75 // EX_TEMPFAIL of sysexits.h
)

func (e Exec) Name() string       { return "exec " + e.Program }
func (e Exec) Gap() time.Duration { return 0 }

// Send runs the program once. A program that is cut off may have carried the message.
func (e Exec) Send(ctx context.Context, m Message, before func() error) (Receipt, error) {
	b, err := payload(m)
	if err != nil {
		return Receipt{}, err
	}
	timeout := e.Timeout
	if timeout == 0 {
		timeout = execTimeout
	}
	ctx, done := context.WithTimeout(ctx, timeout)
	defer done()
	c := exec.CommandContext(ctx, e.Program)
	var said bytes.Buffer
	c.Stdin, c.Stderr, c.Env, c.Dir = bytes.NewReader(b), &limited{&said, 2000}, e.Env, "/"
	c.WaitDelay = 2 * time.Second // a grandchild that holds the pipe open is not waited for
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	if err := before(); err != nil {
		return Receipt{}, &Refused{Err: err}
	}
	if err := c.Start(); err != nil {
		return Receipt{}, &Refused{Err: fmt.Errorf("the program of the channel cannot be started: %w", err)}
	}
	err = c.Wait()
	if err == nil || errors.Is(err, exec.ErrWaitDelay) && c.ProcessState.Success() {
		return Receipt{}, nil
	}
	why := strings.TrimSpace(said.String())
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil || !errors.As(err, &exit) || exit.ExitCode() < 0:
		return Receipt{}, &Uncertain{fmt.Errorf("the program of the channel was cut off: %w", err)}
	case exit.ExitCode() == tempFail:
		return Receipt{}, &Refused{Err: fmt.Errorf("the program of the channel says later: %s", why)}
	}
	return Receipt{}, fmt.Errorf("the program of the channel failed: %w: %s", err, why)
}

// limited keeps the beginning of what is written.
type limited struct {
	b    *bytes.Buffer
	left int
}

func (l *limited) Write(p []byte) (int, error) {
	n := min(len(p), l.left)
	l.b.Write(p[:n])
	l.left -= n
	return len(p), nil
}
