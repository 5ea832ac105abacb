package plan

import "fmt"

// Action is what the manager has to do next.
type Action string

const (
	MakePlan   Action = "plan"     // ask the model for the first plan
	MakeReplan Action = "re-plan"  // ask the model for another plan, with the reason
	Reconsider Action = "listen"   // ask the model whether what the person said changes the plan
	Verify     Action = "verify"   // run the mission's verify on the integrated tree
	Complete   Action = "complete" // all is done and proven
	GiveUp     Action = "give-up"  // it cannot go on
	Wait       Action = "wait"     // somebody works, or nothing changed
	Stand      Action = "stand"    // nothing can go on before a person looked at what is blocked
)

// Facts is what Decide looks at besides the plan itself.
type Facts struct {
	HasVerify bool   // the mission has a verify command
	Head      string // commit of the integrated tree
	Notes     int    // what the person said so far
}

// Decide returns the manager's next action and its reason in one line. The same facts give the same answer, so a
// tick after which nothing changed does nothing.
func Decide(p *Plan, f Facts) (Action, string) {
	if p == nil || p.Round == 0 {
		return MakePlan, "there is no plan yet"
	}
	action, reason := p.decide(f)
	// After a failure the next plan knows it; and where all tries are used up it is no answer to how it goes on.
	if (f.Notes > p.Heard || p.Hearing > 0) && p.Count(Failed) == 0 && action != GiveUp {
		return Reconsider, "the person said something new"
	}
	return action, reason
}

// decide is Decide for a plan that is there, whatever the person says.
func (p *Plan) decide(f Facts) (Action, string) {
	held := p.Hearing > 0 && p.Count(Failed) > 0 // what is ready is not given out, and the next plan replaces it
	if len(p.Ready()) > 0 && !held || p.Count(Assigned, Working) > 0 {
		return Wait, "steps are under way"
	}
	if p.Count(Failed) > 0 {
		for _, s := range p.Steps {
			if s.State == Failed {
				return p.again(fmt.Sprintf("step %s failed: %s", s.ID, s.reason()))
			}
		}
	}
	if p.Count(Asking) > 0 {
		return Wait, "a person is asked"
	}
	for _, s := range p.Steps {
		if s.State == Blocked {
			return Stand, fmt.Sprintf("step %s is blocked: %s", s.ID, s.reason())
		}
	}
	if !p.AllDone() {
		return GiveUp, "steps wait for something that will never come"
	}
	switch {
	case !f.HasVerify:
		return Complete, "all steps are done"
	case p.Final.Commit != f.Head:
		return Verify, "all steps are done"
	case p.Final.Passed:
		return Complete, "all steps are done and the mission's verify passed"
	}
	return p.again("the mission's verify failed on the integrated tree: " + p.Final.Output)
}

func (p *Plan) again(reason string) (Action, string) {
	if p.Round >= MaxRounds+p.Granted {
		return GiveUp, fmt.Sprintf("%s (after %d plans)", reason, p.Round)
	}
	return MakeReplan, reason
}

func (s *Step) reason() string {
	if len(s.Reasons) == 0 {
		return "no reason given"
	}
	return s.Reasons[len(s.Reasons)-1]
}
