package notify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"example.com/AutoAgentProject/core/files"
)

// Receipt is what a channel knows of a message, or of a piece of it, that arrived.
type Receipt struct {
	ID   int  // the channel's number for it; 0: none
	Done int  // how much of the text arrived now, in UTF-16 units
	More bool // there is more of it to send
}

// Channel carries messages to the person. Send carries the message, or the next piece of it from m.Done on, by one
// delivery that cannot be half done. It calls before each time when the other side can be reached and nothing has left
// yet; if that fails, nothing leaves. Its error is one of *Refused, *Uncertain, or anything else: then the message as it
// is can never be sent. No error holds a secret.
type Channel interface {
	Name() string
	Send(ctx context.Context, m Message, before func() error) (Receipt, error)
	Gap() time.Duration // between two messages
}

// Refused says that nothing arrived and that it can be tried again, not before After has passed if that is given.
type Refused struct {
	After time.Duration
	Err   error
}

func (e *Refused) Error() string { return e.Err.Error() }
func (e *Refused) Unwrap() error { return e.Err }

// Uncertain says that nobody knows whether it arrived.
type Uncertain struct{ Err error }

func (e *Uncertain) Error() string { return e.Err.Error() }
func (e *Uncertain) Unwrap() error { return e.Err }

// Health is health.json beside a channel's state: how sending goes.
type Health struct {
	Version  int       `json:"version"`
	Channel  string    `json:"channel"`
	NotUntil time.Time `json:"not_until,omitzero"` // nothing is sent before
	Failures int       `json:"failures"`           // in a row
	Trouble  string    `json:"trouble,omitempty"`  // why the last one failed
	LastSent time.Time `json:"last_sent,omitzero"`
}

// Courier sends what lies in outboxes over one channel. There is one for a channel at a time: the caller holds the lock.
type Courier struct {
	Channel  Channel
	Outboxes func() ([]Outbox, error) // all that use the channel
	Dir      string                   // where its Health lies
	Now      func() time.Time
	Log      *slog.Logger
}

// waits are the pauses after failures in a row.
const (
	firstWait = time.Second
	lastWait  = time.Minute
)

func wait(failures int) time.Duration { return min(firstWait<<min(max(failures-1, 0), 10), lastWait) }

