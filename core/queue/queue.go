package queue

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"example.com/AutoAgentProject/core/files"
	"example.com/AutoAgentProject/core/usererr"
)

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
			return 0, usererr.Wrap(err, usererr.Unreadable, "put the number of the last envelope there", "%s cannot be read", path)
		}
	}
	n++
	return n, files.Replace(path, fmt.Appendf(nil, "%06d\n", n), 0o600)
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

// quarantine moves whatever lies at path into dir under a name that is free, with <name>.error beside it.
func (q Queue) quarantine(path, dir string, reason error) error {
	if !exists(path) {
		return nil // done before
	}
	base := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(strings.TrimSuffix(filepath.Base(path), Suffix), "?"))
	base = strings.ToValidUTF8(base[:min(len(base), maxName-len(Suffix))], "")
	to := filepath.Join(dir, base+Suffix)
	for n := 2; exists(to); n++ {
		to = filepath.Join(dir, fmt.Sprintf("%s.%d%s", base, n, Suffix))
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

// read reads an envelope.
func read(path string) (Envelope, error) {
	if err := checkName(filepath.Base(path)); err != nil {
		return Envelope{}, err
	}
	b, err := files.Read(path, MaxSize)
	if err != nil {
		return Envelope{}, err
	}
	return Parse(b)
}

// maxName is the longest name of an envelope, in bytes: with .receipts or .claim, and as a temporary file, it must
// stay below the 255 of a file system.
const maxName = 200

func checkName(name string) error {
	switch {
	case len(name) > maxName:
		return fmt.Errorf("its name has %d bytes, at most %d are allowed", len(name), maxName)
	case !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl):
		return errors.New("its name is no plain text")
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
