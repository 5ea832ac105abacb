package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"example.com/AutoAgentProject/core/conductor"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/plan"
	"example.com/AutoAgentProject/core/scriptmodel"
)

// visit is the lane of an agent at one visit of a flow; it leaves a document where it has tools.
func visit(id string, steps ...scriptmodel.Step) scriptmodel.Rule {
	steps = also(steps, writesDocument(goodDocument))
	return scriptmodel.Rule{Name: id, When: []string{"# Your step: ", " (" + id + ")\n"}, Steps: append(steps, text("did "+id))}
}

// judges is the lane of an agent that answers with a judgement.
func judges(id, word, answer, reasons string) scriptmodel.Rule {
	b, err := json.Marshal(map[string]string{word: answer, "answer": reasons})
	if err != nil {
		panic(err)
	}
	return scriptmodel.Rule{Name: id, When: []string{"# Your step: ", " (" + id + ")\n"}, Steps: []scriptmodel.Step{{Structured: b}, text("judged")}}
}

const (
	right = "echo $(($1 + $2))\n"
	wrong = "echo 3\n"
	suite = `test "$(sh add.sh 1 2)" = 3 && test "$(sh add.sh 2 2)" = 4`
)

// buggy is a project with a defect.
func buggy(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "add.sh"), []byte("echo 0\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

func (w *world) plan(id string) *plan.Plan {
	w.t.Helper()
	p, err := w.store(id).Plan()
	if err != nil {
		w.t.Fatal(err)
	}
	return p
}

// visits are the visits of a mission with how each ended.
func (w *world) visits(id string) string {
	var out []string
	for _, s := range w.plan(id).Steps {
		out = append(out, s.ID+" "+string(s.State))
	}
	return strings.Join(out, ", ")
}

// shown is the first prompt of a visit.
func (w *world) shown(id, agent, visit string) string {
	w.t.Helper()
	files, _ := filepath.Glob(filepath.Join(w.store(id).Agent(agent), "runs", "*", "prompt.md"))
	for _, f := range files {
		if b, err := os.ReadFile(f); err == nil && strings.Contains(string(b), " ("+visit+")\n") {
			return string(b)
		}
	}
	w.t.Fatalf("nobody was told of %s", visit)
	return ""
}

// inFull skips a test that takes long.
func inFull(t *testing.T) {
	t.Helper()
	if os.Getenv("AUTOAGENT_FULL") == "" {
		t.Skip("only with AUTOAGENT_FULL=1")
	}
}

// TestFlowFix: a defect is shown, mended and accepted, step by step, and no model plans anything.
func TestFlowFix(t *testing.T) {
	t.Parallel()
	w := newWorld(t, visit("reproduce-1", write("tests/run.sh", suite+"\n")), visit("mend-2", write("add.sh", right)), judges("review-3", "verdict", "accept", "It holds."))
	w.must(0, "start", "mend-it", "1 and 2 are not 0.", "--from", buggy(t), "--flow", "fix", "--verify", "sh tests/run.sh")
	if got, want := w.visits("mend-it"), "reproduce-1 done, mend-2 done, review-3 done"; got != want {
		t.Errorf("%s", got)
	}
	if b, err := os.ReadFile(filepath.Join(w.store("mend-it").Result(), "add.sh")); err != nil || string(b) != right {
		t.Errorf("the result is %q, %v", b, err)
	}
	if st := w.model.Stats(); st.ByRule["plan"] != 0 || st.Refused != 0 {
		t.Errorf("%+v", st)
	}
}

// TestFlowLoopsBack: a try that does not pass goes on from its own work, and what the review refuses goes back with the reasons.
func TestFlowLoopsBack(t *testing.T) {
	inFull(t)
	t.Parallel()
	w := newWorld(t,
		visit("reproduce-1", write("tests/run.sh", suite+"\n")),
		visit("mend-2", write("add.sh", wrong)),
		visit("mend-3", bash("grep -q 'echo 3' add.sh && echo found"), bash("printf 'echo $((0 + $1 + $2))\\n' > add.sh")),
		judges("review-4", "verdict", "change", "The zero says nothing."),
		visit("mend-5", bash("printf 'echo $(($1 + $2))\\n' > add.sh")),
		judges("review-6", "verdict", "accept", "It holds."))
	w.must(0, "start", "mend-it", "1 and 2 are not 0.", "--from", buggy(t), "--flow", "fix", "--verify", "sh tests/run.sh")
	if got, want := w.visits("mend-it"), "reproduce-1 done, mend-2 failed, mend-3 done, review-4 done, mend-5 done, review-6 done"; got != want {
		t.Errorf("%s", got)
	}
	if b, err := os.ReadFile(filepath.Join(w.store("mend-it").Result(), "add.sh")); err != nil || string(b) != right {
		t.Errorf("the result is %q, %v", b, err)
	}
	if n := w.model.Stats().ByRule["plan"]; n != 0 {
		t.Errorf("somebody planned %d times", n)
	}
	p := w.plan("mend-it")
	if p.Baton.Status != conductor.Complete || p.Baton.Counts["mend"].Visits != 3 || p.Baton.Counts["review"].Failures != 1 {
		t.Errorf("%+v", p.Baton)
	}
	if failed := p.Step("mend-2"); failed.Merge != "" || p.Step("mend-3").Last().Commit != failed.Commit {
		t.Errorf("mend-3 does not go on from mend-2: %+v", failed)
	}
	again := w.shown("mend-it", "coder-1", "mend-3")
	for _, says := range []string{"> 1 and 2 are not 0.", "The work that did not pass is in your folder.", "the verify command failed", "hands over (reproduce-1, tester-1)"} {
		if !strings.Contains(again, says) {
			t.Errorf("mend-3 is not told %q:\n%s", says, again)
		}
	}
	if after := w.shown("mend-it", "coder-1", "mend-5"); !strings.Contains(after, "> change: The zero says nothing.") {
		t.Errorf("mend-5 is not told why:\n%s", after)
	}
	if judge := w.shown("mend-it", "reviewer-1", "review-4"); !strings.Contains(judge, "verdict is one of accept, change") {
		t.Errorf("%s", judge)
	}
	m, err := w.store("mend-it").Mission()
	if err != nil || m.Flow != "fix" || m.Mode != "gsd" || len(mission.Specialists(m.Roster)) != 3 {
		t.Errorf("%+v, %v", m, err)
	}
}

// TestFlowExhausted: what cannot be mended asks a person, goes on with their words, and never goes on by itself.
func TestFlowExhausted(t *testing.T) {
	inFull(t)
	t.Parallel()
	rules := []scriptmodel.Rule{visit("reproduce-1", write("tests/run.sh", suite+"\n")), visit("mend-7", write("add.sh", right)),
		judges("review-8", "verdict", "accept", "It holds.")}
	for _, id := range []string{"mend-2", "mend-3", "mend-4", "mend-5", "mend-6"} {
		rules = append(rules, visit(id, bash("echo \"echo $RANDOM # "+id+"\" > add.sh")))
	}
	w := newWorld(t, rules...)
	_, wait := w.background("start", "hopeless", "1 and 2 are not 0.", "--from", buggy(t), "--flow", "fix", "--verify", "sh tests/run.sh")
	w.until("a person is asked", func() bool {
		p, err := w.store("hopeless").Plan()
		return err == nil && p.Baton != nil && p.Baton.Status == conductor.Asking && strings.Contains(w.must(0, "approvals", "hopeless"), "cannot go on")
	})
	if got, want := w.visits("hopeless"), "reproduce-1 done, mend-2 failed, mend-3 failed, mend-4 failed, mend-5 failed, mend-6 failed"; got != want {
		t.Errorf("%s", got)
	}
	runs := w.model.Stats().Requests
	w.must(0, "approve", "hopeless", "1", "--note", "use arithmetic expansion")
	if code, out := wait(); code != 0 {
		t.Fatalf("ended with %d\n%s%s", code, out, w.history())
	}
	if !strings.Contains(w.shown("hopeless", "coder-1", "mend-7"), "> A person says: use arithmetic expansion") {
		t.Errorf("%s", w.shown("hopeless", "coder-1", "mend-7"))
	}
	if runs == 0 || slices.ContainsFunc(w.plan("hopeless").Steps, func(s plan.Step) bool { return s.State == plan.Working }) {
		t.Errorf("%s", w.visits("hopeless"))
	}
}

// TestFlowRollback: a flow of the person's own, taken back to a checkpoint from a gate, goes on from there with the reason.
func TestFlowRollback(t *testing.T) {
	inFull(t)
	t.Parallel()
	with := t.TempDir()
	if err := os.Mkdir(filepath.Join(with, "flows"), 0o755); err != nil {
		t.Fatal(err)
	}
	err := os.WriteFile(filepath.Join(with, "flows", "two.md"), []byte("---\nflow: two\ndescription: Two steps.\nsteps:\n  - {id: first, profession: coder, produces: code, gate: auto}\n"+
		"  - {id: second, profession: coder, gate: auto, verify: [grep -q good second], loop: {max: 1}}\n---\n"), 0o644)
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, visit("first-1", write("first", "one\n")), visit("second-2", write("second", "bad\n")), visit("second-3", write("second", "worse\n")),
		visit("second-4", bash("test ! -e second && cat first > second && echo good >> second")))
	_, wait := w.background("start", "back", "Do it.", "--flow", "two", "--with", with)
	w.until("a person is asked", func() bool {
		p, err := w.store("back").Plan()
		return err == nil && p.Baton != nil && p.Baton.Status == conductor.Asking && strings.Contains(w.must(0, "approvals", "back"), "cannot go on")
	})
	var list []struct {
		N                  int
		Step, Commit, Tree string
	}
	if err := json.Unmarshal([]byte(w.must(0, "checkpoint", "list", "back", "--json")), &list); err != nil || len(list) != 1 || list[0].Step != "first-1" {
		t.Errorf("%+v, %v", list, err)
	}
	if out := w.must(0, "checkpoint", "show", "back", "1"); !strings.Contains(out, "It is there, and I saw it.") {
		t.Errorf("%s", out)
	}
	w.must(3, "rollback", "back", "7", "--reason", "x")
	w.must(2, "rollback", "back", "1")
	w.until("nobody works", func() bool {
		code, _ := w.do("rollback", "back", "1", "--reason", "write good into it")
		return code == 0
	})
	if code, out := wait(); code != 0 {
		t.Fatalf("ended with %d\n%s%s", code, out, w.history())
	}
	if got, want := w.visits("back"), "first-1 done, second-4 done"; got != want {
		t.Errorf("%s", got)
	}
	if told := w.shown("back", "coder-1", "second-4"); !strings.Contains(told, "rolled the work back to checkpoint 1. The reason: write good into it") {
		t.Errorf("%s", told)
	}
	if out := w.must(0, "checkpoint", "diff", "back", "1", "2"); !strings.Contains(out, "+good") || strings.Contains(out, "+worse") {
		t.Errorf("%s", out)
	}
}

// TestFlowQuestion: who only wants to know something gets an answer from an agent without any tool, and nothing is changed.
func TestFlowQuestion(t *testing.T) {
	inFull(t)
	t.Parallel()
	w := newWorld(t, judges("intake-1", "intent", "QUESTION", "It adds two numbers."))
	out := w.must(0, "start", "ask", "What does add.sh do?", "--from", buggy(t), "--flow", "feature", "--verify", "false")
	if !strings.Contains(out, "It adds two numbers.") {
		t.Errorf("the answer is not told:\n%s", out)
	}
	if got := w.visits("ask"); got != "intake-1 done" {
		t.Errorf("%s", got)
	}
}
