package plan

import "time"

// Help counts that a held step is helped on after a run, unless it was helped on so often already that max is reached. A run
// counts once, also when a tick died in between.
func (p *Plan) Help(id, run string, max int) bool {
	s := p.Step(id)
	if s == nil || s.State != Working {
		return false
	}
	if s.Tried == run {
		return true
	}
	if s.Tries >= max {
		return false
	}
	s.Tries, s.Tried = s.Tries+1, run
	return true
}

// Block lets a held step wait for a person.
func (p *Plan) Block(id, reason string, now time.Time) {
	if s := p.Step(id); s != nil && s.State == Working {
		s.State, s.Since = Blocked, now.UTC()
		s.Reasons = append(s.Reasons, reason)
	}
}

// Unblock lets blocked steps be tried again by the agent that had them, all of them or those of one agent, and returns their
// ids. They are helped on as often as if it were for the first time.
func (p *Plan) Unblock(agent string, now time.Time) []string {
	var out []string
	for i := range p.Steps {
		s := &p.Steps[i]
		if s.State != Blocked || agent != "" && s.Agent != agent {
			continue
		}
		s.State, s.Since, s.Tries, s.Tried = Waiting, now.UTC(), 0, ""
		out = append(out, s.ID)
	}
	return out
}

// Again hands a step that is under way to its agent once more, because the handoff was lost. It is none of the returns.
func (p *Plan) Again(id string, name Namer, now time.Time) bool {
	s := p.Step(id)
	if s == nil || s.State != Assigned && s.State != Working {
		return false
	}
	h := name(*s, s.Agent)
	h.Hops = s.Last().Hops
	s.Handoffs[len(s.Handoffs)-1] = h // in place of the one that is lost
	s.State, s.Since = Assigned, now.UTC()
	return true
}
