package handoff

import (
	"strings"
	"testing"
)

const goodDoc = `<!-- a hint -->
from: root | step: none

## Summary

It works; I saw it.

## Decisions

- D1 (made): plain HTML, no framework.
  It is one page.
- **D2** (rejected): a script.

## Spec updates
None.

## Work product

- index.html: the page

` + "```sh\n## Summary\n```" + `

## Context for the next

- Files: index.html
- Specs:
  - docs/contract.md
- **Warnings:** none

## Open questions

- Q1 (open): a logo?

## Spend

nothing
`

// change is goodDoc with a text replaced.
func change(old, new string) string {
	if !strings.Contains(goodDoc, old) {
		panic(old)
	}
	return strings.Replace(goodDoc, old, new, 1)
}

func TestCheckDocument(t *testing.T) {
	for name, c := range map[string]struct {
		doc  string
		want []string // in the order of what is said; a problem's section and a word of it
	}{
		"good":               {goodDoc, nil},
		"line ends":          {strings.ReplaceAll(goodDoc, "\n", "\r\n"), nil},
		"other order":        {change("## Summary\n\nIt works; I saw it.\n", "") + "\n## Summary\nLater.\n", nil},
		"no decisions":       {change("- D1 (made): plain HTML, no framework.\n  It is one page.\n- **D2** (rejected): a script.", "none"), nil},
		"skeleton":           {Skeleton(), []string{"Summary: it is missing", "Decisions: it is missing", "Spec updates: it is missing", "Work product: it is missing", "Files:", "Specs:", "Warnings:", "Open questions: it is missing"}},
		"nothing":            {"", []string{"Summary", "Decisions", "Spec updates", "Work product", "Context for the next", "Open questions"}},
		"long summary":       {change("It works; I saw it.", strings.Repeat("w ", 201)), []string{"201 words"}},
		"just short enough":  {change("It works; I saw it.", strings.Repeat("w ", 200)), nil},
		"two at once":        {change("It works; I saw it.", "") + "## More\nx\n", []string{"## More", "Summary"}},
		"twice":              {goodDoc + "\n## Summary\nagain\n", []string{"## Summary"}},
		"no status":          {change("(made)", ""), []string{`## Decisions "- D1`}},
		"wrong status":       {change("Q1 (open)", "Q1 (perhaps)"), []string{"Open questions"}},
		"same id":            {change("**D2** (rejected)", "D1 (made)"), []string{`"D1": the id stands twice`}},
		"prose":              {change("- Q1 (open): a logo?", "Should there be a logo?"), []string{"no list of entries"}},
		"no warnings":        {change("- **Warnings:** none", "- Warnings:"), []string{`"Warnings:"`}},
		"inlined file":       {change("## Summary\n```", strings.Repeat("line\n", 21)+"```"), []string{"a block has 21 lines"}},
		"open block":         {change("## Summary\n```", "## Summary\n"), []string{"## Context for the next: it is missing", "## Open questions: it is missing", "not closed"}},
		"open comment":       {change("## Decisions", "<!-- ## Decisions"), []string{"Decisions", "Spec", "Work", "Context", "Open"}},
		"too much passed on": {change("index.html\n- Specs", strings.Repeat("x", MaxPassed)+"\n- Specs"), []string{"bytes together"}},
		"too big":            {goodDoc + strings.Repeat("x", MaxDocument), []string{"at most 16384"}},
		"binary":             {goodDoc + "\xff", []string{"UTF-8"}},
		"escape sequence":    {goodDoc + "\x1b[2J", []string{"control"}},
	} {
		d, problems := CheckDocument([]byte(c.doc))
		if len(problems) != len(c.want) {
			t.Errorf("%s: %d problems, want %d: %v", name, len(problems), len(c.want), problems)
			continue
		}
		all := ""
		for _, p := range problems {
			all += p.String() + "\n"
			if p.Remedy == "" || strings.ContainsFunc(strings.TrimSpace(p.String()), control) {
				t.Errorf("%s: %q", name, p)
			}
		}
		for _, w := range c.want {
			if !strings.Contains(all, w) {
				t.Errorf("%s: nothing says %q:\n%s", name, w, all)
			}
		}
		if problems == nil && (d.Summary == "" || strings.Contains(d.Passed(false), "nothing\n") || strings.Contains(d.Questions, "Spend")) {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

func TestUntouched(t *testing.T) {
	for doc, want := range map[string]bool{Skeleton(): true, "": true, " \n": true, "<!-- x -->": false, goodDoc: false, Skeleton() + "x": false, "hello": false} {
		if got := Untouched([]byte(doc)); got != want {
			t.Errorf("%.40q: %v", doc, got)
		}
	}
}

// TestMade: whatever an agent answered, the document made of it has all its sections.
func TestMade(t *testing.T) {
	for _, answer := range []string{"did it", "", "## Summary\n## Decisions\nmine", "```\nopen", "<!-- hidden", strings.Repeat("word ", 5000), strings.Repeat("é", 20_000), "a\x1b[0m\xffb", "~~~\n"} {
		d := Made(answer)
		again, odd := ReadDocument(d.Render(Head{From: "a", Step: "s"}))
		if again != d || odd != nil {
			t.Errorf("%.40q: %+v, %v", answer, again, odd)
		}
		if n := len(d.Passed(false)); n > MaxPassed || len(strings.Fields(d.Summary)) > MaxSummary+1 {
			t.Errorf("%.40q: %d bytes", answer, n)
		}
	}
}

func TestPassed(t *testing.T) {
	d, _ := ReadDocument(goodDoc)
	got := d.Passed(false)
	for _, want := range []string{"It works", "D1 (made)", "docs/contract.md", "Q1 (open)"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not passed on:\n%s", want, got)
		}
	}
	if strings.Contains(got, "index.html: the page") || strings.Contains(got, "nothing") {
		t.Errorf("too much is passed on:\n%s", got)
	}
	d.Decisions, d.Summary = "None.", "First.\nSecond."
	if got := d.Passed(false); strings.Contains(got, "Decisions") {
		t.Errorf("nothing is passed on in words:\n%s", got)
	}
	if got := d.Passed(true); !strings.HasPrefix(got, "First.\n\nContext:\n") || strings.Contains(got, "Q1") {
		t.Errorf("short: %s", got)
	}
}
