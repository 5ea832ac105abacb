package specialist

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"example.com/AutoAgentProject/core/files"
	"example.com/AutoAgentProject/core/git"
	"example.com/AutoAgentProject/core/handoff"
	"example.com/AutoAgentProject/core/journal"
	"example.com/AutoAgentProject/core/plan"
	"example.com/AutoAgentProject/core/tick"
)

// conflictReason begins the reason of a step that comes back because of a conflict.
const conflictReason = "your work conflicts with what others merged meanwhile, in: "

// prepare brings the clone to where the work starts. A step that came back keeps its tree and gets what others merged
// meanwhile; a run that was cut off keeps its tree as it is.
func (s Specialist) prepare(ctx context.Context, h *tick.Hold, step plan.Step, gate handoff.Facts) (conflicts []string, err error) {
	clone, err := s.Clone()
	if err != nil {
		return nil, err
	}
	mode := git.Fresh
	switch {
	case h.Prepared:
		mode = git.Keep
	case len(step.Handoffs) > 1:
		mode = git.MergeIn
	}
	if h.Base == "" {
		h.Base = step.Last().Commit
	}
	if conflicts, err = clone.Prepare(ctx, s.Repo(), h.Base, mode); err != nil {
		return nil, fmt.Errorf("prepare the clone: %w", err)
	}
	if !h.Prepared { // else it may have begun to write it
		if mode == git.Fresh {
			err = s.layOutSpecs(ctx)
		}
		if err := errors.Join(err, s.layOutDocument(), s.clearDrafts(gate)); err != nil {
			return nil, fmt.Errorf("prepare the clone: %w", err)
		}
	}
	if !h.Prepared || h.Since.IsZero() {
		h.Since = time.Now().UTC() // of the clock that stamps files
	}
	h.Prepared = true
	return conflicts, s.Keep(*h)
}

