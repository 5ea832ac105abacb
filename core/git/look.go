package git

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Sight is what a tree and its branch look like, and a commit that somebody names by its first digits.
type Sight struct {
	Branch  string   // current branch; empty if HEAD is detached
	Head    string   // commit; empty if there is none yet
	Pending bool     // a merge, rebase or pick is unfinished
	Dirty   []string // files that differ from HEAD, and unknown ones
	Objects []string // all objects whose ids begin with the digits
	Type    string   // of the only one
	Short   string   // its id, abbreviated to 10 digits or as many as it takes
	Holds   bool     // HEAD holds it
	Message string   // of the commit
	Runtime []string // files of the program's own state in it
	Base    string   // Clone only: what the work in it began from; empty: nothing was prepared yet
}

// runtimeState are the folders that belong to the program and never into a commit.
func runtimeState() []string { return []string{".swarmforge", ".worktrees", ".autoagent"} }

// maxFacts is how much git is asked for of lists, in names.
const maxFacts = 20

// Worktree is the work tree of a role in a repository of the person's: their configuration holds, no hook runs.
type Worktree struct{ Dir string }

func (w Worktree) git(ctx context.Context, args ...string) (string, error) {
	return (&person{Dir: w.Dir}).git(ctx, args...)
}

// ErrNoTree means that a folder is in no work tree of git.
var ErrNoTree = errors.New("it is in no work tree of git")

// Roots returns the top of the work tree and the folder that holds the common .git of all work trees.
func (w Worktree) Roots(ctx context.Context) (top, project string, err error) {
	out, err := w.git(ctx, "rev-parse", "--path-format=absolute", "--show-toplevel", "--git-common-dir")
	top, common, ok := strings.Cut(out, "\n")
	if failed := (*failure)(nil); errors.As(err, &failed) || err == nil && !ok {
		return "", "", fmt.Errorf("%s: %w", w.Dir, ErrNoTree)
	}
	return top, filepath.Dir(common), err
}

// Object fills in what there is to the first digits of an id: Objects, and Type and Short if there is one.
func (w Worktree) Object(ctx context.Context, digits string) (s Sight, err error) {
	out, err := w.git(ctx, "rev-parse", "--disambiguate="+digits)
	if err != nil || out == "" {
		return s, err
	}
	s.Objects = strings.Split(out, "\n")
	if len(s.Objects) != 1 {
		return s, nil
	}
	if s.Type, err = w.git(ctx, "cat-file", "-t", s.Objects[0]); err != nil || s.Type != "commit" {
		return s, err
	}
	s.Short, err = w.git(ctx, "rev-parse", "--short=10", s.Objects[0])
	return s, err
}

// Look fills in everything. digits may be empty: then only the tree is looked at.
func (w Worktree) Look(ctx context.Context, digits string) (s Sight, err error) {
	if digits != "" {
		if s, err = w.Object(ctx, digits); err != nil {
			return s, err
		}
	}
	if s.Branch, err = w.git(ctx, "symbolic-ref", "--quiet", "--short", "HEAD"); err != nil && !exited(err, 1) {
		return s, err
	}
	if s.Head, err = w.git(ctx, "rev-parse", "--verify", "--quiet", "HEAD^{commit}"); err != nil && !exited(err, 1) {
		return s, err
	}
	dir, err := w.git(ctx, "rev-parse", "--path-format=absolute", "--git-dir")
	if err != nil {
		return s, err
	}
	for _, f := range []string{"MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge", "rebase-apply"} {
		if _, err := os.Lstat(filepath.Join(dir, f)); err == nil {
			s.Pending = true
		}
	}
	out, err := w.git(ctx, "status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=normal")
	if err != nil {
		return s, err
	}
	for _, entry := range fields(out) {
		if len(entry) > 3 && !ownState(entry[3:]) && len(s.Dirty) < maxFacts {
			s.Dirty = append(s.Dirty, entry[3:])
		}
	}
	if s.Type != "commit" {
		return s, nil
	}
	if s.Head != "" {
		_, err := w.git(ctx, "merge-base", "--is-ancestor", s.Objects[0], s.Head)
		if err != nil && !exited(err, 1) {
			return s, err
		}
		s.Holds = err == nil
	}
	if s.Message, err = w.git(ctx, "show", "-s", "--no-show-signature", "--format=%B", s.Objects[0]); err != nil {
		return s, err
	}
	s.Message = strings.TrimRight(s.Message, "\n")
	out, err = w.git(ctx, append([]string{"ls-tree", "-r", "-z", "--name-only", "--full-tree", s.Objects[0], "--"}, runtimeState()...)...)
	s.Runtime = fields(out)
	s.Runtime = s.Runtime[:min(len(s.Runtime), maxFacts)]
	return s, err
}

