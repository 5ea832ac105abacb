package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"example.com/AutoAgentProject/core/journal"
	"example.com/AutoAgentProject/core/scriptmodel"
	"example.com/AutoAgentProject/core/store"
)

// TestDemo is what a newcomer runs first.
func TestDemo(t *testing.T) {
	t.Parallel()
	w := newWorld(t, works("unused"))
	out := w.must(0, "demo", "--dir", w.root)
	result := ""
	for line := range strings.Lines(out) {
		if f := strings.Fields(line); len(f) == 2 && f[0] == "result" {
			result = f[1]
		}
	}
	for _, f := range []string{"index.html", "style.css", "open.js", "site.test.mjs"} {
		if _, err := os.Stat(filepath.Join(result, f)); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	}
	for _, say := range []string{"would have cost $0.", "4 of 4 done", "from a script", "came back to codebuilder"} {
		if !strings.Contains(out, say) {
			t.Errorf("the demo does not say %q:\n%s", say, out)
		}
	}
	if cmd := exec.Command("node", "--test"); result != "" {
		cmd.Dir = result
		if b, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("the result's own test: %v\n%s", err, b)
		}
	}
	ids, _ := store.Root(w.root).IDs()
	if len(ids) != 1 || len(w.events(ids[0], journal.DocumentRefused)) != 0 || !strings.Contains(w.kept(ids[0], "test"), "three tests") {
		t.Errorf("the demo's agents leave no good documents: %v\n%s", ids, w.history())
	}
	if n := w.model.Stats().Requests; n != 0 {
		t.Errorf("the demo asked another model than its own %d times", n)
	}
}

// git runs git in the person's own repository.
func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=Example", "GIT_AUTHOR_EMAIL=example@autoagent.example",
		"GIT_COMMITTER_NAME=Example", "GIT_COMMITTER_EMAIL=example@autoagent.example")
	b, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, b)
	}
	return strings.TrimSpace(string(b))
}

func put(t *testing.T, dir, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestFromRepositoryToDelivery: an existing repository with a failing test gets a branch on which it passes; what the
// person has in their work tree stays as it is.
func TestFromRepositoryToDelivery(t *testing.T) {
	t.Parallel()
	shop := t.TempDir()
	git(t, shop, "init", "-q", "-b", "trunk")
	put(t, shop, "cart.js", "export const total = (items) => items.reduce((sum, i) => sum + i.price, 0);\n")
	put(t, shop, "cart.test.mjs", `import assert from "node:assert/strict";
import test from "node:test";
import { total } from "./cart.js";
test("quantities count", () => assert.equal(total([{ price: 2, quantity: 3 }]), 6));
`)
	git(t, shop, "add", ".")
	git(t, shop, "commit", "-q", "-m", "A cart that forgets quantities")
	base := git(t, shop, "rev-parse", "HEAD")

	w := newWorld(t,
		planned(step("fix", "node --test")),
		works("fix", bash("cat cart.js cart.test.mjs"), write("cart2.js", "x"), bash("rm cart2.js && sed -i 's/i.price,/i.price * i.quantity,/' cart.js && node --test >/dev/null")))
	w.must(0, "start", "fix-cart", "Make the failing test pass", "--from", shop, "--verify", "node --test", "--budget", "1usd")

	put(t, shop, "note.txt", "mine, not committed")
	out := w.must(0, "deliver", "fix-cart")
	if !strings.Contains(out, "autoagent/fix-cart") {
		t.Errorf("deliver does not name the branch:\n%s", out)
	}
	if got := git(t, shop, "rev-parse", "HEAD") + git(t, shop, "status", "--porcelain") + git(t, shop, "branch", "--show-current"); got != base+"?? note.txt"+"trunk" {
		t.Errorf("the person's work tree changed: %q", got)
	}
	tree := filepath.Join(t.TempDir(), "tree")
	git(t, shop, "worktree", "add", "-q", tree, "autoagent/fix-cart")
	cmd := exec.Command("node", "--test")
	cmd.Dir = tree
	if b, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("the delivered branch does not pass: %v\n%s", err, b)
	}
	if got := git(t, tree, "log", "-1", "--format=%an|%b", "--", "cart.js"); !strings.HasPrefix(got, "AutoAgent-CodeBuilder-1|By codebuilder-1.") {
		t.Errorf("byline: %q", got)
	}
	if got := git(t, tree, "ls-files"); got != "cart.js\ncart.test.mjs" {
		t.Errorf("delivered files: %q", got)
	}
	if again := w.must(0, "deliver", "fix-cart"); !strings.Contains(again, "already") {
		t.Errorf("a second delivery says %q", again)
	}
}

// TestConflictGoesBack: two agents change the same line; the second gets the conflict back, resolves it, and both live on.
func TestConflictGoesBack(t *testing.T) {
	t.Parallel()
	a := works("left", bash(`printf 'left\n' > shared.txt`))
	b := scriptmodel.Rule{Name: "right again", When: []string{"(right)", "It came back to you"}, Steps: []scriptmodel.Step{
		bash(`grep -q '<<<<<<<' shared.txt && printf 'left\nright\n' > shared.txt`), text("resolved")}}
	late := bash(`printf 'right\n' > shared.txt`)
	late.DelayMS = 4000 // the other one is merged by then
	w := newWorld(t, planned(step("left", "test -s shared.txt"), step("right", "grep -q right shared.txt")), a, b, works("right", late))
	w.must(0, "start", "both", "Two lines in one file", "--specialists", "codebuilder:2", "--verify", "test $(cat shared.txt | wc -l) = 2")
	if n := len(w.events("both", journal.StepReturned)); n != 1 {
		t.Errorf("%d steps came back, want 1\n%s", n, w.history())
	}
}

