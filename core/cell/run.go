package cell

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Output is what a command that ran in a cell came to.
type Output struct {
	Text     []byte        // what was captured; if it was longer than allowed, head and tail around a line that says so
	LeftOut  int64         // bytes left out of the middle
	Status   Status        //
	Duration time.Duration // from before the start to the end of everything inside
}

// Run starts a program, waits for it, and returns its combined stdout and stderr, at most about maxOutput bytes of it.
// A Stdout or Stderr in s takes that stream instead. The error tells that it could not be started, that its output
// could not be copied, or that ctx ended it (errors.Is with ctx's error); how the program itself ended is in the Status.
func Run(ctx context.Context, s Spec, maxOutput int) (Output, error) {
	began := time.Now()
	text := &headTail{limit: maxOutput}
	if s.Stdout == nil {
		s.Stdout = text
	}
	if s.Stderr == nil {
		s.Stderr = text
	}
	c, err := Start(ctx, s)
	if err != nil {
		return Output{Status: Status{Exit: -1}, Duration: time.Since(began)}, err
	}
	status, err := c.Wait()
	o := Output{Status: status, Duration: time.Since(began)}
	o.Text, o.LeftOut = text.result()
	if err == nil && status.Signal != 0 && ctx.Err() != nil {
		err = fmt.Errorf("run %s in a cell: %w", s.Argv[0], ctx.Err())
	}
	return o, err
}

// headTail keeps the first and the last half of limit bytes.
type headTail struct {
	limit int

	mu   sync.Mutex
	head []byte
	tail []byte // up to twice its share, cut now and then
	cut  int64
}

func (h *headTail) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := len(p)
	room := min(max(h.limit/2-len(h.head), 0), n)
	h.head = append(h.head, p[:room]...)
	h.tail = append(h.tail, p[room:]...)
	if len(h.tail) > 2*h.share() {
		h.trim()
	}
	return n, nil
}

func (h *headTail) share() int { return max(h.limit-h.limit/2, 0) }

func (h *headTail) trim() {
	if over := len(h.tail) - h.share(); over > 0 {
		h.cut += int64(over)
		h.tail = append(h.tail[:0], h.tail[over:]...)
	}
}

func (h *headTail) result() ([]byte, int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.trim()
	out := append([]byte(nil), h.head...)
	if h.cut > 0 {
		out = fmt.Appendf(out, "\n[%d bytes left out]\n", h.cut)
	}
	return append(out, h.tail...), h.cut
}
