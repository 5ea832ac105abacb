package flow

import (
	"encoding/json"
	"fmt"
	"strings"
)

// quote writes a text so that YAML and .flow.ad read it back as it is.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range s {
		switch c {
		case '"', '\\':
			b.WriteByte('\\')
			b.WriteRune(c)
		case '\n':
			b.WriteString(`\n`)
		case '\t':
			b.WriteString(`\t`)
		default:
			b.WriteRune(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

func list(items []string) string {
	var out []string
	for _, s := range items {
		out = append(out, quote(s))
	}
	return "[" + strings.Join(out, ", ") + "]"
}

// Markdown is the flow as a Markdown file with front matter. Reading it gives the same flow.
func (f Flow) Markdown() string {
	var b strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	say("---\nflow: %s\nversion: %d\ndescription: %s\nmode: %s\nsteps:", f.ID, f.Version, quote(f.Description), f.Mode)
	for _, s := range f.Steps {
		say("  - id: %s\n    profession: %s", s.ID, s.Profession)
		if s.Gate != "" {
			say("    gate: %s", quote(s.Gate))
		}
		for _, line := range common(s) {
			say("    %s", line)
		}
		if s.Loop != (Loop{}) {
			say("    loop: %s", s.Loop.table("max"))
		}
		switch {
		case s.Exit.On != "":
			parts := []string{"on: " + quote(s.Exit.On)}
			for _, a := range s.Exit.Arms {
				parts = append(parts, quote(a.Value)+": "+a.To)
			}
			if s.Exit.Default != "" {
				parts = append(parts, "default: "+s.Exit.Default)
			}
			say("    exit: {%s}", strings.Join(parts, ", "))
		case s.Exit.To != "":
			say("    exit: %s", s.Exit.To)
		}
	}
	say("---")
	if f.Body != "" {
		say("%s", f.Body)
	}
	return b.String()
}

func validatorList(all []Validator) string {
	var out []string
	for _, v := range all {
		out = append(out, "{"+v.Kind+": "+quote(v.Arg)+"}")
	}
	return "[" + strings.Join(out, ", ") + "]"
}

func (l Loop) table(max string) string {
	var parts []string
	if l.Max > 0 {
		parts = append(parts, fmt.Sprintf("%s: %d", max, l.Max))
	}
	if l.Back != "" {
		parts = append(parts, "back: "+quote(l.Back))
	}
	if l.OnFail != "" {
		parts = append(parts, "on_fail: "+quote(l.OnFail))
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// AD is the flow as a .flow.ad file. Reading it gives the same flow.
func (f Flow) AD() string {
	var b strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	for line := range strings.SplitSeq(f.Body, "\n") {
		if escaped.MatchString(line) {
			line = `\` + line
		}
		say("%s", line)
	}
	say("\n$Flow(id: %s, version: %d, mode: %s) {\n  description: %s\n}", quote(f.ID), f.Version, quote(f.Mode), quote(f.Description))
	for i, s := range f.Steps {
		gate := ""
		if s.Gate != "" {
			gate = ", gate: " + quote(s.Gate)
		}
		say("\n$Step(id: %s, profession: %s%s) {", quote(s.ID), quote(s.Profession), gate)
		for _, line := range common(s) {
			say("  %s", line)
		}
		if l := s.Loop; l != (Loop{}) {
			l.Back, l.OnFail = f.targetAD(i, l.Back), f.targetAD(i, l.OnFail)
			say("  loop: %s", l.table("max_iterations"))
		}
		switch {
		case s.Exit.On != "":
			var parts []string
			for _, a := range s.Exit.Arms {
				parts = append(parts, quote(a.Value)+": "+quote(f.targetAD(i, a.To)))
			}
			if s.Exit.Default != "" {
				parts = append(parts, "default: "+quote(f.targetAD(i, s.Exit.Default)))
			}
			say("  exit: %s\n  branch: {%s}", quote("classify("+s.Exit.On+")"), strings.Join(parts, ", "))
		case s.Exit.To != "":
			say("  exit: %s", quote(f.targetAD(i, s.Exit.To)))
		}
		say("}")
	}
	return strings.TrimLeft(b.String(), "\n")
}

// targetAD names a step by its profession where that is enough, as others write it.
func (f Flow) targetAD(from int, to string) string {
	if s, ok := f.Step(to); ok && find(f.Steps, from, byProfession+s.Profession) == to {
		return "handoff_to: " + s.Profession
	}
	return to
}

// Mermaid is the flow as a diagram: passing as lines, going back as dotted ones.
func (f Flow) Mermaid() string {
	var b strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	say("flowchart TD")
	node := func(id string) string {
		switch id {
		case Complete, Stop, Person:
			return "end_" + id
		}
		return "s_" + strings.ReplaceAll(id, "-", "_")
	}
	ends := map[string]string{}
	edge := func(from, arrow, label, to string) {
		if to == Complete || to == Stop || to == Person {
			ends[to] = map[string]string{Complete: "complete", Stop: "stop", Person: "a person decides"}[to]
		}
		if label != "" {
			label = "|" + label + "|"
		}
		say("  %s %s%s %s", node(from), arrow, label, node(to))
	}
	for _, s := range f.Steps {
		say("  %s[\"%s<br/>%s\"]", node(s.ID), s.ID, s.Profession)
	}
	for _, s := range f.Steps {
		if s.Exit.On == "" {
			to, _ := f.Target(s, "")
			edge(s.ID, "-->", "", to)
		}
		failed := "failed"
		for _, a := range append(s.Exit.Arms, Arm{"other", s.Exit.Default}) {
			switch a.To {
			case "":
			case Fail:
				failed = a.Value
			default:
				to, _ := f.Target(Step{ID: s.ID, Exit: Exit{To: a.To}}, "")
				edge(s.ID, "-->", a.Value, to)
			}
		}
		edge(s.ID, "-.->", fmt.Sprintf("%s, %d times", failed, s.Limit()), s.BackTo())
		to := s.Loop.OnFail
		if to == "" {
			to = Person
		}
		edge(s.ID, "-.->", "exhausted", to)
	}
	for _, id := range []string{Complete, Stop, Person} {
		if says, ok := ends[id]; ok {
			say("  %s([\"%s\"])", node(id), says)
		}
	}
	return b.String()
}

// Schema is the JSON schema of the answer of a step that judges.
func (e Exit) Schema() json.RawMessage {
	b, _ := json.Marshal(map[string]any{
		"type": "object",
		"properties": map[string]any{
			e.On:     map[string]any{"type": "string", "enum": e.Answers()},
			"answer": map[string]any{"type": "string", "maxLength": MaxText, "description": "the reasons, or the answer to a question"},
		},
		"required":             []string{e.On, "answer"},
		"additionalProperties": false,
	})
	return b
}

// common are the keys of a step that both forms write alike, a line each.
func common(s Step) (lines []string) {
	for _, x := range []struct{ key, text string }{{"title", s.Title}, {"brief", s.Brief}, {"model", s.Model}} {
		if x.text != "" {
			lines = append(lines, x.key+": "+quote(x.text))
		}
	}
	for _, x := range []struct {
		key   string
		items []string
	}{{"requires", s.Requires}, {"produces", s.Produces}, {"verify", s.Verify}} {
		if len(x.items) > 0 {
			lines = append(lines, x.key+": "+list(x.items))
		}
	}
	if len(s.Validators) > 0 {
		lines = append(lines, "validators: "+validatorList(s.Validators))
	}
	if s.Optional {
		lines = append(lines, "optional: true")
	}
	return lines
}
