package notify

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
)

// manyRows is how many messages in one get a line that says how many they are.
const manyRows = 5

func digestTitle(n int, first, last time.Time) string {
	const clock = "2006-01-02 15:04"
	return fmt.Sprintf("%d messages that waited, of %s to %s UTC", n, first.UTC().Format(clock), last.UTC().Format(clock))
}

// Outbox is a folder of messages: new/ holds what is not done, sent/ and parked/ what is. Whoever writes messages only
// adds rows; whoever sends changes them.
type Outbox struct {
	Dir string
	Tag string // names it in its messages, where another mission has the same id
}

// Named is a row whose label says of which mission it is also where two have the same id.
func (o Outbox) Named(r Row) Row {
	if o.Tag != "" {
		r.Label = strings.Replace(r.Label, r.Mission, r.Mission+"@"+o.Tag, 1)
	}
	return r
}

const maxRow = 1 << 20

func (o Outbox) box(name string) string { return filepath.Join(o.Dir, name) }

// Make makes the folders; it is repeatable.
func (o Outbox) Make() error {
	for _, box := range []string{"new", "sent", "parked"} {
		if err := files.MakeDir(o.box(box), 0o700); err != nil {
			return err
		}
	}
	return nil
}

// Put adds a row; one that is there already, in whatever state, stays as it is.
func (o Outbox) Put(r Row) error {
	// new first: rows move from new to the others only.
	for _, box := range []string{"new", "sent", "parked"} {
		if _, err := os.Lstat(filepath.Join(o.box(box), r.ID+".json")); err == nil {
			return nil
		}
	}
	r.Version, r.State, r.At = Version, Queued, r.At.UTC()
	b, err := encode(r)
	if err != nil {
		return err
	}
	err = files.Publish(filepath.Join(o.box("new"), r.ID+".json"), b, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		if err = o.Make(); err == nil {
			err = files.Publish(filepath.Join(o.box("new"), r.ID+".json"), b, 0o600)
		}
	}
	if errors.Is(err, files.ErrExists) {
		return nil
	}
	return err
}

// Pending returns the rows that are not done, by name. One that cannot be read is set aside and returned in bad.
func (o Outbox) Pending(now time.Time) (rows []Row, bad []string, err error) {
	return o.read("new", "", func(path string) error { _, err := files.SetAside(path, now); return err })
}

// Done returns the rows in sent or parked whose names begin with prefix.
func (o Outbox) Done(s State, prefix string) ([]Row, error) {
	rows, _, err := o.read(string(s), prefix, func(string) error { return nil })
	return rows, err
}

// Trouble says what of the messages needs a look: those that were given up, and those that were tried and still wait.
func (o Outbox) Trouble(now time.Time) []string {
	var out []string
	if parked, err := o.Done(Parked, ""); err == nil && len(parked) > 0 {
		last := parked[len(parked)-1]
		out = append(out, fmt.Sprintf("%s could not be brought to you, the last one [%s]: %s", messages(len(parked)), last.Label, last.Error))
	}
	waiting, why := 0, ""
	for _, r := range o.peek("new") {
		if r.Attempts > 0 && now.Sub(r.At) > late {
			waiting, why = waiting+1, r.Error
		}
	}
	if waiting > 0 {
		out = append(out, strings.TrimSuffix(fmt.Sprintf("%s could not be sent yet: %s", messages(waiting), why), ": "))
	}
	return out
}

func messages(n int) string {
	if n == 1 {
		return "1 message"
	}
	return fmt.Sprintf("%d messages", n)
}

// peek reads a box and changes nothing.
func (o Outbox) peek(box string) []Row {
	rows, _, _ := o.read(box, "", func(string) error { return nil })
	return rows
}

// Prune removes messages that were sent before a time.
func (o Outbox) Prune(before time.Time) error {
	rows, err := o.Done(Sent, "")
	errs := []error{err}
	for _, r := range rows {
		if r.DoneAt.Before(before) {
			errs = append(errs, files.Remove(filepath.Join(o.box("sent"), r.ID+".json")))
		}
	}
	return errors.Join(errs...)
}