// Step sends at most one message. moved says that there may be more to do at once; until is when to look again, zero
// for whenever something comes; left is how many messages are not done.
func (c *Courier) Step(ctx context.Context) (moved bool, until time.Time, left int, err error) {
	now := c.Now()
	rows, errs := c.pending(now)
	health := c.Health()
	next := Choose(rows, now)
	for _, r := range next.Park {
		r.State, r.DoneAt = Parked, now.UTC()
		errs = append(errs, save([]Row{r}))
	}
	left = len(rows) - len(next.Park)
	if len(next.Rows) == 0 || errors.Join(errs...) != nil {
		return len(next.Park) > 0, time.Time{}, left, errors.Join(errs...)
	}
	if now.Before(health.NotUntil) {
		return false, health.NotUntil, left, nil
	}
	batch := next.Rows[0].Batch
	if batch == "" || next.Rows[0].State == Queued && next.Rows[0].Done == 0 {
		batch = fmt.Sprintf("%s-%s-%d", next.Rows[0].Mission, next.Rows[0].ID, next.Rows[0].Attempts)
		if tag := next.Rows[0].box.Tag; tag != "" {
			batch += "@" + tag
		}
	}
	marked := slices.Clone(next.Rows)
	for i := range next.Rows {
		r := &marked[i]
		r.State, r.Batch, r.Attempts, r.Repeated = Unknown, batch, r.Attempts+1, r.Repeated || next.Again
	}
	// On disk before anything leaves: whoever finds it after a crash knows that it may have arrived. While nobody can be
	// reached nothing is written.
	var leaving atomic.Bool
	got, err := c.Channel.Send(ctx, Compose(next.Rows, next.Again), func() error {
		if leaving.Swap(true) {
			return nil
		}
		return save(marked)
	})
	if leaving.Load() || err == nil {
		next.Rows = marked
	}
	now = c.Now()
	failed := func(after time.Duration) {
		health.Failures++
		health.Trouble = Clean(err.Error())
		health.NotUntil = now.Add(max(after, wait(health.Failures))).UTC()
	}
	var refused *Refused
	var uncertain *Uncertain
	for i := range next.Rows {
		r := &next.Rows[i]
		r.Error = ""
		if err != nil {
			r.Error = Clean(err.Error())
		}
		switch {
		case err == nil && got.More:
			r.State, r.Done, r.Repeated = Queued, r.Done+got.Done, false
		case err == nil:
			r.State, r.DoneAt, r.MessageID = Sent, now.UTC(), got.ID
		case errors.As(err, &uncertain):
		case errors.As(err, &refused):
			// Nothing arrived by this try; what an earlier one did is as unknown as before.
			r.State = Queued
			if next.Again {
				r.State, r.Repeated = Unknown, false
			}
		default:
			r.State, r.DoneAt = Parked, now.UTC()
		}
	}
	switch {
	case err == nil:
		health = Health{Version: Version, LastSent: now.UTC(), NotUntil: now.Add(c.Channel.Gap()).UTC()}
	case refused != nil:
		failed(refused.After)
	default:
		failed(0)
	}
	if err != nil {
		c.Log.Warn("a message was not sent", "message", next.Rows[0].Label, "err", err)
	} else {
		c.Log.Info("a message was sent", "message", next.Rows[0].Label, "rows", len(next.Rows), "more", got.More)
	}
	if refused == nil || leaving.Load() {
		err = save(next.Rows)
	} else { // nothing left: of each row only the first failed try is written down, for status
		first := slices.DeleteFunc(slices.Clone(next.Rows), func(r Row) bool { return r.Attempts > 0 })
		for i := range first {
			first[i].Attempts = 1
		}
		err = save(first)
	}
	err = errors.Join(err, c.saveHealth(health))
	if next.Rows[0].State == Sent || next.Rows[0].State == Parked {
		left -= len(next.Rows)
	}
	return true, health.NotUntil, left, err
}

// Run sends until ctx ends, or, with leave, until that says so and nothing is left.
func (c *Courier) Run(ctx context.Context, leave func() bool) error {
	const pause = time.Second
	for {
		moved, until, left, err := c.Step(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			c.Log.Error("messages cannot be sent", "err", err)
		}
		if leave != nil && left == 0 && leave() {
			return nil
		}
		wait := pause
		if moved && err == nil {
			wait = min(max(until.Sub(c.Now()), 0), pause)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
}

// pending are the open rows of all outboxes.
func (c *Courier) pending(now time.Time) (all []Row, errs []error) {
	boxes, err := c.Outboxes()
	if err != nil {
		return nil, []error{err}
	}
	for _, o := range boxes {
		rows, bad, err := o.Pending(now)
		if err == nil {
			rows, err = o.Tidy(rows)
		}
		if err != nil { // one mission's trouble holds up no other
			c.Log.Warn("an outbox cannot be read", "dir", o.Dir, "err", err)
		}
		for _, name := range bad {
			c.Log.Warn("a message cannot be read and was set aside", "dir", o.Dir, "file", name)
		}
		for _, r := range rows {
			r.box = o
			all = append(all, r)
		}
	}
	return all, nil
}

func save(rows []Row) error {
	var errs []error
	for _, r := range rows {
		errs = append(errs, r.box.Save(r))
	}
	return errors.Join(errs...)
}

// Health reads how sending goes; what cannot be read is forgotten.
func (c *Courier) Health() Health { return ReadHealth(c.Dir) }

// ReadHealth reads how sending goes from a channel's folder.
func ReadHealth(dir string) Health {
	var h Health
	b, err := files.Read(filepath.Join(dir, "health.json"), maxRow)
	if err != nil || json.Unmarshal(b, &h) != nil || h.Version != Version {
		return Health{Version: Version}
	}
	return h
}

func (c *Courier) saveHealth(h Health) error {
	h.Version, h.Channel = Version, c.Channel.Name()
	b, err := encode(h)
	if err != nil {
		return err
	}
	if err := files.MakeDir(c.Dir, 0o700); err != nil {
		return err
	}
	return files.Replace(filepath.Join(c.Dir, "health.json"), b, 0o600)
}
