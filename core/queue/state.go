package queue

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"example.com/AutoAgentProject/core/files"
	"example.com/AutoAgentProject/core/handoff"
)

// StateError says why there is no next task, or none to finish: the mailbox is in a state that a person has to look at, or
// nothing is held. Nothing was changed.
type StateError struct {
	Token string   // greppable, as SwarmForge's helpers say it
	Text  string   // may be empty
	Paths []string // what is in the way
	Empty bool     // nothing is held
}

func (e *StateError) Error() string {
	s := e.Token
	if e.Text != "" {
		s += ": " + e.Text
	}
	for _, p := range e.Paths {
		s += "\n- " + p
	}
	return s
}

const ambiguous = "AMBIGUOUS_TASK_STATE"

// maxText is the largest file that a swarm's mailbox may hold, in bytes.
const maxText = 64 << 20

// inProcess is what lies in in_process.
type inProcess struct{ singles, batches []string }

func (s inProcess) path() string {
	for _, p := range append(append([]string{}, s.batches...), s.singles...) {
		return p
	}
	return ""
}

// next says why nothing can be taken in this state.
func (s inProcess) next(mode Mode) error {
	switch {
	case mode == Task && len(s.batches) > 0:
		return &StateError{Token: "TASK_IN_PROCESS_IS_BATCH", Text: "a batch is in process; finish it first", Paths: s.batches}
	case mode == Task && len(s.singles) > 1:
		return &StateError{Token: ambiguous, Text: "several tasks are in process already", Paths: s.singles}
	case mode == Batch && len(s.singles) > 0:
		return &StateError{Token: "TASK_IN_PROCESS_IS_SINGLE", Text: "a single task is in process; finish it first", Paths: s.singles}
	case mode == Batch && len(s.batches) > 1:
		return &StateError{Token: ambiguous, Text: "several batches are in process already", Paths: s.batches}
	}
	return nil
}

// done says why nothing can be finished in this state.
func (s inProcess) done(mode Mode) error {
	switch {
	case mode == Task && len(s.batches) > 0:
		return &StateError{Token: "CURRENT_WORK_IS_BATCH", Text: "finish it as a batch", Paths: s.batches}
	case mode == Task && len(s.singles) == 0:
		return &StateError{Token: "NO_CURRENT_TASK", Empty: true}
	case mode == Task && len(s.singles) > 1:
		return &StateError{Token: ambiguous, Text: "several tasks are in process", Paths: s.singles}
	case mode == Batch && len(s.singles) > 0:
		return &StateError{Token: "CURRENT_WORK_IS_SINGLE_TASK", Text: "finish it as a task", Paths: s.singles}
	case mode == Batch && len(s.batches) == 0:
		return &StateError{Token: "NO_CURRENT_BATCH", Empty: true}
	case mode == Batch && len(s.batches) > 1:
		return &StateError{Token: ambiguous, Text: "several batches are in process", Paths: s.batches}
	}
	return nil
}

// held looks into in_process. A batch that a killed process was gathering becomes one with what it has. A mission's queue
// sets aside what is malformed.
func (q Queue) held(agent string, now time.Time) (s inProcess, dead []string, err error) {
	dir := q.inbox(agent, "in_process")
	if err := q.sound(agent, dir, q.inbox(agent, "failed")); err != nil && !(q.swarm() && errors.Is(err, fs.ErrNotExist)) {
		return s, nil, err
	}
	if err := q.gathered(dir); err != nil {
		return s, nil, err
	}
	if !q.swarm() {
		names, err := list(dir)
		if err == nil {
			err = q.sweepClaims(agent, names)
		}
		if err != nil {
			return s, nil, err
		}
	}
	if s.singles, dead, err = q.files(agent, dir, true); err != nil {
		return s, dead, err
	}
	s.batches = batches(dir)
	return s, dead, nil
}

// waiting lists new/.
func (q Queue) waiting(agent string) (paths, dead []string, err error) {
	dir := q.inbox(agent, "new")
	if err := q.sound(agent, dir); err != nil {
		return nil, nil, err
	}
	return q.files(agent, dir, false)
}

// files lists the handoffs in a box, by name. A swarm's are all regular files whose name ends like one; a mission's are
// envelopes for the agent, and the rest goes to failed/. held: they are in process, and whom they are for was judged.
func (q Queue) files(agent, dir string, held bool) (paths, dead []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil, err
	}
	var left error
	for _, entry := range entries {
		name, path := entry.Name(), filepath.Join(dir, entry.Name())
		if !strings.HasSuffix(name, handoff.Suffix) {
			continue
		}
		var bad error
		switch {
		case q.swarm() && !entry.Type().IsRegular():
			continue
		case q.swarm():
			bad = checkName(name, 255)
			if st, err := entry.Info(); bad == nil && err == nil && st.Size() > maxText {
				bad = files.ErrTooBig
			}
		case strings.HasPrefix(name, "."):
			continue
		default:
			var e handoff.Envelope
			e, bad = read(path)
			if bad == nil && !held && !e.IsFor(agent) {
				bad = fmt.Errorf("it is addressed to %q", e.Get("recipient"))
			}
		}
		switch {
		case bad == nil:
			paths = append(paths, path)
		case unread(bad) && !held && !files.Passing(bad): // it stays, and the others go on
			left = errors.Join(left, bad)
		case unread(bad):
			return paths, dead, bad
		case !exists(path): // taken meanwhile
		default:
			if err := q.makeInbox(agent, "failed"); err != nil {
				return paths, dead, err
			}
			if err := q.setAside(agent, path, bad); err != nil {
				return paths, dead, err
			}
			dead = append(dead, name)
		}
	}
	if len(paths) > 0 {
		left = nil
	}
	return paths, dead, left
}

// setAside moves what lies at path, a file or a batch, into failed/ with the reason, and drops the claim.
func (q Queue) setAside(agent, path string, reason error) error {
	if err := q.quarantine(path, q.inbox(agent, "failed"), reason); err != nil {
		return err
	}
	if q.swarm() {
		return nil
	}
	return files.Remove(path + ".claim")
}

// text reads a handoff.
func text(path string) (handoff.Text, error) {
	b, err := files.Read(path, maxText)
	return handoff.Text(b), err
}

// unit reads what lies at the path: a batch's folder or a file.
func (q Queue) unit(agent, path string) (u handoff.Unit, dead []string, err error) {
	paths := []string{path}
	if strings.HasPrefix(filepath.Base(path), handoff.BatchPrefix) {
		u.Batch = path
		if paths, dead, err = q.files(agent, path, true); err != nil {
			return u, dead, err
		}
		if len(paths) == 0 && (q.swarm() || len(dead) == 0) {
			return u, dead, &StateError{Token: ambiguous, Text: "batch contains no tasks: " + path}
		}
	}
	for _, p := range paths {
		t, err := text(p)
		if err != nil {
			return u, dead, err
		}
		u.Items = append(u.Items, handoff.Item{Path: p, Text: t})
	}
	return u, dead, nil
}
