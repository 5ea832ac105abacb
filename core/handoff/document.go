package handoff

import (
	"fmt"
	"regexp"
	"strings"
)

// DocumentFile is where an agent leaves the document of its work, below its clone.
const DocumentFile = ".autoagent/handoff.md"

// Sizes of a document. What is passed on stands in the prompt of everybody who builds on the work, so it is small; the rest is
// kept beside the product and can be looked up.
const (
	MaxDocument = 16 << 10 // bytes of the file
	MaxSummary  = 200      // words
	MaxPassed   = 4000     // bytes of what is passed on: summary, decisions, context, open questions
	MaxBlock    = 20       // lines of a fenced block: a file is named, not put in
)

// Document is what an agent says of its work, section by section, as Markdown without comments. Header and spend are no part of
// it: they are stamped when it is taken over.
type Document struct {
	Summary   string `json:"summary"`
	Decisions string `json:"decisions"`    // a list "- D1 (made): …", or none
	Specs     string `json:"spec_updates"` // what changed in specifications
	Work      string `json:"work_product"` // what there is now, by path
	Context   string `json:"context"`      // for the next: files, specs, warnings
	Questions string `json:"open_questions"`
}

// section is a part of a document: its heading and what the skeleton says there.
type section struct {
	name, hint string
	of         func(*Document) *string
}

func sections() []section {
	return []section{
		{"Summary", "<!-- at most 200 words: what was done, what you saw happen, what is untested -->", func(d *Document) *string { return &d.Summary }},
		{"Decisions", "<!-- lines like: - D1 (made): what, and why. Status: made, deferred, rejected. Or: none -->", func(d *Document) *string { return &d.Decisions }},
		{"Spec updates", "<!-- what was added to, changed in or removed from a specification or contract. Or: none -->", func(d *Document) *string { return &d.Specs }},
		{"Work product", "<!-- lines like: - path: what it is. Name files, do not copy them; sum up what commands printed -->", func(d *Document) *string { return &d.Work }},
		{"Context for the next", "<!-- fill each line in, none is an answer -->\n- Files:\n- Specs:\n- Warnings:", func(d *Document) *string { return &d.Context }},
		{"Open questions", "<!-- lines like: - Q1 (open): what. Status: open, answered, blocked. Or: none -->", func(d *Document) *string { return &d.Questions }},
	}
}

// spendSection is written by us, below the others.
const spendSection = "Spend"

// Skeleton is the document before it is written, as an agent finds it in its clone.
func Skeleton() string {
	var b strings.Builder
	b.WriteString("<!-- Fill in every section. Header and spend are written for you. -->\n")
	for _, s := range sections() {
		fmt.Fprintf(&b, "\n## %s\n%s\n", s.name, s.hint)
	}
	return b.String()
}

// Head is what is stamped on a document when it is taken over. Nothing that an agent wrote gets into it.
type Head struct {
	From       string
	To         string // who goes on with it: steps, or the manager
	Run        string // empty: no run ended well
	Step       string
	Attempt    int    // the how-manieth time the step was handed over
	Checkpoint string // commit that the document is about
	Spend      string // in words
}

// Render is the document as it is kept: the header line, the sections, the spend.
func (d Document) Render(h Head) string {
	var b strings.Builder
	run := h.Run
	if run == "" {
		run = "none"
	}
	fmt.Fprintf(&b, "from: %s | to: %s | run: %s | step: %s, attempt %d | checkpoint: %s\n", h.From, h.To, run, h.Step, h.Attempt, h.Checkpoint)
	for _, s := range sections() {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n", s.name, *s.of(&d))
	}
	fmt.Fprintf(&b, "\n## %s\n\n%s\n", spendSection, h.Spend)
	return b.String()
}

// Passed is what those who build on the work are told of it, without what says nothing. short leaves all but the first line of
// the summary and the context out.
func (d Document) Passed(short bool) string {
	if short {
		d.Summary, d.Decisions, d.Questions = firstLine(d.Summary), "", ""
	}
	out := d.Summary
	for _, p := range []struct{ name, text string }{{"Decisions", d.Decisions}, {"Context", d.Context}, {"Open questions", d.Questions}} {
		if p.text != "" && p.text != notStated && !(nothing.MatchString(p.text) && !strings.Contains(p.text, "\n")) {
			out += "\n\n" + p.name + ":\n" + p.text
		}
	}
	return out
}

// notStated stands in the sections of a document that code made.
const notStated = "Not stated."

// Made is a document that code makes of an agent's last answer, cut to what a summary may have.
func Made(answer string) Document {
	answer = strings.Map(func(r rune) rune {
		if r != '\n' && control(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(answer, ""))
	answer = strings.NewReplacer("```", "'''", "~~~", "'''", "<!--", "<! --").Replace(answer) // nothing that hides what follows
	if words := strings.Fields(answer); len(words) > MaxSummary {
		answer = strings.Join(words[:MaxSummary], " ") + " …"
	}
	if len(answer) > MaxPassed/2 {
		answer = strings.ToValidUTF8(answer[:MaxPassed/2], "") + "…"
	}
	lines := strings.Split(strings.TrimSpace(answer), "\n")
	for i, l := range lines { // an answer is free to use headings, and here they would begin a section
		if strings.HasPrefix(l, "#") {
			lines[i] = `\` + l
		}
	}
	return Document{
		Summary: strings.Join(lines, "\n"), Decisions: notStated, Specs: notStated, Work: notStated, Questions: notStated,
		Context: "- Warnings: the agent left no usable document; this one was made of its last answer",
	}
}

var comment = regexp.MustCompile(`(?s)<!--.*?(-->|\z)`)

// ReadDocument takes the sections out of a document, an agent's or a kept one. Whatever stands before the first of them, and
// the spend, is ours and left out. odd are the headings that are no section, or one for the second time.
func ReadDocument(text string) (d Document, odd []string) {
	text = comment.ReplaceAllString(strings.ReplaceAll(text, "\r\n", "\n"), "")
	all := sections()
	var into *string
	var ours string // what is thrown away
	seen := map[string]bool{}
	into = &ours
	fenced := ""
	for line := range strings.SplitSeq(text, "\n") {
		fenced = fence(fenced, line)
		heading, ok := strings.CutPrefix(line, "## ")
		if !ok || fenced != "" {
			*into += line + "\n"
			continue
		}
		name := strings.ToLower(strings.Trim(heading, " \t:#*"))
		into = &ours
		for _, s := range all {
			if strings.ToLower(s.name) == name && !seen[name] {
				into = s.of(&d)
			}
		}
		if into == &ours && (name != strings.ToLower(spendSection) || seen[name]) {
			odd = append(odd, heading)
		}
		seen[name] = true
	}
	for _, s := range all {
		*s.of(&d) = strings.TrimSpace(*s.of(&d))
	}
	return d, odd
}

// fence follows fenced blocks: it returns the fence that is open behind a line, empty outside of a block.
func fence(open, line string) string {
	t := strings.TrimLeft(line, " ")
	mark := t[:len(t)-len(strings.TrimLeft(t, "`"))]
	if mark == "" {
		mark = t[:len(t)-len(strings.TrimLeft(t, "~"))]
	}
	switch {
	case len(mark) < 3:
		return open
	case open == "":
		return mark
	case strings.HasPrefix(mark, open) && strings.TrimSpace(t[len(mark):]) == "":
		return ""
	}
	return open
}

// DocumentPath is where a step's document is kept; attempt counts from 1.
func DocumentPath(step string, attempt int) string {
	return fmt.Sprintf("steps/%s/%d.md", step, attempt)
}
