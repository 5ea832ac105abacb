package reporter

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"example.com/AutoAgentProject/core/journal"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/notify"
	"example.com/AutoAgentProject/core/store"
)

// DefaultEvery is how often milestones are told at most.
const DefaultEvery = 15 * time.Minute

// repeats are the pauses after which a blocker is told again until somebody acknowledges it; the last one goes on.
var repeats = []time.Duration{time.Hour, 3 * time.Hour, 8 * time.Hour, 24 * time.Hour}

// What of an event's text stands in a message, in characters, and how many milestones in one.
const (
	maxTitle     = 160
	maxText      = 1200
	maxLine      = 300
	maxDiff      = 1500
	maxMilestone = 12
)

// Cursor is notify/cursor.json: how far the events were turned into messages, and what was decided about them. It is
// written before the messages are: they can be made again from it.
type Cursor struct {
	Version   int                 `json:"version"`
	Offset    int64               `json:"offset"`
	Seq       int                 `json:"seq"`               // of the labels
	Told      map[string]Incident `json:"told,omitempty"`    // conditions that were told and are not over
	Waiting   []Item              `json:"waiting,omitempty"` // milestones that were not told yet
	StepEnded bool                `json:"step_ended,omitempty"`
	Due       bool                `json:"due,omitempty"` // only quiet hours or a mute hold them back
	TellAfter time.Time           `json:"tell_after,omitzero"`
	Rows      []notify.Row        `json:"rows,omitempty"` // of the last decision
}

// Incident is a condition that was told.
type Incident struct {
	Kind     string    `json:"kind,omitempty"`
	Row      string    `json:"row"` // the row that told it first
	Title    string    `json:"title"`
	Text     string    `json:"text,omitempty"`
	Approval int       `json:"approval,omitempty"`
	At       time.Time `json:"at"`             // told last
	Times    int       `json:"times"`          // how often
	Over     bool      `json:"over,omitempty"` // it is not repeated
}

// Item is a milestone that waits.
type Item struct {
	Offset int64  `json:"offset"`
	Text   string `json:"text"`
}

// Facts is what Decide looks at besides the events.
type Facts struct {
	Now     time.Time
	Start   time.Time // of the mission
	Mission string
	Every   time.Duration
	Quiet   notify.Quiet
	Setting notify.Setting
	Pauses  []mission.Pause
	Asked   []store.Asked
	Stopped bool
	// Covered are the offsets of events that have a row already; only set when the cursor was lost.
	Covered map[int64]bool

	Titles map[string]string // of the steps, by id

	Hold    bool   // milestones wait for a sentence about them
	Summary string // that sentence; empty: they do without

	Steps string // "2 of 5 steps done"
	Money string // "$0.42 of $1.20 spent (35%)"
	Left  string // "3h10m left"
	Next  string // "next: …"
	End   func(journal.Event) (title, text string)
}

// Decide turns events and facts into messages: the rows of the cursor that it returns. The same facts give the same
// messages. Pure.
//
// Routine is silent. Milestones are told together, when a step has ended and the last telling is long enough ago. What
// needs the person is told at once, one time for each condition, and repeated by a schedule until it is acknowledged or
// over. The end is always told, with the milestones that waited. Quiet hours and a mute hold back milestones and
// repetitions, nothing else.
func Decide(c Cursor, events []journal.Event, f Facts) Cursor {
	d := decision{c: c, f: f}
	d.c.Rows = nil
	if d.c.Told = maps.Clone(c.Told); d.c.Told == nil {
		d.c.Told = map[string]Incident{}
	}
	if d.c.TellAfter.IsZero() {
		d.c.TellAfter = f.Start.Add(f.Every).UTC()
	}
	d.c.Waiting = slices.Clone(c.Waiting)
	for _, e := range events {
		d.event(e)
	}
	d.approvals()
	d.over()
	d.repeat()
	d.milestones()
	return d.c
}

type decision struct {
	c Cursor
	f Facts
}

