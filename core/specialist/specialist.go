// Package specialist is the tick of an agent that does steps: take a handoff, prepare the clone, run the agent program,
// verify, commit, integrate, hand on. Every transition is on disk before the next one begins.
package specialist

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"example.com/AutoAgentProject/core/handoff"
	"example.com/AutoAgentProject/core/journal"
	"example.com/AutoAgentProject/core/plan"
	"example.com/AutoAgentProject/core/queue"
	"example.com/AutoAgentProject/core/recovery"
	"example.com/AutoAgentProject/core/runner"
	"example.com/AutoAgentProject/core/tick"
)

// Specialist is one tick of one specialist.
type Specialist struct{ *tick.Tick }

// Once does at most one step and says how it went. The caller has begun the tick.
func (s Specialist) Once(ctx context.Context) (tick.Outcome, error) {
	if err := s.Deliver(ctx); err != nil {
		return tick.Idle, err
	}
	if err := s.Mend(ctx); err != nil {
		return tick.Idle, err
	}
	pauses, err := s.Paused(ctx)
	if err != nil {
		return tick.Idle, err
	}
	if len(pauses) > 0 {
		s.Line(ctx, "waiting", "", "", "paused: %s", pauses[0].Reason)
		return tick.Later, nil
	}
	q := s.Store.Queue()
	held, dead, err := q.Claim(s.Agent.Name, s.Owner, s.Now())
	for _, name := range dead {
		s.Event(journal.Event{Kind: journal.Repaired, Text: fmt.Sprintf("%s set a handoff aside: see inbox/failed/%s.error", s.Agent.Name, name)})
	}
	if derr := s.bury(ctx); derr != nil {
		return tick.Idle, errors.Join(err, derr)
	}
	if errors.Is(err, queue.ErrBusy) {
		return tick.Busy, nil
	}
	if err != nil {
		return tick.Idle, err
	}
	if held == nil {
		s.Line(ctx, "idle", "", "", "nothing to do")
		return tick.Idle, s.Drop()
	}
	if held.Envelope.Get("type") == handoff.Note {
		if err := s.FileNote(held.Envelope); err != nil {
			return tick.Idle, err
		}
		s.Event(journal.Event{Kind: journal.MailReceived, Text: fmt.Sprintf("%s got a note from %s: %s", s.Agent.Name, held.Envelope.Get("from"), held.Envelope.Get("message"))})
		return tick.Moved, q.Complete(s.Agent.Name, held.Name, s.Now())
	}
	out, err := s.work(ctx, held)
	if out == tick.Later || out == tick.Over || (err != nil && tick.Passing(err)) {
		// It ended in good order: no death is counted against the handoff.
		return out, errors.Join(err, q.Release(s.Agent.Name, held.Name))
	}
	return out, err
}

// bury gives up the steps of this agent whose handoffs were set aside, now or by a tick that died right after.
func (s Specialist) bury(ctx context.Context) error {
	p, err := s.Store.Plan()
	if err != nil {
		return err
	}
	lost := func(x plan.Step) bool {
		return x.Agent == s.Agent.Name && (x.State == plan.Assigned || x.State == plan.Working) &&
			s.Store.Queue().Where(s.Agent.Name, x.Last().Name) == "failed"
	}
	for _, x := range p.Steps {
		if !lost(x) {
			continue
		}
		head, err := s.Repo().Resolve(ctx, "refs/heads/main")
		if err != nil {
			return err
		}
		if err := s.Change(ctx, head, func(p *plan.Plan) error {
			if y := p.Step(x.ID); y != nil && lost(*y) {
				p.Fail(x.ID, fmt.Sprintf("%d ticks died over it", queue.MaxAttempts), s.Now())
			}
			return nil
		}); err != nil {
			return err
		}
		s.Event(journal.Event{Kind: journal.StepFailed, Level: journal.Blocker, Step: x.ID, Incident: "dead-" + x.Last().Name,
			Text: fmt.Sprintf("%d ticks of %s died over step %s; its handoff is in inbox/failed", queue.MaxAttempts, s.Agent.Name, x.ID)})
		s.Wake("manager")
	}
	return nil
}

