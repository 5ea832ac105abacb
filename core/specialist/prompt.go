package specialist

import (
	"fmt"
	"strings"

	"example.com/AutoAgentProject/core/handoff"
	"example.com/AutoAgentProject/core/plan"
)

// promptFacts are what the prompt says besides the step.
type promptFacts struct {
	Cut       bool                        // an earlier run of it was cut off
	Conflicts []string                    // files with conflict markers
	Tight     bool                        // money is short: only the first line of what others said, and the context
	Documents map[string]handoff.Document // of the steps it builds on; of one without, the plan's summary is shown
}

// prompt is the handoff as the model reads it: the step, what it builds on, why it came back. Nothing else of the
// mission is in it.
func prompt(p *plan.Plan, step plan.Step, f promptFacts) string {
	var b strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&b, format, args...) }
	say("# Your step: %s (%s)\n\n%s\n", step.Title, step.ID, strings.TrimSpace(step.Brief))
	say("\n## It is done when\n")
	for _, a := range step.Acceptance {
		say("- %s\n", a)
	}
	if strings.TrimSpace(step.Verify) != "" {
		say("- this command exits 0 in a fresh checkout of the tree with your work merged:\n\n```sh\n%s\n```\n", step.Verify)
	}
	if len(step.DependsOn) > 0 {
		say("\n## What you build on (it is in your folder)\n")
		for _, id := range step.DependsOn {
			if d := p.Step(id); d != nil {
				doc, ok := f.Documents[id]
				said := doc.Passed(f.Tight)
				if !ok {
					said = d.Summary
				}
				if f.Tight && !ok {
					said, _, _ = strings.Cut(strings.TrimSpace(said), "\n")
				}
				say("\n### %s (%s), by %s\n%s\n", d.Title, d.ID, d.Agent, quote(said))
			}
		}
	}
	if n := len(step.Reasons); n > 0 {
		say("\n## It came back to you\nYour earlier work on it is in your folder. The reason:\n\n%s\n", step.Reasons[n-1])
	}
	if len(f.Conflicts) > 0 {
		say("\nThe merge of what others finished meanwhile left conflict markers in these files; resolve them so that both intents live on:\n")
		for _, c := range f.Conflicts {
			say("- %s\n", c)
		}
	}
	if f.Cut {
		say("\n## You were interrupted\nAn earlier run of this step was cut off. Look at what is in the folder already before you go on.\n")
	}
	return b.String()
}

// quote marks every line as somebody else's words: no heading of theirs is taken for one of the prompt.
func quote(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for i, l := range lines {
		lines[i] = strings.TrimRight("> "+l, " ")
	}
	return strings.Join(lines, "\n")
}
