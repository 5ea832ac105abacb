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

// Mode is how an agent receives.
type Mode string

const (
	Task  Mode = "task"  // one handoff at a time
	Batch Mode = "batch" // all of the same priority at once
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

// Next returns what the agent works on: what it holds, unchanged, else the first of new/, or in batch mode all of new/ with
// the priority of the first. nil: nothing to do. In a mission's queue what is malformed or has lost its third holder goes to
// failed/ first; it is returned in dead.
func (q Queue) Next(agent string, mode Mode, by Holder, now time.Time) (unit *handoff.Unit, dead []string, err error) {
	if err := q.makeInbox(agent, "new", "in_process", "completed"); err != nil {
		return nil, nil, err
	}
	unlock, err := q.lockInbox(agent)
	if err != nil {
		return nil, nil, err
	}
	defer unlock()
	for {
		held, gone, err := q.held(agent, now)
		dead = append(dead, gone...)
		if err != nil {
			return nil, dead, err
		}
		if err := held.next(mode); err != nil {
			return nil, dead, err
		}
		if held.path() == "" {
			break
		}
		unit, failed, err := q.goOn(agent, held, by, now)
		if err != nil || unit != nil {
			return unit, dead, err
		}
		if failed {
			dead = append(dead, filepath.Base(held.path()))
		}
	}
	names, gone, err := q.waiting(agent)
	dead = append(dead, gone...)
	if err != nil || len(names) == 0 {
		return nil, dead, err
	}
	if mode == Batch {
		unit, err = q.takeBatch(agent, names, by, now)
	} else {
		unit, err = q.takeTask(agent, names[0], by, now)
	}
	return unit, dead, err
}

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
	if s.singles, dead, err = q.files(agent, dir, func(name string) bool { return true }); err != nil {
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
	return q.files(agent, dir, nil)
}

// files lists the handoffs in a box, by name. A swarm's are all regular files whose name ends like one; a mission's are
// envelopes for the agent, and the rest goes to failed/. held: they are in process, and whom they are for was judged.
func (q Queue) files(agent, dir string, held func(string) bool) (paths, dead []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil, err
	}
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
			if bad == nil && held == nil && !e.IsFor(agent) {
				bad = fmt.Errorf("it is addressed to %q", e.Get("recipient"))
			}
		}
		switch {
		case bad == nil:
			paths = append(paths, path)
		case files.Passing(bad):
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
	return paths, dead, nil
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
		if paths, dead, err = q.files(agent, path, func(string) bool { return true }); err != nil {
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

// goOn resumes what is held. Without a unit and an error it is not held any more: it failed, or its holder died after it
// had said that it was done and it went on to completed/.
func (q Queue) goOn(agent string, s inProcess, by Holder, now time.Time) (unit *handoff.Unit, failed bool, err error) {
	path := s.path()
	u, _, err := q.unit(agent, path)
	if err != nil {
		return nil, false, err
	}
	if q.swarm() {
		return &u, false, nil
	}
	if len(u.Items) == 0 { // all of the batch was malformed
		return nil, false, errors.Join(os.Remove(path), files.Remove(path+".claim"))
	}
	_, spent, err := q.hold(path, by, now)
	if err != nil {
		return nil, false, err
	}
	if stamped(u, "completed_at") {
		_, err := q.finish(agent, path, u, now)
		var state *StateError
		if errors.As(err, &state) {
			return nil, true, q.setAside(agent, path, err)
		}
		return nil, false, err
	}
	if spent {
		return nil, true, q.setAside(agent, path, fmt.Errorf("%d holders died over it", MaxAttempts))
	}
	for i, item := range u.Items {
		if _, ok := item.Text.Field("dequeued_at"); !ok { // put there by hand
			if u.Items[i].Text, err = q.stamp(item.Path, "dequeued_at", now); err != nil {
				return nil, false, err
			}
		}
	}
	return &u, false, nil
}

// stamped says whether all of a unit have a header.
func stamped(u handoff.Unit, header string) bool {
	for _, i := range u.Items {
		if _, ok := i.Text.Field(header); !ok {
			return false
		}
	}
	return true
}

// stamp sets a header with the time.
func (q Queue) stamp(path, header string, now time.Time) (handoff.Text, error) {
	t, err := text(path)
	if err != nil {
		return "", err
	}
	t = t.Set(header, handoff.Instant(now))
	return t, files.Replace(path, []byte(t), q.mode())
}

// move stamps and moves one file of new/. The stamp comes first, so that nothing in process lacks it.
func (q Queue) move(from, to string, now time.Time) (handoff.Item, error) {
	t, err := q.stamp(from, "dequeued_at", now)
	if err != nil {
		return handoff.Item{}, err
	}
	return handoff.Item{Path: to, Text: t}, files.Move(from, to)
}

func (q Queue) takeTask(agent, from string, by Holder, now time.Time) (*handoff.Unit, error) {
	to := filepath.Join(q.inbox(agent, "in_process"), filepath.Base(from))
	if err := q.claim(to, by, now); err != nil {
		return nil, err
	}
	item, err := q.move(from, to, now)
	if errors.Is(err, files.ErrExists) {
		return nil, &StateError{Token: ambiguous, Text: "something of this name is in process", Paths: []string{to}}
	}
	return &handoff.Unit{Items: []handoff.Item{item}}, err
}

// claim writes the first claim, before there is anything to hold. A swarm has none.
func (q Queue) claim(path string, by Holder, now time.Time) error {
	if q.swarm() {
		return nil
	}
	return writeClaim(path, Claim{Owner: by.Owner, Run: by.Run, Attempt: 1, At: now.UTC()})
}

// takeBatch gathers everything of the first one's priority in a hidden folder, which then gets its name: a batch is seen
// whole or not at all.
func (q Queue) takeBatch(agent string, waiting []string, by Holder, now time.Time) (*handoff.Unit, error) {
	dir := q.inbox(agent, "in_process")
	name := q.batchName(agent, now)
	hidden := filepath.Join(dir, "."+name)
	if err := files.MakeDir(hidden, q.mode()|q.mode()>>2&0o111|0o100); err != nil {
		return nil, err
	}
	u := &handoff.Unit{Batch: filepath.Join(dir, name)}
	first := ""
	for _, from := range waiting {
		t, err := text(from)
		if err != nil {
			return nil, err
		}
		if first == "" {
			first = t.Priority()
		}
		if t.Priority() != first {
			continue
		}
		item, err := q.move(from, filepath.Join(hidden, filepath.Base(from)), now)
		if err != nil {
			return nil, err
		}
		item.Path = filepath.Join(u.Batch, filepath.Base(from))
		u.Items = append(u.Items, item)
	}
	if err := q.claim(u.Batch, by, now); err != nil {
		return nil, err
	}
	return u, files.Move(hidden, u.Batch)
}

// batchName is a name that neither in_process nor completed/ nor failed/ has: a batch keeps it to its end. One that was
// taken and finished in the same second has the next second's.
func (q Queue) batchName(agent string, now time.Time) string {
	for ; ; now = now.Add(time.Second) {
		prefix := handoff.BatchPrefix + handoff.Stamp(now) + "_"
		first := prefix + "000001"
		if exists(filepath.Join(q.inbox(agent, "completed"), first)) || exists(filepath.Join(q.inbox(agent, "failed"), first)) {
			continue
		}
		for n := 1; n < 1e6; n++ {
			if name := fmt.Sprintf("%s%06d", prefix, n); !exists(filepath.Join(q.inbox(agent, "in_process"), name)) {
				return name
			}
		}
	}
}

// gathered gives the batches that killed processes were gathering their names. The caller holds the lock, so nobody
// gathers now.
func (q Queue) gathered(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name, hidden := strings.CutPrefix(e.Name(), "."+handoff.BatchPrefix)
		if !hidden || !e.IsDir() {
			continue
		}
		from := filepath.Join(dir, e.Name())
		names, err := list(from)
		if err != nil {
			return err
		}
		if len(names) == 0 {
			err = os.RemoveAll(from)
		} else {
			err = files.Move(from, filepath.Join(dir, handoff.BatchPrefix+name))
		}
		if err != nil {
			return err
		}
	}
	return nil
}
