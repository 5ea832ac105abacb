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
	"syscall"
	"time"

	"example.com/AutoAgentProject/core/files"
	"example.com/AutoAgentProject/core/git"
	"example.com/AutoAgentProject/core/handoff"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/proc"
	"example.com/AutoAgentProject/core/queue"
	"example.com/AutoAgentProject/core/tick"
	"example.com/AutoAgentProject/core/usererr"
	"example.com/AutoAgentProject/core/wake"
)

// place is where handoffs are sent, taken and finished: an agent's mailbox, and the tree it works in.
type place struct {
	queue  queue.Queue
	role   string   // whose mailbox; in list, show and trace it may be empty: everybody's
	roles  []string // who has one
	mode   queue.Mode
	policy handoff.Policy
	tree   tree
	lock   func() (unlock func(), err error) // keeps the agent's ticks away while its tree is looked at
	warn   func(error)
	wake   func(agents ...string)
}

// tree is what git does for a place.
type tree interface {
	// look finds the facts about the tree and the commit that a draft names by its first digits.
	look(ctx context.Context, digits string) (handoff.Tree, error)
	// publish makes the commit that is handed on reachable for its recipients.
	publish(ctx context.Context, digits, name string) error
	// changed says whether the tree differs from a commit that came.
	changed(ctx context.Context, digits string) (bool, error)
	// merge brings a commit that came into the tree.
	merge(ctx context.Context, digits, message string) (moved bool, conflicts []string, err error)
}

// place finds the mailbox that the flags mean.
func (c *cli) place(ctx context.Context, f *handoffFlags) (*place, error) {
	switch f.layout {
	case "swarmforge":
		return c.swarmPlace(ctx, f)
	case "mission":
		return c.missionPlace(f)
	}
	return nil, usererr.New(usererr.Failed, "write --layout mission or --layout swarmforge", "there is no layout %q", f.layout)
}

// swarmPlace is a role's work tree of SwarmForge: the one that this process runs in.
func (c *cli) swarmPlace(ctx context.Context, f *handoffFlags) (*place, error) {
	role := c.env.Getenv("SWARMFORGE_ROLE")
	if role == "" {
		return nil, usererr.New(usererr.Failed, "", "Set SWARMFORGE_ROLE")
	}
	dir, err := syscall.Getwd() // the real one, whatever $PWD says
	if err != nil {
		return nil, err
	}
	w := git.Worktree{Dir: dir}
	top, project, err := w.Roots(ctx)
	if errors.Is(err, git.ErrNoTree) {
		return nil, usererr.New(usererr.Failed, "run it in the work tree of a role", "Cannot find SwarmForge project root")
	}
	if err != nil {
		return nil, err
	}
	root := ""
	for _, r := range []string{top, project} {
		if _, err := os.Stat(filepath.Join(r, ".swarmforge", "roles.tsv")); err == nil && root == "" {
			root = r
		}
	}
	if root == "" {
		return nil, usererr.New(usererr.Failed, "start the swarm first: it writes .swarmforge/roles.tsv", "Cannot find SwarmForge project root")
	}
	if real, err := filepath.EvalSymlinks(top); err != nil || real != dir {
		return nil, usererr.New(usererr.Failed, "run it in "+top, "this is not the root of the work tree, and the mailbox is there")
	}
	rows, err := swarmRoles(filepath.Join(root, ".swarmforge", "roles.tsv"))
	if err != nil {
		return nil, err
	}
	p := &place{role: role, queue: queue.Queue{Swarm: map[string]string{}}, policy: handoff.SwarmPolicy(), wake: func(...string) {},
		lock: func() (func(), error) { return func() {}, nil }, warn: c.warn}
	branch := ""
	for _, row := range rows {
		if _, twice := p.queue.Swarm[row[0]]; twice {
			continue
		}
		p.roles = append(p.roles, row[0])
		p.queue.Swarm[row[0]] = filepath.Join(root, row[2])
		if filepath.IsAbs(row[2]) {
			p.queue.Swarm[row[0]] = row[2]
		}
		if row[0] == role {
			p.mode = queue.Mode(row[6])
			if row[1] != "" && row[1] != "none" && row[1] != "master" {
				branch = "swarmforge-" + row[1]
			}
		}
	}
	if _, known := p.queue.Swarm[role]; !known {
		return nil, usererr.New(usererr.Failed, "roles are: "+strings.Join(p.roles, ", "), "Unknown role: %s", role)
	}
	p.queue.Swarm[role] = dir
	p.tree = swarmTree{w, role, branch, f.strict}
	if f.strict {
		p.policy = handoff.MissionPolicy()
		p.policy.Notes, p.policy.MaxHops = []string{"*"}, 0 // who may write notes its prompts say; its files have no count
	}
	return p, p.override(f)
}

// swarmRoles reads roles.tsv; each row has seven fields.
func swarmRoles(path string) ([][]string, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, usererr.Wrap(err, usererr.Failed, "", "the roles cannot be read")
	}
	var rows [][]string
	for line := range strings.SplitSeq(strings.TrimRight(string(b), "\n"), "\n") {
		row := strings.Split(strings.TrimSuffix(line, "\r"), "\t")
		rows = append(rows, append(row, make([]string, max(0, 7-len(row)))...))
	}
	return rows, nil
}

