package plan

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"example.com/AutoAgentProject/core/mission"
)

// Caps of a plan.
const (
	MaxSteps      = 24
	MaxTitle      = 100   // characters
	MaxBrief      = 8_000 // characters
	MaxVerify     = 2_000
	MaxAcceptance = 12 // per step
	MaxCriterion  = 400
)

// Proposal is the model's structured answer to "make a plan".
type Proposal struct {
	Steps []ProposedStep `json:"steps"`
}

// ProposedStep is one step as the model proposes it.
type ProposedStep struct {
	ID         string   `json:"id"`
	Title      string   `json:"title"`
	Brief      string   `json:"brief"`
	Profession string   `json:"profession"`
	DependsOn  []string `json:"depends_on"`
	Verify     string   `json:"verify"`
	Acceptance []string `json:"acceptance"`
}

// Schema is the JSON schema of a Proposal for the professions of a roster. Where the plan may stay as it is, no steps is an answer.
func Schema(professions []string, mayStay bool) json.RawMessage {
	str := func(max int, text string) map[string]any {
		return map[string]any{"type": "string", "maxLength": max, "description": text}
	}
	list := func(item map[string]any, max int, text string) map[string]any {
		return map[string]any{"type": "array", "items": item, "maxItems": max, "description": text}
	}
	step := map[string]any{
		"type": "object",
		"properties": map[string]any{
			"id":         str(40, "short, lower case, a-z 0-9 and -, unique"),
			"title":      str(MaxTitle, "one line"),
			"brief":      str(MaxBrief, "everything the specialist needs to know; it sees nothing else"),
			"profession": map[string]any{"type": "string", "enum": professions},
			"depends_on": list(str(40, "id of a step"), MaxSteps, "steps whose merged result this one needs"),
			"verify":     str(MaxVerify, "shell command that exits 0 in a fresh checkout exactly when the step is done"),
			"acceptance": list(str(MaxCriterion, "one checkable sentence"), MaxAcceptance, "what of the goal this step serves"),
		},
		"required":             []string{"id", "title", "brief", "profession", "depends_on", "verify", "acceptance"},
		"additionalProperties": false,
	}
	least := 1
	if mayStay {
		least = 0
	}
	b, _ := json.Marshal(map[string]any{
		"type":                 "object",
		"properties":           map[string]any{"steps": map[string]any{"type": "array", "items": step, "minItems": least, "maxItems": MaxSteps}},
		"required":             []string{"steps"},
		"additionalProperties": false,
	})
	return b
}

var stepID = regexp.MustCompile(`^[a-z][a-z0-9-]{0,39}$`)

