package profession

import (
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"example.com/AutoAgentProject/core/front"
	"example.com/AutoAgentProject/core/money"
)

var (
	displayPattern = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]{0,39}$`)
	tierPattern    = regexp.MustCompile(`^(cheap|standard|strong)$`)
	effortPattern  = regexp.MustCompile(`^(low|medium|high)$`)
	modelPattern   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/@\[\]-]{0,99}$`)
)

// reader turns the entries of a front matter into a profession. Its methods return errors that are told with line.
type reader struct {
	file  string
	p     Profession
	said  map[string]int // keys seen, with the line
	tools bool           // the key tools was there
	deny  []string       // tools that disallowedTools takes away
}

// entry takes one key with its value.
func (r *reader) entry(e *ast.MappingValueNode) error {
	v, err := front.Entry(r.file, e)
	if err != nil {
		return err
	}
	key, at := v.Key, v.Line
	if key == "maxTurns" { // both spellings are one key
		key = "max_turns"
	}
	if first, twice := r.said[key]; twice {
		return front.Fault(r.file, at, "", "%s was said in line %d already", key, first)
	}
	r.said[key] = at
	switch key {
	case "name":
		return name(v, &r.p.Name)
	case "display":
		return v.Matching(&r.p.Display, displayPattern, "letters and digits, for example CodeBuilder")
	case "description":
		return v.Text(&r.p.Description)
	case "model":
		return r.model(v)
	case "fallback":
		return v.Words(&r.p.Fallback, CheckModel)
	case "budget":
		return r.budget(v)
	case "tools":
		r.tools = true
		return toolList(v, &r.p.Tools)
	case "required_tools":
		return toolList(v, &r.p.Required)
	case "disallowedTools":
		return v.Words(&r.deny, checkDenied)
	case "owns":
		return globs(v, &r.p.Owns)
	case "reads":
		return globs(v, &r.p.Reads)
	case "handoff_to":
		return v.Words(&r.p.HandoffTo, checkName)
	case "notes":
		return v.Yes(&r.p.Notes)
	case "gates":
		return v.Words(&r.p.Gates, checkGate)
	case "verify":
		return v.List(&r.p.Verify, nil)
	case "max_turns":
		return v.Count(&r.p.MaxTurns, MaxTurns)
	case "wall":
		return v.Duration(&r.p.Wall)
	case "silence":
		return v.Duration(&r.p.Silence)
	}
	want := ignored(key)
	if want == nil {
		return r.unknown(key, at)
	}
	if !slices.Contains(want, e.Value.Type()) {
		return v.Wrong("of the kind that Claude Code takes")
	}
	r.p.Ignored = append(r.p.Ignored, key)
	return nil
}

// ignored gives the kinds of value of a key that Claude Code knows and that has no effect here; nil for other keys.
func ignored(key string) []ast.NodeType {
	switch key {
	case "color", "permissionMode", "isolation", "memory", "initialPrompt", "observer", "observerMessage":
		return []ast.NodeType{ast.StringType, ast.LiteralType}
	case "background", "omitClaudeMd", "observeSubagents", "observeToolResults":
		return []ast.NodeType{ast.BoolType}
	case "autoCompactWindow":
		return []ast.NodeType{ast.IntegerType}
	case "effort":
		return []ast.NodeType{ast.StringType, ast.IntegerType}
	case "skills":
		return []ast.NodeType{ast.StringType, ast.SequenceType}
	case "mcpServers":
		return []ast.NodeType{ast.SequenceType, ast.MappingType}
	case "hooks":
		return []ast.NodeType{ast.MappingType}
	}
	return nil
}

// unknown refuses a key, with the one that was probably meant.
func (r *reader) unknown(key string, at int) error {
	plain := func(s string) string {
		return strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(s))
	}
	for _, known := range []string{"name", "display", "description", "model", "tools", "required_tools", "disallowedTools",
		"owns", "reads", "handoff_to", "notes", "gates", "verify", "max_turns", "wall", "silence", "fallback", "budget"} {
		if plain(known) == plain(key) || plain(known) == plain(key)+"s" || plain(known)+"s" == plain(key) {
			return front.Fault(r.file, at, "", "there is no key %q, it is written %s", key, known)
		}
	}
	return front.Fault(r.file, at, "docs/flows.md lists the keys of a profession", "there is no key %q", key)
}

// CheckModel says why a text names no model.
func CheckModel(s string) error {
	if !modelPattern.MatchString(s) {
		return errors.New("write a tier, an alias such as sonnet, or the exact id of a model")
	}
	return nil
}

