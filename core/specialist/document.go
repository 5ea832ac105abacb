package specialist

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"example.com/AutoAgentProject/core/files"
	"example.com/AutoAgentProject/core/git"
	"example.com/AutoAgentProject/core/handoff"
	"example.com/AutoAgentProject/core/journal"
	"example.com/AutoAgentProject/core/plan"
	"example.com/AutoAgentProject/core/recovery"
	"example.com/AutoAgentProject/core/runner"
	"example.com/AutoAgentProject/core/tick"
)

// layOutDocument puts the skeleton of the document into the clone. Nobody runs in it now.
func (s Specialist) layOutDocument() error {
	return files.PlaceBeneath(s.Store.Clone(s.Agent.Name), handoff.DocumentFile, []byte(handoff.Skeleton()), 0o600)
}

// follow looks at what an agent leaves after each good answer of a run. What is bad goes back with all that is wrong, a missing
// document is asked for once: an agent that does not write it when told twice will not at the third time, and its answer is usable.
func (s Specialist) follow(h *tick.Hold, step plan.Step, gate handoff.Facts) func(runner.Turn) string {
	asked, refused := false, 0
	return func(t runner.Turn) string {
		if blocked(t.Text) {
			return ""
		}
		if strings.HasPrefix(strings.TrimSpace(t.Text), questionMark) {
			if s.Mission.Reachable || refused >= s.Limits.Refusal {
				return ""
			}
			refused++
			return "Nobody can be asked in this mission. Choose yourself and say in your document what you chose, or end with BLOCKED: and why. Go on with the step now."
		}
		if t.N == 1 {
			if err := s.keepAnswer(h.Run, t.Text); err != nil {
				s.Log.Warn("an answer could not be kept", "run", h.Run, "err", err)
				return "" // what follows could cost the work
			}
		}
		clone := s.Store.Clone(s.Agent.Name)
		_, written, problems, err := ReadDocument(clone)
		_, bad, derr := ReadDrafts(clone, gate)
		if err = errors.Join(err, derr); err != nil {
			s.Log.Warn("what an agent left could not be read", "run", h.Run, "err", err)
			return ""
		}
		if problems != nil {
			bad = append([]handoff.Refused{{File: handoff.DocumentFile, Problems: problems}}, bad...)
		}
		var say []string
		if !written && !asked {
			asked = true
			s.Event(journal.Event{Kind: journal.DocumentRefused, Step: step.ID, Run: h.Run, Text: fmt.Sprintf("%s was asked for the document of step %s", s.Agent.Name, step.ID)})
			say = append(say, handoff.Request())
		}
		if bad != nil && refused < s.Limits.Refusal {
			refused++
			for _, r := range bad {
				s.Event(journal.Event{Kind: refusedKind(r), Step: step.ID, Run: h.Run, Text: fmt.Sprintf("%s of step %s went back to %s: %s", r.File, step.ID, s.Agent.Name, firstLines(r.Problems[0].String(), 300))})
			}
			say = append(say, handoff.Refusal(bad...))
		}
		return strings.Join(say, "\n\n")
	}
}

func refusedKind(r handoff.Refused) string {
	if r.File == handoff.DocumentFile {
		return journal.DocumentRefused
	}
	return journal.DraftRefused
}

// answerFile is runs/<run>/answer.md: the first good answer of a run. From it on the work is done; whatever ends the talk about
// the document takes nothing away from it.
func (s Specialist) answerFile(run string) string {
	return filepath.Join(s.Store.Run(s.Agent.Name, run), "answer.md")
}

func (s Specialist) keepAnswer(run, text string) error {
	return files.Replace(s.answerFile(run), []byte(text), 0o600)
}

// answered returns a run's first good answer, empty if there was none.
func (s Specialist) answered(run string) (string, error) {
	if run == "" {
		return "", nil
	}
	b, err := files.Read(s.answerFile(run), 1<<20)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return string(b), err
}

// answer is what an agent said at the end of its work.
func (s Specialist) answer(run string) (string, error) {
	if run == "" {
		return "The money for this step ended before it was finished; this is what there was.", nil
	}
	text, err := s.answered(run)
	if err != nil || text != "" {
		return text, err
	}
	res, _, err := s.Result(run)
	return res.Text, err
}