// ownState says whether an unknown file is the program's: whether it is excluded is not the role's fault.
func ownState(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	for _, s := range runtimeState() {
		if first == s {
			return true
		}
	}
	return false
}

// SameFiles says whether two commits hold the same files. One that is not there is unlike any.
func (w Worktree) SameFiles(ctx context.Context, a, b string) (bool, error) {
	_, err := w.git(ctx, "diff", "--quiet", "--no-ext-diff", "--no-textconv", "--end-of-options", a, b, "--")
	if failed := (*failure)(nil); errors.As(err, &failed) {
		return false, nil
	}
	return err == nil, err
}

// Merge merges a commit into the current branch. moved says whether there was anything to merge. Files that conflict stay
// in the tree, to be solved and committed.
func (w Worktree) Merge(ctx context.Context, commit, message string) (moved bool, conflicts []string, err error) {
	before, err := w.git(ctx, "rev-parse", "--verify", "HEAD^{commit}")
	if err != nil {
		return false, nil, err
	}
	_, err = w.git(ctx, "merge", "--quiet", "--no-edit", "--no-verify", "-m", message, "--end-of-options", commit)
	if failed := (*failure)(nil); errors.As(err, &failed) {
		out, lerr := w.git(ctx, "diff", "--name-only", "--diff-filter=U", "-z")
		if conflicts = fields(out); lerr == nil && len(conflicts) > 0 {
			return true, conflicts, nil
		}
	}
	if err != nil {
		return false, nil, err
	}
	after, err := w.git(ctx, "rev-parse", "--verify", "HEAD^{commit}")
	return after != before, nil, err
}

// lookScript prints what Clone.Look returns, as fields that end with NUL, each with its name before a space.
const lookScript = `
digits=$1
plain || lost
scrub
say() { printf '%s %s\0' "$1" "$2" >&3; }
say branch "$(g symbolic-ref --quiet --short HEAD || :)"
head=$(g rev-parse --verify --quiet 'HEAD^{commit}' || :)
say head "$head"
say base "$(g rev-parse --verify --quiet 'refs/autoagent/base^{commit}' || :)"
for f in MERGE_HEAD CHERRY_PICK_HEAD REVERT_HEAD rebase-merge rebase-apply; do
	if [ -e ".git/$f" ]; then say pending "$f"; fi
done
g status --porcelain=v1 -z --no-renames --untracked-files=normal | head -z -n 20 | sed -z 's/^/dirty /' >&3
if [ -z "$digits" ]; then exit 0; fi
objects=$(g rev-parse --disambiguate="$digits")
for o in $objects; do say object "$o"; done
if [ "$(printf '%s\n' "$objects" | wc -w)" != 1 ]; then exit 0; fi
type=$(g cat-file -t "$objects")
say type "$type"
if [ "$type" != commit ]; then exit 0; fi
say short "$(g rev-parse --short=10 "$objects")"
if [ -n "$head" ] && g merge-base --is-ancestor "$objects" "$head"; then say holds 1; fi
say message "$(g show -s --no-show-signature --format=%B "$objects")"
g ls-tree -r -z --name-only --full-tree "$objects" -- .swarmforge .worktrees .autoagent | head -z -n 20 | sed -z 's/^/runtime /' >&3
`

// Look looks at an agent's clone. What it says is the clone's own word. A *LayoutError tells that it is no clone as it
// should be.
func (c Clone) Look(ctx context.Context, digits string) (s Sight, err error) {
	out, err := c.run(ctx, lookScript, Command{}, digits)
	if err != nil {
		return s, fmt.Errorf("look at %s: %w", c.Dir, err)
	}
	for _, f := range fields(out) {
		name, value, _ := strings.Cut(f, " ")
		switch name {
		case "branch":
			s.Branch = value
		case "head":
			s.Head = value
		case "base":
			s.Base = value
		case "pending":
			s.Pending = true
		case "dirty":
			if len(value) > 3 && !ownState(value[3:]) {
				s.Dirty = append(s.Dirty, value[3:])
			}
		case "object":
			s.Objects = append(s.Objects, value)
		case "type":
			s.Type = value
		case "short":
			s.Short = value
		case "holds":
			s.Holds = true
		case "message":
			s.Message = value
		case "runtime":
			s.Runtime = append(s.Runtime, value)
		}
	}
	return s, nil
}
