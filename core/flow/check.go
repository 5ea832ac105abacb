package flow

import (
	"fmt"
	"slices"
	"strings"

	"example.com/AutoAgentProject/core/front"
	"example.com/AutoAgentProject/core/profession"
)

// Words that stand for something else than a specification in requires and produces.
const (
	Code = "code" // the product
	All  = "all"  // every specification there is
)

// reserved are words that a step cannot be called by.
var reserved = []string{Complete, Stop, Fail, Person, next, "default", "on", "merge"}

// fault tells a fault of a step.
func (f Flow) fault(s Step, hint, format string, args ...any) error {
	return front.Fault(f.Source, max(s.Line, 1), hint, "step %s: %s", s.ID, fmt.Sprintf(format, args...))
}

// check finds what is wrong with a flow by itself.
func (f Flow) check() error {
	if err := checkID(f.ID); err != nil {
		return front.Fault(f.Source, 1, "", "flow %q: %v", f.ID, err)
	}
	if len(f.Steps) == 0 || len(f.Steps) > MaxSteps {
		return front.Fault(f.Source, 1, "", "a flow has 1 to %d steps, not %d", MaxSteps, len(f.Steps))
	}
	if len(f.Description) > MaxText || strings.TrimSpace(f.Description) == "" {
		return front.Fault(f.Source, 1, "", "the description is empty, or has more than %d bytes", MaxText)
	}
	first := map[string]int{}
	for i, s := range f.Steps {
		switch {
		case s.ID == "":
			return front.Fault(f.Source, max(s.Line, 1), "give it an id such as design", "step %d has no id", i+1)
		case s.Profession == "":
			return f.fault(s, "", "it has no profession")
		case slices.Contains(reserved, s.ID):
			return f.fault(s, "choose another id", "the word has a meaning of its own in flows")
		case first[s.ID] > 0:
			return f.fault(s, "give each step an id of its own", "the id stands in line %d already", first[s.ID])
		case len(s.Brief) > MaxText || len(s.Title) > 100 || strings.Contains(s.Title, "\n"):
			return f.fault(s, "", "the title has at most 100 characters in one line, the brief at most %d bytes", MaxText)
		}
		first[s.ID] = max(s.Line, 1)
	}
	for i, s := range f.Steps {
		if err := f.checkTargets(i, s); err != nil {
			return err
		}
	}
	return f.checkReach()
}

// checkTargets holds what a step names to what there is. On passing it goes down only: what goes back is a loop, and loops are
// bounded.
func (f Flow) checkTargets(i int, s Step) error {
	if s.Exit.On == "" && (len(s.Exit.Arms) > 0 || s.Exit.Default != "") || s.Exit.On != "" && s.Exit.To != "" {
		return f.fault(s, "", "exit has either one target, or on with answers")
	}
	if s.Exit.On != "" && len(s.Exit.Arms) == 0 {
		return f.fault(s, "write for example {on: verdict, pass: next, block: fail}", "exit has on but no answers")
	}
	targets := []string{s.Exit.To, s.Exit.Default}
	seen := map[string]bool{}
	for _, a := range s.Exit.Arms {
		if seen[a.Value] {
			return f.fault(s, "", "the answer %s stands twice", a.Value)
		}
		seen[a.Value] = true
		targets = append(targets, a.To)
	}
	for n, to := range targets {
		switch to {
		case "", next, Complete, Stop:
			continue
		case Fail:
			if n > 0 {
				continue
			}
			return f.fault(s, "", "a step cannot always fail")
		}
		at := f.Index(to)
		switch {
		case at < 0:
			return f.fault(s, f.haves(), "exit names %q, which is no step", to)
		case at <= i:
			return f.fault(s, "let it fail, and name the step in loop: {back: "+to+"}", "exit leads back to %s; only a loop may, since it is bounded", to)
		}
	}
	for what, to := range map[string]string{"back": s.Loop.Back, "on_fail": s.Loop.OnFail} {
		if to != "" && !(what == "on_fail" && to == Person) && f.Index(to) < 0 {
			return f.fault(s, f.haves(), "%s names %q, which is no step", what, to)
		}
	}
	if s.Loop.Max < 0 || s.Loop.Max > MaxLoop {
		return f.fault(s, "", "loop has max %d, 1 to %d are possible", s.Loop.Max, MaxLoop)
	}
	return nil
}

