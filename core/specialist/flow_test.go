package specialist

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"

	"example.com/AutoAgentProject/core/flow"
	"example.com/AutoAgentProject/core/handoff"
	"example.com/AutoAgentProject/core/plan"
	"example.com/AutoAgentProject/core/profession"
	"example.com/AutoAgentProject/core/runner"
)

func shippedStation(t *testing.T, flowID, step string) station {
	t.Helper()
	dir := os.DirFS("../../prompts")
	profs, err := profession.Load(dir)
	ok(t, err)
	flows, err := flow.Load(profs, profession.Layer{Name: profession.BuiltIn, Files: dir})
	ok(t, err)
	f, _ := flows.Get(flowID)
	fs, _ := f.Step(step)
	prof, _ := profs.Get(fs.Profession)
	return station{plan.Step{ID: step + "-1", Title: fs.Name(), Brief: fs.Brief, Visit: &plan.Visit{Step: step}}, fs, prof}
}

// TestVisitGate: what a visit changed is held to who owns it, and to what the step is there for.
func TestVisitGate(t *testing.T) {
	full := map[string]string{"goals": "g", "architecture": "a", "designs": "d", "plans": "p", "tests": "t", "acceptance": "a", "reviews": "r"}
	for _, c := range []struct {
		flow, step   string
		paths, specs string
		says         string
	}{
		{"feature", "discover", "", "goals", ""},
		{"feature", "discover", "main.go", "goals", "advisor changed what it does not own: main.go"},
		{"feature", "discover", "", "goals plans", "does not own: .autoagent/specs/plans.md"},
		{"feature", "design", "", "", ""}, // they are there already
		{"feature", "code", "main.go a/b.go", "", ""},
		{"feature", "code", "", "", "no file of the product was changed"},
		{"feature", "code", "main.go", "designs", "coder changed what it does not own: .autoagent/specs/designs.md"},
		{"feature", "test", "main_test.go", "", ""},
		{"feature", "test", "main_test.go main.go", "", "tester changed what it does not own: main.go"},
		{"feature", "intake", "", "", ""},
		{"feature", "intake", "x", "", "assistant changed what it does not own: x"},
		{"project", "vision-eval", "x", "", "evaluator changed what it does not own: x"},
		{"six-pack", "code", "main.go features/a.feature", "", "a file that features/** matches was changed"},
		{"six-pack", "clean", "main.go", "", ""},
		{"fix", "reproduce", "", "", "no file that ** matches was changed"},
	} {
		st := shippedStation(t, c.flow, c.step)
		got := st.check(strings.Fields(c.paths), strings.Fields(c.specs), full)
		if c.says == "" && got != "" || !strings.Contains(got, c.says) {
			t.Errorf("%s %s %q %q: %q, want %q", c.flow, c.step, c.paths, c.specs, got, c.says)
		}
	}
	if got := shippedStation(t, "feature", "design").check(nil, nil, map[string]string{"architecture": " \n", "designs": "d"}); !strings.Contains(got, "architecture.md is missing or empty") {
		t.Errorf("%q", got)
	}
	many := strings.Fields(strings.Repeat("x ", 30))
	if got := shippedStation(t, "feature", "discover").check(many, nil, full); !strings.Contains(got, "and 10 more") {
		t.Errorf("%q", got)
	}
}

func TestVisitAnswer(t *testing.T) {
	st := shippedStation(t, "fix", "review")
	for _, c := range []struct{ json, answer, said, reason string }{
		{`{"verdict":"accept","answer":"fine"}`, "accept", "fine", ""},
		{`{"verdict":"maybe","answer":"fine"}`, "", "", `the answer "maybe" is none of accept, change`},
		{`{"verdict":7}`, "", "", "not the JSON"},
		{``, "", "", "not the JSON"},
		{`{"answer":"accept"}`, "", "", `the answer "" is none of`},
	} {
		answer, said, reason := st.answer(runner.Result{Structured: json.RawMessage(c.json)})
		if answer != c.answer || said != c.said || (c.reason == "") != (reason == "") || !strings.Contains(reason, c.reason) {
			t.Errorf("%s: %q %q %q", c.json, answer, said, reason)
		}
	}
	var schema struct {
		Properties map[string]struct{ Enum []string }
	}
	ok(t, json.Unmarshal(st.flow.Exit.Schema(), &schema))
	if !reflect.DeepEqual(schema.Properties["verdict"].Enum, []string{"accept", "change"}) {
		t.Errorf("%s", st.flow.Exit.Schema())
	}
}

// TestVisitPrompt: exactly the specifications that the profession reads, the last document, the reason; the sizes are those of the parts.
func TestVisitPrompt(t *testing.T) {
	st := shippedStation(t, "feature", "code")
	st.step.DependsOn = []string{"test-plan-5"}
	st.step.Visit.Note, st.step.Visit.From = "it was red", "c0ffee"
	st.step.Verify = "make test"
	p := &plan.Plan{Steps: []plan.Step{{ID: "test-plan-5", Agent: "tester-1"}}}
	specs := map[string]string{"goals": "GOALS", "architecture": "ARCH", "designs": "# DESIGNS", "plans": "PLANS", "tests": "TESTS"}
	docs := map[string]handoff.Document{"test-plan-5": {Summary: "SUMMARY"}}
	text, parts := st.prompt(p, "Do it.\n## It is done when\n- always", specs, []string{"in blue"}, promptFacts{Documents: docs})
	for _, says := range []string{"# Your step: Build it (code-1)", "> Do it.\n> ## It is done when", "> in blue", "> # DESIGNS", "> PLANS", "> TESTS", "> SUMMARY", "> it was red", "make test", "The work that did not pass is in your folder."} {
		if !strings.Contains(text, says) {
			t.Errorf("it does not say %q", says)
		}
	}
	for _, no := range []string{"GOALS", "ARCH"} {
		if strings.Contains(text, no) {
			t.Errorf("it says %q, which a coder does not read", no)
		}
	}
	sum := 0
	for _, n := range parts {
		sum += n
	}
	if sum != len(text) || parts["spec plans"] == 0 || parts["spec goals"] != 0 {
		t.Errorf("parts %v of %d bytes", parts, len(text))
	}
	own, _ := shippedStation(t, "feature", "plan").prompt(&plan.Plan{}, "g", specs, nil, promptFacts{})
	if !strings.Contains(own, "The specification plans, which is yours") || !strings.Contains(own, "GOALS") {
		t.Errorf("%s", own)
	}
	if strings.Contains(own, "\n# DESIGNS") {
		t.Error("a heading of a specification is one of the prompt")
	}
}

// TestVisitPromptDoesNotGrow with the number of visits that were done.
func TestVisitPromptDoesNotGrow(t *testing.T) {
	st := shippedStation(t, "feature", "code")
	size := func(done int) int {
		p := &plan.Plan{}
		for i := range done {
			p.Steps = append(p.Steps, plan.Step{ID: "x-" + strings.Repeat("1", i%9), Summary: strings.Repeat("word ", 100), State: plan.Done})
		}
		p.Steps = append(p.Steps, plan.Step{ID: "last", Summary: "s", State: plan.Done})
		st.step.DependsOn = []string{"last"}
		text, _ := st.prompt(p, "goal", map[string]string{"plans": "p"}, nil, promptFacts{})
		return len(text)
	}
	if a, b := size(5), size(80); a != b {
		t.Errorf("after 5 visits %d bytes, after 80 %d", a, b)
	}
}
