package plan

import (
	"cmp"
	"slices"
	"time"

	"example.com/AutoAgentProject/core/mission"
)

// Namer makes the envelope of an assignment.
type Namer func(step Step, to string) Handoff

// Assign gives every ready step to the agent of its profession with the least to do (roster order breaks ties) and
// returns the steps given. name fixes the envelope of each.
func (p *Plan) Assign(roster []mission.Agent, name Namer, now time.Time) []*Step {
	load := map[string]int{}
	for _, s := range p.Steps {
		if s.State == Assigned || s.State == Working {
			load[s.Agent]++
		}
	}
	var given []*Step
	if p.Hearing > 0 { // they may be replaced in a moment
		return nil
	}
	for _, s := range p.Ready() {
		able := slices.DeleteFunc(mission.Specialists(roster), func(a mission.Agent) bool { return a.Profession != s.Profession })
		if len(able) == 0 {
			continue // Check refuses such a plan
		}
		if p.goneRound(s, now) {
			continue
		}
		if i := slices.IndexFunc(able, func(a mission.Agent) bool { return a.Name == s.Agent }); i >= 0 {
			able = able[i : i+1] // it had it before: its work is in that agent's clone
		}
		a := slices.MinFunc(able, func(x, y mission.Agent) int { return cmp.Compare(load[x.Name], load[y.Name]) })
		load[a.Name]++
		p.give(s, a.Name, name, now)
		given = append(given, s)
	}
	return given
}

func (p *Plan) give(s *Step, agent string, name Namer, now time.Time) {
	h := name(*s, agent)
	h.Hops = p.Hops(s.ID)
	s.State, s.Agent, s.Since = Assigned, agent, now.UTC()
	s.Handoffs = append(s.Handoffs, h)
}

// Take marks a step as held by its agent. False: it is not this agent's step (any more).
func (p *Plan) Take(id, agent, handoff string, now time.Time) bool {
	s := p.Step(id)
	if s == nil || s.Agent != agent || s.Last().Name != handoff || (s.State != Assigned && s.State != Working) {
		return false
	}
	if s.State != Working {
		s.State, s.Since = Working, now.UTC()
	}
	return true
}

// Finish marks a held step as done. A step that nobody holds (any more) stays as it is.
func (p *Plan) Finish(id, commit, merge, summary string, now time.Time) {
	if s := p.Step(id); s != nil && s.State == Working {
		s.State, s.Commit, s.Merge, s.Summary, s.Since = Done, commit, merge, summary, now.UTC()
	}
}

// Return sends a held step back to its agent with the reason, as a new handoff, or fails it when it came back too
// often already. It says whether it was sent.
func (p *Plan) Return(id, reason string, conflict bool, name Namer, now time.Time) bool {
	s := p.Step(id)
	if s == nil || s.State != Working {
		return false
	}
	returned := len(s.Handoffs) - 1 - s.Conflicts - s.Questions
	if (conflict && s.Conflicts >= MaxConflicts) || (!conflict && returned >= MaxReturns) {
		p.Fail(id, reason, now)
		return false
	}
	if conflict {
		s.Conflicts++
	}
	s.Reasons = append(s.Reasons, reason)
	if p.goneRound(s, now) {
		return false
	}
	p.give(s, s.Agent, name, now)
	return true
}

// Ask puts a held step aside, with the commit of what there is of it, until a person has answered its agent's question. False:
// nobody holds it, or its agent asked too often already.
func (p *Plan) Ask(id, question, commit string, now time.Time) bool {
	s := p.Step(id)
	if s == nil || s.State != Working || s.Questions >= MaxQuestions {
		return false
	}
	s.State, s.Question, s.Commit, s.Since = Asking, question, commit, now.UTC()
	return true
}

// Answer gives a step back to its agent with what the person said.
func (p *Plan) Answer(id, answer string, name Namer, now time.Time) {
	s := p.Step(id)
	if s == nil || s.State != Asking {
		return
	}
	s.Reasons = append(s.Reasons, answer)
	s.Questions, s.Question = s.Questions+1, ""
	if !p.goneRound(s, now) {
		p.give(s, s.Agent, name, now)
	}
}

// Skip leaves the steps of that state out, failed or blocked ones, by a person's word: what builds on them goes on without, and what they alone served is
// not asked for any more.
func (p *Plan) Skip(state State) {
	failed := func(s Step) bool { return s.State == state }
	for _, s := range p.Steps {
		if failed(s) {
			p.Skipped = append(p.Skipped, s)
		}
	}
	p.Steps = slices.DeleteFunc(p.Steps, failed)
	served := map[string]bool{}
	for i := range p.Steps {
		s := &p.Steps[i]
		s.DependsOn = slices.DeleteFunc(s.DependsOn, func(d string) bool { return p.Step(d) == nil })
		for _, a := range s.Acceptance {
			served[norm(a)] = true
		}
	}
	p.Acceptance = slices.DeleteFunc(p.Acceptance, func(a string) bool { return !served[norm(a)] })
}

// Fail gives a step up, unless it is done or given up already.
func (p *Plan) Fail(id, reason string, now time.Time) {
	if s := p.Step(id); s != nil && s.State != Done && s.State != Failed {
		s.State, s.Since = Failed, now.UTC()
		s.Reasons = append(s.Reasons, reason)
	}
}
