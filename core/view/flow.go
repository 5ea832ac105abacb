package view

import (
	"slices"

	"example.com/AutoAgentProject/core/conductor"
	"example.com/AutoAgentProject/core/flow"
	"example.com/AutoAgentProject/core/plan"
)

// Station is one step of the flow that a mission follows, and how far it is there.
type Station struct {
	ID         string     `json:"id"`
	Title      string     `json:"title"`
	Profession string     `json:"profession"`
	Gate       string     `json:"gate,omitempty"` // as the flow says
	State      plan.State `json:"state"`          // of its latest visit; waiting: there was none
	Visits     int        `json:"visits"`
	Visit      string     `json:"visit,omitempty"` // step of the plan that is the latest
	Holds      bool       `json:"holds"`           // the baton is here
	Next       []string   `json:"next"`            // where it can go from here
	Back       string     `json:"back,omitempty"`  // where it goes after a failure, if that is another one
}

// stations tells a flow by what the plan knows of its visits.
func stations(f flow.Flow, p *plan.Plan) []Station {
	var out []Station
	for i, s := range f.Steps {
		x := Station{ID: s.ID, Title: s.Name(), Profession: s.Profession, Gate: s.Gate, State: plan.Waiting, Next: []string{}}
		if back := s.BackTo(); back != s.ID {
			x.Back = back
		}
		for _, v := range p.Steps {
			if v.Visit != nil && v.Visit.Step == s.ID {
				x.Visits, x.Visit, x.State = x.Visits+1, v.ID, v.State
			}
		}
		x.Holds = p.Baton != nil && p.Baton.Step == s.ID && (p.Baton.Status == conductor.Running || p.Baton.Status == conductor.Asking)
		targets := []string{}
		for _, a := range s.Exit.Arms {
			if t, ok := f.Target(s, a.Value); ok {
				targets = append(targets, t)
			}
		}
		if t, ok := f.Target(s, ""); ok {
			targets = append(targets, t)
		}
		for _, t := range targets {
			if f.Index(t) > i && !slices.Contains(x.Next, t) { // the others end it, or are its loop
				x.Next = append(x.Next, t)
			}
		}
		out = append(out, x)
	}
	return out
}
