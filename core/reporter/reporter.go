// Package reporter is the tick that turns events into messages for the person: milestones, blockers and the end, each
// once, in a durable outbox. Which channel carries them is another matter; without one they stay in the log.
package reporter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"example.com/AutoAgentProject/core/files"
	"example.com/AutoAgentProject/core/journal"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/tick"
)

// Message is one file in notify/new.
type Message struct {
	Version int           `json:"version"`
	ID      string        `json:"id"`
	At      time.Time     `json:"at"`
	Level   journal.Level `json:"level"`
	Mission string        `json:"mission"`
	Text    string        `json:"text"`
}

// Cursor is notify/cursor.json: how far the events were turned into messages, and which incidents were told.
type Cursor struct {
	Version int             `json:"version"`
	Offset  int64           `json:"offset"`
	Told    map[string]bool `json:"told,omitempty"`
}

// Reporter is one tick of the reporter.
type Reporter struct{ *tick.Tick }

// Pick returns what of the events is worth a message; an incident is told once. Pure.
func Pick(events []journal.Event, told map[string]bool) []journal.Event {
	var out []journal.Event
	for _, e := range events {
		if e.Level == journal.Routine || e.Level == "" {
			continue
		}
		if e.Incident != "" {
			if told[e.Incident] {
				continue
			}
			told[e.Incident] = true
		}
		out = append(out, e)
	}
	return out
}

// Once turns new events into messages. It works after the tombstone too: the end is always told.
func (r Reporter) Once(ctx context.Context) (tick.Outcome, error) {
	dir := filepath.Join(r.Store.Notify(), "new")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return tick.Idle, err
	}
	cur := Cursor{Version: mission.Version}
	if err := r.Store.Load("notify/cursor.json", &cur); err != nil && !errors.Is(err, fs.ErrNotExist) {
		// From the beginning: what was told has its message already.
		if _, err := files.SetAside(filepath.Join(r.Store.Notify(), "cursor.json"), r.Now()); err != nil {
			return tick.Idle, err
		}
		cur = Cursor{Version: mission.Version}
	}
	if cur.Told == nil {
		cur.Told = map[string]bool{}
	}
	events, next, bad, err := r.Store.Journal().Read(cur.Offset)
	if err != nil {
		return tick.Idle, err
	}
	if bad > 0 {
		r.Log.Warn("lines of events.jsonl are no events", "count", bad)
	}
	if next == cur.Offset {
		return tick.Idle, nil
	}
	for _, e := range Pick(events, cur.Told) {
		// The name holds where the event stands, so that a tick that died before the cursor moved repeats nothing.
		id := fmt.Sprintf("%012d-%s", e.Offset, e.Level)
		b, err := json.MarshalIndent(Message{mission.Version, id, e.At, e.Level, r.Mission.ID, e.Text}, "", "  ")
		if err != nil {
			return tick.Idle, err
		}
		err = files.Publish(filepath.Join(dir, id+".json"), append(b, '\n'), 0o600)
		if errors.Is(err, files.ErrExists) {
			continue
		}
		if err != nil {
			return tick.Idle, err
		}
		r.Log.Info("there is a message to the person: "+e.Text, "event", "told", "file", id)
	}
	cur.Offset = next
	if err := r.Store.Save("notify/cursor.json", cur); err != nil {
		return tick.Idle, err
	}
	r.Line(ctx, "idle", "", "", "told everything up to %s", r.Now().UTC().Format("15:04 MST"))
	return tick.Moved, nil
}
