package flow

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"example.com/AutoAgentProject/core/front"
)

// draftStep is a step of which targets still name professions.
type draftStep struct {
	Step
	branches bool // classify without arms: the usual ones
}

// readAD reads a .flow.ad file: $Flow, and $Step for each step. A step without an id gets that of its profession, numbered where
// there are several; a target that names a profession is the next step of it, else the first.
func readAD(file string, data []byte) (Flow, error) {
	text, err := front.Clean(file, data)
	if err != nil {
		return Flow{}, err
	}
	if len(text) > front.MaxFile {
		return Flow{}, front.Fault(file, 1, "", "the file is too large")
	}
	prose, all, err := nodes(file, text)
	if err != nil {
		return Flow{}, err
	}
	f := Flow{Version: 1, Mode: GSD, Body: prose}
	var drafts []draftStep
	head := false
	for _, n := range all {
		switch n.name {
		case "Flow":
			if head {
				return Flow{}, front.Fault(file, n.line, "", "there is a second $Flow")
			}
			head = true
			err = f.headAD(file, n)
		case "Step":
			var s draftStep
			s, err = stepAD(file, n)
			drafts = append(drafts, s)
		case "Decision", "Question": // of documents; no part of a flow
		default:
			err = front.Fault(file, n.line, "there are $Flow and $Step", "there is no node $%s in a flow", n.name)
		}
		if err != nil {
			return Flow{}, err
		}
	}
	if !head {
		return Flow{}, front.Fault(file, 1, `begin with $Flow(id: "name", version: 1) { description: "…" }`, "there is no $Flow")
	}
	f.Steps = resolve(drafts)
	return f, nil
}