func (f Flow) haves() string {
	var ids []string
	for _, s := range f.Steps {
		ids = append(ids, s.ID)
	}
	return "there are " + strings.Join(ids, ", ")
}

// checkReach finds steps that nothing leads to, and specifications that a step needs and none before it makes.
func (f Flow) checkReach() error {
	reached := map[int]bool{}
	var walk func(i int)
	walk = func(i int) {
		if i < 0 || i >= len(f.Steps) || reached[i] {
			return
		}
		reached[i] = true
		s := f.Steps[i]
		for _, to := range f.nexts(s) {
			walk(f.Index(to))
		}
		walk(f.Index(s.BackTo()))
		walk(f.Index(s.Loop.OnFail))
	}
	walk(0)
	for i, s := range f.Steps {
		if !reached[i] {
			return f.fault(s, "let an exit lead to it, or leave it out", "nothing leads to it")
		}
	}
	for i, s := range f.Steps {
		for _, r := range s.Requires {
			if r == Code || r == All || slices.Contains(s.Produces, r) {
				continue
			}
			if !slices.ContainsFunc(f.Steps[:i], func(e Step) bool { return slices.Contains(e.Produces, r) }) {
				return f.fault(s, "name it in produces of an earlier step", "it requires %s, and no step before it produces that", r)
			}
		}
	}
	return nil
}

// nexts are the steps that can follow when a step passed.
func (f Flow) nexts(s Step) []string {
	var out []string
	add := func(to string) {
		if to == "" || to == next {
			to, _ = f.Target(Step{ID: s.ID}, "")
		}
		if f.Index(to) >= 0 && !slices.Contains(out, to) {
			out = append(out, to)
		}
	}
	if s.Exit.On == "" {
		add(s.Exit.To)
		return out
	}
	for _, a := range s.Exit.Arms {
		add(a.To)
	}
	if s.Exit.Default != "" {
		add(s.Exit.Default)
	}
	return out
}

// Fit holds a flow to the professions there are: each step has one, it may hand to those that follow, it has the tools for what
// its step produces, and nobody judges who could have made what is judged.
func (f Flow) Fit(get func(string) (profession.Profession, bool), names []string) error {
	for _, s := range f.Steps {
		p, ok := get(s.Profession)
		switch {
		case !ok:
			return f.fault(s, "there are "+strings.Join(names, ", "), "there is no profession %q", s.Profession)
		case s.Profession == profession.Manager:
			return f.fault(s, "name another profession", "the manager plans; in a flow there is nothing to plan")
		case s.Exit.On != "" && (p.Writes && p.Owns == nil || f.builds(s.Profession)):
			return f.fault(s, "let a profession judge that does not build, such as reviewer or evaluator", "%s builds the product and cannot judge it", s.Profession)
		}
		for _, to := range f.nexts(s) {
			t, _ := f.Step(to)
			if p.HandoffTo != nil && t.Profession != s.Profession && !slices.Contains(p.HandoffTo, t.Profession) {
				return f.fault(s, s.Profession+" hands to "+strings.Join(p.HandoffTo, ", "), "%s may not hand to %s of step %s", s.Profession, t.Profession, to)
			}
		}
		for _, made := range s.Produces {
			switch {
			case made == Code && !p.Writes:
				return f.fault(s, "", "it produces code, and %s has no tool that changes files", s.Profession)
			case made != Code && !p.OwnsSpec(made):
				return f.fault(s, "add spec:"+made+" to owns of "+s.Profession, "it produces %s, which %s does not own", made, s.Profession)
			}
		}
		for _, v := range s.Validators {
			if v.Kind == "changed" && !p.Writes {
				return f.fault(s, "", "its validator wants changed files, and %s changes none", s.Profession)
			}
		}
	}
	return nil
}

// builds says whether a profession makes the product in some step of the flow.
func (f Flow) builds(profession string) bool {
	return slices.ContainsFunc(f.Steps, func(s Step) bool { return s.Profession == profession && slices.Contains(s.Produces, Code) })
}
