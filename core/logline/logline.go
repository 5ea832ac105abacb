// Package logline is how a program logs on stderr. Where stderr is the journal of systemd, each line is a sentence with
// structured fields (MISSION=, AGENT=, RUN=, TICK= and what else an attribute names) and a priority; elsewhere it is
// text. A journal that is gone or hangs neither fails nor holds up the program.
package logline

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/coreos/go-systemd/v22/journal"
	"golang.org/x/sys/unix"
)

// The names of the attributes by which lines are found. In the journal they are MISSION=, AGENT=, RUN= and TICK=.
const (
	Mission = "mission"
	Agent   = "agent"
	Run     = "run"
	Tick    = "tick"
)

// Stderr returns the handler for what a program logs on stderr, w being the program's stderr as the caller has it. Only
// if that is descriptor 2 and descriptor 2 is the very stream that JOURNAL_STREAM names, lines go to the journal: the
// variable alone is inherited by whatever a unit starts. name is what `journalctl -t` finds; the journal gives it to
// streams by itself, to lines of its own protocol not.
func Stderr(w io.Writer, name string) slog.Handler {
	if f, ok := w.(*os.File); ok && f == os.Stderr {
		if yes, err := journal.StderrIsJournalStream(); err == nil && yes {
			return &Handler{name: name, out: &output{send: journal.Send, instead: toStream}}
		}
	}
	return slog.NewTextHandler(w, nil)
}

// Handler writes to the journal.
type Handler struct {
	name   string
	attrs  []slog.Attr // with their groups in their names
	groups string      // "a_b_" in front of the names to come
	out    *output     // shared by all that are made of this one
}

var _ slog.Handler = (*Handler)(nil)

// Enabled leaves out what is for who debugs.
func (h *Handler) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelInfo }

// WithAttrs returns a handler whose lines have these fields.
func (h *Handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	n := *h
	n.attrs = flatten(append([]slog.Attr{}, h.attrs...), h.groups, attrs)
	return &n
}

// WithGroup returns a handler that puts a name in front of the names of the fields to come.
func (h *Handler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	n := *h
	n.groups += name + "_"
	return &n
}

// Handle writes a line. It never fails for the journal's sake: what that does not take goes to stderr as text.
func (h *Handler) Handle(ctx context.Context, r slog.Record) error {
	var own []slog.Attr
	r.Attrs(func(a slog.Attr) bool {
		own = flatten(own, h.groups, []slog.Attr{a})
		return true
	})
	fields := fieldsOf(append(append([]slog.Attr{}, h.attrs...), own...))
	if h.name != "" {
		fields["SYSLOG_IDENTIFIER"] = h.name
	}
	p := priority(r.Level)
	if h.out.write(sentence(r.Message, own), p, fields) == nil {
		return nil
	}
	h.out.instead(streamLine(p, r, append(append([]slog.Attr{}, h.attrs...), own...)))
	return nil
}

// patience is how long a line waits for a journal that takes nothing at the moment.
const patience = 500 * time.Millisecond

var errHangs = errors.New("the journal takes nothing")

// output sends lines. While one hangs, none of the others waits for it.
type output struct {
	send    func(message string, p journal.Priority, fields map[string]string) error
	instead func([]byte)
	hung    atomic.Bool
}

func (o *output) write(message string, p journal.Priority, fields map[string]string) error {
	if o.hung.Load() {
		return errHangs
	}
	done := make(chan error, 1)
	go func() { done <- o.send(message, p, fields) }()
	end := time.NewTimer(patience)
	defer end.Stop()
	select {
	case err := <-done:
		return err
	case <-end.C:
	}
	o.hung.Store(true)
	go func() {
		<-done // it was taken after all
		o.hung.Store(false)
	}()
	return errHangs
}

// maxStream is the longest line that goes to stderr instead, in bytes: one that the kernel takes whole or not at all.
const maxStream = 8 << 10

// streamLine is a line as the journal reads it from a stream: the priority in front, the fields as text.
func streamLine(p journal.Priority, r slog.Record, attrs []slog.Attr) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "<%d>", p)
	text := slog.NewRecord(time.Time{}, r.Level, r.Message, 0)
	text.AddAttrs(attrs...)
	_ = slog.NewTextHandler(&b, nil).Handle(context.Background(), text)
	line := bytes.TrimRight(b.Bytes(), "\n")
	return append(line[:min(len(line), maxStream)], '\n')
}

// toStream writes to stderr, which is a socket of the journal's, and returns at once: if nobody reads there any more the
// line is lost, and the program lives on, without SIGPIPE. It stands in the log file.
func toStream(line []byte) {
	_, _ = unix.SendmsgN(2, line, nil, nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
}