// commit commits what is in the clone with the byline and brings the commit into our repository. A reason means that
// the step has to go back.
func (s Specialist) commit(ctx context.Context, h *tick.Hold, step plan.Step) (reason string, err error) {
	if st, ok := s.station(step); ok && !st.prof.Writes { // what its commands left lying about is no work
		h.Commit = h.Base
		return "", s.Keep(*h)
	}
	clone, err := s.Clone()
	if err != nil {
		return "", err
	}
	message := fmt.Sprintf("%s: %s\n\nBy %s.\n", step.ID, step.Title, s.Agent.Name)
	commit, changed, err := clone.Commit(ctx, h.Base, message, s.Now())
	var layout *git.LayoutError
	if errors.As(err, &layout) {
		return "your work cannot be committed: " + layout.Error(), nil
	}
	if err != nil {
		return "", err
	}
	if !changed { // a review or a test may find nothing to change
		h.Commit = h.Base
		return "", s.Keep(*h)
	}
	dir := s.Store.Run(s.Agent.Name, h.Run)
	bundle := filepath.Join(dir, "work.bundle")
	f, err := os.OpenFile(bundle, os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err != nil {
		return "", err
	}
	defer f.Close()
	err = clone.Bundle(ctx, h.Base, commit, &capped{f, s.Limits.Bundle})
	if errors.Is(err, errTooBig) {
		return fmt.Sprintf("your work is too big to be taken over: packed it has more than %d bytes; leave what is built or downloaded out of it", s.Limits.Bundle), files.Remove(bundle)
	}
	if err != nil {
		return "", fmt.Errorf("bundle: %w", errors.Join(err, files.Remove(bundle)))
	}
	ref := fmt.Sprintf("refs/autoagent/%s/steps/%s/%d", s.Mission.ID, step.ID, len(step.Handoffs))
	got, err := s.Repo().FetchBundle(ctx, bundle, ref)
	if err != nil {
		return "", fmt.Errorf("take over the work: %w", err)
	}
	if got != commit {
		return "", fmt.Errorf("take over the work: got commit %s, expected %s", got, commit)
	}
	h.Commit = commit
	if err := s.Keep(*h); err != nil {
		return "", err
	}
	return "", files.Remove(bundle)
}

// verify runs the step's command in a fresh checkout of a commit; a reason tells its failure. It never runs in the clone:
// what lies there and is not committed proves nothing, and what the command leaves behind is no work.
func (s Specialist) verify(ctx context.Context, step plan.Step, commit string) (reason string, err error) {
	if strings.TrimSpace(step.Verify) == "" {
		return "", nil // of a flow: it is judged by what it left
	}
	s.Line(ctx, "working", step.ID, "", "verifies %s", step.ID)
	dir, remove, err := s.Checkout(ctx, commit)
	if err != nil {
		return "", err
	}
	defer remove()
	ok, output, err := s.Check(ctx, dir, step.Verify)
	if err != nil {
		return "", fmt.Errorf("verify: %w", err)
	}
	if ok {
		return "", nil
	}
	s.Event(journal.Event{Kind: journal.VerifyFailed, Step: step.ID, Text: fmt.Sprintf("the verify of %s failed in a fresh checkout", step.ID)})
	return fmt.Sprintf("the verify command failed in a fresh checkout of the merged tree: %s\n\n%s", step.Verify, firstLines(output, 6000)), nil
}

// integrate merges the commit into main: verified on exactly that merge, moved by compare-and-swap, again from the new
// main if somebody was faster.
func (s Specialist) integrate(ctx context.Context, h *tick.Hold, step plan.Step) (merge, reason string, err error) {
	repo := s.Repo()
	for range 50 {
		if err := ctx.Err(); err != nil {
			return "", "", context.Cause(ctx)
		}
		main, err := repo.Resolve(ctx, "refs/heads/main")
		if err != nil {
			return "", "", err
		}
		in, err := repo.IsAncestor(ctx, h.Commit, main)
		if err != nil || (in && h.Commit != h.Base) {
			return main, "", err // an earlier tick did it and died
		}
		if in && !s.Mission.KeepDocs { // nothing changed: the proof is the same, on what there is
			reason, err := s.verify(ctx, step, main)
			return main, reason, err
		}
		s.Line(ctx, "working", step.ID, "", "merges %s", step.ID)
		m, err := repo.Merge(ctx, main, h.Commit, s.Who(), fmt.Sprintf("Merge step %s: %s\n\nBy %s.\n", step.ID, step.Title, s.Agent.Name), s.Now())
		if err != nil {
			return "", "", err
		}
		if len(m.Conflicts) > 0 {
			return "", conflictReason + strings.Join(m.Conflicts, ", "), nil
		}
		if s.Mission.KeepDocs {
			if m.Commit, err = s.withDocument(ctx, m.Commit, step); err != nil {
				return "", "", err
			}
		}
		if reason, err := s.verify(ctx, step, m.Commit); err != nil || reason != "" {
			return "", reason, err
		}
		err = repo.CompareAndSwap(ctx, "refs/heads/main", m.Commit, main)
		if errors.Is(err, git.ErrMoved) {
			continue
		}
		return m.Commit, "", err
	}
	return "", "", errors.New("main moved on fifty times while this step was verified")
}

// publish makes result show main.
func (s Specialist) publish(ctx context.Context) error {
	main, err := s.Repo().Resolve(ctx, "refs/heads/main")
	if err != nil {
		return err
	}
	return s.Repo().Publish(ctx, main, s.Store.Work(), s.Store.Result())
}

var errTooBig = errors.New("the bundle is too big")

// capped is a writer with a limit, so that a clone cannot fill the disk outside of it.
type capped struct {
	f    *os.File
	left int64
}

func (c *capped) Write(p []byte) (int, error) {
	if int64(len(p)) > c.left {
		return 0, errTooBig
	}
	c.left -= int64(len(p))
	return c.f.Write(p)
}
