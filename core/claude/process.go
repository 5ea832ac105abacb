package claude

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"sync"
	"time"

	"example.com/AutoAgentProject/core/runner"
)

// process is the running program with its three pipes. Nothing it does or fails to do blocks the reader of its channels.
type process struct {
	runner.Process
	stdin  *input
	out    *os.File
	errs   *os.File
	lines  chan []byte   // closed when the output ended
	exit   chan exited   // one value
	spoken chan struct{} // closed when stderr ended
	gone   chan struct{} // closed by release: nobody listens any more
	stderr *tail
}

type exited struct {
	status int
	err    error
}

// start makes the pipes, says that it starts, and starts.
func (c *Claude) start(ctx context.Context, cmd runner.Command, launched func() error) (*process, error) {
	var ends []*os.File
	pipe := func() (r, w *os.File, err error) {
		r, w, err = os.Pipe()
		ends = append(ends, r, w)
		return r, w, err
	}
	inR, inW, errA := pipe()
	outR, outW, errB := pipe()
	errR, errW, errC := pipe()
	err := errors.Join(errA, errB, errC)
	if err == nil && launched != nil {
		err = launched()
	}
	var p runner.Process
	if err == nil {
		cmd.Stdin, cmd.Stdout, cmd.Stderr = inR, outW, errW
		// The end of ctx is not the end of the program: it is interrupted first, and paid work is told.
		p, err = c.cfg.Launcher.Launch(context.WithoutCancel(ctx), cmd)
	}
	if err != nil {
		for _, f := range ends {
			f.Close() // the pipes that could not be made are nil, which Close takes
		}
		return nil, err
	}
	for _, f := range []*os.File{inR, outW, errW} {
		f.Close()
	}
	pr := &process{Process: p, stdin: newInput(inW), out: outR, errs: errR, stderr: &tail{},
		lines: make(chan []byte), exit: make(chan exited, 1), spoken: make(chan struct{}), gone: make(chan struct{})}
	go pr.readOut()
	go func() {
		defer close(pr.spoken)
		pr.stderr.read(errR)
	}()
	go func() {
		status, err := p.Wait()
		pr.exit <- exited{status, err}
	}()
	return pr, nil
}

func (p *process) readOut() {
	defer close(p.lines)
	_ = readLines(p.out, func(line []byte) bool { // an error is the end of the output, whatever its reason
		select {
		case p.lines <- line:
			return true
		case <-p.gone:
			return false
		}
	})
}

// endOutput lets the reader end even if something that escaped still holds the pipe open.
func (p *process) endOutput() {
	_ = p.out.SetReadDeadline(time.Now())
	_ = p.errs.SetReadDeadline(time.Now())
}

// release ends everything that is left of the process and gives its files back.
func (p *process) release() {
	p.Kill()
	close(p.gone)
	p.stdin.abandon()
	p.out.Close()
	p.errs.Close()
}

// input writes to the program's stdin in its own time: a program that does not read blocks nobody else. Its methods
// belong to one goroutine.
type input struct {
	file   *os.File
	queue  chan []byte
	closed bool
}

func newInput(f *os.File) *input {
	in := &input{file: f, queue: make(chan []byte, 8)}
	go func() {
		defer f.Close()
		for b := range in.queue {
			if _, err := f.Write(b); err != nil {
				return // the program is gone or about to be; its end tells why
			}
		}
	}()
	return in
}

// send queues a line, one of a handful. After close it does nothing.
func (in *input) send(v any) {
	b, err := json.Marshal(v)
	if err != nil || in.closed { // strings and maps of them have no error
		return
	}
	select {
	case in.queue <- append(b, '\n'):
	default: // a program that has not read eight lines will be ended by its limits
	}
}

// close ends the input when everything queued was written.
func (in *input) close() {
	if !in.closed {
		in.closed = true
		close(in.queue)
	}
}

// abandon ends it at once.
func (in *input) abandon() {
	in.close()
	in.file.Close()
}

// The first line of every message is ours: what the program would take for a command of its own begins with a slash.
const (
	firstLine = "Your task:\n\n"
	nextLine  = "Go on with this:\n\n"
)

func userMessage(text string) any {
	return map[string]any{"type": "user", "message": map[string]any{"role": "user", "content": text}}
}

func interruptRequest() any {
	return map[string]any{"type": "control_request", "request_id": "stop", "request": map[string]any{"subtype": "interrupt"}}
}

// tail keeps the last words of a stream.
type tail struct {
	mu   sync.Mutex
	kept []byte
}

func (t *tail) read(f *os.File) {
	const most = 4096
	buf := make([]byte, most)
	for {
		n, err := f.Read(buf)
		t.mu.Lock()
		t.kept = append(t.kept, buf[:n]...)
		t.kept = t.kept[max(0, len(t.kept)-most):]
		t.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// last is the last line that is not blank, without the secret.
func (t *tail) last(secret string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := strings.Split(strings.TrimSpace(string(redact(t.kept, secret))), "\n")
	return oneLine(strings.ToValidUTF8(lines[len(lines)-1], "\uFFFD"))
}

// redact takes a secret out of what is written down or shown. One too short to be a real credential is left: it would
// match anything.
func redact(b []byte, secret string) []byte {
	if len(secret) < 16 {
		return b
	}
	return bytes.ReplaceAll(b, []byte(secret), []byte("[credential]"))
}