// model reads a model, or a table of what is asked of it.
func (r *reader) model(v front.Value) error {
	var parts []*ast.MappingValueNode
	switch n := v.Node.(type) {
	case *ast.MappingNode:
		parts = n.Values
	case *ast.MappingValueNode:
		parts = []*ast.MappingValueNode{n}
	default:
		return v.Matching(&r.p.Model, modelPattern, "a tier ("+strings.Join(Tiers(), ", ")+"), an alias such as sonnet, or the exact id of a model")
	}
	said := map[string]bool{}
	for _, e := range parts {
		w, err := front.Entry(r.file, e)
		if err != nil {
			return err
		}
		said[w.Key] = true
		switch w.Key {
		case "tier":
			err = w.Matching(&r.p.Model, tierPattern, "one of "+strings.Join(Tiers(), ", "))
		case "id":
			err = w.Matching(&r.p.Model, modelPattern, "an alias such as sonnet, or the exact id of a model")
		case "effort":
			err = w.Matching(&r.p.Effort, effortPattern, "low, medium or high")
		case "max_output":
			err = w.Count(&r.p.MaxOutput, MaxOutput)
		case "temperature":
			return front.Fault(r.file, w.Line, "leave it out; effort says how much the model thinks", "the agent program has no setting for the temperature")
		default:
			return front.Fault(r.file, w.Line, "there are tier, id, effort and max_output", "model has no key %q", w.Key)
		}
		if err != nil {
			return err
		}
	}
	if said["tier"] && said["id"] {
		return front.Fault(r.file, v.Line, "", "model gives a tier and an id, it is one of them")
	}
	return nil
}

func (r *reader) budget(v front.Value) error {
	if err := v.Text(&r.p.Budget); err != nil {
		return v.Wrong("an amount such as 0.50usd or 200ktok")
	}
	b, err := money.ParseBudget(r.p.Budget)
	if err != nil || b.Kind == money.KindPercent {
		return front.Fault(v.File, v.Line, "", "budget must be an amount such as 0.50usd or 200ktok, not %q", r.p.Budget)
	}
	return nil
}

// globs reads globs; spec:goals is written out.
func globs(v front.Value, to *[]string) error {
	if err := v.List(to, func(s string) error { return CheckGlob(expand(s)) }); err != nil {
		return err
	}
	for i, g := range *to {
		(*to)[i] = expand(g)
	}
	return nil
}

// finish checks what takes more than one key, and fills in what follows from the others.
func (r *reader) finish() (Profession, error) {
	p := &r.p
	for _, key := range []string{"name", "description"} {
		if r.said[key] == 0 {
			return Profession{}, front.Fault(r.file, 1, "", "the front matter has no %s", key)
		}
	}
	if p.Display == "" {
		for word := range strings.SplitSeq(p.Name, "-") {
			p.Display += strings.ToUpper(word[:1]) + word[1:]
		}
	}
	if p.Model == "inherit" {
		p.Model = ""
	}
	if !r.tools {
		p.Tools = localTools()
	}
	p.Tools = slices.DeleteFunc(p.Tools, func(t string) bool { return slices.Contains(r.deny, t) })
	p.Tools = slices.DeleteFunc(p.Tools, func(t string) bool {
		if forgone(t) {
			p.Ignored = append(p.Ignored, t)
		}
		return forgone(t)
	})
	p.Writes = slices.ContainsFunc(p.Tools, edits)
	for _, t := range p.Required {
		if !slices.Contains(p.Tools, t) {
			return Profession{}, front.Fault(r.file, r.said["required_tools"], "", "the tool %q is required but not offered", t)
		}
	}
	if p.Owns != nil && !p.Writes {
		return Profession{}, front.Fault(r.file, r.said["owns"], "", "owns says what may be changed, but no tool changes files")
	}
	if p.Wall > 0 && p.Silence > p.Wall {
		return Profession{}, front.Fault(r.file, r.said["silence"], "", "silence is longer than wall, so it could never end a run")
	}
	slices.Sort(p.Ignored)
	return *p, nil
}

func name(v front.Value, to *string) error {
	if err := v.Text(to); err != nil {
		return err
	}
	if err := checkName(*to); err != nil {
		return front.Fault(v.File, v.Line, "", "name %q: %v", *to, err)
	}
	return nil
}

func toolList(v front.Value, to *[]string) error {
	return v.Words(to, func(s string) error {
		if forgone(s) && v.Key == "tools" {
			return nil
		}
		return checkTool(s)
	})
}