// maxRuns is how many runs one handoff may take when each of them ends at its part of the money.
const maxRuns = 8

// work carries one held handoff as far as it goes.
func (s Specialist) work(ctx context.Context, held *queue.Held) (tick.Outcome, error) {
	q := s.Store.Queue()
	id := held.Envelope.Get("task")
	var step plan.Step
	mine := false
	err := s.Store.ChangePlan(ctx, func(p *plan.Plan) (bool, error) {
		mine = p.Take(id, s.Agent.Name, held.Name, s.Now())
		if x := p.Step(id); x != nil {
			step = *x
		}
		return mine, nil
	})
	if err != nil {
		return tick.Idle, err
	}
	if !mine { // done already, returned, or replaced by another plan: only the envelope is left to close
		return tick.Moved, errors.Join(s.publish(ctx), s.close(held.Name))
	}
	h, err := s.Hold(held.Name)
	if err != nil {
		return tick.Idle, err
	}
	if question, err := s.question(h.Run); err != nil || question != "" { // a tick died before it was asked
		return s.ask(ctx, held.Name, &h, step, question, err)
	}
	if h.Commit == "" {
		res, out, err := s.run(ctx, &h, step)
		if err != nil || out != tick.Moved {
			return out, err
		}
		if question, err := s.question(h.Run); err != nil || question != "" {
			return s.ask(ctx, held.Name, &h, step, question, err)
		}
		if res.Class != "budget" && res.Class != tick.StepLimit { // else the money ended in the middle of its work
			if err := s.Made(ctx, h.Run, tick.Worked(s.Store.Clone(s.Agent.Name), res.Started)); err != nil {
				return tick.Idle, err
			}
		}
		answer, err := s.answered(h.Run)
		if err != nil {
			return tick.Idle, err
		}
		answered := answer != "" && res.Verdict == runner.Failed // the work was done; only the talk about its document ended badly
		if res.Class == "budget" && h.Runs < maxRuns && !answered {
			// Its part of the money ended in the middle; the step goes on with the next part, in the same tree.
			h.Run = ""
			return tick.Moved, errors.Join(s.Keep(h), s.Store.Queue().Release(s.Agent.Name, held.Name))
		}
		if res.Class == tick.StepLimit && !answered {
			// What there is goes on, with a word about it; the verify of the merge says whether it is enough.
			s.Event(journal.Event{Kind: journal.BudgetCrossed, Level: journal.Milestone, Step: step.ID, Incident: "step-limit-" + step.ID,
				Text: fmt.Sprintf("step %s: %s; what there is goes on", step.ID, res.Reason)})
		} else if res.Verdict != runner.Done && !answered {
			if h.Run == "" { // there was no run that could be helped on
				return s.back(ctx, held.Name, step, "the run ended without success: "+res.Reason, false)
			}
			return s.help(ctx, &h, held, step, res)
		} else if recovery.Excused(res.Text) && !answered { // a question gets here only where nobody can be asked
			return s.block(ctx, held, step, firstLines(res.Text, 1200))
		}
		if err := s.sendDrafts(ctx, &h, step); err != nil {
			return tick.Idle, err
		}
		reason, err := s.commit(ctx, &h, step)
		if err != nil {
			return tick.Idle, err
		}
		if reason != "" {
			return s.back(ctx, held.Name, step, reason, false)
		}
	}
	answer, err := s.answer(h.Run)
	if err != nil {
		return tick.Idle, err
	}
	doc, err := s.document(ctx, &h, step, answer)
	if err != nil {
		return tick.Idle, err
	}
	var j judged
	st, flows := s.station(step)
	if flows {
		if j, err = s.gateFlow(ctx, &h, st); err != nil {
			return tick.Idle, err
		}
		if j.reason != "" {
			return s.failVisit(ctx, held.Name, step, j, "") // what nobody may change goes on with nobody
		}
	}
	merge, reason, err := s.integrate(ctx, &h, step)
	if err != nil {
		return tick.Idle, err
	}
	if reason != "" && flows {
		j.reason = reason
		return s.failVisit(ctx, held.Name, step, j, h.Commit)
	}
	if reason != "" {
		return s.back(ctx, held.Name, step, reason, false)
	}
	if err := s.Change(ctx, merge, func(p *plan.Plan) error {
		p.Finish(step.ID, h.Commit, merge, summary(doc.Summary), s.Now())
		if flows {
			j.settle(p, step.ID)
		}
		return s.KeepCheckpoint(ctx, p, step.ID, documentPath(step))
	}, journal.Event{Kind: journal.StepDone, Level: journal.Milestone, Step: step.ID, Run: h.Run,
		Text: fmt.Sprintf("step %s is done: %s", step.ID, step.Title)}); err != nil {
		return tick.Idle, err
	}
	if err := s.Made(ctx, h.Run, true); err != nil {
		return tick.Idle, err
	}
	s.Line(ctx, "idle", step.ID, "", "finished %s", step.ID)
	s.Wake("manager")
	if err := s.publish(ctx); err != nil {
		return tick.Idle, err
	}
	return tick.Moved, errors.Join(q.Complete(s.Agent.Name, held.Name, s.Now()), s.Drop())
}

