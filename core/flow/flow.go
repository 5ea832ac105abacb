// Package flow holds the words of a flow: the ordered steps that a mission can follow instead of a planned list. A flow is a
// Markdown file with YAML front matter; .flow.ad files are read as well. Everything that can be known of a flow before it
// runs is checked when it is loaded.
package flow

import (
	"slices"
	"strings"
)

// Targets that are no steps.
const (
	Complete = "complete" // the flow has reached its end
	Stop     = "stop"     // nothing more is to be done: the step's own answer is the result
	Fail     = "fail"     // of an arm: the step counts as failed, and its loop says what follows
	Person   = "gate"     // of on_fail: a person decides
)

// Modes: who passes the named gates. gsd is the default.
const (
	GSD   = "gsd"   // the start was the approval of the goal; a person is asked when something goes wrong
	Check = "check" // a person looks at each gate
)

// Limits of a flow.
const (
	MaxSteps = 40
	MaxLoop  = 20 // failures of one step before its loop is exhausted
	MaxText  = 8000
)

// Flow is one flow.
type Flow struct {
	ID          string `json:"id"`
	Version     int    `json:"version"`
	Description string `json:"description"`
	Mode        string `json:"mode"` // gsd or check, where start says nothing
	Steps       []Step `json:"steps"`
	Body        string `json:"body,omitempty"`   // prose for people
	Source      string `json:"source,omitempty"` // the file it was read from
	Origin      string `json:"origin,omitempty"` // the layer of that file
}

// Step is one station of a flow.
type Step struct {
	ID         string      `json:"id"`
	Profession string      `json:"profession"`
	Title      string      `json:"title,omitempty"`
	Brief      string      `json:"brief,omitempty"` // what is to be done, besides what the profession does anyway
	Gate       string      `json:"gate,omitempty"`  // auto, human, or one of the named gates; empty: the profession's first
	Requires   []string    `json:"requires,omitempty"`
	Produces   []string    `json:"produces,omitempty"` // specifications that must be there afterwards; code: the product must have changed
	Verify     []string    `json:"verify,omitempty"`   // commands that must pass, see Command
	Validators []Validator `json:"validators,omitempty"`
	Optional   bool        `json:"optional,omitempty"` // is skipped when money is short
	Model      string      `json:"model,omitempty"`    // tier or id instead of the profession's
	Loop       Loop        `json:"loop,omitzero"`
	Exit       Exit        `json:"exit,omitzero"`
	Line       int         `json:"-"` // where it stands in its file
}

// Validator is a check of what a step changed.
type Validator struct {
	Kind string `json:"kind"` // changed: some file that the glob matches changed; unchanged: none did; spec: that specification has content
	Arg  string `json:"arg"`
}

// Loop says what follows when a step fails.
type Loop struct {
	Max    int    `json:"max,omitempty"`     // failures that are answered by Back; 0: DefaultLoop
	Back   string `json:"back,omitempty"`    // step that goes on; empty: the same
	OnFail string `json:"on_fail,omitempty"` // step that goes on once when Max is exceeded, or gate; empty: gate
}

// DefaultLoop is how often a step that says nothing goes on after a failure.
const DefaultLoop = 2

// Exit says what follows when a step passed.
type Exit struct {
	To      string `json:"to,omitempty"` // step, complete or stop; empty: the step below
	On      string `json:"on,omitempty"` // what the step has to judge; then Arms decide
	Arms    []Arm  `json:"arms,omitempty"`
	Default string `json:"default,omitempty"` // target of an answer that is no arm's; empty: there is no such answer
}

// Arm is one answer of a step that judges, and where it leads.
type Arm struct {
	Value string `json:"value"`
	To    string `json:"to"`
}

// MissionVerify stands in a verify command for the mission's own.
const MissionVerify = "{verify}"

// Command is the shell command of a step: all of its verify commands, and those of its profession, in this order. mission is the
// mission's own, for those that name it. Empty: there is none.
func (s Step) Command(profession []string, mission string) string {
	var parts []string
	for _, v := range append(slices.Clone(profession), s.Verify...) {
		parts = append(parts, "("+strings.ReplaceAll(v, MissionVerify, "( "+mission+"\n)")+"\n)")
	}
	return strings.Join(parts, " &&\n")
}

// NeedsVerify says whether the flow works only in a mission with a verify command of its own.
func (f Flow) NeedsVerify() bool {
	return slices.ContainsFunc(f.Steps, func(s Step) bool {
		return slices.ContainsFunc(s.Verify, func(v string) bool { return strings.Contains(v, MissionVerify) })
	})
}

// Index is the place of a step, -1 for what is none.
func (f Flow) Index(id string) int {
	return slices.IndexFunc(f.Steps, func(s Step) bool { return s.ID == id })
}

// Step finds a step.
func (f Flow) Step(id string) (Step, bool) {
	if i := f.Index(id); i >= 0 {
		return f.Steps[i], true
	}
	return Step{}, false
}

// Professions are those of the steps, each once, in the order of the steps.
func (f Flow) Professions() []string {
	var out []string
	for _, s := range f.Steps {
		if !slices.Contains(out, s.Profession) {
			out = append(out, s.Profession)
		}
	}
	return out
}

// Target resolves what follows a step that passed with an answer: a step's id, Complete, Stop or Fail. False: the answer leads
// nowhere.
func (f Flow) Target(s Step, answer string) (string, bool) {
	to := s.Exit.To
	if s.Exit.On != "" {
		to = s.Exit.Default
		found := to != ""
		for _, a := range s.Exit.Arms {
			if a.Value == answer {
				to, found = a.To, true
			}
		}
		if !found {
			return "", false
		}
	}
	if to == "" || to == next {
		i := f.Index(s.ID)
		if i+1 >= len(f.Steps) {
			return Complete, true
		}
		return f.Steps[i+1].ID, true
	}
	return to, true
}

// next as a target means the step below.
const next = "next"

// Answers are what a step that judges can answer.
func (e Exit) Answers() []string {
	var out []string
	for _, a := range e.Arms {
		out = append(out, a.Value)
	}
	return out
}

// Limit is how many failures a step may have before its loop is exhausted.
func (s Step) Limit() int {
	if s.Loop.Max == 0 {
		return DefaultLoop
	}
	return s.Loop.Max
}

// BackTo is the step that goes on after a failure.
func (s Step) BackTo() string {
	if s.Loop.Back == "" {
		return s.ID
	}
	return s.Loop.Back
}

// Name is a step's title for people.
func (s Step) Name() string {
	if s.Title != "" {
		return s.Title
	}
	return s.ID + " by " + s.Profession
}

// ByPerson says whether a gate is passed by a person in a mode. kinds are the named gates of the step's profession.
func (s Step) ByPerson(mode string, kinds []string) bool {
	switch s.GateKind(kinds) {
	case "auto":
		return false
	case "human":
		return true
	}
	return mode == Check
}

// GateKind is the gate behind a step: auto, human, or a named one.
func (s Step) GateKind(kinds []string) string {
	switch {
	case s.Gate != "":
		return s.Gate
	case len(kinds) > 0:
		return kinds[0]
	}
	return "auto"
}
