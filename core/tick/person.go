package tick

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"example.com/AutoAgentProject/core/journal"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/plan"
	"example.com/AutoAgentProject/core/store"
)

// WaitCause is the pause of a mission in which nothing can go on until a person has answered.
const WaitCause = "approval"

// Question is what a person is asked: by code that saw that it is needed, never because somebody says so. Whoever asks
// calls AskPerson again in each tick until there is an answer, and does nothing meanwhile that depends on it.
type Question struct {
	Kind mission.ApprovalKind
	// Name is what stays the same while its content changes, for example the gate of a flow and its task: "review/page". An open
	// question of that name is replaced when the subject has changed. It may be empty.
	Name string
	By   string // the agent that asks; empty: the one whose tick this is
	// Subject is the content that is approved, whole. An answer is for exactly this content.
	Subject []byte
	Title   string // one line
	Text    string
	Diff    string // what would change; may be empty
	MaySkip bool   // whether "go on without it" is an answer
	// Alone says that nothing else of the mission can go on meanwhile: then its time stands still.
	Alone bool
}

// AskPerson returns a person's answer to exactly this question, nil while there is none. Silence becomes Expired, never a
// yes. It may be called again and again, also by a tick after a death: the question is asked once.
func (t *Tick) AskPerson(ctx context.Context, q Question) (*mission.Decision, error) {
	now := t.Now()
	if err := t.Store.Expire(now); err != nil {
		return nil, err
	}
	subject := mission.Hash(q.Subject)
	all, err := t.Store.Approvals()
	if err != nil {
		return nil, err
	}
	for _, a := range slices.Backward(all) { // the latest one
		if a.Kind == q.Kind && a.Name == q.Name && a.Subject == subject && a.Decision != nil && a.Decision.Verdict != mission.Replaced {
			return a.Decision, nil
		}
	}
	asked, fresh, err := t.Store.Ask(ctx, mission.Approval{Kind: q.Kind, Name: q.Name, Title: q.Title, Text: q.Text, Diff: q.Diff,
		MaySkip: q.MaySkip, Subject: subject, By: cmp.Or(q.By, t.Agent.Name)}, now)
	if err != nil {
		return nil, err
	}
	if q.Alone {
		if err := t.WaitForPerson(ctx, asked); err != nil {
			return nil, err
		}
	}
	if fresh {
		t.Event(journal.Event{Kind: journal.ApprovalAsked, Text: fmt.Sprintf("approval %d is asked for: %s", asked.N, asked.Title)})
	}
	t.Wake("reporter") // its message is made from the request itself
	return nil, nil
}

// StepQuestion is what the agent of a step asks, the same for the agent's tick, which asks, and the manager's, which takes the
// answer.
func StepQuestion(s plan.Step) Question {
	return Question{Kind: mission.Asking, Name: s.ID, By: s.Agent, Subject: fmt.Appendf(nil, "%s %d %s", s.ID, s.Questions, s.Question),
		Title: fmt.Sprintf("%s asks about step %s: %s", s.Agent, s.ID, s.Title),
		Text:  s.Question + "\n\nThe step waits; others go on. Say more than yes or no with /approve and words behind the number."}
}

// WaitForPerson lets the whole mission wait, and its time stand still, until a person answers something.
func (t *Tick) WaitForPerson(ctx context.Context, a store.Asked) error {
	_, err := t.Store.Pause(ctx, mission.Pause{Cause: WaitCause, Reason: fmt.Sprintf("approval %d: %s", a.N, a.Title), Until: a.Expires}, t.Now())
	return err
}

// answered says whether a person answered something since then, or is asked nothing any more.
func (t *Tick) answered(since time.Time) bool {
	all, err := t.Store.Approvals()
	open := false
	for _, a := range all {
		if a.Decision != nil && !a.Decision.At.Before(since) {
			return true
		}
		open = open || a.Open(t.Now())
	}
	return err == nil && !open
}