// Check returns everything that is wrong with a proposal, one sentence each; none means that it is accepted. prior is
// the plan so far: nil or without a round for the first one.
func Check(prop Proposal, roster []mission.Agent, prior *Plan) []string {
	var bad []string
	say := func(format string, args ...any) { bad = append(bad, fmt.Sprintf(format, args...)) }
	var have []string
	for _, a := range mission.Specialists(roster) {
		if !slices.Contains(have, a.Profession) {
			have = append(have, a.Profession)
		}
	}
	if len(prop.Steps) == 0 {
		say("the plan has no step")
	}
	if len(prop.Steps) > MaxSteps {
		say("the plan has %d steps, at most %d are allowed", len(prop.Steps), MaxSteps)
	}
	done, held := map[string]bool{}, map[string]bool{}
	if prior != nil {
		for _, s := range prior.Steps {
			if s.kept() {
				done[s.ID], held[s.ID] = true, s.State != Done
			}
		}
	}
	ids := map[string]bool{}
	for _, s := range prop.Steps {
		switch {
		case !stepID.MatchString(s.ID):
			say("step id %q: use 1 to 40 of a-z, 0-9 and -, beginning with a letter", cut(s.ID, 60))
		case ids[s.ID]:
			say("step id %q stands twice", s.ID)
		case held[s.ID]:
			say("step %q is under way: leave it out and depend on it where needed", s.ID)
		case done[s.ID]:
			say("step %q is done already: leave it out and depend on it where needed", s.ID)
		}
		ids[s.ID] = true
	}
	for _, s := range prop.Steps {
		id := cut(s.ID, 60)
		checkText(say, id, "title", s.Title, MaxTitle)
		checkText(say, id, "brief", s.Brief, MaxBrief)
		checkText(say, id, "verify", s.Verify, MaxVerify)
		if strings.ContainsFunc(s.Title, func(r rune) bool { return r != 0 && unicode.IsControl(r) }) {
			say("step %q: the title has more than one line, or a control character", id)
		}
		if !slices.Contains(have, s.Profession) {
			say("step %q: nobody in the roster is a %q; there are: %s", id, cut(s.Profession, 60), strings.Join(have, ", "))
		}
		if len(s.Acceptance) == 0 {
			say("step %q: name at least one acceptance of the goal that it serves", id)
		}
		if len(s.Acceptance) > MaxAcceptance {
			say("step %q: %d acceptances, at most %d", id, len(s.Acceptance), MaxAcceptance)
		}
		for _, a := range s.Acceptance {
			checkText(say, id, "acceptance", a, MaxCriterion)
		}
		for i, d := range s.DependsOn {
			switch {
			case d == s.ID:
				say("step %q depends on itself", id)
			case !ids[d] && !done[d]:
				say("step %q depends on %q, which is no step", id, cut(d, 60))
			case slices.Contains(s.DependsOn[:i], d):
				say("step %q depends on %q twice", id, cut(d, 60))
			}
		}
	}
	for _, c := range circles(prop.Steps) {
		say("the steps depend on each other in a circle: %s", c)
	}
	return bad
}

// Deviations returns where a re-plan leaves the first accepted plan, one sentence each: an acceptance that it drops, a
// step that serves none. A person has to allow that.
func Deviations(prop Proposal, prior *Plan) []string {
	if prior == nil || prior.Round == 0 || len(prop.Steps) == 0 { // no steps: the plan stays as it is
		return nil
	}
	var bad []string
	served := map[string]bool{}
	for _, s := range prior.Steps {
		if s.kept() {
			for _, a := range s.Acceptance {
				served[norm(a)] = true
			}
		}
	}
	first := map[string]bool{}
	for _, a := range prior.Acceptance {
		first[norm(a)] = true
	}
	for _, s := range prop.Steps {
		any := false
		for _, a := range s.Acceptance {
			served[norm(a)] = true
			any = any || first[norm(a)]
		}
		if !any {
			bad = append(bad, fmt.Sprintf("step %q serves none of the acceptances of the first plan", cut(s.ID, 60)))
		}
	}
	for _, a := range prior.Acceptance {
		if !served[norm(a)] {
			bad = append(bad, fmt.Sprintf("the acceptance %q of the first plan is dropped", a))
		}
	}
	return bad
}

// Allow makes what a person allowed the measure of later plans: acceptances that neither a done step nor a proposed one
// serves are given up, and those of the proposed steps count as well. It comes before Accept.
func (p *Plan) Allow(prop Proposal) {
	served := map[string]bool{}
	for _, s := range p.Steps {
		if s.kept() {
			for _, a := range s.Acceptance {
				served[norm(a)] = true
			}
		}
	}
	known := map[string]bool{}
	for _, s := range prop.Steps {
		for _, a := range s.Acceptance {
			served[norm(a)] = true
		}
	}
	p.Acceptance = slices.DeleteFunc(p.Acceptance, func(a string) bool { return !served[norm(a)] })
	for _, a := range p.Acceptance {
		known[norm(a)] = true
	}
	for _, s := range prop.Steps {
		for _, a := range s.Acceptance {
			if !known[norm(a)] {
				known[norm(a)] = true
				p.Acceptance = append(p.Acceptance, a)
			}
		}
	}
}

func norm(s string) string { return strings.Join(strings.Fields(s), " ") }

