package specialist

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"example.com/AutoAgentProject/core/handoff"
	"example.com/AutoAgentProject/core/journal"
	"example.com/AutoAgentProject/core/plan"
	"example.com/AutoAgentProject/core/tick"
)

// gate is what the gate knows of this agent. Its work is handed on along the plan, so that its drafts are notes.
func (s Specialist) gate() (handoff.Facts, error) {
	f, err := s.Gate()
	f.Policy.Planned = true
	return f, err
}

// mayWrite are those to whom the gate lets its agent write notes; nil: it writes none.
func mayWrite(f handoff.Facts) (to []string) {
	if !f.MayWriteNotes() {
		return nil
	}
	all := f.Roles
	if f.Policy.To != nil {
		all = f.Policy.To
	}
	for _, r := range all {
		if r != f.Sender {
			to = append(to, r)
		}
	}
	return to
}

// clearDrafts takes away what an earlier step left. Nobody runs in the clone now, and layOutDocument saw to it that .autoagent is a
// folder.
func (s Specialist) clearDrafts(f handoff.Facts) error {
	root, err := os.OpenRoot(s.Store.Clone(s.Agent.Name))
	if err != nil {
		return err
	}
	defer root.Close()
	if err := root.RemoveAll(handoff.DraftsFolder); err != nil || mayWrite(f) == nil {
		return err
	}
	return root.Mkdir(handoff.DraftsFolder, 0o700)
}

// sendDrafts sends the notes that an agent left when its run ended well. Repeated after a death it sends the rest: a draft is gone
// when its note is durable.
func (s Specialist) sendDrafts(ctx context.Context, h *tick.Hold, step plan.Step) error {
	f, err := s.gate()
	if err != nil {
		return err
	}
	clone := s.Store.Clone(s.Agent.Name)
	good, bad, err := ReadDrafts(clone, f)
	if err != nil {
		return err
	}
	for _, r := range bad {
		s.Event(journal.Event{Kind: journal.DraftRefused, Step: step.ID, Run: h.Run, Incident: "draft-" + h.Run + "-" + r.File,
			Text: fmt.Sprintf("warning: %s of %s was not sent: %s", r.File, s.Agent.Name, firstLines(r.Problems[0].String(), 300))})
	}
	for _, d := range good {
		now := s.Now()
		if _, err := s.Store.Queue().Submit(ctx, s.Agent.Name, filepath.Join(clone, d.File), func(seq int) (string, handoff.Envelope) { return d.Message.Envelope(seq, now) }); err != nil {
			return fmt.Errorf("send %s: %w", d.File, err)
		}
	}
	if len(good) == 0 {
		return nil
	}
	return s.Deliver(ctx)
}