func (d *decision) event(e journal.Event) {
	if e.Incident != "" && e.Over {
		delete(d.c.Told, e.Incident)
	}
	if e.Level != journal.Milestone && e.Level != journal.Blocker && e.Level != journal.End {
		return
	}
	if e.Kind == journal.BudgetCrossed && d.f.Stopped { // the end says it
		return
	}
	covered := d.f.Covered[e.Offset]
	if e.Incident != "" && !e.Over {
		if _, told := d.c.Told[e.Incident]; told {
			return
		}
	}
	id := fmt.Sprintf("%012d-%s", e.Offset, e.Level)
	switch e.Level {
	case journal.Milestone:
		if e.Incident != "" && !e.Over {
			d.c.Told[e.Incident] = Incident{Kind: e.Kind, Row: id, At: d.f.Now.UTC(), Times: 1, Over: true} // only blockers are repeated
		}
		if covered {
			return
		}
		d.c.Waiting = append(d.c.Waiting, Item{Offset: e.Offset, Text: d.line(e)})
		switch e.Kind {
		case journal.StepDone, journal.StepFailed, journal.VerifyFailed, journal.Paused:
			d.c.StepEnded = true
		}
	case journal.Blocker:
		title, text := split(e.Text)
		if what, do, ok := strings.Cut(title, "; AutoAgentProject "); ok { // what to do stands in a line of its own
			title, text = what, strings.TrimSpace("AutoAgentProject "+do+"\n"+text)
		}
		if e.Kind == journal.Paused {
			text = strings.TrimSpace(text + "\nWork waits and costs nothing meanwhile; its time stands still.")
		}
		if e.Incident != "" {
			d.c.Told[e.Incident] = Incident{Kind: e.Kind, Row: id, Title: title, Text: text, At: d.f.Now.UTC(), Times: 1, Over: !lasts(e.Kind)}
		}
		if !covered {
			d.add(notify.Row{ID: id, Level: journal.Blocker, Title: title, Text: text, Events: []int64{e.Offset}, Incident: e.Incident})
		}
	case journal.End:
		if covered {
			return
		}
		title, text := d.f.End(e)
		offsets := []int64{e.Offset}
		if list := d.list(); list != "" {
			text += "\n\nSince the last message:\n" + list
			for _, w := range d.c.Waiting {
				offsets = append(offsets, w.Offset)
			}
		}
		d.c.Waiting, d.c.StepEnded, d.c.Due = nil, false, false
		d.add(notify.Row{ID: id, Level: journal.End, Title: title, Text: text, Events: offsets})
	}
}

// lasts says whether a blocker of that kind waits for the person. A threshold of the budget is passed once, and a step
// that failed is the manager's affair.
func lasts(kind string) bool { return kind != journal.BudgetCrossed && kind != journal.StepFailed }

// add fixes a message.
func (d *decision) add(r notify.Row) {
	letter := map[journal.Level]string{journal.Milestone: "m", journal.Blocker: "b", journal.End: "e"}[r.Level]
	if r.Approval > 0 {
		letter = "a"
	}
	d.c.Seq++
	r.Label = fmt.Sprintf("%s %s-%d", d.f.Mission, letter, d.c.Seq)
	r.Mission, r.At = d.f.Mission, d.f.Now.UTC()
	d.c.Rows = append(d.c.Rows, r)
}

// approvals tells what a person is asked. It goes by the requests themselves: an event can be lost.
func (d *decision) approvals() {
	for _, a := range d.f.Asked {
		key := notify.ApprovalRow(a.N)
		if _, told := d.c.Told[key]; told || !a.Open(d.f.Now) || d.f.Stopped {
			continue
		}
		title := fmt.Sprintf("Approval %d: %s", a.N, oneLine(a.Title, maxTitle))
		text := cut(a.Text, 2500)
		if diff := cut(a.Diff, maxDiff); diff != "" {
			text += "\n\n" + diff
			if strings.HasSuffix(diff, "…") {
				text += fmt.Sprintf("\n(AutoAgentProject approvals %s shows the whole of it)", d.f.Mission)
			}
		}
		d.c.Told[key] = Incident{Kind: journal.ApprovalAsked, Row: key, Title: title, Text: text, Approval: a.N, At: d.f.Now.UTC(), Times: 1}
		d.add(notify.Row{ID: key, Level: journal.Blocker, Title: title, Text: text, Hint: d.hint(a), Approval: a.N, Incident: key, Buttons: notify.ApprovalButtons(d.f.Mission, a.Approval)})
	}
}

// hint says how an approval can be answered, and what no answer means.
func (d *decision) hint(a store.Asked) string {
	return fmt.Sprintf("No answer by %s: %s.\nTerminal: AutoAgentProject approve %s %d", a.Expires.UTC().Format("2006-01-02 15:04 MST"), silence(a.Kind), d.f.Mission, a.N)
}

// silence says what happens when nobody answers.
func silence(k mission.ApprovalKind) string {
	switch k {
	case mission.Fault:
		return "the mission ends as failed"
	case mission.Asking:
		return "the agent goes on without one"
	}
	return "it counts as a no"
}

// over ends the repetition of what has passed. It stays told: its key names this one time.
func (d *decision) over() {
	paused := slices.ContainsFunc(d.f.Pauses, func(p mission.Pause) bool { return p.Cause != "human" && p.Cause != "approval" })
	for k, t := range d.c.Told {
		switch t.Kind {
		case journal.Paused:
			t.Over = t.Over || !paused
		case journal.ApprovalAsked:
			i := slices.IndexFunc(d.f.Asked, func(a store.Asked) bool { return a.N == t.Approval })
			t.Over = t.Over || i < 0 || !d.f.Asked[i].Open(d.f.Now)
		}
		d.c.Told[k] = t
	}
}

