package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"example.com/AutoAgentProject/core/files"
	"example.com/AutoAgentProject/core/git"
	"example.com/AutoAgentProject/core/handoff"
	"example.com/AutoAgentProject/core/queue"
	"example.com/AutoAgentProject/core/tick"
	"example.com/AutoAgentProject/core/units"
	"example.com/AutoAgentProject/core/usererr"
	"example.com/AutoAgentProject/core/wake"
)

// missionPlace is the mailbox of an agent of a mission. Whose it is, the flags say, and nothing that the agent wrote.
func (c *cli) missionPlace(f *handoffFlags) (*place, error) {
	if f.mission == "" {
		return nil, usererr.New(usererr.Failed, "give --mission ID and --agent NAME, or --layout swarmforge", "whose mailbox is meant")
	}
	_, st, m, err := c.mission(f.mission)
	if err != nil {
		return nil, err
	}
	if err := owned(st.Dir()); err != nil {
		return nil, err
	}
	p := &place{role: f.agent, queue: st.Queue(), mode: queue.Task, policy: handoff.MissionPolicy(), warn: c.warn, docsRef: git.DocsRef(st.ID()), document: documents(st)}
	if f.batch {
		p.mode = queue.Batch
	}
	p.roles = tick.Mailboxes(m)
	p.wake = func(agents ...string) {
		for _, a := range agents {
			_ = wake.Send(units.Wakes(st, m, a)) // nobody may be listening; the timer ticks it
		}
	}
	if f.agent == "" {
		return p, p.override(f)
	}
	if !slices.Contains(p.roles, f.agent) {
		return nil, usererr.New(usererr.NotFound, "agents with a mailbox are: "+strings.Join(p.roles, ", "), "mission %s has no agent %q with a mailbox", m.ID, f.agent)
	}
	a, _ := m.Agent(f.agent)
	t, err := newTick(st, m, a, slog.New(slog.NewTextHandler(io.Discard, nil)))
	if err != nil {
		return nil, err
	}
	gate, err := t.Gate()
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	p.policy = gate.Policy
	p.tree, p.clone = missionTree{t}, st.Clone(a.Name)
	p.lock = func() (func(), error) {
		unlock, err := files.TryLock(st.AgentLock(a.Name))
		if errors.Is(err, files.ErrLocked) {
			return nil, usererr.New(usererr.Failed, "try again when it has ended", "a tick of %s runs", a.Name)
		}
		return unlock, err
	}
	return p, p.override(f)
}

// missionTree is an agent's clone. git runs in it behind the walls only.
type missionTree struct{ t *tick.Tick }

func (m missionTree) look(ctx context.Context, digits string) (handoff.Tree, error) {
	clone, err := m.t.Clone()
	if err != nil {
		return handoff.Tree{}, err
	}
	got, err := clone.Look(ctx, digits)
	var layout *git.LayoutError
	if errors.As(err, &layout) {
		return handoff.Tree{Layout: layout.Reason}, nil
	}
	return seen(got, m.t.Agent.Name, ""), err
}

// publish brings the commit into the mission's repository, where the recipients merge it from.
func (m missionTree) publish(ctx context.Context, digits, name string) error {
	repo := m.t.Repo()
	clone, err := m.t.Clone()
	if err != nil {
		return err
	}
	got, err := clone.Look(ctx, digits)
	if err != nil {
		return err
	}
	if len(got.Objects) != 1 || got.Type != "commit" {
		return fmt.Errorf("commit %s is gone", digits)
	}
	commit := got.Objects[0]
	if _, err := repo.Resolve(ctx, commit); err == nil {
		return nil // it is there
	} else if !errors.Is(err, git.ErrNoCommit) {
		return err
	}
	if err := os.MkdirAll(m.t.Store.Cells(m.t.Agent.Name), 0o700); err != nil {
		return err
	}
	bundle, err := os.CreateTemp(m.t.Store.Cells(m.t.Agent.Name), "handoff-*.bundle")
	if err != nil {
		return err
	}
	defer os.Remove(bundle.Name())
	defer bundle.Close()
	if err := clone.Bundle(ctx, got.Base, commit, &limited{bundle, m.t.Limits.Bundle}); err != nil {
		return err
	}
	fetched, err := repo.FetchBundle(ctx, bundle.Name(), fmt.Sprintf("refs/autoagent/%s/handoffs/%s/%s", m.t.Mission.ID, m.t.Agent.Name, commit))
	if err == nil && fetched != commit {
		err = fmt.Errorf("got commit %s, expected %s", fetched, commit)
	}
	return err
}

func (m missionTree) changed(ctx context.Context, digits string) (bool, error) {
	clone, err := m.t.Clone()
	if err != nil {
		return true, err
	}
	got, err := clone.Look(ctx, "")
	if err != nil {
		return true, err
	}
	repo := m.t.Repo()
	came, err := repo.Resolve(ctx, digits)
	if err != nil {
		return true, nil // what came cannot be compared with
	}
	a, err := repo.Tree(ctx, came)
	if err != nil {
		return true, err
	}
	b, err := repo.Tree(ctx, got.Head)
	return err != nil || a != b, nil // a commit that is only here was not integrated: it is new
}

func (m missionTree) merge(ctx context.Context, digits, _ string) (bool, []string, error) {
	clone, err := m.t.Clone()
	if err != nil {
		return false, nil, err
	}
	commit, err := m.t.Repo().Resolve(ctx, digits)
	if err != nil {
		return false, nil, usererr.Wrap(err, usererr.Failed, "", "the mission's repository has no such commit")
	}
	conflicts, err := clone.Prepare(ctx, m.t.Repo(), commit, git.MergeIn)
	return true, conflicts, err
}

// limited is a writer with a limit, so that a clone cannot fill the disk outside of it.
type limited struct {
	w    io.Writer
	left int64
}

func (l *limited) Write(p []byte) (int, error) {
	if int64(len(p)) > l.left {
		return 0, errors.New("the work is too big to be handed on; leave what is built or downloaded out of it")
	}
	l.left -= int64(len(p))
	return l.w.Write(p)
}

// noLinks refuses a path below base that leads through a link: who can write there could name any file.
func noLinks(base, path string) error {
	rel, err := filepath.Rel(base, path)
	if base == "" || err != nil || !filepath.IsLocal(rel) {
		return nil
	}
	for part := range strings.SplitSeq(filepath.Dir(rel), string(filepath.Separator)) {
		base = filepath.Join(base, part)
		st, err := os.Lstat(base)
		if err != nil {
			return err
		}
		if !st.IsDir() {
			return usererr.New(usererr.Failed, "write the draft into a folder of your own", "%s is no folder", base)
		}
	}
	return nil
}