func (s Specialist) close(name string) error {
	return errors.Join(s.Store.Queue().Complete(s.Agent.Name, name, s.Now()), s.Drop())
}

// run prepares the clone and runs the agent program, unless an earlier tick has its result already.
func (s Specialist) run(ctx context.Context, h *tick.Hold, step plan.Step) (runner.Result, tick.Outcome, error) {
	if res, ok, err := s.Result(h.Run); err != nil || ok {
		return res, tick.Moved, err
	}
	h.Died()
	prof, ok := s.Professions.Get(s.Agent.Profession)
	if !ok {
		return runner.Result{}, tick.Idle, fmt.Errorf("there is no profession %q any more", s.Agent.Profession)
	}
	gate, err := s.gate()
	if err != nil {
		return runner.Result{}, tick.Idle, err
	}
	last := s.before(h, step)
	cut := h.Prepared && last == nil // an earlier run of this handoff began and did not finish
	conflicts, err := s.prepare(ctx, h, step, gate)
	if err != nil {
		return runner.Result{}, tick.Idle, err
	}
	plan, err := s.Store.Plan()
	if err != nil {
		return runner.Result{}, tick.Idle, err
	}
	told, err := s.NotesFor(step.ID)
	if err != nil {
		return runner.Result{}, tick.Idle, err
	}
	facts := promptFacts{Cut: cut, Last: last, Conflicts: conflicts, Tight: s.Pressure() >= tick.Tight, Documents: s.documents(ctx, plan, step), Notes: told, NotesTo: mayWrite(gate)}
	ask := tick.Ask{Step: step.ID}
	if st, ok := s.station(step); ok {
		tooLarge := ""
		if ask, tooLarge, err = st.ask(ctx, s, plan, facts); err != nil || tooLarge != "" {
			return runner.Result{Verdict: runner.Failed, Class: "context", Reason: tooLarge}, tick.Moved, err
		}
		ask.Step = step.ID
	} else {
		ask.Prompt = prompt(plan, step, facts)
	}
	ask.Profession, ask.Dir, ask.Gate = prof, s.Store.Clone(s.Agent.Name), &gate
	if ask.Schema == nil {
		ask.Follow = s.follow(h, step, gate)
	}
	return s.Run(ctx, h, ask)
}

// question is what the agent of a run asks because it cannot go on without a person's word; empty: nothing.
func (s Specialist) question(run string) (string, error) {
	if run == "" {
		return "", nil
	}
	res, ok, err := s.Result(run)
	text, is := strings.CutPrefix(strings.TrimSpace(res.Text), questionMark)
	if err != nil || !ok || res.Verdict != runner.Done || !is {
		return "", err
	}
	if answer, err := s.answered(run); err != nil || answer != "" || !s.Mission.Reachable {
		return "", err // the work was done before, or it was told that nobody answers
	}
	return firstLines(text, 2500), nil
}