func checkText(say func(string, ...any), id, what, s string, max int) {
	if strings.TrimSpace(s) == "" {
		say("step %q: the %s is empty", id, what)
	}
	if n := utf8.RuneCountInString(s); n > max {
		say("step %q: the %s has %d characters, at most %d", id, what, n, max)
	}
	if strings.ContainsRune(s, 0) || !utf8.ValidString(s) {
		say("step %q: the %s holds a byte that is no text", id, what)
	}
}

// circles returns circles of dependencies as text, one of each group of steps that hang together.
func circles(steps []ProposedStep) []string {
	deps := map[string][]string{}
	for _, s := range steps {
		deps[s.ID] = s.DependsOn
	}
	state := map[string]int{} // 1 on the way, 2 finished
	var path []string
	var walk func(id string) string
	walk = func(id string) string {
		if state[id] == 2 || deps[id] == nil {
			return ""
		}
		path = append(path, id)
		if state[id] == 1 {
			var circle []string
			for _, p := range path[slices.Index(path, id):] {
				circle = append(circle, cut(p, 60))
			}
			return strings.Join(circle, " -> ")
		}
		state[id] = 1
		for _, d := range deps[id] {
			if d == id {
				continue // told by itself
			}
			if c := walk(d); c != "" {
				return c
			}
		}
		path = path[:len(path)-1]
		state[id] = 2
		return ""
	}
	var out []string
	for _, s := range steps {
		if c := walk(s.ID); c != "" {
			out = append(out, c)
		}
		for _, id := range path { // what led into a circle is told with it
			state[id] = 2
		}
		path = nil
	}
	return out
}

func cut(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return string(r[:n]) + "…"
}

// kept says whether a step stays when a new plan comes: done, or somebody has it in hand.
func (s Step) kept() bool {
	return s.State == Done || s.State == Assigned || s.State == Working || s.State == Asking
}

// Hear notes that a plan is made with that many notes of the person. Until it is there no step is given out.
func (p *Plan) Hear(notes int) { p.Hearing = max(p.Hearing, notes) }

// Stay keeps the plan as it is after the person's notes were heard.
func (p *Plan) Stay() { p.Heard, p.Hearing = max(p.Heard, p.Hearing), 0 }

// Listen puts a checked proposal in force that was made because of the person's notes, while others work: only what nobody
// has begun is replaced. What failed meanwhile is the next plan's affair. A proposal without steps changes nothing.
func (p *Plan) Listen(prop Proposal, now time.Time) {
	if len(prop.Steps) > 0 {
		p.Granted++
		p.accept(prop, now, func(s Step) bool { return s.kept() || s.State == Failed })
	}
	p.Stay()
}

// Accept puts a checked proposal in force: steps that are done or in somebody's hand stay, everything else is replaced.
func (p *Plan) Accept(prop Proposal, now time.Time) {
	p.accept(prop, now, Step.kept)
	p.Stay()
}

func (p *Plan) accept(prop Proposal, now time.Time, stays func(Step) bool) {
	p.Version = mission.Version
	p.Round++
	p.Steps = slices.DeleteFunc(p.Steps, func(s Step) bool { return !stays(s) })
	for _, s := range prop.Steps {
		p.Steps = append(p.Steps, Step{
			ID: s.ID, Title: strings.TrimSpace(s.Title), Brief: s.Brief, Profession: s.Profession,
			DependsOn: append([]string{}, s.DependsOn...), Verify: s.Verify, Acceptance: append([]string{}, s.Acceptance...),
			Round: p.Round, State: Waiting, Since: now.UTC(),
		})
	}
	if p.Round == 1 {
		for _, s := range p.Steps {
			for _, a := range s.Acceptance {
				if !slices.ContainsFunc(p.Acceptance, func(b string) bool { return norm(a) == norm(b) }) {
					p.Acceptance = append(p.Acceptance, a)
				}
			}
		}
	}
	p.Final = Final{}
}