// receives is how the role takes its work; another word in roles.tsv than task or batch is a refusal.
func (p *place) receives() (queue.Mode, error) {
	switch p.mode {
	case "":
		return queue.Task, nil
	case queue.Task, queue.Batch:
		return p.mode, nil
	}
	return "", &queue.StateError{Token: "INVALID_RECEIVE_MODE", Text: fmt.Sprintf("%s for role %s", p.mode, p.role)}
}

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
	p := &place{role: f.agent, queue: st.Queue(), mode: queue.Task, policy: handoff.MissionPolicy(), warn: c.warn}
	if f.batch {
		p.mode = queue.Batch
	}
	for _, a := range m.Roster {
		if a.Role == mission.Manager || a.Role == mission.Specialist {
			p.roles = append(p.roles, a.Name)
		}
	}
	p.wake = func(agents ...string) {
		for _, a := range agents {
			_ = wake.Send(st.Socket(a)) // nobody may be listening; the timer ticks it
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
	p.tree = missionTree{t}
	p.lock = func() (func(), error) {
		unlock, err := files.TryLock(st.AgentLock(a.Name))
		if errors.Is(err, files.ErrLocked) {
			return nil, usererr.New(usererr.Failed, "try again when it has ended", "a tick of %s runs", a.Name)
		}
		return unlock, err
	}
	return p, p.override(f)
}

// override takes what the flags say about the policy.
func (p *place) override(f *handoffFlags) error {
	switch w := handoff.Forward(f.forward); w {
	case "":
	case handoff.ForwardAlways, handoff.ForwardWhenChanged, handoff.ForwardOff:
		p.policy.Forward = w
	default:
		return usererr.New(usererr.Failed, "write --forward always, when-changed or off", "there is no policy %q", f.forward)
	}
	return nil
}

// whole refuses a place without an agent.
func (p *place) whole() error {
	if p.role == "" {
		return usererr.New(usererr.Failed, "give --agent, one of "+strings.Join(p.roles, ", "), "whose mailbox is meant")
	}
	return nil
}

// holder is who takes work here: the process that called this program, for as long as it lives, and the run that it names.
func (c *cli) holder(f *handoffFlags) (queue.Holder, error) {
	run := f.run
	if run == "" {
		run = c.env.Getenv("AUTOAGENT_RUN")
	}
	owner, err := proc.Of(os.Getppid())
	if proc.Gone(err) { // our caller ended already: so did the holder
		owner, err = proc.Self()
	}
	return queue.Holder{Owner: owner, Run: run}, err
}

// reconcile delivers what earlier senders left behind. A swarm has its daemon for that.
func (p *place) reconcile(now time.Time) {
	if p.queue.Swarm != nil {
		return
	}
	for _, from := range p.roles {
		woken, err := p.queue.Deliver(from, now)
		p.wake(woken...)
		if err != nil {
			p.warn(fmt.Errorf("deliver the outbox of %s: %w", from, err))
		}
	}
}

// warn tells what went wrong beside the matter itself.
func (c *cli) warn(err error) {
	fmt.Fprintf(c.env.Stderr, "autoagent: warning: %s\n", clean(err.Error()))
}

// seen turns what git saw into facts for the gate.
func seen(s git.Sight, role, branch string) handoff.Tree {
	t := handoff.Tree{Objects: len(s.Objects), Type: s.Type, Canonical: s.Short, Reachable: s.Holds, Byline: handoff.HasByline(s.Message, role),
		Dirty: s.Dirty, Runtime: s.Runtime}
	switch {
	case s.Head == "":
		t.Layout = "there is no commit yet"
	case s.Branch == "":
		t.Layout = "HEAD is on no branch"
	case branch != "" && s.Branch != branch:
		t.Layout = fmt.Sprintf("the branch is %q and not %q", s.Branch, branch)
	case s.Pending:
		t.Layout = "a merge, rebase or pick is unfinished"
	}
	return t
}

// swarmTree is the work tree of a role in a swarm.
type swarmTree struct {
	w      git.Worktree
	role   string
	branch string // that it has to be on; empty: any
	strict bool
}

func (s swarmTree) look(ctx context.Context, digits string) (handoff.Tree, error) {
	if !s.strict {
		got, err := s.w.Object(ctx, digits)
		return handoff.Tree{Objects: len(got.Objects), Type: got.Type, Canonical: got.Short}, err
	}
	got, err := s.w.Look(ctx, digits)
	return seen(got, s.role, s.branch), err
}

func (s swarmTree) publish(context.Context, string, string) error { return nil } // all work trees share one repository

func (s swarmTree) changed(ctx context.Context, digits string) (bool, error) {
	same, err := s.w.SameFiles(ctx, digits, "HEAD")
	return !same, err
}

func (s swarmTree) merge(ctx context.Context, digits, message string) (bool, []string, error) {
	got, err := s.w.Look(ctx, digits)
	if err != nil {
		return false, nil, err
	}
	if err := mergeable(seen(got, s.role, s.branch), digits); err != nil {
		return false, nil, err
	}
	return s.w.Merge(ctx, got.Objects[0], message)
}

// mergeable says why a commit cannot be merged into a tree.
func mergeable(t handoff.Tree, digits string) error {
	switch {
	case t.Layout != "":
		return usererr.New(usererr.Failed, "stop and report it; do not repair it", "the git layout is not the expected one: %s", t.Layout)
	case len(t.Dirty) > 0:
		return usererr.New(usererr.Failed, "commit them or take them back first", "the tree holds changes that are not committed: %s", strings.Join(t.Dirty, ", "))
	case t.Objects != 1 || t.Type != "commit":
		return usererr.New(usererr.Failed, "report it to whoever sent the handoff's sender", "%s names no commit here", digits)
	}
	return nil
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
