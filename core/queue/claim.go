package queue

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"example.com/AutoAgentProject/core/files"
	"example.com/AutoAgentProject/core/handoff"
	"example.com/AutoAgentProject/core/proc"
)

// MaxAttempts is how many ticks may die over one handoff before it goes to failed/.
const MaxAttempts = 3

// Claim is <envelope>.claim, or <batch>.claim, beside what lies in in_process: who holds it, and the how-manieth try this
// is.
type Claim struct {
	Owner   proc.ID   `json:"owner"`
	Run     string    `json:"run,omitempty"` // the run that works on it, where there is one
	Attempt int       `json:"attempt"`
	At      time.Time `json:"at"`
}

// Held is a handoff in the hands of its agent.
type Held struct {
	Name     string
	Envelope handoff.Envelope
	Claim    Claim
}

// ErrBusy means that a living process holds the agent's work.
var ErrBusy = errors.New("another tick holds it")

// Claim takes the agent's next work for owner: what lies in in_process first, with one attempt more, else the first of
// new/ by name. Malformed files and handoffs whose third holder died go to failed/, once; they are returned in dead.
// held is nil if there is nothing to do. A batch in process is somebody else's: ErrBusy.
func (q Queue) Claim(agent string, owner proc.ID, now time.Time) (held *Held, dead []string, err error) {
	if err := q.sound(agent, q.inbox(agent, "new"), q.inbox(agent, "in_process"), q.inbox(agent, "failed")); err != nil {
		return nil, nil, err
	}
	unlock, err := q.lockInbox(agent)
	if err != nil {
		return nil, nil, err
	}
	defer unlock()
	if len(batches(q.inbox(agent, "in_process"))) > 0 {
		return nil, nil, fmt.Errorf("a batch is in process: %w", ErrBusy)
	}
	by := Holder{Owner: owner}
	names, err := list(q.inbox(agent, "in_process"))
	if err != nil {
		return nil, nil, err
	}
	if err := q.sweepClaims(agent, names); err != nil {
		return nil, nil, err
	}
	for _, name := range names {
		held, err := q.resume(agent, name, by, now)
		if err != nil || held != nil {
			return held, dead, err
		}
		dead = append(dead, name)
	}
	names, err = list(q.inbox(agent, "new"))
	if err != nil {
		return nil, dead, err
	}
	var left error // what cannot be read now stays, and the others go on
	for _, name := range names {
		held, bad, err := q.take(agent, name, by, now)
		if errors.Is(err, errUnread) && !files.Passing(err) {
			left = errors.Join(left, err)
			continue
		}
		if err != nil || held != nil {
			return held, dead, err
		}
		if bad {
			dead = append(dead, name)
		}
	}
	return nil, dead, left
}

// Holder is who takes work: a process, and the run in whose course it does. The same run holds on through any number of
// processes.
type Holder struct {
	Owner proc.ID
	Run   string
}

func (h Holder) is(c Claim) bool { return c.Owner == h.Owner || (h.Run != "" && c.Run == h.Run) }

// hold renews the claim beside what lies in in_process. Another living holder is ErrBusy; spent means that MaxAttempts
// died over it.
func (q Queue) hold(path string, by Holder, now time.Time) (c Claim, spent bool, err error) {
	c, err = readClaim(path, now)
	if err != nil {
		return c, false, err
	}
	if !by.is(c) {
		if alive, err := c.Owner.Alive(); err != nil || alive {
			return c, false, fmt.Errorf("claim %s: %w", filepath.Base(path), errors.Join(ErrBusy, err))
		}
		c.Attempt++
		c.At = now.UTC()
	}
	if c.Attempt > MaxAttempts {
		return c, true, nil
	}
	c.Owner, c.Run = by.Owner, by.Run
	return c, false, writeClaim(path, c)
}

// Bind notes the run that works on what its holder has in hand. What somebody else holds, or nobody, stays as it is.
func (q Queue) Bind(agent, name string, by Holder) error {
	unlock, err := q.lockInbox(agent)
	if err != nil {
		return err
	}
	defer unlock()
	path := filepath.Join(q.inbox(agent, "in_process"), name)
	if strings.ContainsRune(name, '/') || !exists(path) {
		return nil
	}
	c, err := readClaim(path, time.Now())
	if err != nil || c.Owner != by.Owner || c.Run == by.Run {
		return err
	}
	c.Run = by.Run
	return writeClaim(path, c)
}

// resume claims what lies in in_process; nil without an error means that it went to failed/.
func (q Queue) resume(agent, name string, by Holder, now time.Time) (*Held, error) {
	path := filepath.Join(q.inbox(agent, "in_process"), name)
	e, bad := read(path)
	if unread(bad) {
		return nil, bad
	}
	if bad != nil {
		return nil, q.Fail(agent, name, bad.Error())
	}
	c, spent, err := q.hold(path, by, now)
	if err != nil {
		return nil, err
	}
	if spent {
		return nil, q.Fail(agent, name, fmt.Sprintf("%d ticks died over it", MaxAttempts))
	}
	if e.Get("dequeued_at") == "" { // put there by hand
		e.Set("dequeued_at", handoff.Instant(now))
		if err := files.Replace(path, e.Bytes(), q.mode()); err != nil {
			return nil, err
		}
	}
	return &Held{name, e, c}, nil
}

