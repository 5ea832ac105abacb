package git

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Mode is how Prepare treats what a clone holds.
type Mode string

const (
	// Fresh makes the tree exactly base. Changes, and commits that base does not hold, are kept under
	// refs/autoagent/rescue/<n> first. Ignored files stay where they are.
	Fresh Mode = "fresh"
	// Keep leaves the tree and the current branch as they are, after a run that was cut off.
	Keep Mode = "keep"
	// MergeIn merges base into the work, unfinished work included. Conflicts stay in the files for the agent to solve.
	MergeIn Mode = "merge"
)

// Prepare brings a clone to where work on base begins, and makes or repairs it if necessary: a .git that git cannot use
// is moved into .autoagent/. After a kill the next call begins anew; a clone that no call finished is always made Fresh.
// A clone in which the mode cannot be had is made Fresh, and one in which nothing can be had is renamed to a name beside it,
// .kept-<name>-<n>, and made anew. The files that conflict are returned for MergeIn.
func (c Clone) Prepare(ctx context.Context, repo Repo, base string, mode Mode) (conflicts []string, err error) {
	if err := valid(base); err != nil {
		return nil, fmt.Errorf("prepare %s: %w", c.Dir, err)
	}
	if _, err := repo.Resolve(ctx, base); err != nil {
		return nil, fmt.Errorf("prepare %s: %w", c.Dir, err)
	}
	if mode != Fresh && mode != Keep && mode != MergeIn {
		return nil, fmt.Errorf("prepare %s: there is no mode %q", c.Dir, mode)
	}
	from, err := filepath.Abs(repo.Dir)
	if err != nil {
		return nil, err
	}
	prepare := func(mode Mode) (string, error) {
		if err := os.Mkdir(c.Dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
			return "", err
		}
		return c.run(ctx, prepareScript, Command{ReadOnly: []string{from}, Env: c.identity(time.Now())}, from, base, string(mode))
	}
	out, err := prepare(mode)
	if err != nil && mode != Fresh && refusal(err) {
		var again error
		if out, again = prepare(Fresh); again == nil {
			err = nil
		}
	}
	if err != nil && ctx.Err() == nil && (refusal(err) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, errEndless)) {
		out, err = c.anew(err, func() (string, error) { return prepare(mode) })
	}
	if err != nil {
		return nil, fmt.Errorf("prepare %s: %w", c.Dir, err)
	}
	conflicts = fields(out)
	slices.Sort(conflicts)
	return slices.Compact(conflicts), nil
}

// anew renames the clone and prepares one in its place. When that does not work either, the cause is not in the clone: it
// comes back and cause, its own error, is returned.
func (c Clone) anew(cause error, prepare func() (string, error)) (string, error) {
	kept, err := c.aside()
	if err != nil {
		return "", errors.Join(cause, err)
	}
	out, err := prepare()
	if err == nil {
		return out, nil
	}
	if err := os.RemoveAll(c.Dir); err != nil { // holds nothing of the agent's
		return "", errors.Join(cause, err)
	}
	return "", errors.Join(cause, os.Rename(kept, c.Dir))
}

// aside renames the clone to a free name beside it. An agent reaches neither.
func (c Clone) aside() (kept string, err error) {
	for n := 1; ; n++ {
		kept = filepath.Join(filepath.Dir(c.Dir), fmt.Sprintf(".kept-%s-%d", filepath.Base(c.Dir), n))
		if _, err := os.Lstat(kept); errors.Is(err, os.ErrNotExist) {
			return kept, os.Rename(c.Dir, kept)
		} else if err != nil {
			return "", err
		}
	}
}

// Commit makes one commit of what the tree holds, without .autoagent, and finishes a pending merge. Commits and branches
// that the agent made are taken as they are; without anything new, HEAD is the commit. changed says whether its files
// differ from those of base. A *LayoutError tells why no commit can be made; base must be an ancestor of it.
func (c Clone) Commit(ctx context.Context, base, message string, at time.Time) (commit string, changed bool, err error) {
	if err := valid(base); err != nil {
		return "", false, fmt.Errorf("commit: %w", err)
	}
	if strings.ContainsRune(message, 0) || strings.TrimSpace(message) == "" {
		return "", false, errors.New("commit: the message is empty or holds a NUL")
	}
	out, err := c.run(ctx, commitScript, Command{Env: c.identity(at), Stdin: []byte(message)}, base)
	if refusal(err) {
		err = &LayoutError{"git cannot commit what is in it: " + clean(err.Error())}
	}
	if err != nil {
		return "", false, fmt.Errorf("commit: %w", err)
	}
	commit, differs, _ := strings.Cut(strings.TrimSpace(out), " ")
	if err := valid(commit); err != nil {
		return "", false, fmt.Errorf("commit: %w", err)
	}
	return commit, differs == "1", nil
}
