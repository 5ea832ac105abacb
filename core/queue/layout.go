package queue

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"example.com/AutoAgentProject/core/files"
)

// Queue is the mailboxes of one mission, or of a swarm of SwarmForge. Both have the same files and the same states. A
// mission's is strict: what is no sound envelope is set aside, and whoever holds something has a claim. A swarm's is read
// and left as SwarmForge's own helpers do, so that both can work side by side.
type Queue struct {
	Agents string            // mission: folder with one folder per agent
	Swarm  map[string]string // swarm: the worktree of each role; nil: this is a mission's
}

// swarm says whether this is a swarm's queue.
func (q Queue) swarm() bool { return q.Swarm != nil }

// home is the folder of an agent's mailboxes.
func (q Queue) home(agent string) string {
	if q.swarm() {
		return filepath.Join(q.Swarm[agent], ".swarmforge", "handoffs")
	}
	return filepath.Join(q.Agents, agent)
}

// inbox and outbox are an agent's boxes. A swarm has one failed/ for both.
func (q Queue) inbox(agent, box string) string {
	if q.swarm() && box == "failed" {
		return filepath.Join(q.home(agent), box)
	}
	return filepath.Join(q.home(agent), "inbox", box)
}

func (q Queue) outbox(agent, box string) string {
	switch {
	case !q.swarm() || box == "tmp":
		return filepath.Join(q.home(agent), "outbox", box)
	case box == "new":
		return filepath.Join(q.home(agent), "outbox")
	}
	return filepath.Join(q.home(agent), box)
}

// mode is the permissions of new files; folders can be searched besides.
func (q Queue) mode() fs.FileMode {
	if q.swarm() {
		return 0o644
	}
	return 0o600
}

// Make makes the folders of an agent; it is repeatable.
func (q Queue) Make(agent string) error {
	if err := q.makeInbox(agent, "new", "in_process", "completed", "failed", "ids"); err != nil {
		return err
	}
	return q.makeOutbox(agent)
}

// makeInbox makes some of the folders of an inbox. What is there must be real folders: a link could lead anywhere.
func (q Queue) makeInbox(agent string, boxes ...string) error {
	for _, box := range boxes {
		if err := q.makeBox(agent, q.inbox(agent, box)); err != nil {
			return err
		}
	}
	return nil
}

func (q Queue) makeOutbox(agent string) error {
	for _, box := range []string{"new", "tmp", "sent", "failed"} {
		if err := q.makeBox(agent, q.outbox(agent, box)); err != nil {
			return err
		}
	}
	return nil
}

// makeBox makes one folder below an agent's own, with those between.
func (q Queue) makeBox(agent, dir string) error {
	perm := q.mode() | q.mode()>>2&0o111 | 0o100
	top := filepath.Dir(q.home(agent))
	rel, err := filepath.Rel(top, dir)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(top, perm); err != nil {
		return err
	}
	at := top
	for part := range strings.SplitSeq(rel, string(filepath.Separator)) {
		at = filepath.Join(at, part)
		err := os.Mkdir(at, perm)
		if err == nil {
			err = files.SyncDir(filepath.Dir(at))
		} else if errors.Is(err, fs.ErrExist) {
			err = realFolder(at)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// realFolder refuses a link in place of a folder.
func realFolder(dir string) error {
	st, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	switch {
	case st.Mode()&fs.ModeSymlink != 0:
		return fmt.Errorf("%s: %w", dir, errLink)
	case !st.IsDir():
		return fmt.Errorf("%s is no folder: %w", dir, fs.ErrInvalid)
	}
	return nil
}

// errLink is a mailbox that leads elsewhere.
var errLink = errors.New("a link stands where a folder of the mailbox should be")

// sound checks that none of an agent's folders was replaced by a link to elsewhere.
func (q Queue) sound(agent string, boxes ...string) error {
	for _, box := range boxes {
		for dir := box; dir != filepath.Dir(q.home(agent)); dir = filepath.Dir(dir) {
			if err := realFolder(dir); err != nil {
				return err
			}
		}
	}
	return nil
}

// lockWait is the longest wait for a mailbox. It is held for file operations, and while git looks at a tree.
const lockWait = 20 * time.Second

// lockOutbox keeps others out of an agent's outbox: more than one process sends and delivers for the same sender.
func (q Queue) lockOutbox(agent string) (unlock func(), err error) {
	ctx, done := context.WithTimeout(context.Background(), lockWait)
	defer done()
	if q.swarm() {
		return files.LockFolder(ctx, q.home(agent))
	}
	return files.Lock(ctx, q.outbox(agent, "lock"))
}

// lockInbox keeps others from taking and finishing the same agent's work at the same time.
func (q Queue) lockInbox(agent string) (unlock func(), err error) {
	ctx, done := context.WithTimeout(context.Background(), lockWait)
	defer done()
	return files.LockFolder(ctx, filepath.Join(q.home(agent), "inbox"))
}
