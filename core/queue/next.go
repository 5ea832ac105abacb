package queue

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
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
		if os.Remove(path) == nil {
			return nil, false, files.Remove(path + ".claim")
		}
		return nil, true, q.setAside(agent, path, errors.New("it holds no handoff"))
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
