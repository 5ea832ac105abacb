package handoff

import (
	"cmp"
	"fmt"
	"strings"
	"time"
	"unicode"
)

// Mermaid draws the way of a task as a sequence diagram: who handed it to whom, with commit, and how long it lay and was
// worked on there.
func (w Way) Mermaid() string {
	var b strings.Builder
	b.WriteString("sequenceDiagram\n    autonumber\n")
	names := map[string]string{}
	for _, l := range w.Legs {
		for _, who := range []string{l.From, l.To} {
			if names[who] == "" {
				names[who] = fmt.Sprintf("p%d", len(names)+1)
				fmt.Fprintf(&b, "    participant %s as %s\n", names[who], mermaidText(who))
			}
		}
	}
	for _, l := range w.Legs {
		arrow := "->>"
		if l.Broadcast {
			arrow = "-->>" // merge only
		}
		fmt.Fprintf(&b, "    %s%s%s: %s %s<br/>%s", names[l.From], arrow, names[l.To], mermaidText(cmp.Or(l.Task, w.Task)), mermaidText("<"+l.Commit+">"), l.State)
		if l.Waited > 0 {
			fmt.Fprintf(&b, ", waited %s", rounded(time.Duration(l.Waited)))
		}
		if l.Worked > 0 {
			fmt.Fprintf(&b, ", worked %s", rounded(time.Duration(l.Worked)))
		}
		b.WriteString("\n")
	}
	return b.String()
}

func rounded(d time.Duration) time.Duration {
	if d < time.Second {
		return d.Round(time.Millisecond)
	}
	return d.Round(time.Second)
}

// mermaidText makes text fit for a message or a name. Angle brackets are shown in backticks, never as entities; what ends a
// statement or begins an entity is written as a number; everything else that is no plain character is left out.
func mermaidText(s string) string {
	angled := strings.ContainsAny(s, "<>")
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '`':
			b.WriteByte('\'')
		case r == '#' || r == ';' || r == '%':
			fmt.Fprintf(&b, "#%d;", r)
		case r == '\t':
			b.WriteByte(' ')
		case unicode.IsPrint(r):
			b.WriteRune(r)
		default:
			b.WriteByte('?')
		}
	}
	if angled {
		return "`" + b.String() + "`"
	}
	return b.String()
}
