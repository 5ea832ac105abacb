package profession

import (
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

var (
	displayPattern = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]{0,39}$`)
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
	name, ok := e.Key.(*ast.StringNode)
	if !ok {
		return fault(r.file, line(e.Key), "", "%q is not a key", e.Key.String())
	}
	key, at := name.Value, line(e.Key)
	if key == "maxTurns" { // both spellings are one key
		key = "max_turns"
	}
	if first, twice := r.said[key]; twice {
		return fault(r.file, at, "", "%s was said in line %d already", key, first)
	}
	r.said[key] = at
	v := value{r: r, key: name.Value, line: at, node: e.Value}
	switch key {
	case "name":
		return v.name(&r.p.Name)
	case "display":
		return v.matching(&r.p.Display, displayPattern, "letters and digits, for example CodeBuilder")
	case "description":
		return v.text(&r.p.Description)
	case "model":
		return v.matching(&r.p.Model, modelPattern, "an alias such as sonnet, or the exact id of a model")
	case "tools":
		r.tools = true
		return v.toolList(&r.p.Tools)
	case "required_tools":
		return v.toolList(&r.p.Required)
	case "disallowedTools":
		return v.words(&r.deny, checkDenied)
	case "owns":
		return v.list(&r.p.Owns, checkGlob)
	case "reads":
		return v.list(&r.p.Reads, checkGlob)
	case "handoff_to":
		return v.words(&r.p.HandoffTo, checkName)
	case "notes":
		return v.yes(&r.p.Notes)
	case "gates":
		return v.words(&r.p.Gates, checkGate)
	case "verify":
		return v.list(&r.p.Verify, nil)
	case "max_turns":
		return v.count(&r.p.MaxTurns)
	case "wall":
		return v.duration(&r.p.Wall)
	case "silence":
		return v.duration(&r.p.Silence)
	}
	want := ignored(key)
	if want == nil {
		return r.unknown(key, at)
	}
	if !slices.Contains(want, e.Value.Type()) {
		return v.wrong("of the kind that Claude Code takes")
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
		"owns", "reads", "handoff_to", "notes", "gates", "verify", "max_turns", "wall", "silence"} {
		if plain(known) == plain(key) || plain(known) == plain(key)+"s" || plain(known)+"s" == plain(key) {
			return fault(r.file, at, "", "there is no key %q, it is written %s", key, known)
		}
	}
	return fault(r.file, at, "", "there is no key %q", key)
}

// finish checks what takes more than one key, and fills in what follows from the others.
func (r *reader) finish() (Profession, error) {
	p := &r.p
	for _, key := range []string{"name", "description"} {
		if r.said[key] == 0 {
			return Profession{}, fault(r.file, 1, "", "the front matter has no %s", key)
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
			return Profession{}, fault(r.file, r.said["required_tools"], "", "the tool %q is required but not offered", t)
		}
	}
	if p.Owns != nil && !p.Writes {
		return Profession{}, fault(r.file, r.said["owns"], "", "owns says what may be changed, but no tool changes files")
	}
	if p.Wall > 0 && p.Silence > p.Wall {
		return Profession{}, fault(r.file, r.said["silence"], "", "silence is longer than wall, so it could never end a run")
	}
	slices.Sort(p.Ignored)
	return *p, nil
}
