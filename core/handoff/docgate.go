package handoff

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// Untouched says whether nothing was written into a document: it is the skeleton still, or empty.
func Untouched(data []byte) bool {
	d, odd := ReadDocument(string(data))
	empty, _ := ReadDocument(Skeleton())
	return d == empty && odd == nil || strings.TrimSpace(string(data)) == ""
}

var (
	decision = regexp.MustCompile(`^[-*] ([A-Z][A-Za-z]{0,3}-?[0-9]{1,4}) \((made|deferred|rejected)\): \S`)
	question = regexp.MustCompile(`^[-*] ([A-Z][A-Za-z]{0,3}-?[0-9]{1,4}) \((open|answered|blocked)\): \S`)
	nothing  = regexp.MustCompile(`(?i)^([-*] )?none\b`)
	label    = regexp.MustCompile(`(?i)^[-*]?\s*(files|specs|warnings):(.*)$`)
)

// CheckDocument is the gate for documents: it returns all that is wrong with one at once, each with the section, the value and
// the remedy. Without problems the document may be passed on.
func CheckDocument(data []byte) (Document, []Problem) {
	g := docGate{}
	switch {
	case len(data) > MaxDocument:
		g.add("document", "", fmt.Sprintf("the file has %d bytes, at most %d are allowed", len(data), MaxDocument), "name files instead of copying them, and sum up what commands printed")
		return Document{}, g.problems
	case !utf8.Valid(data):
		g.add("document", "", "it is not UTF-8", "write plain UTF-8 text")
		return Document{}, g.problems
	}
	text := strings.ReplaceAll(string(data), "\r\n", "\n")
	if strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && control(r) }) {
		g.add("document", "", "it holds control characters", "write plain text: no escape sequences out of a command's output")
	}
	g.blocks(comment.ReplaceAllString(text, ""))
	d, odd := ReadDocument(text)
	for _, name := range odd {
		g.add("## "+cleanName(name), "", "there is no such section, or it stands twice", "use each of the skeleton's sections once, and ### inside of them")
	}
	for _, s := range sections() {
		if *s.of(&d) == "" {
			g.add("## "+s.name, "", "it is missing or empty", remedyFor(s.name))
		}
	}
	if n := len(strings.Fields(d.Summary)); n > MaxSummary {
		g.add("## Summary", "", fmt.Sprintf("it has %d words", n), fmt.Sprintf("shorten it to %d", MaxSummary))
	}
	g.list("Decisions", d.Decisions, decision, "- D1 (made): what, and why; status made, deferred or rejected")
	g.list("Open questions", d.Questions, question, "- Q1 (open): what; status open, answered or blocked")
	g.context(d.Context)
	if n := len(d.Passed(false)); n > MaxPassed {
		g.add("document", "", fmt.Sprintf("summary, decisions, context and open questions have %d bytes together", n),
			fmt.Sprintf("shorten them to %d: others read them in their prompt; put the rest into a file and name it", MaxPassed))
	}
	if g.problems != nil {
		return Document{}, g.problems
	}
	return d, nil
}

type docGate struct{ problems []Problem }

func (g *docGate) add(section, value, text, remedy string) {
	if len(g.problems) < maxProblems {
		g.problems = append(g.problems, Problem{section, value, text, remedy})
	}
}

// maxProblems bounds what one refusal says: whoever has more is told the rest the next time.
const maxProblems = 20

func remedyFor(section string) string {
	switch section {
	case "Summary":
		return fmt.Sprintf("say in at most %d words what was done and what you saw happen", MaxSummary)
	case "Work product":
		return "name what there is now, by path"
	case "Context for the next":
		return "fill in the lines Files:, Specs: and Warnings:"
	}
	return "fill it in, or write none"
}

// list checks a section whose entries have an id and a status.
func (g *docGate) list(name, text string, entry *regexp.Regexp, form string) {
	if text == "" || nothing.MatchString(text) {
		return
	}
	seen := map[string]bool{}
	any := false
	for line := range strings.SplitSeq(text, "\n") {
		plain := strings.NewReplacer("**", "", "`", "").Replace(line)
		if m := entry.FindStringSubmatch(plain); m != nil {
			any = true
			if seen[m[1]] {
				g.add("## "+name, m[1], "the id stands twice", "give each entry its own id")
			}
			seen[m[1]] = true
		} else if strings.HasPrefix(line, "- ") || strings.HasPrefix(line, "* ") {
			any = true
			g.add("## "+name, line, "it has no id and status", "write "+form)
		}
	}
	if !any {
		g.add("## "+name, firstLine(text), "it is no list of entries", "write "+form+"; or none")
	}
}

// context checks that each of the three lines says something, behind it or below it.
func (g *docGate) context(text string) {
	if text == "" {
		return
	}
	said, at := map[string]string{}, ""
	for line := range strings.SplitSeq(text, "\n") {
		if m := label.FindStringSubmatch(strings.ReplaceAll(line, "**", "")); m != nil {
			at = strings.ToLower(m[1])
			line = m[2]
		}
		said[at] += strings.TrimSpace(line)
	}
	for _, l := range []string{"Files", "Specs", "Warnings"} {
		if said[strings.ToLower(l)] == "" {
			g.add("## Context for the next", l+":", "the line is missing or empty", "write - "+l+": and what the next one needs, or none")
		}
	}
}

// blocks refuses fenced blocks that are a whole file or a command's whole output.
func (g *docGate) blocks(text string) {
	open, began, n := "", "", 0
	for line := range strings.SplitSeq(text, "\n") {
		was := open
		open = fence(open, line)
		switch {
		case was == "" && open != "":
			began, n = line, 0
		case was != "" && open == "":
			if n > MaxBlock {
				g.add("document", began, fmt.Sprintf("a block has %d lines", n), fmt.Sprintf("at most %d: name the file, or sum up what was printed", MaxBlock))
			}
		case open != "":
			n++
		}
	}
	if open != "" {
		g.add("document", began, "a block is not closed", "close it with the line that opened it")
	}
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// Refused is a file that an agent left and the gate refused.
type Refused struct {
	File     string // below its clone
	Problems []Problem
}

// Refusal is what an agent is told of what the gate refused, all of it at once.
func Refusal(refused ...Refused) string {
	var b bytes.Buffer
	for _, r := range refused {
		what := "draft"
		if r.File == DocumentFile {
			what = "document"
		}
		fmt.Fprintf(&b, "The %s %s is refused:\n", what, cleanName(r.File))
		for _, p := range r.Problems {
			fmt.Fprintf(&b, "- %s\n", p)
		}
		b.WriteString("\n")
	}
	b.WriteString("Correct what is named here, nothing else, then give your last answer again.")
	return b.String()
}

// Request asks for a document that was not written.
func Request() string {
	return "Your step is not finished: the document " + DocumentFile + " was not written. Write it now, with these sections, and change nothing else; " +
		"then give your last answer again.\n\n" + Skeleton()
}
