package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"example.com/AutoAgentProject/core/files"
	"example.com/AutoAgentProject/core/proc"
)

// MaxAttempts is how many ticks may die over one handoff before it goes to failed/.
const MaxAttempts = 3

// Queue is the mailboxes of one mission.
type Queue struct {
	Agents string // folder with one folder per agent
}

// Box is one agent's mailboxes.
func (q Queue) inbox(agent, box string) string  { return filepath.Join(q.Agents, agent, "inbox", box) }
func (q Queue) outbox(agent, box string) string { return filepath.Join(q.Agents, agent, "outbox", box) }

// Make makes the folders of an agent; it is repeatable.
func (q Queue) Make(agent string) error {
	for _, box := range []string{"new", "in_process", "completed", "failed"} {
		if err := os.MkdirAll(q.inbox(agent, box), 0o700); err != nil {
			return err
		}
	}
	for _, box := range []string{"new", "sent", "failed"} {
		if err := os.MkdirAll(q.outbox(agent, box), 0o700); err != nil {
			return err
		}
	}
	return files.SyncDir(filepath.Join(q.Agents, agent))
}

// Sequence gives the sender's next sequence number. A number may be lost in a crash, none is given twice.
func (q Queue) Sequence(ctx context.Context, agent string) (int, error) {
	path := filepath.Join(q.Agents, agent, "sequence")
	unlock, err := files.Lock(ctx, path+".lock")
	if err != nil {
		return 0, err
	}
	defer unlock()
	n := 0
	switch b, err := files.Read(path, 64); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return 0, err
	default:
		if n, err = strconv.Atoi(strings.TrimSpace(string(b))); err != nil {
			return 0, fmt.Errorf("%s: %w", path, err)
		}
	}
	n++
	return n, files.Replace(path, fmt.Appendf(nil, "%06d\n", n), 0o600)
}

// Send puts an envelope into the sender's outbox. The same name again changes nothing.
func (q Queue) Send(from, name string, e Envelope) error {
	if q.Find(name, e.Recipients()...) {
		return nil
	}
	for _, box := range []string{"sent", "failed"} {
		if exists(filepath.Join(q.outbox(from, box), name)) {
			return nil
		}
	}
	if err := files.Publish(filepath.Join(q.outbox(from, "new"), name), e.Bytes(), 0o600); err != nil && !errors.Is(err, files.ErrExists) {
		return err
	}
	return nil
}

// Find says whether any of the agents has the envelope in one of its inboxes.
func (q Queue) Find(name string, agents ...string) bool {
	return slices.ContainsFunc(agents, func(a string) bool { return q.Where(a, name) != "" })
}

// Where returns the inbox folder of an agent that holds the envelope: new, in_process, completed, failed or "".
func (q Queue) Where(agent, name string) string {
	// In the order in which a file moves, and the first ones again, since it may move while we look.
	for _, box := range []string{"new", "in_process", "completed", "failed", "new", "in_process"} {
		if exists(filepath.Join(q.inbox(agent, box), name)) {
			return box
		}
	}
	return ""
}

// Receipt is one line of <envelope>.receipts: this recipient has its copy.
type Receipt struct {
	Recipient string    `json:"recipient"`
	At        time.Time `json:"at"`
}

