package git

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"example.com/AutoAgentProject/core/usererr"
)

// Delivered is what a delivery came to.
type Delivered struct {
	Repo   string // the person's repository
	Branch string
	Commit string
	Before string // what the branch held before; empty if it is new, Commit if there was nothing to do
}

// Deliver brings commit of repo into the person's repository as a branch. It touches no work tree, no index and no branch
// that is checked out anywhere; an existing branch is only moved forward.
func Deliver(ctx context.Context, repo Repo, commit, to, branch string) (Delivered, error) {
	if err := valid(commit); err != nil {
		return Delivered{}, err
	}
	p, err := openPerson(ctx, to)
	if err != nil {
		return Delivered{}, err
	}
	if p == nil {
		return Delivered{}, usererr.New(usererr.Usage, "make one with: git init "+to, "%s is no git repository", to)
	}
	if p.Format != "sha1" {
		return Delivered{}, usererr.New(usererr.Usage, "deliver to a repository with SHA-1 ids", "%s uses %s object ids", to, p.Format)
	}
	ref, err := p.branchRef(ctx, branch)
	if err != nil {
		return Delivered{}, err
	}
	d := Delivered{Repo: p.Dir, Branch: branch, Commit: commit}
	if p.Inside != "" {
		d.Repo = p.Inside
	}
	if d.Before, err = p.git(ctx, "rev-parse", "--verify", "--quiet", ref+"^{commit}"); err != nil && !exited(err, 1) {
		return Delivered{}, err
	}
	if d.Before == commit {
		return d, nil
	}
	if where, err := p.checkedOut(ctx, ref); err != nil {
		return Delivered{}, err
	} else if where != "" {
		return Delivered{}, inTheWay(nil, "the branch %s is checked out in %s", branch, where)
	}
	from, err := filepath.Abs(repo.Dir)
	if err != nil {
		return Delivered{}, err
	}
	c := p.call("fetch", "--no-progress", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance", "--no-recurse-submodules",
		"--no-prune", "--refmap=", "--upload-pack="+uploadPack, "--", from, commit+":"+ref)
	_, err = c.run(ctx)
	switch {
	case err == nil:
		return d, nil
	case said(err, "refusing to fetch into"):
		return Delivered{}, inTheWay(nil, "the branch %s is in use", branch)
	case said(err, "non-fast-forward"):
		return Delivered{}, inTheWay(nil, "the branch %s holds work of its own", branch)
	case said(err, "cannot lock ref"):
		return Delivered{}, inTheWay(err, "the branch %s cannot be written", branch)
	}
	return Delivered{}, fmt.Errorf("deliver to %s: %w", to, err)
}

// inTheWay tells that the branch cannot be used.
func inTheWay(cause error, format string, args ...any) error {
	return usererr.Wrap(cause, usererr.Conflict, "give another name with --branch", format, args...)
}

// checkedOut is the work tree that has the branch checked out, empty if none has.
func (p *person) checkedOut(ctx context.Context, ref string) (where string, err error) {
	out, err := p.git(ctx, "worktree", "list", "--porcelain", "-z")
	if err != nil {
		return "", err
	}
	for _, tree := range strings.Split(out, "\x00\x00") {
		at := ""
		for _, line := range fields(tree) {
			if dir, ok := strings.CutPrefix(line, "worktree "); ok {
				at = dir
			}
			if line == "branch "+ref {
				return at, nil
			}
		}
	}
	return "", nil
}