// ask puts the step aside, with what there is of it, and asks a person. The question is the agent's word; an answer is only what
// a person decides. An agent that asked too often gets the step back instead.
func (s Specialist) ask(ctx context.Context, handoff string, h *tick.Hold, step plan.Step, question string, err error) (tick.Outcome, error) {
	if err != nil {
		return tick.Idle, err
	}
	if step.Questions >= plan.MaxQuestions {
		return s.back(ctx, handoff, step, fmt.Sprintf("you asked a person %d times, which is the most: decide yourself, or end with BLOCKED: and why", step.Questions), false)
	}
	if err := s.sendDrafts(ctx, h, step); err != nil {
		return tick.Idle, err
	}
	if reason, err := s.commit(ctx, h, step); err != nil {
		return tick.Idle, err
	} else if reason != "" {
		h.Commit = "" // the answer says so when it matters
	}
	if err := s.Store.ChangePlan(ctx, func(p *plan.Plan) (bool, error) {
		asked := p.Ask(step.ID, question, h.Commit, s.Now())
		if asked {
			step = *p.Step(step.ID)
		}
		return asked, nil
	}); err != nil {
		return tick.Idle, err
	}
	if step.State == plan.Asking { // else it was taken from this agent
		if _, err := s.AskPerson(ctx, tick.StepQuestion(step)); err != nil {
			return tick.Idle, err
		}
		s.Line(ctx, "waiting", step.ID, "", "asks a person about %s: %s", step.ID, question)
		s.Wake("manager")
	}
	return tick.Moved, s.close(handoff)
}

// back returns the step to this agent with the reason, or gives it up so that the manager plans anew.
func (s Specialist) back(ctx context.Context, handoff string, step plan.Step, reason string, final bool) (tick.Outcome, error) {
	head, err := s.Repo().Resolve(ctx, "refs/heads/main")
	if err != nil {
		return tick.Idle, err
	}
	again := false
	if err := s.Change(ctx, head, func(p *plan.Plan) error {
		name, failed := s.Namer(ctx, head)
		if final {
			if x := p.Step(step.ID); x != nil && x.Visit != nil {
				x.Visit.Final = true
			}
			p.Fail(step.ID, reason, s.Now())
		} else {
			again = p.Return(step.ID, reason, strings.HasPrefix(reason, conflictReason), name, s.Now())
		}
		return *failed
	}); err != nil {
		return tick.Idle, err
	}
	if again {
		s.Event(journal.Event{Kind: journal.StepReturned, Step: step.ID, Text: fmt.Sprintf("step %s came back to %s: %s", step.ID, s.Agent.Name, firstLines(reason, 300))})
		s.Line(ctx, "waiting", step.ID, "", "%s came back: %s", step.ID, reason)
		s.Wake(s.Agent.Name)
	} else {
		s.Event(journal.Event{Kind: journal.StepFailed, Level: journal.Milestone, Step: step.ID, Text: fmt.Sprintf("step %s failed: %s", step.ID, firstLines(reason, 300))})
		s.Line(ctx, "idle", step.ID, "", "gave up %s: %s", step.ID, reason)
		s.Wake("manager")
	}
	return tick.Moved, s.close(handoff)
}

// summary is what the plan keeps of a finished step: the summary of its document, cut to about 200 words and 2,000 bytes.
func summary(text string) string {
	if words := strings.Fields(text); len(words) > 220 {
		text = strings.Join(words[:220], " ") + " …"
	}
	return firstLines(text, 2000)
}

// firstLines cuts text to max bytes at a rune.
func firstLines(text string, max int) string {
	text = strings.TrimSpace(text)
	if len(text) <= max {
		return text
	}
	return strings.ToValidUTF8(text[:max], "") + "…"
}
