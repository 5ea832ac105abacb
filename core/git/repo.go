package git

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"example.com/AutoAgentProject/core/files"
	"example.com/AutoAgentProject/core/usererr"
)

// Main is the ref of the integrated work.
const Main = "refs/heads/main"

// Repo is a bare repository of ours. Nobody else writes it; commits are given and returned as full ids.
type Repo struct{ Dir string }

// attributes switch off what a commit's own .gitattributes would do to the files of a checkout: they are the bytes of the
// commit. "!" and not "-", because git refuses an encoding that is merely unset.
const attributes = "* !text !crlf !eol !ident !filter !working-tree-encoding\n"

// Init makes the repository if it is not there. It appears whole, by a rename, so that a kill leaves nothing behind that
// a second call would stumble over.
func Init(ctx context.Context, dir string) (Repo, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return Repo{}, err
	}
	r := Repo{Dir: dir}
	parent := filepath.Dir(dir)
	held, err := hold(ctx, parent)
	if err != nil {
		return r, fmt.Errorf("make repository %s: %w", dir, err)
	}
	defer held.Close()
	made := filepath.Join(parent, "."+filepath.Base(dir)+".new")
	if err := os.RemoveAll(made); err != nil {
		return r, fmt.Errorf("make repository %s: %w", dir, err)
	}
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		out, err := r.call("rev-parse", "--is-bare-repository").run(ctx)
		if err != nil || strings.TrimSpace(out) != "true" {
			return r, usererr.Wrap(err, usererr.Unreadable, "move it away", "%s exists but is no bare git repository", dir)
		}
		return r, nil
	}
	c := call{dir: parent, env: closed(), held: held}
	c.args = append(options(protected()), "init", "--quiet", "--bare", "--template=", "--initial-branch=main", "--", made)
	if _, err := c.run(ctx); err != nil {
		return r, fmt.Errorf("make repository %s: %w", dir, err)
	}
	if err := files.MakeDir(filepath.Join(made, "info"), 0o755); err != nil {
		return r, err
	}
	if err := files.Replace(filepath.Join(made, "info", "attributes"), []byte(attributes), 0o644); err != nil {
		return r, err
	}
	if err := syncTree(made); err != nil {
		return r, err
	}
	if err := unix.Rename(made, dir); err != nil { // os.Rename refuses an empty folder as the target
		return r, fmt.Errorf("make repository %s: %w", dir, err)
	}
	return r, files.SyncDir(parent)
}

// syncTree brings everything that was written to a folder's file system to the disk.
func syncTree(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := unix.Syncfs(int(d.Fd())); err != nil {
		return fmt.Errorf("sync %s: %w", dir, err)
	}
	return nil
}

// call is one git command on the repository, which is named, never searched for.
func (r Repo) call(args ...string) call {
	return call{dir: r.Dir, env: closed(), args: append(append(options(protected()), "--git-dir=."), args...)}
}

// git runs one command and returns the first line of its output.
func (r Repo) git(ctx context.Context, args ...string) (string, error) {
	out, err := r.call(args...).run(ctx)
	return strings.TrimSuffix(out, "\n"), err
}

// Start makes an empty first commit on main if there is none, and returns what main holds.
func (r Repo) Start(ctx context.Context) (commit string, err error) {
	held, err := hold(ctx, r.Dir)
	if err != nil {
		return "", fmt.Errorf("start: %w", err)
	}
	defer held.Close()
	if main, err := r.Resolve(ctx, Main); !errors.Is(err, ErrNoCommit) {
		return main, err
	}
	tree, err := r.git(ctx, "mktree") // of an empty standard input
	if err != nil {
		return "", fmt.Errorf("start: %w", err)
	}
	if commit, err = r.commit(ctx, tree, nil, ourselves(), "Start.\n", time.Now()); err != nil {
		return "", fmt.Errorf("start: %w", err)
	}
	return commit, r.swap(ctx, held, Main, commit, "")
}

// commit makes a commit object.
func (r Repo) commit(ctx context.Context, tree string, parents []string, who Who, message string, at time.Time) (string, error) {
	if strings.ContainsRune(message, 0) || strings.TrimSpace(message) == "" {
		return "", errors.New("commit: the message is empty or holds a NUL")
	}
	c := r.call("commit-tree", tree, "-F", "-")
	for _, p := range parents {
		c.args = append(c.args, "-p", p)
	}
	c.env = append(c.env, who.env(at)...)
	c.stdin = strings.NewReader(message)
	out, err := c.run(ctx)
	return strings.TrimSpace(out), err
}

// Resolve finds the commit that a branch, ref or abbreviated id names. ErrNoCommit if there is none.
func (r Repo) Resolve(ctx context.Context, rev string) (commit string, err error) {
	commit, err = r.git(ctx, "rev-parse", "--verify", "--quiet", "--end-of-options", rev+"^{commit}")
	if exited(err, 1) {
		return "", fmt.Errorf("%w: %q", ErrNoCommit, rev)
	}
	return commit, err
}

// Short abbreviates a commit to 10 hex digits, or more if 10 are ambiguous.
func (r Repo) Short(ctx context.Context, commit string) (string, error) {
	if err := valid(commit); err != nil {
		return "", err
	}
	return r.git(ctx, "rev-parse", "--verify", "--short=10", commit)
}

// IsAncestor says whether b holds a. A commit is its own ancestor.
func (r Repo) IsAncestor(ctx context.Context, a, b string) (bool, error) {
	if err := valid(a, b); err != nil {
		return false, err
	}
	_, err := r.git(ctx, "merge-base", "--is-ancestor", a, b)
	if exited(err, 1) {
		return false, nil
	}
	return err == nil, err
}

// Tree is the id of a commit's tree: two commits with the same tree hold the same files.
func (r Repo) Tree(ctx context.Context, commit string) (string, error) {
	if err := valid(commit); err != nil {
		return "", err
	}
	return r.git(ctx, "rev-parse", "--verify", commit+"^{tree}")
}

// valid refuses what is no full id; so nothing that comes from elsewhere is ever read as an option or an expression.
func valid(commits ...string) error {
	for _, c := range commits {
		if len(c) != 40 || strings.Trim(c, "0123456789abcdef") != "" {
			return fmt.Errorf("%w: %q is no full commit id", ErrNoCommit, c)
		}
	}
	return nil
}
