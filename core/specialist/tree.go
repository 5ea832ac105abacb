package specialist

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"example.com/AutoAgentProject/core/files"
	"example.com/AutoAgentProject/core/git"
	"example.com/AutoAgentProject/core/journal"
	"example.com/AutoAgentProject/core/plan"
	"example.com/AutoAgentProject/core/tick"
)

// maxBundle is the largest bundle that is taken from a clone, in bytes.
const maxBundle = 1 << 30

// prepare brings the clone to where the work starts. A step that came back keeps its tree and gets what others merged
// meanwhile; a run that was cut off keeps its tree as it is.
func (s Specialist) prepare(ctx context.Context, h *tick.Hold, step plan.Step) (conflicts []string, err error) {
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
	h.Prepared = true
	return conflicts, s.Keep(*h)
}

// commit verifies the clone, commits it with the byline and brings the commit into our repository. A reason means that
// the step has to go back.
func (s Specialist) commit(ctx context.Context, h *tick.Hold, step plan.Step) (reason string, err error) {
	clone, err := s.Clone()
	if err != nil {
		return "", err
	}
	s.Line(ctx, "working", step.ID, "", "verifies %s", step.ID)
	if reason, err := s.verify(ctx, step, clone.Dir, "in your folder"); err != nil || reason != "" {
		return reason, err
	}
	message := fmt.Sprintf("%s: %s\n\nBy %s.\n", step.ID, step.Title, s.Agent.Name)
	commit, changed, err := clone.Commit(ctx, h.Base, message, s.Now())
	var layout *git.LayoutError
	if errors.As(err, &layout) {
		return "the folder is no usable clone any more: " + layout.Error(), nil
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
	if err := clone.Bundle(ctx, h.Base, commit, &capped{f, maxBundle}); err != nil {
		return "", fmt.Errorf("bundle: %w", err)
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

// verify runs the step's command in dir; a reason tells its failure.
func (s Specialist) verify(ctx context.Context, step plan.Step, dir, where string) (reason string, err error) {
	if strings.TrimSpace(step.Verify) == "" {
		return "", nil
	}
	ok, output, err := s.Check(ctx, dir, step.Verify)
	if err != nil {
		return "", fmt.Errorf("verify: %w", err)
	}
	if ok {
		return "", nil
	}
	s.Event(journal.Event{Kind: journal.VerifyFailed, Step: step.ID, Text: fmt.Sprintf("the verify of %s failed %s", step.ID, where)})
	return fmt.Sprintf("the verify command failed %s: %s\n\n%s", where, step.Verify, firstLines(output, 6000)), nil
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
		if in { // nothing changed: the proof is the same, on what there is
			reason, err := s.verifyCommit(ctx, step, main)
			return main, reason, err
		}
		s.Line(ctx, "working", step.ID, "", "merges %s", step.ID)
		m, err := repo.Merge(ctx, main, h.Commit, s.Who(), fmt.Sprintf("Merge step %s: %s\n\nBy %s.\n", step.ID, step.Title, s.Agent.Name), s.Now())
		if err != nil {
			return "", "", err
		}
		if len(m.Conflicts) > 0 {
			return "", "your work conflicts with what others merged meanwhile, in: " + strings.Join(m.Conflicts, ", "), nil
		}
		if reason, err := s.verifyCommit(ctx, step, m.Commit); err != nil || reason != "" {
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

// verifyCommit runs the step's command in a fresh checkout of a commit.
func (s Specialist) verifyCommit(ctx context.Context, step plan.Step, commit string) (reason string, err error) {
	dir, remove, err := s.Checkout(ctx, commit)
	if err != nil {
		return "", err
	}
	defer remove()
	return s.verify(ctx, step, dir, "in a fresh checkout of the merged tree")
}

// publish makes result show main.
func (s Specialist) publish(ctx context.Context) error {
	main, err := s.Repo().Resolve(ctx, "refs/heads/main")
	if err != nil {
		return err
	}
	return s.Repo().Publish(ctx, main, s.Store.Work(), s.Store.Result())
}

// capped is a writer with a limit, so that a clone cannot fill the disk outside of it.
type capped struct {
	f    *os.File
	left int64
}

func (c *capped) Write(p []byte) (int, error) {
	if int64(len(p)) > c.left {
		return 0, errors.New("the bundle is too big")
	}
	c.left -= int64(len(p))
	return c.f.Write(p)
}

// passing says whether an error comes from the machine and may be gone at the next tick.
func passing(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, context.Canceled) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, files.ErrLocked) || errors.Is(err, tick.ErrStopped)
}
