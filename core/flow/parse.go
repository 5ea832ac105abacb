package flow

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"example.com/AutoAgentProject/core/front"
	"example.com/AutoAgentProject/core/profession"
)

var (
	idPattern   = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`)
	wordPattern = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,39}$`)
)

const maxID = 30 // characters; a visit's number stands behind it

// Parse reads a flow, from Markdown with front matter or, where the name ends in .ad, from a .flow.ad file, and checks all that
// can be checked without knowing the professions. Every error is a usererr of code Usage that begins with file and line.
func Parse(file string, data []byte) (Flow, error) {
	read := readMarkdown
	if strings.HasSuffix(file, ".ad") {
		read = readAD
	}
	f, err := read(file, data)
	if err != nil {
		return Flow{}, err
	}
	f.Source = file
	if err := f.check(); err != nil {
		return Flow{}, err
	}
	return f, nil
}

func readMarkdown(file string, data []byte) (Flow, error) {
	parts, err := front.Read(file, data, "flow, description and steps")
	if err != nil {
		return Flow{}, err
	}
	f := Flow{Version: 1, Mode: GSD, Body: parts.Body}
	said := map[string]int{}
	for _, e := range parts.Entries {
		v, err := front.Entry(file, e)
		if err != nil {
			return Flow{}, err
		}
		if at, twice := said[v.Key]; twice {
			return Flow{}, front.Fault(file, v.Line, "", "%s was said in line %d already", v.Key, at)
		}
		said[v.Key] = v.Line
		switch v.Key {
		case "flow":
			err = id(v, &f.ID)
		case "version":
			err = v.Count(&f.Version, 1_000_000)
		case "description":
			err = v.Text(&f.Description)
		case "mode":
			err = choice(v, &f.Mode, GSD, Check)
		case "steps":
			f.Steps, err = steps(v)
		default:
			err = unknown(v, "flow", "version", "description", "mode", "steps")
		}
		if err != nil {
			return Flow{}, err
		}
	}
	for _, key := range []string{"flow", "description", "steps"} {
		if said[key] == 0 {
			return Flow{}, front.Fault(file, 1, "", "the front matter has no %s", key)
		}
	}
	return f, nil
}

