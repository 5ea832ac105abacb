// Package conductor decides who holds the baton of a task that follows a flow: facts in, the next state out. It asks no model and
// reads no file and no clock, and routes on what was proven (exit codes, validators, ownership of what changed), never on what an
// agent says of its own work.
package conductor

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"example.com/AutoAgentProject/core/flow"
)

// Status of a task.
type Status string

const (
	Running  Status = "running"  // a step holds the baton
	Asking   Status = "asking"   // a person is asked
	Complete Status = "complete" // the flow has reached its end
	Stopped  Status = "stopped"  // a step's answer was all there was to do
	Failed   Status = "failed"   // a person ended it, or it cannot go on
)

// State is where the baton of one task is. It is kept in plan.json.
type State struct {
	Flow   string           `json:"flow"`
	Status Status           `json:"status"`
	Step   string           `json:"step"`           // that holds the baton, or at whose gate it lies
	Visit  int              `json:"visit"`          // the how-manieth visit of any step it is
	Note   string           `json:"note,omitempty"` // why it came here, for the one who takes it
	From   string           `json:"from,omitempty"` // commit of failed work that the visit goes on from; empty: the integrated tree
	Counts map[string]Count `json:"counts"`
	Gate   *Gate            `json:"gate,omitempty"`
	End    string           `json:"end,omitempty"`  // why it ended
	Told   string           `json:"told,omitempty"` // what the next visit is told besides: why the task was rolled back
	Skip   int              `json:"skip,omitempty"` // numbers of visits that were used before a rollback
	People int              `json:"people,omitempty"`
	Last   string           `json:"last,omitempty"` // visit whose work was accepted last
}

// Count is what happened in one step so far.
type Count struct {
	Visits    int  `json:"visits"`
	Failures  int  `json:"failures"`            // since the last fresh round
	Escalated bool `json:"escalated,omitempty"` // its on_fail was taken already
	Tier      int  `json:"tier,omitempty"`      // by how much its model was raised
}

// Gate is a question to a person.
type Gate struct {
	Kind string `json:"kind"` // goal, design, plan, code, review, human, or error
	Why  string `json:"why,omitempty"`
	Next string `json:"next,omitempty"` // target after a yes
	From string `json:"from,omitempty"` // commit that a step goes on from after a yes at an error
	// Asked is how often the question was left without an answer. Silence is no answer, so it is asked again.
	Asked int `json:"asked,omitempty"`
}

// GateError is the kind of gate at which something went wrong.
const GateError = "error"

// Limits.
const (
	MaxVisits = 300     // of all steps together; then a person is asked whatever the loops allow
	maxNote   = 6 << 10 // bytes
	maxTier   = 2
)

// Fact is what became of the visit or the question that the state is about.
type Fact struct {
	Kind   Kind
	Answer string // passed: of a step that judges
	Said   string // passed: the reasons with that answer
	Reason string // failed: why. decided: what the person said with it
	Commit string // failed: the work that is there, if any
	Final  bool   // failed: the step says that it cannot be done as it is described
	Yes    bool   // decided
}

// Kind of a fact.
type Kind string

const (
	Passed  Kind = "passed"  // every check of the visit passed
	Failing Kind = "failed"  // one did not
	Decided Kind = "decided" // a person answered
	Undone  Kind = "undone"  // the flow was complete, but the mission's verify failed on the result
)

// World is what decisions look at besides the flow.
type World struct {
	Mode  string                           // gsd or check
	Gates func(profession string) []string // named gates of a profession
	Short bool                             // money is short: optional steps are left out
}

// Visit names the current visit, as a step of the plan: the step's id and the number.
func (s State) VisitID() string { return fmt.Sprintf("%s-%d", s.Step, s.Visit) }

// Begin gives the baton to the first step.
func Begin(f flow.Flow) State {
	s := State{Flow: f.ID, Status: Running, Counts: map[string]Count{}}
	return s.hand(f, f.Steps[0].ID, "", "")
}

