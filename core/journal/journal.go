// Package journal is events.jsonl: what happened in a mission, one JSON line each, for people, the reporter and the
// dashboard. It is data, not a log of the program. Nothing decides by it; a torn last line is skipped.
package journal

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"example.com/AutoAgentProject/core/files"
)

// Level is whom an event is for.
type Level string

const (
	Routine   Level = "routine"   // the record only
	Milestone Level = "milestone" // worth a line to the person, bundled
	Blocker   Level = "blocker"   // the person is needed, at once
	End       Level = "end"       // the mission stopped
)

// The kinds of events. Each is named in the past tense.
const (
	MissionStarted  = "mission_started"
	PlanAccepted    = "plan_accepted"
	PlanRefused     = "plan_refused"
	StepAssigned    = "step_assigned"
	MailReceived    = "mail_received"
	StepReturned    = "step_returned"
	DocumentRefused = "document_refused" // an agent was told what is wrong with its document, or that it is missing
	DocumentMade    = "document_made"    // code made one of the agent's last answer
	DraftRefused    = "draft_refused"    // an agent was told what is wrong with a draft of a note, or it was not sent
	MailOld         = "mail_old"         // something lies unread in an inbox and nobody takes it
	StepDone        = "step_done"
	StepFailed      = "step_failed"
	RunStarted      = "run_started"
	RunEnded        = "run_ended"
	VerifyFailed    = "verify_failed"
	VerifyPassed    = "verify_passed"
	BudgetCrossed   = "budget_crossed"
	Paused          = "paused"
	Unpaused        = "unpaused"
	Repaired        = "repaired"
	StateSetAside   = "state_set_aside"
	MissionStopped  = "mission_stopped"
	MissionResumed  = "mission_resumed"
	LimitRaised     = "limit_raised"
	MissionFinished = "mission_finished"
	UnpricedModel   = "unpriced_model"
	ApprovalAsked   = "approval_asked"
	ApprovalDecided = "approval_decided"
	PersonTold      = "person_told"
	MemoryRanOut    = "memory_ran_out"
	WallFailed      = "wall_failed"
	Intervened      = "intervened"   // a run that got nowhere was helped on
	StepBlocked     = "step_blocked" // a step waits for a person
	AgentPaused     = "agent_paused" // an agent that only fails does nothing more
	EventsLeftOut   = "events_left_out"
)

// Event is one line.
type Event struct {
	Version int       `json:"version"`
	At      time.Time `json:"at"`
	Kind    string    `json:"kind"`
	Level   Level     `json:"level"`
	Agent   string    `json:"agent,omitempty"`
	Step    string    `json:"step,omitempty"`
	Run     string    `json:"run,omitempty"`
	Text    string    `json:"text"` // one sentence for a person
	// Incident names a condition that can be noticed many times; a blocker is told once per incident.
	Incident string `json:"incident,omitempty"`
	// Over says that the condition of Incident has passed: the next time it is told again.
	Over bool `json:"over,omitempty"`

	// Offset is where the event's line begins in the file; only Read sets it.
	Offset int64 `json:"-"`
}

// Journal is one mission's events.
type Journal struct{ Path string }

// Add appends an event. Version and a missing level are filled in.
func (j Journal) Add(e Event) error {
	e.Version = 1
	e.At = e.At.UTC()
	if e.Level == "" {
		e.Level = Routine
	}
	if e.Level == Routine && !e.Over {
		if fi, err := os.Stat(j.Path); err == nil && fi.Size() >= maxSize {
			return j.full(e)
		}
	}
	return j.append(e)
}

// maxSize is how long the file may get, in bytes: then routine events are left out, and a mark says so. Readers go by offsets,
// so nothing is taken out of it. What a person has to know is always written.
const maxSize = 32 << 20

// full writes the mark, once in a megabyte.
func (j Journal) full(e Event) error {
	f, err := os.Open(j.Path)
	if err != nil {
		return err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return err
	}
	end := make([]byte, min(fi.Size(), 1<<20))
	if _, err := f.ReadAt(end, fi.Size()-int64(len(end))); err != nil && err != io.EOF {
		return err
	}
	if bytes.Contains(end, []byte(`"kind":"`+EventsLeftOut+`"`)) {
		return nil
	}
	return j.append(Event{Version: 1, At: e.At, Kind: EventsLeftOut, Level: Routine, Text: fmt.Sprintf("the record has %d MB; routine events are left out from here on", maxSize>>20)})
}

func (j Journal) append(e Event) error {
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	return files.Append(j.Path, line)
}

// Read returns the events from a byte offset on and the offset after the last whole line. Lines that are no events
// are skipped and counted.
func (j Journal) Read(offset int64) (events []Event, next int64, bad int, err error) {
	f, err := os.Open(j.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, offset, 0, nil
	}
	if err != nil {
		return nil, offset, 0, err
	}
	defer f.Close()
	if _, err := f.Seek(offset, io.SeekStart); err != nil {
		return nil, offset, 0, err
	}
	r := bufio.NewReader(f)
	next = offset
	for {
		line, err := r.ReadBytes('\n')
		if err == io.EOF {
			return events, next, bad, nil
		}
		if err != nil {
			return events, next, bad, err
		}
		e := Event{Offset: next}
		next += int64(len(line))
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		if json.Unmarshal(line, &e) != nil || e.Kind == "" {
			bad++
			continue
		}
		events = append(events, e)
	}
}