func (o Outbox) read(box, prefix string, aside func(string) error) (rows []Row, bad []string, err error) {
	entries, err := os.ReadDir(o.box(box))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".json")
		if !ok || name == "" || name[0] == '.' || !strings.HasPrefix(name, prefix) {
			continue
		}
		path := filepath.Join(o.box(box), e.Name())
		r, rerr := readRow(path)
		switch {
		case rerr == nil && r.ID == name:
			rows = append(rows, r)
		case errors.Is(rerr, fs.ErrNotExist): // moved meanwhile
		case rerr != nil && files.Passing(rerr):
			err = errors.Join(err, rerr)
		default:
			bad = append(bad, e.Name())
			err = errors.Join(err, aside(path))
		}
	}
	return rows, bad, err
}

func readRow(path string) (Row, error) {
	var r Row
	b, err := files.Read(path, maxRow)
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(b, &r); err != nil {
		return r, err
	}
	if r.Version != Version {
		return r, fmt.Errorf("it has no version %d", Version)
	}
	return r, nil
}

// Save writes a row's state; a row that is done moves to where the done ones are.
func (o Outbox) Save(r Row) error {
	b, err := encode(r)
	if err != nil {
		return err
	}
	done := r.State == Sent || r.State == Parked
	path := filepath.Join(o.box("new"), r.ID+".json")
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		if !done {
			return err
		}
		return files.Replace(filepath.Join(o.box(string(r.State)), r.ID+".json"), b, 0o600)
	}
	if err := files.Replace(path, b, 0o600); err != nil || !done {
		return err
	}
	return o.move(r)
}

// move puts a done row away.
func (o Outbox) move(r Row) error {
	to := filepath.Join(o.box(string(r.State)), r.ID+".json")
	err := files.Move(filepath.Join(o.box("new"), r.ID+".json"), to)
	if errors.Is(err, fs.ErrNotExist) {
		if err = o.Make(); err == nil {
			err = files.Move(filepath.Join(o.box("new"), r.ID+".json"), to)
		}
	}
	return err
}

// Tidy ends what a sender that died had begun: rows that are done and not put away. It returns those that are open.
func (o Outbox) Tidy(rows []Row) ([]Row, error) {
	var errs []error
	open := slices.DeleteFunc(rows, func(r Row) bool {
		if r.State != Sent && r.State != Parked {
			return false
		}
		errs = append(errs, o.move(r))
		return true
	})
	return open, errors.Join(errs...)
}

// Setting is what a person set for the messages of a mission.
type Setting struct {
	Version int       `json:"version"`
	Muted   bool      `json:"muted"`
	AckedAt time.Time `json:"acked_at,omitzero"` // blockers that were told until then are not repeated
}

// Setting reads it; without one nothing is set. One that cannot be read counts as not set: rather told than lost.
func (o Outbox) Setting() Setting {
	var s Setting
	b, err := files.Read(filepath.Join(o.Dir, "setting.json"), maxRow)
	if err != nil || json.Unmarshal(b, &s) != nil || s.Version != Version {
		return Setting{Version: Version}
	}
	return s
}

// Set changes the setting.
func (o Outbox) Set(change func(*Setting)) error {
	if err := o.Make(); err != nil {
		return err
	}
	unlock, err := files.TryLock(filepath.Join(o.Dir, "setting.lock"))
	if err != nil {
		return err
	}
	defer unlock()
	s := o.Setting()
	change(&s)
	s.Version = Version
	b, err := encode(s)
	if err != nil {
		return err
	}
	return files.Replace(filepath.Join(o.Dir, "setting.json"), b, 0o600)
}

func encode(v any) ([]byte, error) {
	b, err := json.MarshalIndent(v, "", "  ")
	return append(b, '\n'), err
}