// Next is the state after a fact. A fact that fits the state in no way leaves it as it is.
func Next(f flow.Flow, w World, s State, x Fact) State {
	s.Counts = maps.Clone(s.Counts)
	if s.Counts == nil {
		s.Counts = map[string]Count{}
	}
	step, ok := f.Step(s.Step)
	if !ok {
		return s.end(Failed, fmt.Sprintf("the flow has no step %q any more", s.Step))
	}
	switch {
	case s.Status == Running && x.Kind == Passed:
		return s.passed(f, w, step, x)
	case s.Status == Running && x.Kind == Failing:
		return s.failed(f, step, x)
	case s.Status == Asking && s.Gate != nil && x.Kind == Decided:
		return s.decided(f, w, step, x)
	case s.Status == Complete && x.Kind == Undone:
		return s.ask(Gate{Kind: GateError, Why: x.Reason})
	}
	return s
}

func (s State) passed(f flow.Flow, w World, step flow.Step, x Fact) State {
	to, ok := f.Target(step, x.Answer)
	if !ok {
		return s.failed(f, step, Fact{Reason: fmt.Sprintf("the answer %q is none of %s", x.Answer, strings.Join(step.Exit.Answers(), ", "))})
	}
	if to == flow.Fail {
		reason := fmt.Sprintf("%s: %s", x.Answer, x.Said)
		return s.failed(f, step, Fact{Reason: reason})
	}
	s.Last = s.VisitID()
	kinds := w.Gates(step.Profession)
	if step.ByPerson(w.Mode, kinds) && to != flow.Stop {
		return s.ask(Gate{Kind: step.GateKind(kinds), Why: x.Said, Next: to})
	}
	s = s.down(f, w, to, "")
	if s.Status == Stopped && x.Said != "" {
		s.End = cut(x.Said) // it is what the person asked for
	}
	return s
}

// failed says who goes on after a failure: the loop's own way as long as it lasts, then its way out once, then a person.
func (s State) failed(f flow.Flow, step flow.Step, x Fact) State {
	c := s.Counts[step.ID]
	c.Failures++
	back, out := step.BackTo(), step.Loop.OnFail
	escalate := out != "" && out != flow.Person && !c.Escalated
	switch {
	case x.Final && escalate, c.Failures > step.Limit() && escalate:
		why := fmt.Sprintf("[ESCALATION] step %s failed %d times; the last reason:\n%s", step.ID, c.Failures, x.Reason)
		if x.Final {
			why = fmt.Sprintf("[ESCALATION] step %s cannot be done as it is described:\n%s", step.ID, x.Reason)
		}
		c.Escalated, c.Failures = true, 0
		s.Counts[step.ID] = c
		return s.hand(f, out, why, carried(f, step, out, x.Commit))
	case x.Final && back == step.ID, c.Failures > step.Limit():
		s.Counts[step.ID] = c
		return s.ask(Gate{Kind: GateError, Why: fmt.Sprintf("step %s failed %d times and nothing is left to try; the last reason:\n%s", step.ID, c.Failures, x.Reason), From: x.Commit})
	}
	s.Counts[step.ID] = c
	worker := s.Counts[back] // whose work did not pass works with a stronger model
	worker.Tier = min(worker.Tier+1, maxTier)
	s.Counts[back] = worker
	return s.hand(f, back, x.Reason, carried(f, step, back, x.Commit))
}

// decided carries a person's answer out. A no at a gate is a failure of the step, counted like others; a yes where something went
// wrong is a fresh round, a no there ends the task.
func (s State) decided(f flow.Flow, w World, step flow.Step, x Fact) State {
	g := *s.Gate
	s.Gate, s.Status = nil, Running
	s.People++
	switch {
	case g.Kind == GateError && !x.Yes:
		return s.end(Failed, "a person ended it: "+cut(firstOf(x.Reason, g.Why)))
	case g.Kind == GateError:
		c := s.Counts[step.ID]
		c.Failures, c.Escalated = 0, false
		s.Counts[step.ID] = c
		why := g.Why
		if x.Reason != "" {
			why += "\n\nA person says: " + x.Reason
		}
		return s.hand(f, step.BackTo(), why, carried(f, step, step.BackTo(), g.From))
	case x.Yes:
		note := ""
		if x.Reason != "" {
			note = "A person passed the gate before this step and says: " + x.Reason
		}
		return s.down(f, w, g.Next, note)
	}
	return s.failed(f, step, Fact{Reason: "A person sent it back: " + firstOf(x.Reason, "without a reason")})
}

