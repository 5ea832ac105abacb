package queue

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"example.com/AutoAgentProject/core/files"
	"example.com/AutoAgentProject/core/handoff"
)

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
	for i, from := range waiting {
		t, err := text(from)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			first = t.Priority() // it may be an empty one
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
