package view

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"example.com/AutoAgentProject/core/handoff"
	"example.com/AutoAgentProject/core/journal"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/store"
)

// Handoff is one handoff to one agent, with its task.
type Handoff struct {
	Task string `json:"task"`
	handoff.Leg
}

// handoffs lists what lies in the mailboxes of a mission, oldest first. What cannot be read hides nothing else.
func handoffs(st *store.Store, roster []mission.Agent, now time.Time) ([]Handoff, error) {
	out := []Handoff{}
	records, err := recordsOf(st, roster)
	var tasks []string
	for _, r := range records {
		if t := r.Text.Or("task", ""); t != "" && !slices.Contains(tasks, t) {
			tasks = append(tasks, t)
		}
	}
	for _, t := range tasks {
		for _, l := range handoff.Trace(t, records, now).Legs {
			out = append(out, Handoff{t, l})
		}
	}
	slices.SortStableFunc(out, func(x, y Handoff) int { return x.Created.Compare(y.Created) })
	return out, err
}

func recordsOf(st *store.Store, roster []mission.Agent) ([]handoff.Record, error) {
	var records []handoff.Record
	var errs []error
	for _, a := range roster {
		list, err := st.Queue().Entries(a.Name)
		errs = append(errs, err)
		for _, e := range list {
			records = append(records, e.Record())
		}
	}
	return records, errors.Join(errs...)
}

// Task is one step of a plan with its whole way.
type Task struct {
	Mission    string          `json:"mission"`
	Step       Step            `json:"step"`
	Brief      string          `json:"brief,omitempty"`
	Acceptance []string        `json:"acceptance"`
	Verify     string          `json:"verify,omitempty"`
	Summary    string          `json:"summary,omitempty"`
	Commit     string          `json:"commit,omitempty"`
	Merge      string          `json:"merge,omitempty"`
	Reasons    []string        `json:"reasons"` // why it came back or failed, with the output of its verify, oldest first
	Way        handoff.Way     `json:"way"`
	Runs       []Run           `json:"runs"`
	Events     []journal.Event `json:"events"`
	Warnings   []string        `json:"warnings"`
}

// seenEvents is how far back a task's page looks in the events of its mission.
const seenEvents = 2000

// Task reads one step of a mission's plan, or what the mailboxes know of a task that is none.
func (r *Reader) Task(ctx context.Context, id, step string) (Task, error) {
	v, st, m, err := r.one(ctx, id)
	if err != nil {
		return Task{}, err
	}
	now := r.now()
	t := Task{Mission: id, Acceptance: []string{}, Reasons: []string{}, Runs: []Run{}, Events: []journal.Event{}, Warnings: []string{}}
	bad := func(what string, err error) {
		if err != nil {
			t.Warnings = append(t.Warnings, what+": "+err.Error())
		}
	}
	i := slices.IndexFunc(v.Steps, func(s Step) bool { return s.ID == step })
	if p, err := st.Plan(); err != nil {
		bad("plan.json", err)
	} else if s := p.Step(step); s != nil && i >= 0 {
		t.Step, t.Brief, t.Verify, t.Summary, t.Commit, t.Merge = v.Steps[i], s.Brief, s.Verify, s.Summary, s.Commit, s.Merge
		t.Acceptance, t.Reasons = append(t.Acceptance, s.Acceptance...), append(t.Reasons, s.Reasons...)
	}
	records, err := recordsOf(st, m.Roster)
	bad("handoffs", err)
	t.Way = handoff.Trace(step, records, now)
	if t.Step.ID == "" {
		if len(t.Way.Legs) == 0 {
			return t, ErrNotFound
		}
		t.Step = Step{ID: step, Title: step, State: "unknown"}
	}
	entries, _, err := st.Ledger().Entries()
	bad("ledger", err)
	spent := byRun(entries)
	runs, err := readRuns(st, v, m.Roster, 0, 5*ShownRuns, now, spent)
	bad("runs", err)
	for _, x := range runs.Runs {
		if x.Step == step {
			t.Runs = append(t.Runs, x)
		}
	}
	slices.Reverse(t.Runs)
	events, _, err := st.Journal().Before(-1, seenEvents)
	bad("events.jsonl", err)
	for _, e := range events {
		if e.Step == step {
			t.Events = append(t.Events, e)
		}
	}
	for n := range t.Reasons {
		t.Reasons[n] = strings.TrimSpace(t.Reasons[n])
	}
	clean(&t)
	return t, nil
}