// carried is the commit of work that did not pass, if the one who goes on is held to all that it did not pass: else it would be
// merged with theirs and nobody would have proven it.
func carried(f flow.Flow, failed flow.Step, to, commit string) string {
	next, _ := f.Step(to)
	if len(failed.Verify) == 0 {
		return ""
	}
	for _, v := range failed.Verify {
		if !slices.Contains(next.Verify, v) {
			return ""
		}
	}
	return commit
}

func firstOf(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// down gives the baton to what follows a step that passed. Where money is short, optional steps are left out; after a failure none
// is, since a failure would be passed over with it.
func (s State) down(f flow.Flow, w World, to, note string) State {
	for w.Short {
		step, ok := f.Step(to)
		if !ok || !step.Optional {
			break
		}
		to, _ = f.Target(flow.Step{ID: step.ID}, "") // downwards, so this ends
	}
	return s.hand(f, to, note, "")
}

// hand gives the baton to a target.
func (s State) hand(f flow.Flow, to, note, from string) State {
	switch to {
	case flow.Complete:
		return s.end(Complete, "the flow "+f.ID+" has reached its end")
	case flow.Stop:
		return s.end(Stopped, "step "+s.Step+" answered, and nothing more is to be done")
	}
	if f.Index(to) < 0 {
		return s.end(Failed, fmt.Sprintf("the flow has no step %q", to))
	}
	if s.Visit >= MaxVisits {
		return s.ask(Gate{Kind: GateError, Why: fmt.Sprintf("%d visits of steps did not finish it", s.Visit), From: from})
	}
	c := s.Counts[to]
	c.Visits++
	s.Counts[to] = c
	s.Visit += 1 + s.Skip
	s.Skip = 0
	if s.Told != "" {
		note, s.Told = strings.TrimSpace(s.Told+"\n\n"+note), ""
	}
	s.Status, s.Step, s.Note, s.From, s.Gate = Running, to, cut(note), from, nil
	return s
}

func (s State) ask(g Gate) State {
	g.Why = cut(g.Why)
	s.Status, s.Gate = Asking, &g
	return s
}

func (s State) end(how Status, why string) State {
	s.Status, s.End, s.Gate = how, why, nil
	return s
}

func cut(s string) string {
	if len(s) <= maxNote {
		return s
	}
	return strings.ToValidUTF8(s[:maxNote], "") + "…"
}

// Tier is the model of a visit, as a tier or an exact id: what the step or its profession says, raised by one tier for each failed
// validation. An exact id stays.
func Tier(said string, raised int) string {
	for i, t := range tiers {
		if t == said {
			return tiers[min(i+raised, len(tiers)-1)]
		}
	}
	return said
}

var tiers = []string{"cheap", "standard", "strong"}

// Level says what follows from how much of its part a step has used.
type Level int

const (
	Free     Level = iota
	WrapUp         // 70 %: it is told to finish
	Tight          // 85 %: a cheaper model, and only what it cannot do without
	HandOver       // 100 %: what there is goes on, with a note
)

// LevelOf is the level of a step that used spent of limit; no limit is never reached.
func LevelOf(spent, limit int64) Level {
	switch {
	case limit <= 0:
		return Free
	case spent >= limit:
		return HandOver
	case spent >= limit-limit*15/100:
		return Tight
	case spent >= limit-limit*30/100:
		return WrapUp
	}
	return Free
}
