package app

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"example.com/AutoAgentProject/core/git"
	"example.com/AutoAgentProject/core/handoff"
	"example.com/AutoAgentProject/core/queue"
	"example.com/AutoAgentProject/core/usererr"
)

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
