package specialist

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"example.com/AutoAgentProject/core/journal"
	"example.com/AutoAgentProject/core/plan"
	"example.com/AutoAgentProject/core/queue"
	"example.com/AutoAgentProject/core/recovery"
	"example.com/AutoAgentProject/core/runner"
	"example.com/AutoAgentProject/core/tick"
)

// help does what the table says about a run that failed: another run of the same handoff, or the step waits for a person.
func (s Specialist) help(ctx context.Context, h *tick.Hold, held *queue.Held, step plan.Step, res runner.Result) (tick.Outcome, error) {
	fault := recovery.Of(res.Class, tick.Worked(s.Store.Clone(s.Agent.Name), h.Since))
	may := false
	if err := s.Store.ChangePlan(ctx, func(p *plan.Plan) (bool, error) {
		may = p.Help(step.ID, h.Run, recovery.MaxTries)
		if x := p.Step(step.ID); x != nil {
			step = *x
		}
		return may, nil
	}); err != nil {
		return tick.Idle, err
	}
	if !may {
		return s.block(ctx, held, step, fmt.Sprintf("it was helped on %d times, and the run failed again: %s", recovery.MaxTries, res.Reason))
	}
	_, row := recovery.Decide(fault, 0)
	s.Event(journal.Event{Kind: journal.Intervened, Step: step.ID, Run: h.Run,
		Text: fmt.Sprintf("step %s (%s, try %d of %d): %s; %s", step.ID, fault, step.Tries, recovery.MaxTries, res.Reason, row.Done)})
	s.Line(ctx, "working", step.ID, "", "%s is tried again: %s", step.ID, res.Reason)
	h.After, h.Fault, h.Run = h.Run, string(fault), ""
	if row.Action == recovery.Anew {
		h.After, h.Prepared = "", false
	}
	return tick.Moved, errors.Join(s.Keep(*h), s.Store.Queue().Release(s.Agent.Name, held.Name))
}

// block lets a step wait for a person, who is told once and finds it in TODO-human.md.
// In a flow it is given up: its rules say who is asked then.
func (s Specialist) block(ctx context.Context, held *queue.Held, step plan.Step, reason string) (tick.Outcome, error) {
	if step.Visit != nil {
		return s.back(ctx, held.Name, step, reason, true)
	}
	head, err := s.Repo().Resolve(ctx, "refs/heads/main")
	if err != nil {
		return tick.Idle, err
	}
	if err := s.Change(ctx, head, func(p *plan.Plan) error {
		p.Block(step.ID, reason, s.Now())
		if x := p.Step(step.ID); x != nil {
			step = *x
		}
		return nil
	}); err != nil {
		return tick.Idle, err
	}
	err = s.TellBlocked(ctx, step)
	s.Line(ctx, "blocked", step.ID, "", "%s is blocked: %s", step.ID, reason)
	s.Wake("manager")
	return tick.Moved, errors.Join(err, s.close(held.Name))
}

// before is what a run is told of the one that was ended before it.
type before struct {
	Reason  string   // why it was ended
	Smaller bool     // do the smallest useful part only
	State   string   // where things stand
	Calls   []string // the last tools it called
	Words   string   // the last it said
	Try     int
}

// interrupted begins what the program says in a person's place when we interrupt it.
const interrupted = "[Request interrupted by user"

// lastCalls and lastWords bound what is told of an ended run.
const (
	lastCalls = 5
	lastWords = 800
)

// before gathers what is on disk about the run before: nothing of the conversation is needed to go on.
func (s Specialist) before(h *tick.Hold, step plan.Step) *before {
	if h.After == "" {
		return nil
	}
	b := &before{Smaller: recovery.Find(recovery.Fault(h.Fault)).Action == recovery.Smaller,
		State: tick.Changed(s.Store.Clone(s.Agent.Name), h.Since), Try: step.Tries}
	if res, _, err := s.Result(h.After); err == nil {
		b.Reason = res.Reason
	}
	s.Transcript(h.After, func(e runner.Event) {
		switch e.Kind {
		case "tool":
			b.Calls = append(b.Calls, firstLines(e.Text, 200))
			b.Calls = b.Calls[max(0, len(b.Calls)-lastCalls):]
		case "text":
			if strings.HasPrefix(e.Text, interrupted) {
				return
			}
			b.Words = firstLines(e.Text, lastWords)
		}
	})
	return b
}

// text is the part of the prompt about it.
func (b *before) text() string {
	var out strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&out, format, args...) }
	say("\n## Your last run was ended\nThe reason: %s\n\nThis is try %d of %d. What is in your folder is all there is: look at it before you go on. Where things stand: %s\n",
		b.Reason, b.Try, recovery.MaxTries, b.State)
	if len(b.Calls) > 0 {
		say("\nThe last it called, oldest first:\n%s\n", quote(strings.Join(b.Calls, "\n")))
	}
	if b.Words != "" {
		say("\nThe last it said:\n%s\n", quote(b.Words))
	}
	say("\nDo not repeat what led nowhere.\n")
	if b.Smaller {
		say("\nDo the smallest part of the step that is useful by itself and makes the command above pass, leave every extra out, keep each answer short, and finish.\n")
	}
	return out.String()
}
