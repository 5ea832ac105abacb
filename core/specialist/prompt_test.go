package specialist

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"example.com/AutoAgentProject/core/files"
	"example.com/AutoAgentProject/core/plan"
	"example.com/AutoAgentProject/core/tick"
)

func TestPrompt(t *testing.T) {
	p := &plan.Plan{Round: 1, Acceptance: []string{"ACCEPTANCE-OF-ALL"}, Steps: []plan.Step{
		{ID: "look", Title: "Choose colours", Brief: "BRIEF-OF-LOOK", Verify: "VERIFY-OF-LOOK", State: plan.Done, Agent: "designer-1", Summary: "Dark blue on white.\nSee style.css."},
		{ID: "other", Title: "OTHER-TITLE", Brief: "OTHER-BRIEF", State: plan.Working, Agent: "codebuilder-2", Summary: "OTHER-SUMMARY", Reasons: []string{"OTHER-REASON"}},
		{ID: "page", Title: "Build the page", Brief: "\nWrite index.html; 100% of it.\n\n", DependsOn: []string{"look", "gone"}, Verify: "test -f index.html", Acceptance: []string{"the page is there", "it is blue"}, Reasons: []string{"FIRST-REASON", "it was red"}},
	}}
	got := prompt(p, p.Steps[2], promptFacts{Cut: true, Conflicts: []string{"index.html", "a b"}})
	const want = `# Your step: Build the page (page)

Write index.html; 100% of it.

## It is done when
- the page is there
- it is blue
- this command exits 0 in a fresh checkout of the tree with your work merged:

` + "```sh\ntest -f index.html\n```" + `

## What you build on (it is in your folder)

### Choose colours (look), by designer-1
> Dark blue on white.
> See style.css.

## It came back to you
Your earlier work on it is in your folder. The reason:

it was red

The merge of what others finished meanwhile left conflict markers in these files; resolve them so that both intents live on:
- index.html
- a b

## You were interrupted
An earlier run of this step was cut off. Look at what is in the folder already before you go on.
`
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	for _, s := range []string{"BRIEF-OF-LOOK", "VERIFY-OF-LOOK", "OTHER", "FIRST-REASON", "ACCEPTANCE-OF-ALL"} {
		if strings.Contains(got, s) {
			t.Errorf("%s is none of its business", s)
		}
	}
	plain := prompt(p, plan.Step{ID: "x", Title: "X", Brief: "b", Verify: " \n", Acceptance: []string{"y"}}, promptFacts{})
	if want := "# Your step: X (x)\n\nb\n\n## It is done when\n- y\n"; plain != want {
		t.Errorf("%q", plain)
	}
}

func TestSummary(t *testing.T) {
	words := func(n int, w string) string { return strings.TrimSpace(strings.Repeat(w+" ", n)) }
	for name, c := range map[string]struct{ in, want string }{
		"nothing":           {" \n", ""},
		"as it is":          {" two\n\nlines ", "two\n\nlines"},
		"just short enough": {words(220, "w"), words(220, "w")},
		"too many words":    {words(221, "w"), words(220, "w") + " …"},
		"one long word":     {strings.Repeat("x", 5000), strings.Repeat("x", 2000) + "…"},
		"long words":        {words(300, strings.Repeat("x", 99)), words(20, strings.Repeat("x", 99)) + "…"},
		"cut inside a rune": {"x" + strings.Repeat("é", 1500), "x" + strings.Repeat("é", 999) + "…"},
		"no break":          {strings.Repeat("日", 1000), strings.Repeat("日", 666) + "…"},
	} {
		got := summary(c.in)
		want := c.want
		if name == "long words" {
			want = words(20, strings.Repeat("x", 99)) + " …"
		}
		if got != want || !utf8.ValidString(got) || len(got) > 2000+len("…") {
			t.Errorf("%s: %d bytes: %.80q…, want %.80q…", name, len(got), got, want)
		}
	}
}

func TestCapped(t *testing.T) {
	f, err := os.CreateTemp(t.TempDir(), "")
	ok(t, err)
	defer f.Close()
	c := &capped{f, 10}
	for _, x := range []struct {
		n   int
		err error
	}{{4, nil}, {6, nil}, {0, nil}, {1, errTooBig}} {
		if n, err := c.Write(make([]byte, x.n)); !errors.Is(err, x.err) || (err == nil && n != x.n) {
			t.Errorf("%d bytes: %d, %v", x.n, n, err)
		}
	}
	if st, _ := f.Stat(); st.Size() != 10 {
		t.Errorf("%d bytes on the disk", st.Size())
	}
}

func TestPassing(t *testing.T) {
	for err, want := range map[error]bool{
		syscall.ENOSPC: true, syscall.EDQUOT: true, context.Canceled: true, context.DeadlineExceeded: true, files.ErrLocked: true,
		tick.ErrStopped: true, syscall.EIO: false, errors.New("x"): false,
	} {
		if got := tick.Passing(fmt.Errorf("step: %w", err)); got != want {
			t.Errorf("%v: %v", err, got)
		}
	}
}
