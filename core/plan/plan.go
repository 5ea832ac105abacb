// Package plan holds the steps of a mission and every decision about them: what a plan must look like, what is due
// next, what follows from a success or a failure. Pure: no file, no clock.
package plan

import (
	"fmt"
	"slices"
	"time"

	"example.com/AutoAgentProject/core/conductor"
)

// State of a step.
type State string

const (
	Waiting  State = "waiting"  // for the steps it depends on
	Assigned State = "assigned" // its handoff is on the way or in an inbox
	Working  State = "working"  // an agent holds it
	Done     State = "done"     // merged, and its verify passed on exactly that merge
	Failed   State = "failed"   // given up; the manager plans anew
	Asking   State = "asking"   // its agent cannot go on before a person has answered
	Blocked  State = "blocked"  // a person has to look at it
)

// How often a step goes back to its agent with the reason before it is a failure. Conflicts are nobody's fault and count
// apart: with many agents at one file each of them may be the last to merge.
const (
	MaxReturns   = 1
	MaxConflicts = 6
)

// MaxQuestions is how often an agent may ask a person about one step.
const MaxQuestions = 3

// MaxRounds is how many plans a mission accepts: the first and the re-plans. A person can grant more.
const MaxRounds = 3

// Step is one step of the plan and where it stands.
type Step struct {
	ID         string   `json:"id"`
	Title      string   `json:"title"`
	Brief      string   `json:"brief"`
	Profession string   `json:"profession"`
	DependsOn  []string `json:"depends_on"`
	Verify     string   `json:"verify"`
	Acceptance []string `json:"acceptance"`

	Round     int       `json:"round"` // the plan it came with
	State     State     `json:"state"`
	Agent     string    `json:"agent,omitempty"`
	Handoffs  []Handoff `json:"handoffs,omitempty"`  // one for each time it was handed over; the last one counts
	Conflicts int       `json:"conflicts,omitempty"` // how often of these it went back because of a conflict
	Questions int       `json:"questions,omitempty"` // and how often with a person's answer
	Question  string    `json:"question,omitempty"`  // what the person is asked
	Reasons   []string  `json:"reasons,omitempty"`   // why it went back or failed, oldest first
	Commit    string    `json:"commit,omitempty"`    // the agent's commit
	Merge     string    `json:"merge,omitempty"`     // the commit on main that holds it
	Summary   string    `json:"summary,omitempty"`   // the agent's own words, for those who build on it
	Since     time.Time `json:"since"`

	Checkpoint int `json:"checkpoint,omitempty"` // its number, once the step is done

	Visit *Visit `json:"visit,omitempty"` // where the mission follows a flow
	Tries int    `json:"tries,omitempty"` // how often its runs were helped on, whatever was wrong
	Tried string `json:"tried,omitempty"` // the run that was helped on last: none counts twice
}

// Handoff is the envelope of one assignment. It is fixed here first, so that sending it is repeatable.
type Handoff struct {
	Name   string    `json:"name"` // file name of the envelope
	ID     string    `json:"id"`   // its id header
	From   string    `json:"from"`
	Commit string    `json:"commit"`         // full name of the commit to work from
	Hops   int       `json:"hops,omitempty"` // handoffs that led to it
	At     time.Time `json:"at"`
}

// Plan is plan.json.
type Plan struct {
	Version    int      `json:"version"`
	Round      int      `json:"round"`      // accepted plans so far
	Acceptance []string `json:"acceptance"` // every acceptance of the first accepted plan
	Steps      []Step   `json:"steps"`
	Final      Final    `json:"final"`

	Checkpoints int `json:"checkpoints,omitempty"` // how many there are

	Baton *conductor.State  `json:"baton,omitempty"` // where the mission follows a flow
	Specs map[string]string `json:"specs,omitempty"` // and where on the docs ref each specification lies as it was accepted last

	Granted int    `json:"granted,omitempty"` // plans beyond MaxRounds that a person's word led to
	Heard   int    `json:"heard,omitempty"`   // notes of the person that the plan knows
	Hearing int    `json:"hearing,omitempty"` // notes that a plan is being made with; meanwhile no step is given out
	Skipped []Step `json:"skipped,omitempty"` // left out by a person
}

// Final is the mission's own verify on the integrated tree.
type Final struct {
	Commit string `json:"commit,omitempty"` // what it ran on
	Passed bool   `json:"passed"`
	Output string `json:"output,omitempty"` // end of its output when it failed
}

// Step returns the step of that id, to be changed in place.
func (p *Plan) Step(id string) *Step {
	for i := range p.Steps {
		if p.Steps[i].ID == id {
			return &p.Steps[i]
		}
	}
	return nil
}

// Last returns the latest handoff of the step.
func (s *Step) Last() Handoff {
	if len(s.Handoffs) == 0 {
		return Handoff{}
	}
	return s.Handoffs[len(s.Handoffs)-1]
}

// Hops is how many handoffs lead to the next one of the step: those of the longest way through what it builds on, and those
// that brought it back to its agent.
func (p *Plan) Hops(id string) int {
	s := p.Step(id)
	if s == nil {
		return 0
	}
	if len(s.Handoffs) > 0 {
		return s.Last().Hops + 1
	}
	n := 0
	for _, d := range s.DependsOn {
		if x := p.Step(d); x != nil && len(x.Handoffs) > 0 {
			n = max(n, x.Last().Hops+1)
		}
	}
	return n
}

// MaxHops is the longest chain of handoffs in a mission.
const MaxHops = 40

// goneRound gives a step up to which too many handoffs lead, for that reason.
func (p *Plan) goneRound(s *Step, now time.Time) bool {
	n := p.Hops(s.ID)
	if n > MaxHops {
		p.Fail(s.ID, fmt.Sprintf("hop limit: %d handoffs lead to step %s, at most %d may", n, s.ID, MaxHops), now)
	}
	return n > MaxHops
}

// Count returns how many steps are in any of the states.
func (p *Plan) Count(states ...State) int {
	n := 0
	for _, s := range p.Steps {
		if slices.Contains(states, s.State) {
			n++
		}
	}
	return n
}

// AllDone says whether there is a plan and nothing of it is left.
func (p *Plan) AllDone() bool { return len(p.Steps) > 0 && p.Count(Done) == len(p.Steps) }

// Ready returns the steps that wait for nothing any more, in plan order.
func (p *Plan) Ready() []*Step {
	var out []*Step
	for i := range p.Steps {
		s := &p.Steps[i]
		if s.State != Waiting {
			continue
		}
		if !slices.ContainsFunc(s.DependsOn, func(d string) bool { x := p.Step(d); return x == nil || x.State != Done }) {
			out = append(out, s)
		}
	}
	return out
}
