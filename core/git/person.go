package git

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"example.com/AutoAgentProject/core/usererr"
)

// person is a repository of the person who uses us. Their configuration holds in it, except that no hook runs, no file
// system monitor starts, nothing is tidied up, nothing is fetched from the network and no lock is taken for mere reading.
type person struct {
	Dir     string // what was asked for: absolute, links resolved
	GitDir  string // where its objects and refs are
	Inside  string // top of the repository if Dir is only a part of it
	Bare    bool   // without a work tree
	Shallow bool
	Partial bool
	Format  string // of object ids: "sha1" or "sha256"
	Head    string // commit, empty if there is none yet
	Branch  string // current branch, empty if HEAD is detached
}

// openPerson looks at the folder; nil if it is in no git repository.
func openPerson(ctx context.Context, path string) (*person, error) {
	dir, err := filepath.Abs(path)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return nil, usererr.Wrap(err, usererr.Usage, "", "the folder cannot be read")
	}
	if st, err := os.Stat(dir); err != nil || !st.IsDir() {
		return nil, usererr.Wrap(err, usererr.Usage, "", "%s is no folder", path)
	}
	p := &person{Dir: dir}
	out, err := p.git(ctx, "rev-parse", "--is-bare-repository", "--is-inside-git-dir", "--is-shallow-repository", "--show-object-format")
	facts := strings.Fields(out)
	switch {
	case said(err, "not a git repository"):
		return nil, nil
	case said(err, "dubious ownership"):
		return nil, usererr.New(usererr.Environment, "if you trust it: git config --global --add safe.directory "+dir,
			"git refuses %s: another user owns it (dubious ownership)", path)
	case err != nil:
		return nil, usererr.Wrap(err, usererr.Unreadable, "git status there should tell more", "git cannot use %s", path)
	case len(facts) != 4:
		return nil, fmt.Errorf("git rev-parse printed %q", out)
	}
	p.Bare = facts[0] == "true" || facts[1] == "true"
	p.Shallow, p.Format = facts[2] == "true", facts[3]
	if p.GitDir, err = p.git(ctx, "rev-parse", "--path-format=absolute", "--git-common-dir"); err != nil {
		return nil, err
	}
	top, what := "", []string{"rev-parse", "--show-toplevel"}
	if p.Bare {
		what = []string{"rev-parse", "--absolute-git-dir"}
	}
	if top, err = p.git(ctx, what...); err != nil {
		return nil, err
	}
	if top, err = filepath.EvalSymlinks(top); err != nil {
		return nil, err
	}
	if top != dir {
		p.Inside = top
	}
	if p.Partial, err = p.has(ctx, "config", "--local", "--get-regexp", `^(extensions\.partialclone|remote\..*\.promisor)$`); err != nil {
		return nil, err
	}
	if p.Branch, err = p.git(ctx, "symbolic-ref", "--quiet", "--short", "HEAD"); err != nil && !exited(err, 1) {
		return nil, err
	}
	if p.Head, err = p.git(ctx, "rev-parse", "--verify", "--quiet", "HEAD^{commit}"); err != nil && !exited(err, 1) {
		return nil, err
	}
	return p, nil
}

// call is one git command in the person's repository.
func (p *person) call(args ...string) call {
	quiet := options([]string{
		"core.hooksPath=/dev/null", "core.fsmonitor=false", "gc.auto=0", "maintenance.auto=false", "fetch.writeCommitGraph=false",
		"core.quotePath=true", "protocol.allow=never", "protocol.file.allow=always", "protocol.version=2",
	})
	return call{dir: p.Dir, env: personal(), args: append(quiet, args...)}
}

// git runs one command and returns its output without the last newline.
func (p *person) git(ctx context.Context, args ...string) (string, error) {
	out, err := p.call(args...).run(ctx)
	return strings.TrimSuffix(out, "\n"), err
}

// has says whether a command that answers by status 0 or 1 says yes.
func (p *person) has(ctx context.Context, args ...string) (bool, error) {
	_, err := p.git(ctx, args...)
	if exited(err, 1) {
		return false, nil
	}
	return err == nil, err
}

// personal is the person's environment without what would lead git elsewhere or make it ask.
func personal() []string {
	keep := []string{"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_CEILING_DIRECTORIES", "GIT_DISCOVERY_ACROSS_FILESYSTEM"}
	env := slices.DeleteFunc(os.Environ(), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return strings.HasPrefix(name, "GIT_") && !slices.Contains(keep, name) || name == "LC_ALL"
	})
	return append(env, "LC_ALL=C", "GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0")
}

// branchRef is the ref of a branch, or an error that says why there can be none of that name.
func (p *person) branchRef(ctx context.Context, branch string) (string, error) {
	ref := "refs/heads/" + branch
	_, err := p.git(ctx, "check-ref-format", ref)
	if err != nil || strings.HasPrefix(branch, "-") || branch == "HEAD" {
		var e *usererr.Error
		if errors.As(err, &e) {
			return "", err
		}
		return "", usererr.New(usererr.Usage, "give another one with --branch", "%q is no name of a branch", branch)
	}
	return ref, nil
}
