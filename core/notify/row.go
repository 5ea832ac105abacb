// Package notify brings messages to the person and loses none: a durable outbox with a row for every message before
// anything is sent, the choice of what goes next, and the channels that carry it.
package notify

import (
	"slices"
	"strings"
	"time"

	"example.com/AutoAgentProject/core/journal"
)

// Version is the version of all files of this package.
const Version = 1

// State is where a message stands.
type State string

const (
	Queued  State = "queued"  // waits to be sent
	Unknown State = "unknown" // was being sent; whether it arrived is not known
	Sent    State = "sent"    // arrived
	Parked  State = "parked"  // given up; status shows it
)

// Button is a choice below a message. Data has at most 64 bytes.
type Button struct {
	Text string `json:"text"`
	Data string `json:"data"`
}

// Row is one message: a file in the outbox.
type Row struct {
	Version int           `json:"version"`
	ID      string        `json:"id"`    // file name
	Label   string        `json:"label"` // what people see of it: "my-site b-3"
	Mission string        `json:"mission"`
	At      time.Time     `json:"at"`
	Level   journal.Level `json:"level"`
	Title   string        `json:"title,omitempty"` // its first line, shown in bold
	Text    string        `json:"text"`
	Hint    string        `json:"hint,omitempty"` // how to answer; it goes with the buttons
	Buttons []Button      `json:"buttons,omitempty"`
	// Approval is the number of the approval that the buttons answer.
	Approval int `json:"approval,omitempty"`
	// Events are the offsets of the events that it tells, Incident the condition.
	Events   []int64 `json:"events,omitempty"`
	Incident string  `json:"incident,omitempty"`

	State     State     `json:"state"`
	Batch     string    `json:"batch,omitempty"`    // rows of one batch are sent as one message
	Done      int       `json:"done,omitempty"`     // how much of the batch's text arrived, in UTF-16 units
	Attempts  int       `json:"attempts,omitempty"` // tries so far
	Repeated  bool      `json:"repeated,omitempty"` // it was sent again after an unknown outcome
	MessageID int       `json:"message_id,omitempty"`
	Error     string    `json:"error,omitempty"` // the last try's
	DoneAt    time.Time `json:"done_at,omitzero"`
	Closed    bool      `json:"closed,omitempty"` // its buttons were taken away

	box Outbox // where it lies
}

// Part is a piece of a message: a title in bold and a text.
type Part struct {
	Label string        `json:"label"`
	Level journal.Level `json:"level"`
	Title string        `json:"title,omitempty"`
	Text  string        `json:"text"`
}

// Message is what a channel carries.
type Message struct {
	Parts   []Part
	Buttons []Button
	Level   journal.Level // the most urgent of its parts
	Mission string        // "" if it tells of several
	Done    int           // this much of it arrived already, in UTF-16 units of Text
	Again   bool          // it may have arrived already
}

// AgainMark ends a message that may have arrived already.
const AgainMark = " (again)"

// Span is a range of a text, in UTF-16 units.
type Span struct{ Offset, Length int }

// Text is the whole message and which ranges of it are bold.
func (m Message) Text() (string, []Span) {
	var b strings.Builder
	var bold []Span
	for i, p := range m.Parts {
		if i > 0 {
			b.WriteString("\n\n")
		}
		if p.Label != "" {
			b.WriteString("[" + p.Label + "] ")
		}
		if p.Title != "" {
			bold = append(bold, Span{Units(b.String()), Units(p.Title)})
			b.WriteString(p.Title)
			if p.Text != "" {
				b.WriteString("\n")
			}
		}
		b.WriteString(p.Text)
	}
	return b.String(), bold
}

// Units is the length of a text in UTF-16 units.
func Units(s string) int {
	n := 0
	for _, r := range s {
		n++
		if r > 0xFFFF {
			n++
		}
	}
	return n
}

