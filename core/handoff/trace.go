package handoff

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"example.com/AutoAgentProject/core/mission"
)

// Record is one handoff file where it was found.
type Record struct {
	Agent   string // whose mailbox
	Box     string // new, in_process, completed, failed of the inbox; outbox, sent, unsent of the sender
	Text    Text
	Attempt int    // of the claim, 0 without one
	Error   string // why it failed
}

// Leg is one handoff to one recipient.
type Leg struct {
	ID        string           `json:"id"`
	From      string           `json:"from"`
	To        string           `json:"to"`
	Task      string           `json:"task"` // the name it went under: a batch's first task stands for all of them
	Priority  string           `json:"priority"`
	Commit    string           `json:"commit"`
	State     string           `json:"state"` // undelivered, waiting, working, done, failed
	Created   time.Time        `json:"created_at,omitzero"`
	Enqueued  time.Time        `json:"enqueued_at,omitzero"`
	Dequeued  time.Time        `json:"dequeued_at,omitzero"`
	Completed time.Time        `json:"completed_at,omitzero"`
	Waited    mission.Duration `json:"waited"` // from its making until it was taken up, or until now
	Worked    mission.Duration `json:"worked"` // from then until it was finished, or until now
	Attempt   int              `json:"attempt,omitempty"`
	Broadcast bool             `json:"merge_only,omitempty"`
	Error     string           `json:"error,omitempty"`
	Document  string           `json:"document,omitempty"` // where what its agent left of the work is kept
}

// Way is the way of a task: who handed it to whom, and how long it lay and was worked on.
type Way struct {
	Task   string           `json:"task"`
	Legs   []Leg            `json:"handoffs"`
	Waited mission.Duration `json:"waited"`
	Worked mission.Duration `json:"worked"`
}

// Trace puts the way of a task together from what lies in the mailboxes. now ends what is still open.
func Trace(task string, records []Record, now time.Time) Way {
	w := Way{Task: task, Legs: []Leg{}}
	found := map[[2]string]bool{}
	for _, r := range records {
		if !r.Text.of(task) || r.Box == "outbox" || r.Box == "sent" || r.Box == "unsent" {
			continue
		}
		l := leg(r, r.Agent, now)
		found[[2]string{l.ID, l.To}] = true
		w.Legs = append(w.Legs, l)
	}
	for _, r := range records { // what nobody has yet
		if !r.Text.of(task) || r.Box != "outbox" && r.Box != "unsent" {
			continue
		}
		for _, to := range r.Text.Recipients() {
			l := leg(r, to, now)
			if !found[[2]string{l.ID, to}] {
				found[[2]string{l.ID, to}] = true
				w.Legs = append(w.Legs, l)
			}
		}
	}
	slices.SortStableFunc(w.Legs, func(a, b Leg) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID), a.Enqueued.Compare(b.Enqueued), cmp.Compare(a.To, b.To))
	})
	for _, l := range w.Legs {
		w.Waited += l.Waited
		w.Worked += l.Worked
	}
	return w
}

func leg(r Record, to string, now time.Time) Leg {
	at := func(header string) time.Time {
		t, _ := time.Parse(time.RFC3339Nano, r.Text.Or(header, ""))
		return t
	}
	l := Leg{ID: r.Text.Or("id", ""), From: r.Text.Or("from", "unknown"), To: to, Task: r.Text.Or("task", ""), Priority: r.Text.Priority(), Commit: r.Text.Or("commit", ""),
		Created: at("created_at"), Enqueued: at("enqueued_at"), Dequeued: at("dequeued_at"), Completed: at("completed_at"),
		Attempt: r.Attempt, Broadcast: r.Text.MergeOnly(), Error: r.Error}
	switch r.Box {
	case "new":
		l.State = "waiting"
	case "in_process":
		l.State = "working"
	case "completed":
		l.State = "done"
	case "outbox":
		l.State = "undelivered"
	default:
		l.State = "failed"
	}
	begin := l.Created
	if begin.IsZero() {
		begin = l.Enqueued
	}
	l.Waited = between(begin, cmp.Or(l.Dequeued, stillOpen(l.State == "waiting" || l.State == "undelivered", now)))
	l.Worked = between(l.Dequeued, cmp.Or(l.Completed, stillOpen(l.State == "working", now)))
	return l
}

func stillOpen(open bool, now time.Time) time.Time {
	if open {
		return now
	}
	return time.Time{}
}

// between is the time from a to b; an end that is not known, or lies before the beginning, makes it none.
func between(a, b time.Time) mission.Duration {
	if a.IsZero() || b.IsZero() || b.Before(a) {
		return 0
	}
	return mission.Duration(b.Sub(a))
}

// Carried are all tasks that a handoff stands for, if it is the forward of a batch.
func (t Text) Carried() (tasks []string) {
	if json.Unmarshal([]byte(t.Or("tasks", "")), &tasks) != nil {
		return nil
	}
	return tasks
}

// of says whether a handoff is a task's, in its own name or in that of its batch.
func (t Text) of(task string) bool {
	got, ok := t.Field("task")
	return ok && got == task || slices.Contains(t.Carried(), task)
}

// Hops is how many handoffs led to this one.
func (t Text) Hops() int {
	n, err := strconv.Atoi(t.Or("hops", "0"))
	if err != nil || n < 0 {
		return 0
	}
	return n
}
