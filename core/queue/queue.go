package queue

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode"
	"unicode/utf8"

	"example.com/AutoAgentProject/core/files"
	"example.com/AutoAgentProject/core/handoff"
)

// Find says whether any of the agents has the envelope in one of its inboxes.
func (q Queue) Find(name string, agents ...string) bool {
	return slices.ContainsFunc(agents, func(a string) bool { return q.Where(a, name) != "" })
}

// Where returns the inbox folder of an agent that holds the envelope: new, in_process, completed, failed or "". One in a
// batch is where its batch is.
func (q Queue) Where(agent, name string) string {
	// In the order in which a file moves, and the first ones again, since it may move while we look.
	for _, box := range []string{"new", "in_process", "completed", "failed", "new", "in_process"} {
		if exists(filepath.Join(q.inbox(agent, box), name)) {
			return box
		}
		if box != "in_process" {
			continue
		}
		for _, batch := range batches(q.inbox(agent, box)) {
			if exists(filepath.Join(batch, name)) {
				return box
			}
		}
	}
	if id := handoff.IDOf(name); id == "" || !exists(q.idMark(agent, id)) {
		return "" // it never came, so no finished batch needs to be searched; there may be many
	}
	return q.whereBatch(agent, name)
}

// whereBatch is Where for what is in a batch that is not in process any more.
func (q Queue) whereBatch(agent, name string) string {
	for _, box := range []string{"completed", "failed"} {
		for _, batch := range batches(q.inbox(agent, box)) {
			if exists(filepath.Join(batch, name)) {
				return box
			}
		}
	}
	return ""
}

// delivered says whether the agent got the handoff of this id before and still has it, under whatever name, in whatever box.
func (q Queue) delivered(agent, id string) (bool, error) {
	b, err := files.Read(q.idMark(agent, id), 512)
	if unread(err) {
		return false, err
	}
	name := strings.TrimSuffix(string(b), "\n")
	return err == nil && name != "" && !strings.Contains(name, "/") && (q.Where(agent, name) != "" || q.whereBatch(agent, name) != ""), nil
}

// idMark is the file that says under which name the agent got a handoff.
func (q Queue) idMark(agent, id string) string {
	if !plainID.MatchString(id) {
		id = fmt.Sprintf("sha256-%x", sha256.Sum256([]byte(id)))
	}
	return filepath.Join(q.inbox(agent, "ids"), id)
}

var plainID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,199}$`)

// quarantine moves whatever lies at path, also a batch, into dir under a name that is free, with <name>.error beside it.
func (q Queue) quarantine(path, dir string, reason error) error {
	if !exists(path) {
		return nil // done before
	}
	end := handoff.Suffix
	if strings.HasPrefix(filepath.Base(path), handoff.BatchPrefix) && !strings.HasSuffix(path, end) {
		end = ""
	}
	base := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(strings.TrimSuffix(filepath.Base(path), handoff.Suffix), "?"))
	base = strings.ToValidUTF8(base[:min(len(base), handoff.MaxName-len(handoff.Suffix))], "")
	to := filepath.Join(dir, base+end)
	for n := 2; exists(to); n++ {
		to = filepath.Join(dir, fmt.Sprintf("%s.%d%s", base, n, end))
	}
	if err := files.Replace(to+".error", []byte(reason.Error()+"\n"), q.mode()); err != nil {
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
		for _, batch := range batches(q.inbox(agent, box)) {
			items, err := list(batch)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return d, err
			}
			*n += len(items)
		}
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

// batches returns the folders of batches in a box, by name. A box that cannot be read has none.
func batches(dir string) []string {
	entries, _ := os.ReadDir(dir)
	var out []string
	for _, e := range entries {
		if e.IsDir() && strings.HasPrefix(e.Name(), handoff.BatchPrefix) {
			out = append(out, filepath.Join(dir, e.Name()))
		}
	}
	return out
}

// list returns the names in a box that end like an envelope's, by name.
func list(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries { // sorted by name: priority, time, sequence
		if strings.HasSuffix(e.Name(), handoff.Suffix) && !strings.HasPrefix(e.Name(), ".") {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// read reads an envelope.
func read(path string) (handoff.Envelope, error) {
	if err := checkName(filepath.Base(path), handoff.MaxName); err != nil {
		return handoff.Envelope{}, err
	}
	b, err := files.Read(path, handoff.MaxSize)
	if err != nil {
		return handoff.Envelope{}, err
	}
	return handoff.Parse(b)
}

// unread says whether an error of reading comes from the disk, its permissions or this process, and not from what lies there: such a
// file stays where it is.
func unread(err error) bool {
	var errno syscall.Errno
	return errors.As(err, &errno) && errno != syscall.ENOENT && errno != syscall.ENOTDIR && errno != syscall.ENAMETOOLONG
}

// errUnread marks what take could not read.
var errUnread = errors.New("it cannot be read now and stays where it is")

// checkName refuses names that are too long or would break what is printed of them.
func checkName(name string, max int) error {
	switch {
	case len(name) > max:
		return fmt.Errorf("its name has %d bytes, at most %d are allowed", len(name), max)
	case !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl):
		return errors.New("its name is no plain text")
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
