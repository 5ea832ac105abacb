package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"example.com/AutoAgentProject/core/cell"
	"example.com/AutoAgentProject/core/files"
	"example.com/AutoAgentProject/core/git"
	"example.com/AutoAgentProject/core/journal"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/store"
	"example.com/AutoAgentProject/core/tick"
	"example.com/AutoAgentProject/core/usererr"
)

// create makes the mission's folders, all or nothing: it is built under names that nobody takes for a mission and moved
// into place as the last thing. The move of the data folder is the moment from which it exists.
func (c *cli) create(ctx context.Context, d *draft) (err error) {
	m := &d.mission
	home, missions := d.root.Home(), d.root.Missions()
	made := append(missing(home), missing(missions)...)
	defer func() {
		if err != nil {
			for _, dir := range made {
				_ = os.Remove(dir) // one that another start uses by now is not empty and stays
			}
		}
	}()
	for _, dir := range []string{home, missions} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return usererr.Wrap(err, usererr.Environment, "", "the root cannot be written")
		}
	}
	staging, err := os.MkdirTemp(string(d.root), ".new-"+m.ID+"-")
	if err != nil {
		return usererr.Wrap(err, usererr.Environment, "", "the root cannot be written")
	}
	defer tick.Sweep(staging)
	unlock, err := files.TryLock(filepath.Join(staging, "lock"))
	if err != nil {
		return err
	}
	defer unlock()
	sweepStaging(string(d.root), staging)
	next := store.Root(staging).Mission(m.ID)
	for _, dir := range []string{next.Dir(), next.Work(), filepath.Join(next.Notify(), "new")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	if err := proveWalls(ctx, next, c.secrets(m.Credentials)...); err != nil {
		return err
	}
	if m.Base, err = c.importSource(ctx, next, m.From); err != nil {
		return err
	}
	if d.taken, err = takeFromRepo(ctx, next, *m); err != nil {
		return err
	}
	if err := files.Publish(next.Goal(), d.goal, 0o600); err != nil {
		return err
	}
	if err := d.keepCraft(next); err != nil {
		return err
	}
	for _, a := range m.Roster {
		if err := next.Queue().Make(a.Name); err != nil {
			return err
		}
	}
	if err := next.Ledger().Create(ctx, m.Budget, m.CreatedAt); err != nil {
		return err
	}
	if err := next.PrepareTombstone(); err != nil {
		return err
	}
	if err := next.Journal().Add(journal.Event{At: m.CreatedAt, Kind: journal.MissionStarted, Text: fmt.Sprintf("mission %s started with a budget of %s", m.ID, m.Budget)}); err != nil {
		return err
	}
	if err := next.CreateMission(*m); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return usererr.New(usererr.Aborted, "", "stopped before anything was made")
	}
	st := d.root.Mission(m.ID)
	made = append(missing(st.Logs()), made...)
	if err := os.MkdirAll(st.Logs(), 0o700); err != nil {
		return err
	}
	err = files.Move(next.Work(), st.Work())
	if err == nil {
		err = files.Move(next.Dir(), st.Dir())
	}
	if err != nil { // what is not in its old place was moved, although the move may have failed: it is ours to take back
		for from, to := range map[string]string{next.Dir(): st.Dir(), next.Work(): st.Work()} {
			if _, serr := os.Lstat(from); errors.Is(serr, fs.ErrNotExist) {
				tick.Sweep(to)
			}
		}
		return taken(m.ID, err)
	}
	return nil
}

// sweepStaging removes what starts that were killed left behind: nobody holds its lock any more.
func sweepStaging(root, mine string) {
	left, _ := filepath.Glob(filepath.Join(root, ".new-*"))
	for _, dir := range left {
		if st, err := os.Stat(dir); dir == mine || err != nil || time.Since(st.ModTime()) < time.Minute { // it may be about to lock
			continue
		}
		if unlock, err := files.TryLock(filepath.Join(dir, "lock")); err == nil {
			tick.Sweep(dir)
			unlock()
		}
	}
}

// missing lists the folders that making path would make, the deepest first.
func missing(path string) []string {
	var dirs []string
	for up := existing(path); path != up; path = filepath.Dir(path) {
		dirs = append(dirs, path)
	}
	return dirs
}

func taken(id string, err error) error {
	if errors.Is(err, files.ErrExists) || errors.Is(err, unix.ENOTEMPTY) {
		return usererr.New(usererr.Conflict, "choose another id", "somebody else started a mission %s just now", id)
	}
	return err
}

// proveWalls lets a cell as an agent would get it try to get out. A wall that does not hold refuses the start.
func proveWalls(ctx context.Context, st *store.Store, secrets ...string) error {
	clone := st.Clone("probe")
	if err := os.Mkdir(clone, 0o700); err != nil {
		return err
	}
	attempts, err := cell.Probe(ctx, st.Dir(), clone, secrets...)
	if err != nil {
		return err
	}
	for _, a := range attempts {
		if !a.Held {
			return usererr.New(usererr.Environment, "AutoAgentProject doctor shows the walls", "a wall does not hold, nothing was started: %s: %s", a.Name, a.Detail)
		}
	}
	return os.Remove(clone)
}

// importSource makes the mission's repository and returns its first commit.
func (c *cli) importSource(ctx context.Context, st *store.Store, from *mission.Source) (string, error) {
	repo, err := git.Init(ctx, st.Repo())
	if err != nil {
		return "", err
	}
	var base string
	switch {
	case from == nil:
		base, err = repo.Start(ctx)
	case from.Kind == "git":
		c.progress("taking over the history of %s", from.Path)
		base, err = repo.ImportRepo(ctx, from.Path)
		if err == nil && base != from.Commit {
			err = usererr.New(usererr.Conflict, "start again", "HEAD of %s moved meanwhile", from.Path)
		}
	default:
		c.progress("taking over the files of %s", from.Path)
		base, err = repo.ImportFolder(ctx, from.Path)
	}
	return base, err
}

// progress is a line for whoever waits; it is no part of the answer.
func (c *cli) progress(format string, args ...any) {
	if !c.json {
		fmt.Fprintln(c.env.Stderr, clean(fmt.Sprintf(format, args...)))
	}
}