// document takes over the document of finished work, once for each time the step was handed over: what is kept already counts.
// A missing or bad one is made of the last answer.
func (s Specialist) document(ctx context.Context, h *tick.Hold, step plan.Step, answer string) (handoff.Document, error) {
	path := documentPath(step)
	ref := git.DocsRef(s.Mission.ID)
	if kept, err := s.Repo().Document(ctx, ref, path); err == nil {
		d, _ := handoff.ReadDocument(string(kept))
		return d, nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return handoff.Document{}, err
	}
	d, written, problems, err := ReadDocument(s.Store.Clone(s.Agent.Name))
	if err != nil {
		return d, err
	}
	if !written || problems != nil {
		d = handoff.Made(answer)
		why := "none was written"
		if written {
			why = problems[0].String()
		}
		s.Event(journal.Event{Kind: journal.DocumentMade, Step: step.ID, Run: h.Run, Incident: "document-" + step.Last().Name,
			Text: fmt.Sprintf("warning: the document of step %s was made of the last answer of %s: %s", step.ID, s.Agent.Name, firstLines(why, 300))})
	}
	head, err := s.head(ctx, h, step)
	if err != nil {
		return d, err
	}
	message := fmt.Sprintf("Document of step %s, %d\n\nBy %s.\n", step.ID, len(step.Handoffs), s.Agent.Name)
	kept, err := s.Repo().AddDocument(ctx, ref, path, []byte(d.Render(head)), s.Who(), message, s.Now())
	if err != nil {
		return d, err
	}
	d, _ = handoff.ReadDocument(string(kept))
	return d, nil
}

// withDocument puts the document of a step into the product, for missions that want it there. A product that has no room for it
// stays without.
func (s Specialist) withDocument(ctx context.Context, commit string, step plan.Step) (string, error) {
	kept, err := s.Repo().Document(ctx, git.DocsRef(s.Mission.ID), documentPath(step))
	if err != nil {
		return "", err
	}
	with, err := s.Repo().WithFile(ctx, commit, "docs/handoffs/"+step.ID+".md", kept, s.Who(),
		fmt.Sprintf("Add the document of step %s\n\nBy %s.\n", step.ID, s.Agent.Name), s.Now())
	if err != nil && !tick.Passing(err) && ctx.Err() == nil {
		s.Log.Warn("a document has no place in the product", "step", step.ID, "err", err)
		return commit, nil
	}
	return with, err
}

// documentPath is where the docs ref keeps the document of a step as it was handed over last.
func documentPath(step plan.Step) string {
	return handoff.DocumentPath(step.ID, len(step.Handoffs))
}

// head is what we say of a document ourselves.
func (s Specialist) head(ctx context.Context, h *tick.Hold, step plan.Step) (handoff.Head, error) {
	p, err := s.Store.Plan()
	if err != nil {
		return handoff.Head{}, err
	}
	var to []string
	for _, x := range p.Steps {
		for _, dep := range x.DependsOn {
			if dep == step.ID {
				to = append(to, x.ID)
			}
		}
	}
	head := handoff.Head{From: s.Agent.Name, To: "manager", Run: h.Run, Step: step.ID, Attempt: len(step.Handoffs), Spend: "not known"}
	if to != nil {
		head.To = "step " + strings.Join(to, ", step ")
	}
	if head.Checkpoint, err = s.Repo().Short(ctx, h.Commit); err != nil {
		return head, err
	}
	if spent, err := s.Spent(step.ID); err == nil {
		head.Spend = spent
	}
	return head, nil
}

// documents are those of the steps that a step builds on. One that cannot be read, or is of before there were any, is replaced
// by the summary in the plan.
func (s Specialist) documents(ctx context.Context, p *plan.Plan, step plan.Step) map[string]handoff.Document {
	out := map[string]handoff.Document{}
	for _, id := range step.DependsOn {
		d := p.Step(id)
		if d == nil {
			continue
		}
		kept, err := s.Repo().Document(ctx, git.DocsRef(s.Mission.ID), documentPath(*d))
		if err != nil {
			s.Log.Warn("the document of a step cannot be read", "step", id, "err", err)
			continue
		}
		out[id], _ = handoff.ReadDocument(string(kept))
	}
	return out
}

// questionMark begins an answer that is a question to a person.
const questionMark = "QUESTION:"

// blocked says whether an answer means that the step is not possible.
func blocked(answer string) bool { return recovery.SaysBlocked(answer) }