func (f *Flow) headAD(file string, n node) error {
	for _, e := range n.entries {
		var err error
		switch e.key {
		case "id":
			f.ID, err = textAD(file, e)
			f.ID = slug(f.ID)
		case "version":
			v, ok := e.value.(int)
			if !ok || v < 1 {
				err = front.Fault(file, e.line, "", "version must be a whole number from 1")
			}
			f.Version = v
		case "description":
			f.Description, err = textAD(file, e)
		case "mode":
			f.Mode, err = textAD(file, e)
			if err == nil && f.Mode != GSD && f.Mode != Check {
				err = front.Fault(file, e.line, "", "mode must be gsd or check, not %q", f.Mode)
			}
		default:
			err = front.Fault(file, e.line, "there are id, version, description, mode", "$Flow has no key %q", e.key)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

var camel = regexp.MustCompile(`([a-z0-9])([A-Z])`)

// slug is a name as our files write it: feature_impl is feature-impl, Goals is goals.
func slug(s string) string {
	s = camel.ReplaceAllString(s, "$1-$2")
	return strings.ToLower(strings.ReplaceAll(s, "_", "-"))
}

// specAD is the name of a specification or of the product.
func specAD(s string) string {
	switch s = slug(s); s {
	case "code-files":
		return Code
	case "test-results":
		return "tests"
	}
	return s
}

func textAD(file string, e entry) (string, error) {
	switch v := e.value.(type) {
	case string:
		return v, nil
	case ident:
		return string(v), nil
	}
	return "", front.Fault(file, e.line, "put it between quotes", "%s must be a text", e.key)
}

func listAD(file string, e entry) ([]string, error) {
	list, ok := e.value.([]any)
	if !ok {
		return nil, front.Fault(file, e.line, "", "%s must be a list", e.key)
	}
	var out []string
	for _, v := range list {
		s, err := textAD(file, entry{e.key, e.line, v})
		if err != nil {
			return nil, err
		}
		if s == "" || slices.Contains(out, s) {
			return nil, front.Fault(file, e.line, "", "%s has an empty entry, or one twice", e.key)
		}
		out = append(out, s)
	}
	return out, nil
}

func specsAD(file string, e entry) ([]string, error) {
	list, err := listAD(file, e)
	for i, s := range list {
		if list[i] = specAD(s); err == nil && checkID(list[i]) != nil {
			err = front.Fault(file, e.line, "", "%s %q: %v", e.key, s, checkID(list[i]))
		}
	}
	var out []string
	for _, s := range list {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out, err
}

// byProfession marks a target that names a profession first.
const byProfession = "@"

// targetAD reads "handoff_to: X", which names a profession, "complete", or the id of a step.
func targetAD(s string) string {
	if to, ok := strings.CutPrefix(s, "handoff_to:"); ok {
		return byProfession + slug(strings.TrimSpace(to))
	}
	return slug(strings.TrimSpace(s))
}

var classify = regexp.MustCompile(`^classify\(([A-Za-z][A-Za-z0-9_-]*)\)(\s*->\s*branch)?$`)

func stepAD(file string, n node) (s draftStep, err error) {
	s.Line = n.line
	for _, e := range n.entries {
		var text string
		switch e.key {
		case "id":
			text, err = textAD(file, e)
			s.ID = slug(text)
		case "profession":
			text, err = textAD(file, e)
			s.Profession = slug(text)
		case "title":
			s.Title, err = textAD(file, e)
		case "brief":
			s.Brief, err = textAD(file, e)
		case "gate":
			s.Gate, err = textAD(file, e)
			if err == nil && !slices.Contains(gateWords(), s.Gate) {
				err = front.Fault(file, e.line, "there are "+strings.Join(gateWords(), ", "), "there is no gate %q", s.Gate)
			}
		case "requires":
			s.Requires, err = specsAD(file, e)
		case "produces":
			s.Produces, err = specsAD(file, e)
		case "verify":
			s.Verify, err = listAD(file, e)
		case "validators":
			s.Validators, err = validatorsAD(file, e)
		case "optional":
			b, ok := e.value.(bool)
			if !ok {
				err = front.Fault(file, e.line, "", "optional must be true or false")
			}
			s.Optional = b
		case "model":
			s.Model, err = textAD(file, e)
		case "loop":
			s.Loop, err = loopAD(file, e)
		case "exit":
			if text, err = textAD(file, e); err != nil {
				break
			}
			if m := classify.FindStringSubmatch(text); m != nil {
				s.Exit.On, s.branches = m[1], m[2] != ""
			} else if s.Exit.To = targetAD(text); s.Exit.To == next {
				s.Exit.To = ""
			}
		case "branch":
			arms, ok := e.value.([]entry)
			if !ok {
				err = front.Fault(file, e.line, "", "branch must be a table")
			}
			for _, a := range arms {
				if text, err = textAD(file, a); err != nil {
					break
				}
				if a.key == "default" {
					s.Exit.Default = targetAD(text)
				} else {
					if !wordPattern.MatchString(a.key) {
						return s, front.Fault(file, a.line, "", "the answer %q must be one word", a.key)
					}
					s.Exit.Arms = append(s.Exit.Arms, Arm{a.key, targetAD(text)})
				}
			}
		default:
			err = front.Fault(file, e.line, "there are "+strings.Join(append(stepKeys, "branch"), ", "), "$Step has no key %q", e.key)
		}
		if err != nil {
			return s, err
		}
	}
	if s.Profession == "" {
		return s, front.Fault(file, n.line, `write $Step(profession: "coder")`, "a step has no profession")
	}
	return s, nil
}

func loopAD(file string, e entry) (l Loop, err error) {
	entries, ok := e.value.([]entry)
	if !ok {
		return l, front.Fault(file, e.line, "", "loop must be a table")
	}
	for _, x := range entries {
		var text string
		switch x.key {
		case "max_iterations":
			n, ok := x.value.(int)
			if !ok || n < 1 || n > MaxLoop {
				return l, front.Fault(file, x.line, "", "max_iterations must be from 1 to %d", MaxLoop)
			}
			l.Max = n
		case "back":
			text, err = textAD(file, x)
			l.Back = targetAD(text)
		case "on_fail":
			text, err = textAD(file, x)
			l.OnFail = targetAD(text)
		default:
			err = front.Fault(file, x.line, "there are max_iterations, back and on_fail", "loop has no key %q", x.key)
		}
		if err != nil {
			return l, err
		}
	}
	return l, nil
}

func validatorsAD(file string, e entry) ([]Validator, error) {
	list, ok := e.value.([]any)
	if !ok {
		return nil, front.Fault(file, e.line, "", "validators must be a list")
	}
	var out []Validator
	for _, x := range list {
		entries, ok := x.([]entry)
		if !ok || len(entries) != 1 {
			return nil, front.Fault(file, e.line, "", "a validator is written {changed: \"docs/**\"}")
		}
		arg, err := textAD(file, entries[0])
		if err != nil {
			return nil, err
		}
		v := Validator{entries[0].key, arg}
		if err := v.check(); err != nil {
			return nil, front.Fault(file, entries[0].line, "", "validator %s: %v", v.Kind, err)
		}
		out = append(out, v)
	}
	return out, nil
}

// resolve gives every step an id and turns professions in targets into steps.
func resolve(drafts []draftStep) []Step {
	count, taken := map[string]int{}, map[string]bool{}
	for _, d := range drafts {
		taken[d.ID] = true
	}
	for i := range drafts {
		d := &drafts[i]
		for d.ID == "" {
			count[d.Profession]++
			id := d.Profession
			if n := count[d.Profession]; n > 1 {
				id = fmt.Sprintf("%s-%d", d.Profession, n)
			}
			if !taken[id] {
				d.ID, taken[id] = id, true
			}
		}
	}
	var out []Step
	for _, d := range drafts {
		if d.branches && len(d.Exit.Arms) == 0 { // the format names the targets in prose only
			d.Exit.Arms = []Arm{{"QUESTION", Stop}, {"DIRECT", "coder"}, {"NEW_GOAL", next}}
			d.Exit.Default = next
		}
		out = append(out, d.Step)
	}
	for i := range out {
		s := &out[i]
		for _, to := range []*string{&s.Exit.To, &s.Exit.Default, &s.Loop.Back, &s.Loop.OnFail} {
			*to = find(out, i, *to)
		}
		for n := range s.Exit.Arms {
			s.Exit.Arms[n].To = find(out, i, s.Exit.Arms[n].To)
		}
	}
	return out
}

// find is the id of the step that a target means, seen from one step. What means none is left for the check to tell.
func find(steps []Step, from int, target string) string {
	to, profession := strings.CutPrefix(target, byProfession)
	if to == "" || to == next || to == Complete || to == Stop || to == Fail || to == Person {
		return to
	}
	if !profession && slices.ContainsFunc(steps, func(s Step) bool { return s.ID == to }) {
		return to
	}
	for _, order := range [][]Step{steps[from+1:], steps} {
		for _, s := range order {
			if s.Profession == to {
				return s.ID
			}
		}
	}
	return to
}