// take claims what lies in new/; bad means that it went to failed/. Neither: somebody else took it.
func (q Queue) take(agent, name string, by Holder, now time.Time) (held *Held, bad bool, err error) {
	from := filepath.Join(q.inbox(agent, "new"), name)
	to := filepath.Join(q.inbox(agent, "in_process"), name)
	e, err := read(from)
	if errors.Is(err, fs.ErrNotExist) && !exists(from) {
		return nil, false, nil
	}
	if unread(err) {
		return nil, false, fmt.Errorf("%w: %w", errUnread, err)
	}
	if err == nil && !e.IsFor(agent) {
		err = fmt.Errorf("it is addressed to %q", e.Get("recipient"))
	}
	if err != nil {
		return nil, true, q.quarantine(from, q.inbox(agent, "failed"), err)
	}
	c := Claim{Owner: by.Owner, Run: by.Run, Attempt: 1, At: now.UTC()}
	if err := writeClaim(to, c); err != nil { // before the move: nothing lies in in_process without its claim
		return nil, false, err
	}
	e.Set("dequeued_at", handoff.Instant(now))
	if err := files.Replace(from, e.Bytes(), q.mode()); err != nil { // and nothing without its time
		return nil, false, err
	}
	if err := files.Move(from, to); err != nil {
		return nil, false, err
	}
	return &Held{name, e, c}, false, nil
}

// Forgive takes back the attempts of claims whose owner is dead: it died with whoever ticked it, not over its work.
func (q Queue) Forgive(agent string) error {
	names, err := list(q.inbox(agent, "in_process"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, name := range names {
		c, err := readClaim(filepath.Join(q.inbox(agent, "in_process"), name), time.Now())
		if err != nil {
			return err
		}
		if alive, err := c.Owner.Alive(); err != nil || alive {
			continue
		}
		if err := q.Release(agent, name); err != nil {
			return err
		}
	}
	return nil
}

// Release lets go of a held handoff in good order: it stays in in_process, is resumed first, and no attempt is counted.
func (q Queue) Release(agent, name string) error {
	path := filepath.Join(q.inbox(agent, "in_process"), name)
	if !exists(path) {
		return nil
	}
	c, err := readClaim(path, time.Now())
	if err != nil || c.Owner == (proc.ID{}) {
		return err
	}
	c.Owner = proc.ID{}
	c.Attempt = max(c.Attempt-1, 0)
	return writeClaim(path, c)
}

// Complete moves a held handoff to completed/. Repeating it is harmless.
func (q Queue) Complete(agent, name string, now time.Time) error {
	path := filepath.Join(q.inbox(agent, "in_process"), name)
	e, err := read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return files.Remove(path + ".claim")
	}
	if err != nil {
		return err
	}
	e.Set("completed_at", handoff.Instant(now))
	if err := files.Replace(path, e.Bytes(), q.mode()); err != nil {
		return err
	}
	err = files.Move(path, filepath.Join(q.inbox(agent, "completed"), name))
	if errors.Is(err, files.ErrExists) { // a copy put there by hand: its work is done, and it must not be resumed for ever
		return q.Fail(agent, name, "completed/ holds one of this name already")
	}
	if err != nil {
		return err
	}
	return files.Remove(path + ".claim")
}

// Fail moves a held handoff to failed/ with the reason beside it. Repeating it is harmless.
func (q Queue) Fail(agent, name, reason string) error {
	path := filepath.Join(q.inbox(agent, "in_process"), name)
	if err := q.quarantine(path, q.inbox(agent, "failed"), errors.New(reason)); err != nil {
		return err
	}
	return files.Remove(path + ".claim")
}

// sweepClaims removes claims that a tick left when it died before or after the move of their handoff.
func (q Queue) sweepClaims(agent string, held []string) error {
	dir := q.inbox(agent, "in_process")
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name, isClaim := strings.CutSuffix(e.Name(), ".claim")
		batch := strings.HasPrefix(name, handoff.BatchPrefix)
		if !isClaim || !batch && !strings.HasSuffix(name, handoff.Suffix) || slices.Contains(held, name) || batch && exists(filepath.Join(dir, name)) {
			continue
		}
		if err := files.Remove(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// readClaim reads the claim beside a held handoff. A damaged one belongs to nobody that lives; it is set aside, and
// counts as one attempt.
func readClaim(path string, now time.Time) (Claim, error) {
	var c Claim
	b, err := files.Read(path+".claim", 4096)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil // put there by hand: its holder is nobody
	}
	if unread(err) {
		return c, err
	}
	if err == nil && json.Unmarshal(b, &c) == nil {
		return c, nil
	}
	_, err = files.SetAside(path+".claim", now)
	return Claim{Attempt: 1}, err
}

// peekClaim reads a claim and changes nothing.
func peekClaim(path string) (Claim, error) {
	var c Claim
	b, err := files.Read(path+".claim", 4096)
	if err == nil {
		err = json.Unmarshal(b, &c)
	}
	return c, err
}

func writeClaim(path string, c Claim) error {
	b, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return files.Replace(path+".claim", append(b, '\n'), 0o600)
}
