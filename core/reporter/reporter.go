// Package reporter is the tick that turns what happened into messages for the person: few, useful, each once, in a durable
// outbox. It reads and decides; the poller carries the messages, and without a channel they stay where they are.
package reporter

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"example.com/AutoAgentProject/core/files"
	"example.com/AutoAgentProject/core/journal"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/notify"
	"example.com/AutoAgentProject/core/store"
	"example.com/AutoAgentProject/core/tick"
)

// Reporter is one tick of the reporter.
type Reporter struct{ *tick.Tick }

const cursorName = "notify/cursor.json"

// Once turns what is new into messages. It works after the tombstone too: the end is always told.
func (r Reporter) Once(ctx context.Context) (tick.Outcome, error) {
	box := notify.Outbox{Dir: r.Store.Notify()}
	if err := box.Make(); err != nil {
		return tick.Idle, err
	}
	cur, covered, err := r.cursor(box)
	if err != nil {
		return tick.Idle, err
	}
	for _, row := range cur.Rows { // an earlier tick may have died before they were there
		if err := box.Put(row); err != nil {
			return tick.Idle, err
		}
	}
	if err := r.Store.Expire(r.Now()); err != nil {
		return tick.Idle, err
	}
	events, offset, bad, err := r.Store.Journal().Read(cur.Offset)
	if err != nil {
		return tick.Idle, err
	}
	if bad > 0 {
		r.Log.Warn("lines of events.jsonl are no events", "count", bad)
	}
	facts, err := r.facts(ctx, box.Setting())
	if err != nil {
		return tick.Idle, err
	}
	facts.Covered = covered
	next := Decide(cur, events, facts)
	if r.Mission.Summaries && !facts.Stopped {
		if next, err = r.withSummary(cur, next, events, facts); err != nil {
			return tick.Idle, err
		}
	}
	next.Version, next.Offset = mission.Version, offset
	if covered == nil && same(cur, next) {
		return tick.Idle, nil
	}
	// The decision is on disk before its messages are: whoever dies in between says nothing twice and leaves nothing out.
	if err := r.Store.Save(cursorName, next); err != nil {
		return tick.Idle, err
	}
	for _, row := range next.Rows {
		if err := box.Put(row); err != nil {
			return tick.Idle, err
		}
		r.Log.Info("there is a message to the person: "+row.Title, "event", "told", "file", row.ID)
	}
	if offset == cur.Offset && len(next.Rows) == 0 {
		return tick.Idle, nil
	}
	r.Line(ctx, "idle", "", "", "told everything up to %s", r.Now().UTC().Format("15:04 MST"))
	return tick.Moved, nil
}

// withSummary lets milestones that are due wait for the sentence about them, not for long; nothing else waits.
func (r Reporter) withSummary(cur, next Cursor, events []journal.Event, f Facts) (Cursor, error) {
	i := slices.IndexFunc(next.Rows, func(x notify.Row) bool { return x.Level == journal.Milestone })
	if i < 0 {
		return next, nil
	}
	row := next.Rows[i]
	key := fmt.Sprint(row.Events[0])
	s, err := r.Store.Summary()
	if err != nil {
		return next, err
	}
	if s.Key != key {
		s = store.Summary{Key: key, Text: row.Title + "\n" + row.Text, At: r.Now().UTC()}
		if err := r.Store.SetSummary(s); err != nil {
			return next, err
		}
		r.Wake("manager")
	}
	f.Summary, f.Hold = s.Sentence, !s.Done && r.Now().Sub(s.At) < store.SummaryWait
	return Decide(cur, events, f), nil
}

// same says whether a decision changed nothing; rows that were made before are no change.
func same(old, next Cursor) bool {
	old.Rows = nil
	if len(old.Told) == 0 {
		old.Told = map[string]Incident{}
	}
	old.TellAfter = next.TellAfter
	return len(next.Rows) == 0 && reflect.DeepEqual(old, next)
}

// cursor reads the cursor. Where it is missing or damaged everything is looked at again, and covered holds the events that
// have a message already.
func (r Reporter) cursor(box notify.Outbox) (Cursor, map[int64]bool, error) {
	var cur Cursor
	err := r.Store.Load(cursorName, &cur)
	if err == nil {
		return cur, nil, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		if files.Passing(err) {
			return cur, nil, err
		}
		if _, err := files.SetAside(filepath.Join(r.Store.Notify(), "cursor.json"), r.Now()); err != nil {
			return cur, nil, err
		}
	}
	cur = Cursor{Version: mission.Version}
	covered := map[int64]bool{}
	rows, _, err := box.Pending(r.Now())
	for _, s := range []notify.State{notify.Sent, notify.Parked} {
		done, derr := box.Done(s, "")
		rows, err = append(rows, done...), errors.Join(err, derr)
	}
	for _, row := range rows {
		for _, e := range row.Events {
			covered[e] = true
		}
		if i := strings.LastIndexByte(row.Label, '-'); i >= 0 {
			if n, err := strconv.Atoi(row.Label[i+1:]); err == nil {
				cur.Seq = max(cur.Seq, n)
			}
		}
		if row.Level == journal.Milestone && row.At.Add(r.every()).After(cur.TellAfter) {
			cur.TellAfter = row.At.Add(r.every())
		}
	}
	return cur, covered, err
}

func (r Reporter) every() time.Duration {
	if r.Mission.TellEvery > 0 {
		return time.Duration(r.Mission.TellEvery)
	}
	return DefaultEvery
}

// facts gathers what the messages say besides the events. What cannot be read is left out of them: somebody else says
// what is damaged.
func (r Reporter) facts(ctx context.Context, set notify.Setting) (Facts, error) {
	now := r.Now()
	f := Facts{Now: now, Start: r.Mission.CreatedAt, Mission: r.Mission.ID, Every: r.every(), Setting: set}
	var err error
	if f.Quiet, err = notify.ParseQuiet(r.Mission.QuietHours); err != nil {
		r.Log.Warn("quiet hours", "err", err)
	}
	if stop, err := r.Store.Stopped(); err != nil || stop != nil {
		f.Stopped = true
	}
	if f.Pauses, err = r.Store.Pauses(now); err != nil {
		r.Log.Warn("pauses", "err", err)
	}
	if f.Asked, err = r.Store.Approvals(); err != nil {
		return f, err
	}
	r.standing(ctx, &f)
	f.End = func(e journal.Event) (string, string) { return r.end(e) }
	return f, nil
}
