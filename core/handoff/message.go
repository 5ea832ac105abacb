package handoff

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Message is a handoff as its sender means it.
type Message struct {
	Type     string
	From     string
	To       []string
	Priority string   // two digits, 00 first
	Task     string   // of a git_handoff; it keeps its name along the whole chain
	Commit   string   // of a git_handoff: abbreviated, 10 digits or more
	Text     string   // of a note
	Hops     int      // how many handoffs led to this one; not written where 0
	Tasks    []string // of a git_handoff that stands for a batch: all its tasks, Task among them; not written where there are none
}

// Envelope makes the file that waits in the sender's outbox, and its name.
func (m Message) Envelope(seq int, at time.Time) (name string, e Envelope) {
	id := fmt.Sprintf("%s_%06d_from_%s", Stamp(at), seq, m.From)
	e.Headers = []Header{{"id", id}, {"from", m.From}, {"to", strings.Join(m.To, ",")}, {"priority", m.Priority}, {"type", m.Type}}
	payload := m.Text
	if m.Type == GitHandoff {
		e.Headers = append(e.Headers, Header{"role", m.From}, Header{"task", m.Task}, Header{"commit", m.Commit})
		payload = "merge_and_process " + m.From + " " + m.Commit
	} else {
		e.Headers = append(e.Headers, Header{"message", m.Text})
	}
	e.Headers = append(e.Headers, Header{"created_at", Instant(at)})
	if m.Hops > 0 {
		e.Headers = append(e.Headers, Header{"hops", strconv.Itoa(m.Hops)})
	}
	if len(m.Tasks) > 0 {
		b, _ := json.Marshal(m.Tasks) // one line, whatever the names are
		e.Headers = append(e.Headers, Header{"tasks", string(b)})
	}
	e.Body = "Re-read your role and constitution.\n\n" + payload + "\n"
	return FileName(m.Priority, id, m.To), e
}

// FileName is the name of an envelope. A list of recipients that would make it too long is cut between two names, and the
// whole list's hash stands for the rest.
func FileName(priority, id string, to []string) string {
	name := func(slug string) string { return priority + "_" + id + "_to_" + slug + Suffix }
	full := name(strings.Join(to, "_"))
	if len(full) <= MaxName {
		return full
	}
	hash := fmt.Sprintf("%x", sha256.Sum256([]byte(strings.Join(to, ","))))[:12]
	for n := len(to) - 1; n > 0; n-- {
		if cut := name(strings.Join(append(slices.Clone(to[:n]), hash), "_")); len(cut) <= MaxName {
			return cut
		}
	}
	return name(hash)
}

// Work is what a git_handoff along a plan says.
type Work struct {
	From, To string
	Priority int    // 0 to 99, smaller first
	Task     string // at most 80 characters
	Commit   string // abbreviated commit name, 10 digits or more
	Seq      int    // the sender's sequence number
	Hops     int    // how many handoffs led to it
	At       time.Time
}

// NewWork makes the envelope of a git_handoff, its file name and its id.
func NewWork(w Work) (name, id string, e Envelope) {
	m := Message{Type: GitHandoff, From: w.From, To: []string{w.To}, Priority: fmt.Sprintf("%02d", w.Priority), Task: w.Task, Commit: w.Commit, Hops: w.Hops}
	name, e = m.Envelope(w.Seq, w.At)
	return name, e.Get("id"), e
}

// IDOf returns the id in the name of an envelope, "" if the name is not of the form that FileName gives.
func IDOf(name string) string {
	rest, ok := strings.CutSuffix(name, Suffix)
	if !ok || len(rest) < 4 || rest[2] != '_' || !priorityPattern.MatchString(rest[:2]) {
		return ""
	}
	id, _, ok := strings.Cut(rest[3:], "_to_")
	if !ok || !strings.Contains(id, "_from_") {
		return ""
	}
	return id
}