// TestFailureLeadsToAnotherPlan: a step that fails twice is a failure the manager sees; its second plan succeeds.
func TestFailureLeadsToAnotherPlan(t *testing.T) {
	t.Parallel()
	second := planned(step("small", "test -f small"))
	second.Name, second.When, second.Not = "re-plan", []string{"A new plan is needed"}, nil
	second.Steps[0].Structured = []byte(strings.Replace(string(second.Steps[0].Structured), `"small is there"`, `"big is there"`, 1))
	w := newWorld(t, second, planned(step("big", "test -f big")), works("big", bash("true")), works("small", bash("echo x > small")))
	w.must(0, "start", "again", "Something big")
	if n := len(w.events("again", journal.PlanAccepted)); n != 2 {
		t.Errorf("%d plans, want 2\n%s", n, w.history())
	}
	if got := w.model.Stats().ByRule["big"]; got != 4 { // two runs of two requests
		t.Errorf("the failing step had %d requests, want 4", got)
	}
}

// TestRefusedPlanGoesBackInTheSameConversation: what the code refuses is answered in the same run.
func TestRefusedPlanGoesBackInTheSameConversation(t *testing.T) {
	t.Parallel()
	rule := planned(step("one", "true"))
	first := planned(step("one", "true", "ghost"))
	rule.Steps = []scriptmodel.Step{first.Steps[0], rule.Steps[0]}
	w := newWorld(t, rule, works("one", bash("echo 1 > one")))
	w.must(0, "start", "refused", "One")
	if n := len(w.events("refused", journal.PlanRefused)); n != 1 {
		t.Errorf("%d refusals, want 1\n%s", n, w.history())
	}
	if n := w.model.Stats().ByRule["plan"]; n != 2 {
		t.Errorf("planning took %d requests, want 2 in one conversation", n)
	}
}

// TestBudgetHalts: more than the budget is never asked for, and the mission halts with the work so far.
func TestBudgetHalts(t *testing.T) {
	t.Parallel()
	dear := bash("echo more >> log.txt")
	dear.Usage = map[string]any{"input_tokens": 20_000, "output_tokens": 1000} // $0.05
	w := newWorld(t, planned(step("dear", "true")), works("dear", dear, dear, dear, dear, dear, dear, dear, dear, dear, dear, dear, dear))
	out := w.must(7, "start", "dear", "Spend", "--budget", "0.20usd")
	if !strings.Contains(out, "halted: budget") {
		t.Errorf("the end does not say so:\n%s", out)
	}
	v := w.status("dear")
	if v.Phase != "halted: budget" || v.Budget.Used > v.Budget.Total {
		t.Errorf("phase %q, used %d of %d", v.Phase, v.Budget.Used, v.Budget.Total)
	}
}

// TestTimeHalts: the time limit stops a run in the middle.
func TestTimeHalts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, planned(step("slow", "true")), works("slow", bash(`python3 -c 'import time; time.sleep(300)' || sleep 300`)))
	out := w.must(7, "start", "slow", "Sleep", "--max-hours", "10s")
	if !strings.Contains(out, "halted: time") {
		t.Errorf("the end does not say so:\n%s", out)
	}
}

// TestLongGoal: three megabytes are too much for a prompt; the manager gets the beginning and a file to read.
func TestLongGoal(t *testing.T) {
	t.Parallel()
	rule := planned(step("one", "test -f one"))
	read := scriptmodel.Step{Content: []block{{"type": "tool_use", "name": "Grep", "input": block{"pattern": "THE-LAST-WORD", "path": "{{match:in the file (\\S+goal.md)}}", "output_mode": "content"}}}}
	rule.Steps = []scriptmodel.Step{read, rule.Steps[0]}
	w := newWorld(t, rule, works("one", bash("echo 1 > one")))
	goal := filepath.Join(t.TempDir(), "goal.md")
	put(t, filepath.Dir(goal), "goal.md", strings.Repeat("Build a very large thing, line by line.\n", 75_000)+"THE-LAST-WORD\n")
	w.must(0, "start", "long", "--goal-file", goal)
	out := w.must(0, "transcript", "long", filepath.Base(filepath.Dir(firstRun(t, w, "long", "manager"))))
	if !strings.Contains(out, "goal.md:75001") && !strings.Contains(out, "75001:THE-LAST-WORD") && strings.Count(out, "THE-LAST-WORD") < 2 {
		t.Errorf("the run could not read the goal's file:\n%s", out[len(out)-1500:])
	}
}

// firstRun is the transcript of an agent's first run.
func firstRun(t *testing.T, w *world, id, agent string) string {
	t.Helper()
	found, _ := filepath.Glob(filepath.Join(w.store(id).Agent(agent), "runs", "*", "stream.jsonl"))
	if len(found) == 0 {
		t.Fatalf("%s had no run\n%s", agent, w.history())
	}
	return found[0]
}
