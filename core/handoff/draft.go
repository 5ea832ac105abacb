package handoff

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Problem is one thing that is wrong with a draft or with the end of a task: the header at fault, its value, and what to
// do about it.
type Problem struct {
	Header string `json:"header"` // or what stands for one: "line 3", "body", "tree", "forward"
	Value  string `json:"value,omitempty"`
	Text   string `json:"problem"`
	Remedy string `json:"remedy"`
}

// String is the problem on one line. The value is quoted: nothing in it breaks the line or reaches a terminal.
func (p Problem) String() string {
	s := p.Header
	if p.Value != "" {
		s += fmt.Sprintf(" %q", shorten(p.Value, 120))
	}
	return s + ": " + p.Text + "; " + p.Remedy
}

// shorten cuts text to max runes.
func shorten(s string, max int) string {
	if r := []rune(s); len(r) > max {
		return string(r[:max]) + "…"
	}
	return s
}

// Draft is what an agent wrote: the headers that could be read, in their order, and what was wrong with the lines.
type Draft struct {
	Headers  []Header
	Problems []Problem // in the order of the lines, at most one for each
}

// DraftsFolder is where an agent leaves drafts of what it wants to say to others, below its clone. What begins with a dot in it
// is none.
const DraftsFolder = ".autoagent/outbox"

// MaxDrafts is how many drafts an agent may leave in one go.
const MaxDrafts = 8

// MaxDraft is the largest draft that is read, in bytes.
const MaxDraft = 64 << 10

// allowed are the headers that a draft may have, with the types that have them; reserved are those that only the program
// writes.
func allowed(name string) []string {
	switch name {
	case "type", "to", "priority":
		return []string{GitHandoff, Note}
	case "task", "commit":
		return []string{GitHandoff}
	case "message":
		return []string{Note}
	}
	return nil
}

var reserved = []string{"id", "from", "role", "recipient", "created_at", "enqueued_at", "dequeued_at", "completed_at"}

// Get returns a header's value, "" if it is not there.
func (d Draft) Get(name string) string { return Envelope{Headers: d.Headers}.Get(name) }

// ParseDraft reads a draft: lines "header: value", in any order, and nothing after the first blank line.
func ParseDraft(data []byte) Draft {
	var d Draft
	if len(data) > MaxDraft {
		d.Problems = append(d.Problems, Problem{"draft", "", fmt.Sprintf("the file has %d bytes, at most %d are allowed", len(data), MaxDraft), "a draft holds a few headers and nothing else"})
		return d
	}
	inBody := false
	for i, line := range lines(string(data)) {
		at := fmt.Sprintf("line %d", i+1)
		switch {
		case inBody && !blank(line):
			d.Problems = append(d.Problems, Problem{at + ", body", line, "a draft has headers only", "take everything after the first blank line out; the payload is written for you"})
		case inBody || blank(line):
			inBody = true
		default:
			if p := d.line(line); p != nil {
				p.Header = at + ", " + p.Header
				d.Problems = append(d.Problems, *p)
			}
		}
	}
	return d
}

// line takes one line; what it cannot take is a problem and sets no header.
func (d *Draft) line(line string) *Problem {
	name, value, ok := strings.Cut(line, ": ")
	switch {
	case !utf8.ValidString(line):
		return &Problem{"header", strings.ToValidUTF8(line, "?"), "it is not UTF-8", "write plain UTF-8 text"}
	case !ok:
		name, _, _ = strings.Cut(line, ":")
		return &Problem{"header " + shorten(cleanName(name), 20), line, "it is no header", "write header: value, with a colon and one space"}
	case blank(name):
		return &Problem{"header", line, "the name before the colon is empty", "write header: value"}
	case blank(value):
		return &Problem{cleanName(name), "", "the value is empty", "give it a value or leave the line out"}
	case slices.Contains(reserved, name):
		return &Problem{name, value, "this header is reserved", "take it out; it is written for you"}
	case allowed(name) == nil:
		return &Problem{cleanName(name), value, "there is no such header", "use type, to, priority and task, commit or message"}
	case d.Get(name) != "":
		return &Problem{name, value, "the header stands twice", "keep one of the lines"}
	case strings.ContainsFunc(value, control):
		return &Problem{name, value, "it holds a control character", "write one line of plain text"}
	}
	d.Headers = append(d.Headers, Header{name, value})
	return nil
}

// control says whether a character cannot stand in a header: readers could take the rest for a line of its own.
func control(r rune) bool { return unicode.IsControl(r) && r != '\t' }

// cleanName makes a name that an agent wrote fit for a message.
func cleanName(s string) string {
	return shorten(strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, strings.ToValidUTF8(s, "?")), 40)
}
