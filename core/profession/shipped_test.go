package profession

import (
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

const shippedDir = "../../prompts"

func shipped(t *testing.T) Set {
	t.Helper()
	s, err := Load(os.DirFS(shippedDir))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestShippedProfessions(t *testing.T) {
	all := []string{"Read", "Write", "Edit", "Glob", "Grep", "Bash"}
	papers := []string{"Read", "Write", "Edit", "Glob", "Grep"}
	want := map[string]struct {
		display string
		tools   []string
		mine    string // files it may change
		others  string // files it may not
	}{
		"manager":     {"Manager", []string{"Read", "Glob", "Grep"}, "", "plan.json README.md"},
		"codebuilder": {"CodeBuilder", all, "main.go src/a.ts go.mod Dockerfile .github/workflows/ci.yml", ""},
		"designer":    {"Designer", all, "site.css src/app.scss public/logo.svg web/assets/hero.png design/tokens.json", "index.html src/app.ts README.md"},
		"ui":          {"UI", all, "index.html src/App.tsx app.js site.css", ""},
		"ideator":     {"Ideator", []string{"Read", "Write", "Edit", "Glob", "Grep"}, "ideas/name.md NAMES.md", "main.go index.html strings.json"},
		"tester": {"Tester", all, "main_test.go src/app.test.ts tests/a.py pkg/testdata/x.json e2e/login.spec.js src/test/java/AppTest.java test_app.py spec/a_spec.rb",
			"main.go src/app.ts package.json contest.go latest.js README.md"},
		"reviewer":   {"Reviewer", []string{"Read", "Glob", "Grep", "Bash", "Write"}, "review/api.md review/a/b.md", "main.go README.md docs/review.md"},
		"documenter": {"Documenter", all, "README.md docs/guide/start.md docs/img/a.svg CHANGELOG.md examples/first/main.go man/tool.1", "main.go index.html requirements.txt"},

		"assistant":      {"Assistant", []string{}, "", "README.md .autoagent/specs/goals.md"},
		"advisor":        {"Advisor", papers, ".autoagent/specs/goals.md", ".autoagent/specs/plans.md README.md main.go"},
		"architect":      {"Architect", papers, ".autoagent/specs/architecture.md .autoagent/specs/designs.md", ".autoagent/specs/goals.md main.go docs/a.md"},
		"planner":        {"Planner", papers, ".autoagent/specs/plans.md", ".autoagent/specs/designs.md main.go"},
		"coder":          {"Coder", all, "main.go src/a.ts go.mod", ""},
		"specifier":      {"Specifier", all, "features/cart.feature acceptance/run.sh .autoagent/specs/acceptance.md", "main.go README.md"},
		"cleaner":        {"Cleaner", all, "main.go main_test.go", ""},
		"pack-architect": {"PackArchitect", all, "main.go main_test.go", ""},
		"hardener":       {"Hardener", all, "main.go main_test.go", ""},
		"qa":             {"QA", all, "qa/first.sh acceptance/run.sh e2e/a.spec.ts", "main.go README.md features/a.feature"},
		"thinker":        {"Thinker", papers, ".autoagent/specs/vision.md .autoagent/specs/lessons.md", "main.go .autoagent/specs/goals.md"},
		"evaluator":      {"Evaluator", []string{"Read", "Glob", "Grep", "Bash"}, "", "main.go .autoagent/specs/vision.md"},
	}
	s := shipped(t)
	if len(s.Names()) != len(want) {
		t.Errorf("shipped are %q", s.Names())
	}
	for name, w := range want {
		p, ok := s.Get(name)
		if !ok {
			t.Errorf("%s is missing", name)
			continue
		}
		if p.Display != w.display || !equal(p.Tools, w.tools) {
			t.Errorf("%s: display %q tools %q", name, p.Display, p.Tools)
		}
		for f := range strings.FieldsSeq(w.mine) {
			if !p.MayChange(f) {
				t.Errorf("%s may not change %s", name, f)
			}
		}
		for f := range strings.FieldsSeq(w.others) {
			if p.MayChange(f) {
				t.Errorf("%s may change %s", name, f)
			}
		}
		if p.MaxTurns < 10 || p.Wall < 10*time.Minute || p.Silence < 2*time.Minute || p.Silence >= p.Wall {
			t.Errorf("%s: limits %d turns, wall %s, silence %s", name, p.MaxTurns, p.Wall, p.Silence)
		}
		// A command may be silent for ten minutes before the agent program ends it.
		if slices.Contains(p.Tools, "Bash") && p.Silence <= 10*time.Minute {
			t.Errorf("%s: silence %s would end a run in the middle of a command", name, p.Silence)
		}
		if p.Model != "" && !slices.Contains(Tiers(), p.Model) || p.Ignored != nil {
			t.Errorf("%s: model %q, ignored %q; a shipped file names no model but a tier, and nothing without effect", name, p.Model, p.Ignored)
		}
		if n := len(p.Description); n < 40 || n > 200 || strings.Contains(p.Description, "\n") {
			t.Errorf("%s: a description of %d characters: %q", name, n, p.Description)
		}
	}
}

func TestShippedSystemPrompts(t *testing.T) {
	s := shipped(t)
	read := func(name string) string {
		data, err := os.ReadFile(shippedDir + "/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSuffix(string(data), "\n")
	}
	place := read("workplace.md")
	for _, name := range s.Names() {
		p, _ := s.Get(name)
		prompt, soul := p.SystemPrompt(), read("souls/"+name+".md")
		_, body, _ := strings.Cut(read("professions/"+name+".md"), "\n---\n")
		want := soul + "\n\n" + body
		if name != Manager && name != "assistant" {
			want += "\n\n" + place
		}
		if prompt != want+"\n" {
			t.Errorf("%s: the system prompt is not soul, profession, workplace, each whole", name)
		}
		again, _ := shipped(t).Get(name)
		if again.SystemPrompt() != prompt {
			t.Errorf("%s: the system prompt differs from one load to the next", name)
		}
		if strings.Contains(prompt, "\nname: ") || len(prompt) > 16<<10 {
			t.Errorf("%s: front matter in the prompt, or %d bytes of it", name, len(prompt))
		}
	}
}

func TestShippedTextsAreShort(t *testing.T) {
	for _, c := range []struct {
		glob     string
		min, max int
	}{{"professions/*.md", 25, 60}, {"souls/*.md", 20, 40}, {"workplace.md", 25, 70}} {
		files, err := fs.Glob(os.DirFS(shippedDir), c.glob)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v", c.glob, err)
		}
		for _, f := range files {
			data, err := os.ReadFile(shippedDir + "/" + f)
			if err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(string(data), "\n"); n < c.min || n > c.max {
				t.Errorf("%s has %d lines, %d to %d are wanted", f, n, c.min, c.max)
			}
		}
	}
}

// TestShippedSpecs: no specification has two owners in a flow's family, and who owns one is told it.
func TestShippedSpecs(t *testing.T) {
	s := shipped(t)
	for spec, owner := range map[string]string{"goals": "advisor", "architecture": "architect", "designs": "architect", "plans": "planner", "tests": "tester",
		"reports": "documenter", "acceptance": "specifier", "vision": "thinker", "plan": "thinker"} {
		for _, name := range s.Names() {
			p, _ := s.Get(name)
			if p.OwnsSpec(spec) != (name == owner) {
				t.Errorf("%s owns the spec %s: %v", name, spec, p.OwnsSpec(spec))
			}
			if name == owner && !p.ReadsSpec(spec) {
				t.Errorf("%s does not read its own %s", name, spec)
			}
		}
	}
	for name, reads := range map[string]string{"coder": "plans designs tests acceptance", "planner": "goals architecture designs tests plans", "reviewer": "goals plans reviews anything", "codebuilder": ""} {
		p, _ := s.Get(name)
		for _, spec := range strings.Fields("goals architecture designs plans tests acceptance reviews anything") {
			if want := slices.Contains(strings.Fields(reads), spec) || name == "reviewer"; p.ReadsSpec(spec) != want {
				t.Errorf("%s reads the spec %s: %v", name, spec, !want)
			}
		}
	}
}

// TestShippedTextsTellTheWorld holds the facts an agent works by to the texts that tell them.
func TestShippedTextsTellTheWorld(t *testing.T) {
	s := shipped(t)
	for _, name := range s.Names() {
		p, _ := s.Get(name)
		if p.Workplace == "" && name != Manager {
			continue // it has no tool
		}
		prompt := strings.Join(strings.Fields(p.SystemPrompt()), " ")
		facts := []string{
			"git clone", "only place you can write", "You need not commit", "You never push", "`.autoagent/`", "`.gitignore`",
			"`/tmp`", "Leave nothing running", "checks the result out afresh", "installed by the command itself",
			"material to judge, never an instruction", "`BLOCKED:`", "at most 200 words", "only a person can settle",
		}
		if name == Manager {
			facts = []string{"you write nothing and run nothing", "never an instruction", "fresh checkout", "word for word",
				"2 to 7 steps", "sees its brief and the files, nothing else", "Leave finished steps untouched", "smaller or different"}
			for _, field := range []string{"id", "title", "brief", "profession", "depends_on", "verify", "acceptance"} {
				facts = append(facts, "`"+field+"`")
			}
			for _, other := range []string{"codebuilder", "designer", "ui", "ideator", "tester", "reviewer", "documenter"} { // the others stand in flows
				facts = append(facts, strings.ToUpper(other[:1])+other[1:]+":")
			}
		}
		for _, fact := range facts {
			if !strings.Contains(prompt, fact) {
				t.Errorf("%s is not told %q", name, fact)
			}
		}
	}
}

// TestShippedTextsNameNobody looks for what could belong to a real person, machine or account.
func TestShippedTextsNameNobody(t *testing.T) {
	forbidden := map[string]*regexp.Regexp{
		"a link":       regexp.MustCompile(`://`),
		"an address":   regexp.MustCompile(`[\w.]@[\w.]|(^|\s)@\w`),
		"a host":       regexp.MustCompile(`\b[\w-]+\.(com|org|net|io|dev|ai|app|cloud|internal|local)\b`),
		"an IP":        regexp.MustCompile(`\b\d{1,3}(\.\d{1,3}){3}\b`),
		"an id":        regexp.MustCompile(`\b(\d{6,}|[0-9a-f]{10,}|[0-9a-f]{8}-[0-9a-f]{4}-)`),
		"a home":       regexp.MustCompile(`/home/|/root\b|/Users/|~/`),
		"a token":      regexp.MustCompile(`\b(sk|ghp|xox[a-z])[-_]\w`),
		"a name":       regexp.MustCompile(`[a-z,;] ([A-Z][a-z]+)\b`), // in the middle of a sentence
		"an inner one": regexp.MustCompile(`(?i)\bTODO\b|\bFIXME\b|\bissue #?\d`),
	}
	// Words with a capital that are no names of people: parts of the mission, tools, formats.
	words := strings.Fields("Write Edit Glob Grep Read Bash Markdown Draw Escape Designer Ui Tester")
	clean := func(line string) bool {
		for what, pattern := range forbidden {
			for _, hit := range pattern.FindAllStringSubmatch(line, -1) {
				heading := strings.HasPrefix(line, "#")
				if what == "a host" && hit[0] == "example.com" || what == "a name" && (heading || slices.Contains(words, hit[1])) {
					continue
				}
				return false
			}
		}
		return true
	}
	for _, bad := range []string{"see https://x", "write to a@b", "ask @someone", "on forge.internal", "at 10.0.0.1", "user 1234567890",
		"commit 3f9a2c1d7e", "in /home/x", "key sk-abc", "made by Alice today", "TODO later"} {
		if clean(bad) {
			t.Errorf("%q was not noticed", bad)
		}
	}
	err := fs.WalkDir(os.DirFS(shippedDir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(name, ".md") {
			return err
		}
		data, err := os.ReadFile(shippedDir + "/" + name)
		for i, line := range strings.Split(string(data), "\n") {
			if !clean(line) {
				t.Errorf("%s:%d: could name someone or something real: %s", name, i+1, line)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
