package queue

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"example.com/AutoAgentProject/core/files"
	"example.com/AutoAgentProject/core/handoff"
)

// Entry is one handoff in a mailbox.
type Entry struct {
	Agent    string       // whose mailbox
	Box      string       // new, in_process, completed, failed; outbox, sent, unsent
	Batch    string       // name of the batch it is in
	Path     string       // absolute
	Text     handoff.Text // empty if it cannot be read
	Claim    *Claim       // of what is in process, in a mission
	Receipts []Receipt    // of what was sent, in a mission
	Error    string       // why it failed, or why it cannot be read
}

// Name is the file's name.
func (e Entry) Name() string { return filepath.Base(e.Path) }

// Record is the entry as a task's way is put together from.
func (e Entry) Record() handoff.Record {
	r := handoff.Record{Agent: e.Agent, Box: e.Box, Text: e.Text, Error: e.Error}
	if e.Claim != nil {
		r.Attempt = e.Claim.Attempt
	}
	return r
}

// Entries lists all that lies in an agent's mailboxes, box by box; it changes nothing. A box that is not there is empty.
func (q Queue) Entries(agent string) ([]Entry, error) {
	boxes := []Entry{
		{Box: "new", Path: q.inbox(agent, "new")}, {Box: "in_process", Path: q.inbox(agent, "in_process")},
		{Box: "completed", Path: q.inbox(agent, "completed")}, {Box: "failed", Path: q.inbox(agent, "failed")},
		{Box: "outbox", Path: q.outbox(agent, "new")}, {Box: "sent", Path: q.outbox(agent, "sent")},
		{Box: "unsent", Path: q.outbox(agent, "failed")},
	}
	if q.swarm() { // one failed/ for both: it is the sender's
		boxes = slices.Delete(boxes, 3, 4)
	}
	var out []Entry
	for _, box := range boxes {
		dirs := append([]string{box.Path}, batches(box.Path)...)
		for _, dir := range dirs {
			names, err := list(dir)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return nil, err
			}
			for _, name := range names {
				e := Entry{Agent: agent, Box: box.Box, Path: filepath.Join(dir, name)}
				if dir != box.Path {
					e.Batch = filepath.Base(dir)
				}
				if q.fill(&e, dir); e.Text == "" && !exists(e.Path) {
					continue // moved meanwhile: it is seen in its next box, or was in the one before
				}
				out = append(out, e)
			}
		}
	}
	return out, nil
}

// fill reads what there is to an entry.
func (q Queue) fill(e *Entry, dir string) {
	t, err := text(e.Path)
	e.Text = t
	if err != nil {
		e.Error = err.Error()
	}
	unit := e.Path
	if e.Batch != "" {
		unit = dir
	}
	if b, err := files.Read(unit+".error", handoff.MaxSize); err == nil {
		e.Error = strings.TrimSpace(string(b))
	}
	if q.swarm() {
		return
	}
	if e.Box == "in_process" && exists(unit+".claim") {
		if c, err := peekClaim(unit); err == nil {
			e.Claim = &c
		}
	}
	if e.Box == "sent" || e.Box == "outbox" {
		e.Receipts, _ = readReceipts(e.Path)
	}
}

// SentSince returns the work that an agent sent from a time on.
func (q Queue) SentSince(agent string, since time.Time) ([]handoff.Sent, error) {
	var out []handoff.Sent
	seen := map[string]bool{}
	for _, box := range []string{"new", "sent"} { // in the order in which they move
		dir := q.outbox(agent, box)
		names, err := list(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if id := handoff.IDOf(name); seen[name] || id != "" && id < handoff.Stamp(since) {
				continue // by its name it is older; there may be very many
			}
			t, err := text(filepath.Join(dir, name))
			if err != nil || t.Or("type", "") != handoff.GitHandoff {
				continue
			}
			at, err := time.Parse(time.RFC3339Nano, t.Or("created_at", ""))
			if err != nil || at.Before(since) {
				continue
			}
			seen[name] = true
			out = append(out, handoff.Sent{Task: t.Or("task", ""), To: t.Recipients()})
		}
	}
	return out, nil
}

// ErrNotFailed means that there is nothing of that name to take up again.
var ErrNotFailed = errors.New("nothing of this name failed")

// Requeue takes up again what failed: what an agent could not do goes back into its new/, what could not be delivered
// into its outbox. It begins anew, without attempts. What is still malformed is refused and stays. The new paths are
// returned. Repeating it after a death is harmless.
func (q Queue) Requeue(agent, name string) ([]string, error) {
	if err := q.makeInbox(agent, "new", "in_process", "completed"); err != nil {
		return nil, err
	}
	if err := q.makeOutbox(agent); err != nil {
		return nil, err
	}
	unlockOut, err := q.lockOutbox(agent)
	if err != nil {
		return nil, err
	}
	defer unlockOut()
	unlockIn, err := q.lockInbox(agent)
	if err != nil {
		return nil, err
	}
	defer unlockIn()
	if strings.ContainsRune(name, '/') {
		return nil, ErrNotFailed
	}
	if !q.swarm() {
		from := filepath.Join(q.inbox(agent, "failed"), name)
		if strings.HasPrefix(name, handoff.BatchPrefix) && realFolder(from) == nil {
			return q.requeueBatch(agent, from)
		}
		if exists(from) {
			to, err := q.requeue(from, q.inbox(agent, "new"), agent)
			return []string{to}, err
		}
	}
	from := filepath.Join(q.outbox(agent, "failed"), name)
	if !exists(from) {
		return nil, ErrNotFailed
	}
	to, err := q.requeue(from, q.outbox(agent, "new"), "")
	return []string{to}, err
}

// requeue moves one file. recipient: whose inbox it is; empty: an outbox.
func (q Queue) requeue(from, dir, recipient string) (string, error) {
	if !q.swarm() {
		e, err := read(from)
		if err == nil && recipient != "" && !e.IsFor(recipient) {
			err = fmt.Errorf("it is addressed to %q", e.Get("recipient"))
		}
		if err != nil {
			return "", err
		}
	}
	t, err := text(from)
	if err != nil {
		return "", err
	}
	if recipient != "" {
		clear := t.Without("dequeued_at").Without("completed_at")
		if err := files.Replace(from, []byte(clear), q.mode()); err != nil {
			return "", err
		}
	}
	to := filepath.Join(dir, filepath.Base(from))
	if err := files.Move(from, to); err != nil {
		return "", err
	}
	return to, files.Remove(from + ".error")
}

// requeueBatch puts the handoffs of a batch back, one by one.
func (q Queue) requeueBatch(agent, dir string) ([]string, error) {
	names, err := list(dir)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, name := range names {
		to, err := q.requeue(filepath.Join(dir, name), q.inbox(agent, "new"), agent)
		if err != nil {
			return out, err
		}
		out = append(out, to)
	}
	return out, errors.Join(files.Remove(dir), files.Remove(dir+".error"))
}