// Deliver brings everything in an agent's outbox to its recipients and returns who got something new. All recipients
// are checked before the first copy; each copy has a receipt; whoever has it in any inbox folder gets none again.
func (q Queue) Deliver(from string, now time.Time) (woken []string, err error) {
	names, err := list(q.outbox(from, "new"))
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		path := filepath.Join(q.outbox(from, "new"), name)
		e, perr := read(path)
		if errors.Is(perr, fs.ErrNotExist) {
			continue // delivered by another tick
		}
		if perr == nil && e.Get("from") != from {
			perr = fmt.Errorf("header from says %q in the outbox of %s", e.Get("from"), from)
		}
		if perr == nil {
			for _, to := range e.Recipients() {
				if !exists(q.inbox(to, "new")) || strings.Contains(to, "/") {
					perr = fmt.Errorf("there is no recipient %q", to)
				}
			}
		}
		if perr != nil {
			if err := q.quarantine(path, q.outbox(from, "failed"), perr); err != nil {
				return woken, err
			}
			continue
		}
		for _, to := range e.Recipients() {
			if q.Where(to, name) != "" {
				continue
			}
			copy := e.forRecipient(to, now)
			err := files.Publish(filepath.Join(q.inbox(to, "new"), name), copy.Bytes(), 0o600)
			if err != nil && !errors.Is(err, files.ErrExists) {
				return woken, err // stays in the outbox: the next tick delivers the rest
			}
			line, _ := json.Marshal(Receipt{to, now.UTC()})
			if err := files.Append(path+".receipts", line); err != nil {
				return woken, err
			}
			if to != from && !slices.Contains(woken, to) { // mail to oneself wakes nobody
				woken = append(woken, to)
			}
		}
		for _, end := range []string{"", ".receipts"} {
			err := files.Move(path+end, filepath.Join(q.outbox(from, "sent"), name+end))
			if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, files.ErrExists) {
				return woken, err
			}
		}
	}
	return woken, nil
}

// Claim is <envelope>.claim beside a file in in_process: who holds it, and the how-manieth try this is.
type Claim struct {
	Owner   proc.ID   `json:"owner"`
	Attempt int       `json:"attempt"`
	At      time.Time `json:"at"`
}

// Held is a handoff in the hands of its agent.
type Held struct {
	Name     string
	Envelope Envelope
	Claim    Claim
}

// ErrBusy means that a living process holds the agent's work.
var ErrBusy = errors.New("another tick holds it")

// Claim takes the agent's next work for owner: what lies in in_process first, with one attempt more, else the first of
// new/ by name. Malformed files and handoffs whose third holder died go to failed/, once; they are returned in dead.
// held is nil if there is nothing to do. The caller holds the agent's lock.
func (q Queue) Claim(agent string, owner proc.ID, now time.Time) (held *Held, dead []string, err error) {
	names, err := list(q.inbox(agent, "in_process"))
	if err != nil {
		return nil, nil, err
	}
	for _, name := range names {
		path := filepath.Join(q.inbox(agent, "in_process"), name)
		c, err := readClaim(path)
		if err != nil {
			return nil, dead, err
		}
		if c.Owner != owner {
			if alive, err := c.Owner.Alive(); err != nil || alive {
				return nil, dead, fmt.Errorf("claim %s: %w", name, errors.Join(ErrBusy, err))
			}
			c = Claim{Owner: owner, Attempt: c.Attempt + 1, At: now.UTC()}
		}
		if c.Attempt > MaxAttempts {
			if err := q.Fail(agent, name, fmt.Sprintf("%d ticks died over it", MaxAttempts)); err != nil {
				return nil, dead, err
			}
			dead = append(dead, name)
			continue
		}
		if err := writeClaim(path, c); err != nil {
			return nil, dead, err
		}
		e, err := read(path)
		if err != nil {
			if err := q.quarantine(path, q.inbox(agent, "failed"), err); err != nil {
				return nil, dead, err
			}
			dead = append(dead, name)
			continue
		}
		return &Held{name, e, c}, dead, nil
	}
	names, err = list(q.inbox(agent, "new"))
	if err != nil {
		return nil, dead, err
	}
	for _, name := range names {
		from := filepath.Join(q.inbox(agent, "new"), name)
		to := filepath.Join(q.inbox(agent, "in_process"), name)
		e, err := read(from)
		if errors.Is(err, fs.ErrNotExist) && !exists(from) {
			continue // taken
		}
		if err == nil && e.Get("recipient") != agent {
			err = fmt.Errorf("it is addressed to %q", e.Get("recipient"))
		}
		if err != nil {
			if err := q.quarantine(from, q.inbox(agent, "failed"), err); err != nil {
				return nil, dead, err
			}
			dead = append(dead, name)
			continue
		}
		c := Claim{Owner: owner, Attempt: 1, At: now.UTC()}
		if err := writeClaim(to, c); err != nil { // before the move: nothing lies in in_process without its claim
			return nil, dead, err
		}
		if err := files.Move(from, to); err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			return nil, dead, err
		}
		e.Set("dequeued_at", instant(now))
		if err := files.Replace(to, e.Bytes(), 0o600); err != nil {
			return nil, dead, err
		}
		return &Held{name, e, c}, dead, nil
	}
	return nil, dead, nil
}

