package plan

import (
	"time"

	"example.com/AutoAgentProject/core/conductor"
	"example.com/AutoAgentProject/core/flow"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/profession"
)

// Course is what the steps of a mission that follows a flow are made of.
type Course struct {
	Flow        flow.Flow
	World       conductor.World
	Verify      string // the mission's own command
	Professions profession.Set
}

// Visit is what a step of the plan is in a flow: one visit of one of the flow's steps.
type Visit struct {
	Step   string `json:"step"`             // of the flow
	Note   string `json:"note,omitempty"`   // why the baton came here
	From   string `json:"from,omitempty"`   // commit of failed work that it goes on from; empty: the integrated tree
	Raised int    `json:"raised,omitempty"` // tiers by which its model is raised
	Answer string `json:"answer,omitempty"` // of a step that judges
	Said   string `json:"said,omitempty"`   // its reasons
	Final  bool   `json:"final,omitempty"`  // its agent says that it cannot be done as it is described
}

// Follow brings the baton to where it belongs after what became of its visit, and adds the next visit to the plan. It is repeatable.
func (p *Plan) Follow(c Course, now time.Time) {
	if p.Baton == nil {
		s := conductor.Begin(c.Flow)
		p.Version, p.Round, p.Baton = mission.Version, 1, &s
	}
	for p.Baton.Status == conductor.Running {
		s := p.Step(p.Baton.VisitID())
		if s == nil {
			p.visit(c, now)
			return
		}
		x := conductor.Fact{Kind: conductor.Passed, Answer: s.Visit.Answer, Said: s.Visit.Said}
		switch s.State {
		case Done:
		case Failed:
			x = conductor.Fact{Kind: conductor.Failing, Reason: s.reason(), Commit: s.Commit, Final: s.Visit.Final}
		default:
			return
		}
		p.turn(c, x)
	}
}

// turn gives the conductor a fact.
func (p *Plan) turn(c Course, x conductor.Fact) {
	next := conductor.Next(c.Flow, c.World, *p.Baton, x)
	p.Baton = &next
}

// Tell gives the conductor what a person decided, or that the result did not pass, and follows.
func (p *Plan) Tell(c Course, x conductor.Fact, now time.Time) {
	p.turn(c, x)
	p.Follow(c, now)
}

// Behind says whether something became of the visit that the baton has not followed yet.
func (p *Plan) Behind() bool {
	if p.Baton == nil {
		return true
	}
	if p.Baton.Status != conductor.Running {
		return false
	}
	s := p.Step(p.Baton.VisitID())
	return s == nil || s.State == Done || s.State == Failed
}

func (p *Plan) visit(c Course, now time.Time) {
	b := p.Baton
	fs, _ := c.Flow.Step(b.Step)
	prof, _ := c.Professions.Get(fs.Profession)
	s := Step{
		ID: b.VisitID(), Title: fs.Name(), Brief: fs.Brief, Profession: fs.Profession, DependsOn: []string{}, Verify: fs.Command(prof.Verify, c.Verify),
		Acceptance: []string{}, Round: 1, State: Waiting, Since: now.UTC(),
		Visit: &Visit{Step: fs.ID, Note: b.Note, From: b.From, Raised: b.Counts[fs.ID].Tier},
	}
	if d := p.Step(b.Last); d != nil && d.State == Done {
		s.DependsOn = append(s.DependsOn, d.ID)
	}
	p.Steps = append(p.Steps, s)
}
