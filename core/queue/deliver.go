// Package queue is the only way work moves between agents: envelopes in SwarmForge's file format, in the folders
// outbox/{new,sent,failed} of the sender and inbox/{new,in_process,completed,failed} of the recipient. Sending,
// delivering, claiming and finishing survive a kill between any two steps: repeated, they do what is left to do.
package queue

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"example.com/AutoAgentProject/core/files"
	"example.com/AutoAgentProject/core/handoff"
	"example.com/AutoAgentProject/core/mission"
)

// Deliver brings everything in an agent's outbox to its recipients and returns who got something new. All recipients
// are checked before the first copy; each copy has a receipt; whoever got it once, wherever it is now, gets none again.
// What cannot be delivered now stays in the outbox and holds up nobody else's.
func (q Queue) Deliver(from string, now time.Time) (woken []string, err error) {
	if err := q.sound(from, q.outbox(from, "new"), q.outbox(from, "sent"), q.outbox(from, "failed")); err != nil {
		return nil, err
	}
	unlock, err := q.lockOutbox(from)
	if err != nil {
		return nil, err
	}
	defer unlock()
	names, err := list(q.outbox(from, "new"))
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, name := range names {
		got, err := q.deliver(from, name, now)
		errs = append(errs, err)
		for _, to := range got {
			if to != from && !slices.Contains(woken, to) { // mail to oneself wakes nobody
				woken = append(woken, to)
			}
		}
	}
	return woken, errors.Join(errs...)
}

// deliver brings one envelope to those who have no receipt yet.
func (q Queue) deliver(from, name string, now time.Time) (got []string, err error) {
	path := filepath.Join(q.outbox(from, "new"), name)
	e, err := read(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case unread(err):
		return nil, err
	case err == nil && e.Get("from") != from:
		err = fmt.Errorf("header from says %q in the outbox of %s", e.Get("from"), from)
	case err == nil:
		for _, to := range e.Recipients() {
			if mission.CheckAgent(to) != nil || !exists(q.inbox(to, "new")) {
				err = fmt.Errorf("there is no recipient %q", to)
			} else if linked := q.sound(to, q.inbox(to, "new")); errors.Is(linked, errLink) {
				return nil, linked // nobody gets a copy before a person looked at it
			}
		}
	}
	if err != nil {
		return nil, q.quarantine(path, q.outbox(from, "failed"), err)
	}
	receipts, err := readReceipts(path)
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, to := range e.Recipients() {
		if slices.ContainsFunc(receipts, func(r Receipt) bool { return r.Recipient == to }) {
			continue
		}
		if err := q.hand(to, name, e, now); err != nil {
			errs = append(errs, err)
			continue
		}
		got = append(got, to)
		receipts = append(receipts, Receipt{to, now.UTC()})
		if err := writeReceipts(path, receipts); err != nil {
			return got, errors.Join(append(errs, err)...)
		}
	}
	if len(errs) > 0 {
		return got, errors.Join(errs...) // it stays in the outbox: the next tick delivers the rest
	}
	for _, end := range []string{".receipts", ""} { // the envelope last: as long as it is here, this is repeated
		err := files.Move(path+end, filepath.Join(q.outbox(from, "sent"), name+end))
		if errors.Is(err, files.ErrExists) {
			err = files.Remove(path + end)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return got, err
		}
	}
	return got, nil
}

// hand gives one recipient its copy, unless it got the handoff of this id before. The copy comes before the mark: after
// a death between them it is found by its name.
func (q Queue) hand(to, name string, e handoff.Envelope, now time.Time) error {
	id := e.Get("id")
	if got, err := q.delivered(to, id); err != nil || got {
		return err
	}
	if q.Where(to, name) == "" {
		copy := e.ForRecipient(to, now)
		if err := files.Publish(filepath.Join(q.inbox(to, "new"), name), copy.Bytes(), q.mode()); err != nil && !errors.Is(err, files.ErrExists) {
			return err
		}
	}
	if !exists(q.inbox(to, "ids")) { // made by an earlier version
		if err := q.makeInbox(to, "ids"); err != nil {
			return err
		}
	}
	return files.Replace(q.idMark(to, id), []byte(name+"\n"), q.mode())
}
