package handoff

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// MaxSize is the largest envelope that is read, in bytes.
const MaxSize = 64 << 10

// Header is one line "name: value".
type Header struct{ Name, Value string }

// Envelope is one handoff file: headers in their order and the body after the first empty line.
type Envelope struct {
	Headers []Header
	Body    string
}

// Get returns a header's value, "" if it is not there.
func (e Envelope) Get(name string) string {
	for _, h := range e.Headers {
		if h.Name == name {
			return h.Value
		}
	}
	return ""
}

// Set replaces a header in place or adds it as the last one.
func (e *Envelope) Set(name, value string) {
	for i := range e.Headers {
		if e.Headers[i].Name == name {
			e.Headers[i].Value = value
			return
		}
	}
	e.Headers = append(e.Headers, Header{name, value})
}

// Recipients returns the names in the to header.
func (e Envelope) Recipients() []string {
	if to := e.Get("to"); to != "" {
		return strings.Split(to, ",")
	}
	return nil
}

// Bytes is the file: headers, empty line, body.
func (e Envelope) Bytes() []byte {
	var b bytes.Buffer
	for _, h := range e.Headers {
		fmt.Fprintf(&b, "%s: %s\n", h.Name, h.Value)
	}
	b.WriteString("\n" + e.Body)
	return b.Bytes()
}

var headerName = regexp.MustCompile(`^[a-z][a-z_]{0,39}$`)

// Parse reads an envelope. An error means that it is no envelope at all.
func Parse(data []byte) (Envelope, error) {
	var e Envelope
	switch {
	case len(data) == 0:
		return e, errors.New("the file is empty")
	case len(data) > MaxSize:
		return e, fmt.Errorf("the file has %d bytes, at most %d are allowed", len(data), MaxSize)
	case bytes.IndexByte(data, 0) >= 0 || !utf8.Valid(data):
		return e, errors.New("the file is no UTF-8 text")
	}
	head, body, ok := strings.Cut(string(data), "\n\n")
	if !ok {
		head = strings.TrimSuffix(head, "\n")
	}
	for i, line := range strings.Split(head, "\n") {
		name, value, ok := strings.Cut(line, ": ")
		if !ok || !headerName.MatchString(name) || blank(value) || strings.ContainsFunc(value, control) {
			return e, fmt.Errorf("line %d is no header", i+1)
		}
		if slices.ContainsFunc(e.Headers, func(h Header) bool { return h.Name == name }) {
			return e, fmt.Errorf("header %s stands twice", name)
		}
		e.Headers = append(e.Headers, Header{name, value})
	}
	e.Body = body
	for _, need := range []string{"id", "from", "to", "priority", "type"} {
		if e.Get(need) == "" {
			return e, fmt.Errorf("header %s is missing", need)
		}
	}
	switch e.Get("type") {
	case GitHandoff:
		if e.Get("task") == "" || e.Get("commit") == "" {
			return e, errors.New("a git_handoff needs the headers task and commit")
		}
	case Note:
		if e.Get("message") == "" {
			return e, errors.New("a note needs the header message")
		}
	default:
		return e, fmt.Errorf("type %q is neither git_handoff nor note", e.Get("type"))
	}
	return e, nil
}

// delivered is the order of headers in a delivered file; every other header follows, sorted by name.
var delivered = []string{"id", "from", "to", "recipient", "priority", "type", "role", "commit", "message",
	"created_at", "enqueued_at", "dequeued_at", "completed_at"}

// IsFor says whether a delivered copy is the agent's. One that was put there by hand may lack the recipient.
func (e Envelope) IsFor(agent string) bool {
	if r := e.Get("recipient"); r != "" {
		return r == agent
	}
	return slices.Contains(e.Recipients(), agent)
}

// ForRecipient returns the copy that one recipient gets.
func (e Envelope) ForRecipient(to string, now time.Time) Envelope {
	c := Envelope{Body: e.Body, Headers: slices.Clone(e.Headers)}
	c.Set("recipient", to)
	c.Set("enqueued_at", Instant(now))
	rank := func(name string) int {
		if i := slices.Index(delivered, name); i >= 0 {
			return i
		}
		return len(delivered)
	}
	slices.SortStableFunc(c.Headers, func(a, b Header) int {
		if d := rank(a.Name) - rank(b.Name); d != 0 {
			return d
		}
		if rank(a.Name) == len(delivered) {
			return strings.Compare(a.Name, b.Name)
		}
		return 0
	})
	return c
}
