package git

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Merge is what bringing two commits together came to: the commit, or the files that conflict.
type Merge struct {
	Commit    string
	Conflicts []string
}

// Merge merges theirs into ours without moving any ref. If one holds the other already, it is the merge itself; else a
// commit of both is made, the same one for the same arguments.
func (r Repo) Merge(ctx context.Context, ours, theirs string, who Who, message string, at time.Time) (Merge, error) {
	if in, err := r.IsAncestor(ctx, theirs, ours); err != nil || in {
		return Merge{Commit: ours}, err
	}
	if in, err := r.IsAncestor(ctx, ours, theirs); err != nil || in {
		return Merge{Commit: theirs}, err
	}
	out, err := r.call("merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", ours, theirs).run(ctx)
	names := fields(out)
	switch {
	case exited(err, 1) && len(names) > 1:
		slices.Sort(names[1:])
		return Merge{Conflicts: slices.Compact(names[1:])}, nil
	case err != nil:
		return Merge{}, fmt.Errorf("merge: %w", err)
	case len(names) != 1:
		return Merge{}, fmt.Errorf("merge: git merge-tree printed %d fields", len(names))
	}
	commit, err := r.commit(ctx, names[0], []string{ours, theirs}, who, message, at)
	if err != nil {
		return Merge{}, fmt.Errorf("merge: %w", err)
	}
	return Merge{Commit: commit}, nil
}
