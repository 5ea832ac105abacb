package specialist

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"

	"example.com/AutoAgentProject/core/conductor"
	"example.com/AutoAgentProject/core/flow"
	"example.com/AutoAgentProject/core/handoff"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/plan"
	"example.com/AutoAgentProject/core/profession"
	"example.com/AutoAgentProject/core/runner"
	"example.com/AutoAgentProject/core/tick"
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

// TestCheckpoint: each accepted step leaves one; it holds the plan as it was, and its commit is kept by a ref.
func TestCheckpoint(t *testing.T) {
	w := newWorld(t, step("a"))
	w.writes("a.txt", "hello")
	w.once(tick.Moved)
	all, err := tick.Checkpoints(w.Store)
	ok(t, err)
	if len(all) != 1 || all[0].Step != "a" || all[0].Commit != w.step("a").Merge || all[0].Plan.Step("a").State != plan.Done || w.step("a").Checkpoint != 1 {
		t.Fatalf("%+v", all)
	}
	kept, err := w.Repo().Resolve(t.Context(), tick.CheckpointRef(w.Mission.ID, "work", 1))
	ok(t, err)
	tree, err := w.Repo().Tree(t.Context(), kept)
	ok(t, err)
	if kept != all[0].Commit || tree != all[0].Tree || all[0].Docs == "" {
		t.Errorf("%s, %+v", kept, all[0])
	}
	if _, err := w.Repo().Document(t.Context(), all[0].Docs, all[0].Document); err != nil {
		t.Error(err)
	}
}

// flowWorld is a mission that follows a flow of two steps, both done by codebuilder-1, who owns the goals and what lies in src.
func flowWorld(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	prof, err := profession.Parse("codebuilder.md", []byte("---\nname: codebuilder\ndescription: builds\ntools: Write, Bash\nowns: [\"src/**\", \"spec:goals\"]\nreads: spec:plans\n---\nBuild.\n"))
	ok(t, err)
	w.Professions, err = profession.Set{}.With(prof)
	ok(t, err)
	f, err := flow.Parse("f.md", []byte("---\nflow: f\ndescription: d\nsteps:\n  - {id: think, profession: codebuilder, produces: goals}\n"+
		"  - {id: make, profession: codebuilder, produces: code, verify: [grep -q good src/a]}\n---\n"))
	ok(t, err)
	w.Flow, w.Mission.Flow, w.Mission.Mode = &f, "f", "gsd"
	ok(t, os.WriteFile(w.Store.Goal(), []byte("the goal"), 0o600))
	ok(t, w.Store.ChangePlan(t.Context(), func(p *plan.Plan) (bool, error) { *p = plan.Plan{Version: mission.Version}; return true, nil }))
	ok(t, w.Change(t.Context(), w.main(), func(*plan.Plan) error { return nil }))
	return w
}

// TestVisits: specifications that are owned are kept and told to the next; a foreign change is merged nowhere; work that did not pass
// is what the next visit goes on from.
func TestVisits(t *testing.T) {
	w := flowWorld(t)
	start := w.main()
	w.writes(".autoagent/specs/goals.md", "G1", ".autoagent/specs/plans.md", "not mine")
	w.once(tick.Moved)
	if s := w.step("think-1"); s.State != plan.Failed || !strings.Contains(s.Reasons[0], "does not own: .autoagent/specs/plans.md") {
		t.Fatalf("%+v", s)
	}
	w.writes(".autoagent/specs/goals.md", "G1: all of it", "lib/b", "x")
	w.once(tick.Moved)
	if s := w.step("think-2"); s.State != plan.Failed || !strings.Contains(s.Reasons[0], "does not own: lib/b") || s.Commit != "" || w.main() != start {
		t.Fatalf("%+v", s)
	}
	w.writes(".autoagent/specs/goals.md", "G1: all of it")
	w.once(tick.Moved)
	if s := w.step("think-3"); s.State != plan.Done || w.main() != start {
		t.Fatalf("%+v", s)
	}
	w.writes("src/a", "bad")
	w.once(tick.Moved)
	made := w.step("make-4")
	if made.State != plan.Failed || made.Commit == "" || w.main() != start || !strings.Contains(made.Reasons[0], "verify command failed") {
		t.Fatalf("%+v", made)
	}
	told := w.fake.jobs[len(w.fake.jobs)-1].Prompt
	if !strings.Contains(told, "> the goal") || !strings.Contains(told, "> G1: all of it") || !strings.Contains(told, "hands over (think-3") || strings.Contains(told, "not mine") {
		t.Errorf("%s", told)
	}
	w.fake.do = func(j runner.Job) runner.Result {
		b, err := os.ReadFile(j.Dir + "/src/a")
		ok(t, err)
		ok(t, os.WriteFile(j.Dir+"/src/a", append(b, " and good"...), 0o600))
		return runner.Result{Verdict: runner.Done, Text: "mended"}
	}
	w.once(tick.Moved)
	if s := w.step("make-5"); s.State != plan.Done || s.Last().Commit != made.Commit || w.result("src/a") != "bad and good" {
		t.Fatalf("%+v, %q", s, w.result("src/a"))
	}
	p, err := w.Store.Plan()
	ok(t, err)
	if p.Baton.Status != conductor.Complete || p.Specs["goals"] == "" || p.Specs["plans"] != "" || p.Checkpoints != 2 {
		t.Errorf("%+v, specs %v, %d checkpoints", p.Baton, p.Specs, p.Checkpoints)
	}
	report, err := os.ReadFile(w.Store.Run("codebuilder-1", w.fake.jobs[0].Run) + "/" + tick.ContextName)
	if ok(t, err); !strings.Contains(string(report), `"goal":`) {
		t.Errorf("%s", report)
	}
}