// Release lets go of a held handoff in good order: it stays in in_process, is resumed first, and no attempt is counted.
func (q Queue) Release(agent, name string) error {
	path := filepath.Join(q.inbox(agent, "in_process"), name)
	if !exists(path) {
		return nil
	}
	c, err := readClaim(path)
	if err != nil {
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
	e.Set("completed_at", instant(now))
	if err := files.Replace(path, e.Bytes(), 0o600); err != nil {
		return err
	}
	if err := files.Move(path, filepath.Join(q.inbox(agent, "completed"), name)); err != nil {
		return err
	}
	return files.Remove(path + ".claim")
}

// Fail moves a held handoff to failed/ with the reason beside it.
func (q Queue) Fail(agent, name, reason string) error {
	path := filepath.Join(q.inbox(agent, "in_process"), name)
	if err := q.quarantine(path, q.inbox(agent, "failed"), errors.New(reason)); err != nil {
		return err
	}
	return files.Remove(path + ".claim")
}

// quarantine moves whatever lies at path into dir under a name that is free, with <name>.error beside it.
func (q Queue) quarantine(path, dir string, reason error) error {
	name := strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '?'
		}
		return r
	}, filepath.Base(path))
	to := filepath.Join(dir, name)
	for n := 2; exists(to); n++ {
		to = filepath.Join(dir, fmt.Sprintf("%s.%d", name, n))
	}
	if err := files.Replace(to+".error", []byte(reason.Error()+"\n"), 0o600); err != nil {
		return err
	}
	if err := files.Move(path, to); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Depth is how an agent's inbox stands.
type Depth struct {
	New       int       `json:"new"`
	InProcess int       `json:"in_process"`
	Failed    int       `json:"failed"`
	Oldest    time.Time `json:"oldest_new,omitzero"`
}

// Depth counts an agent's inbox; it changes nothing.
func (q Queue) Depth(agent string) (Depth, error) {
	var d Depth
	for box, n := range map[string]*int{"new": &d.New, "in_process": &d.InProcess, "failed": &d.Failed} {
		names, err := list(q.inbox(agent, box))
		if err != nil {
			return d, err
		}
		*n = len(names)
		if box != "new" {
			continue
		}
		for _, name := range names {
			if st, err := os.Lstat(filepath.Join(q.inbox(agent, box), name)); err == nil && (d.Oldest.IsZero() || st.ModTime().Before(d.Oldest)) {
				d.Oldest = st.ModTime().UTC()
			}
		}
	}
	return d, nil
}

// Pending says whether the agent has anything to do or to deliver.
func (q Queue) Pending(agent string) (bool, error) {
	for _, dir := range []string{q.inbox(agent, "in_process"), q.inbox(agent, "new"), q.outbox(agent, "new")} {
		names, err := list(dir)
		if err != nil || len(names) > 0 {
			return len(names) > 0, err
		}
	}
	return false, nil
}

func list(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries { // sorted by name: priority, time, sequence
		if strings.HasSuffix(e.Name(), Suffix) && !strings.HasPrefix(e.Name(), ".") {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

func read(path string) (Envelope, error) {
	b, err := files.Read(path, MaxSize)
	if err != nil {
		return Envelope{}, err
	}
	return Parse(b)
}

func readClaim(path string) (Claim, error) {
	var c Claim
	b, err := files.Read(path+".claim", 4096)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil // put there by hand: its holder is nobody
	}
	if err != nil {
		return c, err
	}
	if json.Unmarshal(b, &c) != nil {
		return Claim{Attempt: 1}, nil // a damaged claim belongs to nobody that lives; it still counts
	}
	return c, nil
}

func writeClaim(path string, c Claim) error {
	b, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return files.Replace(path+".claim", append(b, '\n'), 0o600)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