// steps reads the list of steps.
func steps(v front.Value) ([]Step, error) {
	seq, ok := v.Node.(*ast.SequenceNode)
	if !ok {
		return nil, v.Wrong("a list of steps")
	}
	var out []Step
	for _, n := range seq.Values {
		s, err := step(front.Value{File: v.File, Key: "a step", Line: front.Line(n), Node: n})
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

// table reads a table of values.
func table(v front.Value) ([]front.Value, error) {
	var entries []*ast.MappingValueNode
	switch n := v.Node.(type) {
	case *ast.MappingNode:
		entries = n.Values
	case *ast.MappingValueNode:
		entries = []*ast.MappingValueNode{n}
	default:
		return nil, v.Wrong("a table")
	}
	var out []front.Value
	for _, e := range entries {
		w, err := front.Entry(v.File, e)
		if err != nil {
			return nil, err
		}
		out = append(out, w)
	}
	return out, nil
}

var stepKeys = []string{"id", "profession", "title", "brief", "gate", "requires", "produces", "verify", "validators", "optional", "model", "loop", "exit"}

func step(v front.Value) (s Step, err error) {
	entries, err := table(v)
	if err != nil {
		return s, err
	}
	if len(entries) > 0 {
		s.Line = entries[0].Line
	}
	for _, w := range entries {
		switch w.Key {
		case "id":
			err = id(w, &s.ID)
		case "profession":
			err = id(w, &s.Profession)
		case "title":
			err = w.Text(&s.Title)
		case "brief":
			err = w.Text(&s.Brief)
		case "gate":
			err = choice(w, &s.Gate, gateWords()...)
		case "requires":
			err = w.Words(&s.Requires, checkID)
		case "produces":
			err = w.Words(&s.Produces, checkID)
		case "verify":
			err = w.List(&s.Verify, checkText)
		case "validators":
			s.Validators, err = validators(w)
		case "optional":
			err = w.Yes(&s.Optional)
		case "model":
			if err = w.Text(&s.Model); err == nil && profession.CheckModel(s.Model) != nil {
				err = front.Fault(w.File, w.Line, "", "model %q: %v", s.Model, profession.CheckModel(s.Model))
			}
		case "loop":
			s.Loop, err = loop(w)
		case "exit":
			s.Exit, err = exit(w)
		default:
			err = unknown(w, stepKeys...)
		}
		if err != nil {
			return s, err
		}
	}
	return s, nil
}

func loop(v front.Value) (l Loop, err error) {
	entries, err := table(v)
	if err != nil {
		return l, err
	}
	for _, w := range entries {
		switch w.Key {
		case "max":
			err = w.Count(&l.Max, MaxLoop)
		case "back":
			err = id(w, &l.Back)
		case "on_fail":
			err = id(w, &l.OnFail)
		default:
			err = unknown(w, "max", "back", "on_fail")
		}
		if err != nil {
			return l, err
		}
	}
	return l, nil
}

func exit(v front.Value) (e Exit, err error) {
	if s, ok := front.Scalar(v.Node); ok {
		if s == next {
			return e, nil
		}
		return e, id(v, &e.To)
	}
	entries, err := table(v)
	if err != nil {
		return e, v.Wrong("a step, complete, stop, or a table with on")
	}
	for _, w := range entries {
		switch w.Key {
		case "on":
			err = w.Matching(&e.On, wordPattern, "one word: what the step judges")
		case "default":
			err = id(w, &e.Default)
		default:
			if !wordPattern.MatchString(w.Key) {
				return e, front.Fault(w.File, w.Line, "", "the answer %q must be one word", w.Key)
			}
			a := Arm{Value: w.Key}
			err = id(w, &a.To)
			e.Arms = append(e.Arms, a)
		}
		if err != nil {
			return e, err
		}
	}
	if e.On == "" {
		return e, front.Fault(v.File, v.Line, "write for example exit: {on: verdict, pass: next, block: fail}", "exit has answers but no on")
	}
	return e, nil
}

func validators(v front.Value) ([]Validator, error) {
	seq, ok := v.Node.(*ast.SequenceNode)
	if !ok {
		return nil, v.Wrong("a list such as [changed: \"docs/**\"]")
	}
	var out []Validator
	for _, n := range seq.Values {
		entries, err := table(front.Value{File: v.File, Key: "a validator", Line: front.Line(n), Node: n})
		if err != nil {
			return nil, err
		}
		for _, w := range entries {
			c := Validator{Kind: w.Key}
			if err := w.Text(&c.Arg); err != nil {
				return nil, err
			}
			if err := c.check(); err != nil {
				return nil, front.Fault(w.File, w.Line, "there are changed, unchanged and spec", "validator %s: %v", w.Key, err)
			}
			out = append(out, c)
		}
	}
	return out, nil
}

func (c Validator) check() error {
	switch c.Kind {
	case "changed", "unchanged":
		return profession.CheckGlob(c.Arg)
	case "spec":
		return checkID(c.Arg)
	}
	return errors.New("there is no such validator")
}

func id(v front.Value, to *string) error {
	if err := v.Text(to); err != nil {
		return err
	}
	if err := checkID(*to); err != nil {
		return front.Fault(v.File, v.Line, "", "%s %q: %v", v.Key, *to, err)
	}
	return nil
}

func checkID(s string) error {
	if !idPattern.MatchString(s) || len(s) > maxID {
		return fmt.Errorf("write at most %d of a-z, 0-9 and single dashes, beginning with a letter", maxID)
	}
	return nil
}

func checkText(s string) error {
	if len(s) > MaxText {
		return fmt.Errorf("it has more than %d bytes", MaxText)
	}
	return nil
}

// gateWords are what a step may say of its gate.
func gateWords() []string { return append([]string{"auto", "human"}, profession.GateNames()...) }

func choice(v front.Value, to *string, words ...string) error {
	if err := v.Text(to); err != nil {
		return err
	}
	if !slices.Contains(words, *to) {
		return front.Fault(v.File, v.Line, "", "%s must be one of %s, not %q", v.Key, strings.Join(words, ", "), *to)
	}
	return nil
}

func unknown(v front.Value, known ...string) error {
	return front.Fault(v.File, v.Line, "there are "+strings.Join(known, ", "), "there is no key %q here", v.Key)
}
