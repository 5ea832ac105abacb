package queue

import (
	"bytes"
	"context"
	"crypto/sha256"
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

	"golang.org/x/sys/unix"

	"example.com/AutoAgentProject/core/files"
	"example.com/AutoAgentProject/core/handoff"
	"example.com/AutoAgentProject/core/usererr"
)

// Sequence gives the sender's next sequence number. A number may be lost in a crash, none is given twice.
func (q Queue) Sequence(ctx context.Context, agent string) (int, error) {
	path := filepath.Join(q.home(agent), "sequence")
	if q.swarm() { // the caller holds the lock of the outbox
		waitForHelper(ctx, path+".lock")
	} else {
		unlock, err := files.Lock(ctx, path+".lock")
		if err != nil {
			return 0, err
		}
		defer unlock()
	}
	n := 0
	switch b, err := files.Read(path, 64); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return 0, err
	default:
		n, err = strconv.Atoi(strings.TrimSpace(string(b)))
		if err != nil && !q.swarm() {
			return 0, usererr.Wrap(err, usererr.Unreadable, "put the number of the last envelope there", "%s cannot be read", path)
		}
		if err != nil {
			n = 0 // as SwarmForge's helpers do; Atoi of a number that is too big gives the biggest
		}
	}
	n++
	return n, files.Replace(path, fmt.Appendf(nil, "%06d\n", n), q.mode())
}

// helperWait is the longest that one of SwarmForge's helpers takes for its number; a lock that is older was left behind.
const helperWait = 2 * time.Second

// waitForHelper waits while a helper of SwarmForge holds its lock, a folder.
func waitForHelper(ctx context.Context, dir string) {
	ctx, done := context.WithTimeout(ctx, helperWait)
	defer done()
	for realFolder(dir) == nil {
		select {
		case <-ctx.Done():
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Send puts an envelope into the sender's outbox. The same name again changes nothing.
func (q Queue) Send(from, name string, e handoff.Envelope) error {
	if err := sendable(name, e); err != nil {
		return fmt.Errorf("send %q: %w", name, err)
	}
	unlock, err := q.lockOutbox(from)
	if err != nil {
		return err
	}
	defer unlock()
	if q.Find(name, e.Recipients()...) || q.sent(from, name) != "" {
		return nil
	}
	if err := files.Publish(filepath.Join(q.outbox(from, "new"), name), e.Bytes(), q.mode()); err != nil && !errors.Is(err, files.ErrExists) {
		return err
	}
	return nil
}

// sendable checks that what is written is what will be read.
func sendable(name string, e handoff.Envelope) error {
	back, err := handoff.Parse(e.Bytes())
	if err == nil && (!slices.Equal(back.Headers, e.Headers) || back.Body != e.Body) {
		err = errors.New("a header holds a line break")
	}
	if err == nil && (!strings.HasSuffix(name, handoff.Suffix) || strings.HasPrefix(name, ".") || strings.Contains(name, "/")) {
		err = errors.New("this is no name of an envelope")
	}
	return errors.Join(err, checkName(name, handoff.MaxName))
}

// sent returns where an envelope of this name lies on the sender's side; "": nowhere.
func (q Queue) sent(from, name string) string {
	for _, box := range []string{"new", "sent", "failed"} {
		if path := filepath.Join(q.outbox(from, box), name); exists(path) {
			return path
		}
	}
	return ""
}

// intent is outbox/tmp/<key>.sending: a draft that is on its way into the outbox. It makes sending a draft repeatable:
// whoever sends the same draft again, because it died in the middle, sends the same envelope.
type intent struct {
	Draft    string `json:"draft"`
	Name     string `json:"name"`
	Envelope []byte `json:"envelope"`
}

const intentSuffix = ".sending"

// Submit sends what a draft says and removes the draft. make gives the envelope for the sender's next number. The path
// of the envelope is returned when it is durable. The same draft, unchanged, again after a death sends nothing twice.
func (q Queue) Submit(ctx context.Context, from, draft string, make func(seq int) (string, handoff.Envelope)) (path string, err error) {
	if err := q.makeOutbox(from); err != nil {
		return "", err
	}
	unlock, err := q.lockOutbox(from)
	if err != nil {
		return "", err
	}
	defer unlock()
	key, err := draftKey(draft)
	if err != nil {
		return "", err
	}
	q.sweepIntents(from, key)
	note := filepath.Join(q.outbox(from, "tmp"), key+intentSuffix)
	var in intent
	if b, err := files.Read(note, 4*handoff.MaxSize); err != nil || json.Unmarshal(b, &in) != nil || in.Draft != draft {
		if in, err = q.intend(ctx, from, draft, note, make); err != nil {
			return "", err
		}
	}
	if path = q.sent(from, in.Name); path == "" {
		path = filepath.Join(q.outbox(from, "new"), in.Name)
		if err := files.Publish(path, in.Envelope, q.mode()); err != nil {
			return "", err
		}
	}
	if err := files.Remove(draft); err != nil {
		return path, fmt.Errorf("%s is queued, but its draft stays: %w", path, err)
	}
	return path, files.Remove(note)
}

// intend gives the draft its number and name and notes them. A name that is taken, because somebody else counts too, is
// left to whom it belongs.
func (q Queue) intend(ctx context.Context, from, draft, note string, make func(seq int) (string, handoff.Envelope)) (intent, error) {
	for {
		seq, err := q.Sequence(ctx, from)
		if err != nil {
			return intent{}, err
		}
		name, e := make(seq)
		if err := sendable(name, e); err != nil {
			return intent{}, err
		}
		if q.sent(from, name) != "" {
			continue
		}
		in := intent{draft, name, e.Bytes()}
		b, err := json.Marshal(in)
		if err != nil {
			return intent{}, err
		}
		return in, files.Replace(note, b, q.mode())
	}
}

// draftKey names a draft as it is now: another file, or the same one written anew, has another key.
func draftKey(draft string) (string, error) {
	var st unix.Stat_t
	if err := unix.Lstat(draft, &st); err != nil {
		return "", &fs.PathError{Op: "lstat", Path: draft, Err: err}
	}
	b, err := files.Read(draft, handoff.MaxDraft)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	fmt.Fprintf(h, "%s\x00%d %d %d %d\x00", draft, st.Dev, st.Ino, st.Mtim.Sec, st.Mtim.Nsec)
	h.Write(b)
	return fmt.Sprintf("%x", h.Sum(nil)[:16]), nil
}

// sweepIntents removes the notes of drafts that are gone or were written anew, and what a killed process was writing.
func (q Queue) sweepIntents(from, current string) {
	dir := q.outbox(from, "tmp")
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		key, isIntent := strings.CutSuffix(e.Name(), intentSuffix)
		if isIntent && key != current {
			var in intent
			b, err := files.Read(path, 4*handoff.MaxSize)
			if err == nil && json.Unmarshal(b, &in) == nil {
				if now, err := draftKey(in.Draft); err == nil && now == key {
					continue // its sender will come again
				}
			}
			_ = files.Remove(path)
		} else if strings.Contains(e.Name(), intentSuffix) && !isIntent && strings.HasPrefix(e.Name(), ".") {
			_ = files.Remove(path)
		}
	}
}

// Receipt is one line of <envelope>.receipts: this recipient has its copy.
type Receipt struct {
	Recipient string    `json:"recipient"`
	At        time.Time `json:"at"`
}

// readReceipts reads the receipts beside an envelope; a line that is none counts for nothing.
func readReceipts(path string) ([]Receipt, error) {
	b, err := files.Read(path+".receipts", handoff.MaxSize)
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
