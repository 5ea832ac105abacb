package queue

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"example.com/AutoAgentProject/core/files"
	"example.com/AutoAgentProject/core/mission"
)

// lockWait is the longest wait for an outbox. It is held for file operations only.
const lockWait = 20 * time.Second

// lockOutbox keeps others out of an agent's outbox: more than one tick sends and delivers for the same sender.
func (q Queue) lockOutbox(agent string) (unlock func(), err error) {
	ctx, done := context.WithTimeout(context.Background(), lockWait)
	defer done()
	return files.Lock(ctx, q.outbox(agent, "lock"))
}

// Send puts an envelope into the sender's outbox. The same name again changes nothing.
func (q Queue) Send(from, name string, e Envelope) error {
	back, err := Parse(e.Bytes())
	if err == nil && (!slices.Equal(back.Headers, e.Headers) || back.Body != e.Body) {
		err = errors.New("a header holds a line break")
	}
	if err == nil && (!strings.HasSuffix(name, Suffix) || strings.HasPrefix(name, ".") || strings.Contains(name, "/")) {
		err = errors.New("this is no name of an envelope")
	}
	if err = errors.Join(err, checkName(name)); err != nil {
		return fmt.Errorf("send %q: %w", name, err)
	}
	unlock, err := q.lockOutbox(from)
	if err != nil {
		return err
	}
	defer unlock()
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

// Receipt is one line of <envelope>.receipts: this recipient has its copy.
type Receipt struct {
	Recipient string    `json:"recipient"`
	At        time.Time `json:"at"`
}

// Deliver brings everything in an agent's outbox to its recipients and returns who got something new. All recipients
// are checked before the first copy; each copy has a receipt; whoever has it in any inbox folder gets none again. What
// cannot be delivered now stays in the outbox and holds up nobody else's.
func (q Queue) Deliver(from string, now time.Time) (woken []string, err error) {
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
	case files.Passing(err):
		return nil, err
	case err == nil && e.Get("from") != from:
		err = fmt.Errorf("header from says %q in the outbox of %s", e.Get("from"), from)
	case err == nil:
		for _, to := range e.Recipients() {
			if mission.CheckAgent(to) != nil || !exists(q.inbox(to, "new")) {
				err = fmt.Errorf("there is no recipient %q", to)
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
		if q.Where(to, name) == "" {
			copy := e.forRecipient(to, now)
			if err := files.Publish(filepath.Join(q.inbox(to, "new"), name), copy.Bytes(), 0o600); err != nil && !errors.Is(err, files.ErrExists) {
				errs = append(errs, err)
				continue
			}
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

// readReceipts reads the receipts beside an envelope; a line that is none counts for nothing.
func readReceipts(path string) ([]Receipt, error) {
	b, err := files.Read(path+".receipts", MaxSize)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []Receipt
	for line := range bytes.Lines(b) {
		var r Receipt
		if json.Unmarshal(line, &r) == nil && r.Recipient != "" {
			out = append(out, r)
		}
	}
	return out, nil
}

func writeReceipts(path string, receipts []Receipt) error {
	var b bytes.Buffer
	for _, r := range receipts {
		line, err := json.Marshal(r)
		if err != nil {
			return err
		}
		b.Write(append(line, '\n'))
	}
	return files.Replace(path+".receipts", b.Bytes(), 0o600)
}