// repeat tells again what still needs the person.
func (d *decision) repeat() {
	if d.f.Stopped || d.holds() {
		return
	}
	for _, k := range slices.Sorted(maps.Keys(d.c.Told)) {
		t := d.c.Told[k]
		if t.Over || !d.f.Setting.AckedAt.Before(t.At) || d.f.Now.Sub(t.At) < repeats[min(t.Times, len(repeats))-1] {
			continue
		}
		r := notify.Row{ID: fmt.Sprintf("%s-r%d", t.Row, t.Times), Level: journal.Blocker, Title: "Still: " + t.Title, Text: t.Text, Incident: k}
		if t.Approval == 0 {
			r.Text = strings.TrimSpace(r.Text + "\n/ack ends these reminders.")
		}
		for _, a := range d.f.Asked {
			if t.Approval > 0 && a.N == t.Approval {
				r.Approval, r.Hint, r.Buttons = a.N, d.hint(a), notify.ApprovalButtons(d.f.Mission, a.Approval)
			}
		}
		t.At, t.Times = d.f.Now.UTC(), t.Times+1
		d.c.Told[k] = t
		d.add(r)
	}
}

// holds says whether milestones and repetitions wait.
func (d *decision) holds() bool { return d.f.Setting.Muted || d.f.Quiet.Holds(d.f.Now) }

// milestones tells those that waited, when it is time.
func (d *decision) milestones() {
	if len(d.c.Waiting) == 0 || d.f.Stopped {
		return
	}
	if d.c.StepEnded && !d.f.Now.Before(d.c.TellAfter) {
		d.c.Due = true
	}
	if !d.c.Due || d.holds() || d.f.Hold {
		return
	}
	last := d.c.Waiting[len(d.c.Waiting)-1]
	r := notify.Row{ID: fmt.Sprintf("%012d-%s", last.Offset, journal.Milestone), Level: journal.Milestone, Title: or(d.f.Steps, "Progress"), Text: d.list()}
	if d.f.Summary != "" {
		r.Text = d.f.Summary + "\n" + r.Text
	}
	if line := sentence(d.f.Money, d.f.Left, d.f.Next); line != "" {
		r.Text += "\n" + line
	}
	for _, w := range d.c.Waiting {
		r.Events = append(r.Events, w.Offset)
	}
	d.c.Waiting, d.c.StepEnded, d.c.Due = nil, false, false
	d.c.TellAfter = d.f.Now.Add(d.f.Every).UTC()
	d.add(r)
}

// line is a milestone in a list: what became of which piece of work, by its title.
func (d *decision) line(e journal.Event) string {
	title := d.f.Titles[e.Step]
	switch {
	case title == "":
	case e.Kind == journal.StepDone:
		return oneLine("done: "+title, maxLine)
	case e.Kind == journal.StepFailed:
		_, why, _ := strings.Cut(e.Text, "failed: ")
		return oneLine("failed: "+title+": "+why, maxLine)
	}
	return oneLine(e.Text, maxLine)
}

// list is the milestones that waited, a line each.
func (d *decision) list() string {
	var lines []string
	for i, w := range d.c.Waiting {
		if more := len(d.c.Waiting) - i; i == maxMilestone-1 && more > 1 {
			lines = append(lines, fmt.Sprintf("• and %d more", more))
			break
		}
		lines = append(lines, "• "+w.Text)
	}
	return strings.Join(lines, "\n")
}

func sentence(parts ...string) string {
	parts = slices.DeleteFunc(parts, func(s string) bool { return s == "" })
	return strings.Join(parts, " · ")
}

func or(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// split makes a title of the first line of a text.
func split(s string) (title, text string) {
	s = strings.TrimSpace(notify.Clean(s))
	title, text, _ = strings.Cut(s, "\n")
	if r := []rune(title); len(r) > maxTitle {
		i := strings.LastIndexAny(string(r[:maxTitle]), ".;:, ")
		if i < maxTitle/2 {
			i = len(string(r[:maxTitle])) - 1
		}
		title, text = title[:i+1], strings.TrimSpace(title[i+1:])+"\n"+text
	}
	return strings.TrimSpace(title), cut(strings.TrimSpace(text), maxText)
}

func oneLine(s string, max int) string {
	return cut(strings.Join(strings.Fields(notify.Clean(s)), " "), max)
}

// cut shortens a text to max characters.
func cut(s string, max int) string {
	s = notify.Clean(s)
	if r := []rune(s); len(r) > max {
		return strings.TrimSpace(string(r[:max-1])) + "…"
	}
	return s
}