// Clean makes text fit to be sent: valid UTF-8 without control characters, escape sequences and marks that turn the
// direction of what follows.
func Clean(s string) string {
	var b strings.Builder
	s = strings.ToValidUTF8(s, "\uFFFD")
	for i := 0; i < len(s); {
		if s[i] == 0x1b { // ANSI: ESC [ … letter, or ESC and one more
			i++
			if i < len(s) && s[i] == '[' {
				for i++; i < len(s) && (s[i] < 0x40 || s[i] > 0x7e); i++ {
				}
			}
			if i < len(s) && s[i] < 0x80 {
				i++
			}
			continue
		}
		r := []rune(s[i:min(len(s), i+4)])[0]
		size := len(string(r))
		if s[i] < 0x80 {
			size = 1
		}
		i += size
		if r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r == 0x200e || r == 0x200f || r == 0x061c {
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// rank orders by urgency: what needs the person goes first.
func (r Row) rank() int {
	if r.Level == journal.Blocker {
		return 0
	}
	return 1
}

// late is how long a row waits before it is told in one digest with everything else that waited.
const late = 5 * time.Minute

// TooOld is how long a message is tried before it is parked.
const TooOld = 7 * 24 * time.Hour

// Next is what to do now.
type Next struct {
	Rows  []Row // what is sent as one message, in its order
	Again bool  // it may have arrived
	Park  []Row // what is given up instead, each with its Error
}

// Choose decides what goes next. The rows are those of one chat that are not done. Pure.
//
// What has an unknown outcome goes first, once, marked as a repetition; after a second unknown outcome it is parked. A
// message that is half sent is ended. Then what needs the person, then the rest, oldest first; messages of one urgency
// that wait at the same time become one, and after an outage all that waited becomes one digest. What has buttons stands
// alone.
func Choose(rows []Row, now time.Time) Next {
	var n Next
	var open []Row
	for _, r := range rows {
		switch {
		case r.State == Unknown && r.Repeated:
			r.Error = "twice it is not known whether it arrived"
			n.Park = append(n.Park, r)
		case r.State != Unknown && now.Sub(r.At) > TooOld:
			r.Error = strings.TrimSuffix("it could not be sent for a week: "+r.Error, ": ")
			n.Park = append(n.Park, r)
		case r.State == Unknown || r.State == Queued:
			open = append(open, r)
		}
	}
	if len(open) == 0 {
		return n
	}
	slices.SortStableFunc(open, func(x, y Row) int {
		if c := x.rank() - y.rank(); c != 0 {
			return c
		}
		if c := x.At.Compare(y.At); c != 0 {
			return c
		}
		return strings.Compare(x.Mission+"/"+x.ID, y.Mission+"/"+y.ID)
	})
	for _, begun := range []func(Row) bool{
		func(r Row) bool { return r.State == Unknown },
		func(r Row) bool { return r.Done > 0 },
	} {
		if i := slices.IndexFunc(open, begun); i >= 0 {
			first := open[i]
			n.Again = first.State == Unknown
			for _, r := range open {
				if r.State == first.State && r.Batch == first.Batch && (r.Batch != "" || r.ID == first.ID && r.box == first.box) {
					n.Rows = append(n.Rows, r)
				}
			}
			return n
		}
	}
	first := open[0]
	if len(first.Buttons) > 0 {
		n.Rows = []Row{first}
		return n
	}
	digest := slices.ContainsFunc(open, func(r Row) bool { return now.Sub(r.At) > late })
	for _, r := range open {
		if len(r.Buttons) == 0 && (digest || r.rank() == first.rank()) {
			n.Rows = append(n.Rows, r)
		}
	}
	return n
}

// Compose makes one message of rows. A digest of many begins with how many there are and since when.
func Compose(rows []Row, again bool) Message {
	m := Message{Again: again, Level: journal.Milestone, Mission: rows[0].Mission, Done: rows[0].Done}
	if len(rows) > manyRows {
		first, last := rows[0].At, rows[0].At
		for _, r := range rows {
			if r.At.Before(first) {
				first = r.At
			}
			if r.At.After(last) {
				last = r.At
			}
		}
		m.Parts = append(m.Parts, Part{Level: journal.Milestone, Title: digestTitle(len(rows), first, last)})
	}
	for _, r := range rows {
		text := Clean(r.Text)
		if r.Hint != "" {
			text = strings.TrimSpace(text + "\n\n" + Clean(r.Hint))
		}
		m.Parts = append(m.Parts, Part{Label: r.box.Named(r).Label, Level: r.Level, Title: Clean(r.Title), Text: text})
		if r.Level == journal.Blocker || r.Level == journal.End && m.Level != journal.Blocker {
			m.Level = r.Level
		}
		if r.Mission != m.Mission {
			m.Mission = ""
		}
		m.Buttons = append(m.Buttons, r.Buttons...)
	}
	return m
}
