package queue

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"example.com/AutoAgentProject/core/files"
	"example.com/AutoAgentProject/core/handoff"
)

// Current returns what the agent holds, and changes nothing. nil: nothing, or a state that Next would refuse.
func (q Queue) Current(agent string) (*handoff.Unit, error) {
	dir := q.inbox(agent, "in_process")
	names, err := list(dir)
	if err != nil {
		return nil, err
	}
	for i, n := range names {
		names[i] = filepath.Join(dir, n)
	}
	held := append(names, batches(dir)...)
	if len(held) != 1 {
		return nil, nil
	}
	u := &handoff.Unit{}
	paths := held
	if len(names) == 0 {
		u.Batch = held[0]
		if paths, err = list(u.Batch); err != nil {
			return nil, err
		}
		for i, n := range paths {
			paths[i] = filepath.Join(u.Batch, n)
		}
	}
	for _, p := range paths {
		if t, err := text(p); err == nil {
			u.Items = append(u.Items, handoff.Item{Path: p, Text: t})
		}
	}
	if len(u.Items) == 0 {
		return nil, nil
	}
	return u, nil
}

// Done finishes what the agent holds, if check has nothing against it: completed_at is set and it moves to completed/. In
// a mission's queue only its holder can, or anybody once the holder is dead.
func (q Queue) Done(agent string, mode Mode, by Holder, check func(handoff.Unit) error, now time.Time) (handoff.Finished, error) {
	var f handoff.Finished
	if err := q.makeInbox(agent, "in_process", "completed"); err != nil {
		return f, err
	}
	unlock, err := q.lockInbox(agent)
	if err != nil {
		return f, err
	}
	defer unlock()
	held, _, err := q.held(agent, now)
	if err != nil {
		return f, err
	}
	if err := held.done(mode); err != nil {
		return f, err
	}
	path := held.path()
	u, _, err := q.unit(agent, path)
	if err != nil {
		return f, err
	}
	if err := q.mayFinish(path, by, now); err != nil {
		return f, err
	}
	if check != nil {
		if err := check(u); err != nil {
			return f, err
		}
	}
	return q.finish(agent, path, u, now)
}

// mayFinish refuses whoever is not the holder while the holder lives.
func (q Queue) mayFinish(path string, by Holder, now time.Time) error {
	if q.swarm() {
		return nil
	}
	c, err := readClaim(path, now)
	if err != nil || by.is(c) {
		return err
	}
	if alive, err := c.Owner.Alive(); err != nil || alive {
		return fmt.Errorf("claim %s: %w", filepath.Base(path), errors.Join(ErrBusy, err))
	}
	return nil
}

// finish stamps and moves a unit. A batch moves as the folder that it is.
func (q Queue) finish(agent, path string, u handoff.Unit, now time.Time) (handoff.Finished, error) {
	var f handoff.Finished
	to := filepath.Join(q.inbox(agent, "completed"), filepath.Base(path))
	if u.Batch != "" && exists(to) {
		return f, &StateError{Token: ambiguous, Text: "completed batch already exists: " + to}
	}
	for _, i := range u.Items {
		if _, err := q.stamp(i.Path, "completed_at", now); err != nil {
			return f, err
		}
	}
	err := files.Move(path, to)
	if errors.Is(err, files.ErrExists) {
		return f, &StateError{Token: ambiguous, Text: "completed file already exists: " + to}
	}
	if err != nil {
		return f, err
	}
	f.Paths = []string{to}
	if u.Batch != "" {
		f = handoff.Finished{Batch: to}
		for _, i := range u.Items {
			f.Paths = append(f.Paths, filepath.Join(to, filepath.Base(i.Path)))
		}
	}
	if q.swarm() {
		return f, nil
	}
	return f, files.Remove(path + ".claim")
}
