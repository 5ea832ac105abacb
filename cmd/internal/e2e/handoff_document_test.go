package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	coregit "example.com/AutoAgentProject/core/git"
	"example.com/AutoAgentProject/core/handoff"
	"example.com/AutoAgentProject/core/journal"
	"example.com/AutoAgentProject/core/scriptmodel"
	"example.com/AutoAgentProject/core/tick"
)

// goodDocument is one that the gate takes, with a header and a spend that are not the agent's to write.
const goodDocument = `from: root | to: everybody | run: mine | step: none, attempt 9 | checkpoint: 0000000000

## Summary

It is there, and I saw it.

## Decisions

- D1 (made): one line a file, because the next one counts lines.

## Spec updates

none

## Work product

- one.txt: the line

## Context for the next

- Files: one.txt
- Specs: none
- Warnings: THE-LINE-ENDS-WITH-A-DOT

## Open questions

- Q1 (open): should there be two?

## Spend

nothing at all
`

// writesDocument is the command that writes a document.
func writesDocument(document string) string {
	return "cat > .autoagent/handoff.md <<'EOF'\n" + document + "EOF\n"
}

// also adds a command to the last step that uses a tool, in the same answer of the model.
func also(steps []scriptmodel.Step, command string) []scriptmodel.Step {
	out := append([]scriptmodel.Step(nil), steps...)
	for i := len(out) - 1; i >= 0; i-- {
		for _, b := range out[i].Content {
			if b["type"] == "tool_use" {
				out[i].Content = append(append([]block(nil), out[i].Content...), bash(command).Content...)
				return out
			}
		}
	}
	return out
}

// kept is the document that a mission keeps of a step, as it was handed over for the first time.
func (w *world) kept(id, step string) string {
	w.t.Helper()
	b, err := coregit.Repo{Dir: w.store(id).Repo()}.Document(w.t.Context(), coregit.DocsRef(id), handoff.DocumentPath(step, 1))
	if err != nil {
		w.t.Fatalf("the document of %s: %v\n%s", step, err, w.history())
	}
	return string(b)
}

// told are the prompts of the runs for a step.
func (w *world) told(id, step string) (prompts []string) {
	w.t.Helper()
	dirs, _ := filepath.Glob(filepath.Join(w.store(id).Dir(), "agents", "*", "runs", "*"))
	for _, dir := range dirs {
		var r tick.RunRecord
		b, err := os.ReadFile(filepath.Join(dir, "run.json"))
		if err != nil || json.Unmarshal(b, &r) != nil {
			w.t.Fatal(err)
		}
		if r.Step == step {
			b, err := os.ReadFile(filepath.Join(dir, "prompt.md"))
			if err != nil {
				w.t.Fatal(err)
			}
			prompts = append(prompts, string(b))
		}
	}
	return prompts
}

// TestDocumentReachesTheNext: what an agent leaves is in the prompt of whoever builds on it, on the docs ref, and not in
// the product. What it says of itself is not believed.
func TestDocumentReachesTheNext(t *testing.T) {
	t.Parallel()
	one := scriptmodel.Rule{Name: "one", When: []string{"# Your step: Step one (one)"}, Steps: []scriptmodel.Step{
		bash("echo 1. > one.txt"), bash(writesDocument(goodDocument)), text("RAW-LAST-ANSWER")}}
	w := newWorld(t, planned(step("one", "test -f one.txt"), step("two", "test -f two.txt", "one")), one, works("two", bash("echo 2 > two.txt")))
	w.must(0, "start", "relay", "Two lines", "--verify", "test -f two.txt")
	if n := len(w.events("relay", journal.DocumentRefused)) + len(w.events("relay", journal.DocumentMade)); n != 0 {
		t.Errorf("%d documents were refused or made\n%s", n, w.history())
	}
	prompts := w.told("relay", "two")
	if len(prompts) != 1 {
		t.Fatalf("%d prompts", len(prompts))
	}
	for _, want := range []string{"> It is there, and I saw it.", "THE-LINE-ENDS-WITH-A-DOT", "> - D1 (made): one line a file", "> - Q1 (open): should there be two?"} {
		if !strings.Contains(prompts[0], want) {
			t.Errorf("the next agent is not told %q:\n%s", want, prompts[0])
		}
	}
	for _, not := range []string{"RAW-LAST-ANSWER", "nothing at all", "from: root"} {
		if strings.Contains(prompts[0], not) {
			t.Errorf("the next agent is told %q", not)
		}
	}
	doc := w.kept("relay", "one")
	if head, _, _ := strings.Cut(doc, "\n"); !strings.HasPrefix(head, "from: codebuilder-1 | to: step two | run: ") || !strings.Contains(head, "| step: one, attempt 1 | checkpoint: ") {
		t.Errorf("header line %q", head)
	}
	if strings.Contains(doc, "root") || strings.Contains(doc, "nothing at all") || !strings.Contains(doc, "## Spend\n\n$0.") {
		t.Errorf("the document has what the agent said of itself:\n%s", doc)
	}
	if tree := git(t, w.store("relay").Repo(), "ls-tree", "-r", "--name-only", "main"); tree != "one.txt\ntwo.txt" {
		t.Errorf("the product holds %q", tree)
	}
	if docs := git(t, w.store("relay").Repo(), "ls-tree", "-r", "--name-only", coregit.DocsRef("relay")); docs != "steps/one/1.md\nsteps/two/1.md" {
		t.Errorf("the docs ref holds %q", docs)
	}
	p, err := w.store("relay").Plan()
	if err != nil {
		t.Fatal(err)
	}
	if h := p.Step("two").Last(); h.Hops != 1 {
		t.Errorf("%d handoffs led to the second step, want 1", h.Hops)
	}
	shown := w.must(0, "handoff", "show", p.Step("one").Last().ID, "--mission", "relay")
	if !strings.Contains(shown, "task: one") || !strings.Contains(shown, "THE-LINE-ENDS-WITH-A-DOT") {
		t.Errorf("handoff show:\n%s", shown)
	}
	for _, args := range [][]string{{"handoff", "show", "one", "--mission", "relay"}, {"transcript", "relay", p.Step("one").Last().Name}} {
		if args[0] == "transcript" { // the run's id stands in the document's header line
			_, run, _ := strings.Cut(doc, "| run: ")
			args[2], _, _ = strings.Cut(run, " ")
		}
		if out := w.must(0, args...); !strings.Contains(out, "steps/one/1.md of refs/autoagent/relay/docs") || !strings.Contains(out, "THE-LINE-ENDS-WITH-A-DOT") {
			t.Errorf("%q does not print the document:\n%s", args, out)
		}
	}
	if out := w.must(0, "status", "relay"); !strings.Contains(out, "handoff show <step> --mission relay") {
		t.Errorf("status does not say where the documents are:\n%s", out)
	}
	if trace := w.must(0, "handoff", "trace", "two", "--mission", "relay"); !strings.Contains(trace, "steps/two/1.md") {
		t.Errorf("handoff trace:\n%s", trace)
	}
}

// TestBadDocumentGoesBackOnce: all that is wrong is said at once, in the same conversation, and the corrected one is taken.
func TestBadDocumentGoesBackOnce(t *testing.T) {
	t.Parallel()
	bad := strings.Replace(strings.Replace(goodDocument, "It is there, and I saw it.", strings.Repeat("word ", 300), 1), "## Spec updates\n\nnone\n", "", 1)
	const clone = "{{match:(/[^ \"]+/again/codebuilder-1)}}"
	one := scriptmodel.Rule{Name: "one", When: []string{"# Your step: Step one (one)"}, Steps: []scriptmodel.Step{
		bash("echo 1 > one.txt\n" + writesDocument(bad) + "mkdir sub; cd sub"), text("did one"), // and stays there
		{Content: []block{{"type": "tool_use", "name": "Read", "input": block{"file_path": clone + "/.autoagent/handoff.md"}}}},
		{Content: []block{{"type": "tool_use", "name": "Write", "input": block{"file_path": clone + "/.autoagent/handoff.md", "content": goodDocument}}}}, text("corrected")}}
	w := newWorld(t, planned(step("one", "test -f one.txt")), one)
	w.must(0, "start", "again", "One line")
	refused := w.events("again", journal.DocumentRefused)
	if len(refused) != 1 || !strings.Contains(refused[0].Text, "300 words") && !strings.Contains(refused[0].Text, "Spec updates") {
		t.Errorf("refused: %+v", refused)
	}
	if n := len(w.told("again", "one")); n != 1 {
		t.Errorf("%d runs, want one conversation", n)
	}
	if n := w.model.Stats().ByRule["one"]; n != 5 {
		t.Errorf("%d requests, want 5", n)
	}
	if len(w.events("again", journal.DocumentMade)) != 0 || !strings.Contains(w.kept("again", "one"), "It is there, and I saw it.") {
		t.Errorf("kept:\n%s", w.kept("again", "one"))
	}
}

// TestNoDocumentIsNoDeadEnd: an agent that leaves none is asked once; then one is made of its answer, and the work goes on. With
// --keep-docs it is in the product.
func TestNoDocumentIsNoDeadEnd(t *testing.T) {
	t.Parallel()
	one := scriptmodel.Rule{Name: "one", When: []string{"# Your step: Step one (one)"}, Steps: []scriptmodel.Step{
		bash("echo 1 > one.txt"), text("FIRST-ANSWER"), text("there is nothing to write")}}
	w := newWorld(t, planned(step("one", "test -f one.txt"), step("two", "test -f two.txt", "one")), one, works("two", bash("echo 2 > two.txt")))
	w.must(0, "start", "silent", "One line", "--keep-docs")
	if asked, made := len(w.events("silent", journal.DocumentRefused)), len(w.events("silent", journal.DocumentMade)); asked != 1 || made != 1 {
		t.Errorf("asked %d times, made %d documents\n%s", asked, made, w.history())
	}
	if n := w.model.Stats().ByRule["one"]; n != 3 {
		t.Errorf("%d requests, want 3", n)
	}
	if p := w.told("silent", "two"); len(p) != 1 || !strings.Contains(p[0], "> FIRST-ANSWER") {
		t.Errorf("the next agent is told:\n%s", strings.Join(p, "\n---\n"))
	}
	if tree := git(t, w.store("silent").Repo(), "ls-tree", "-r", "--name-only", "main"); tree != "docs/handoffs/one.md\ndocs/handoffs/two.md\none.txt\ntwo.txt" {
		t.Errorf("the product holds %q", tree)
	}
}

// TestHostileDocuments: links are not followed, and nothing big is read. Each is refused as often as allowed, then one is made.
func TestHostileDocuments(t *testing.T) {
	t.Parallel()
	hostile := func(id, command string) scriptmodel.Rule {
		return scriptmodel.Rule{Name: id, When: []string{"(" + id + ")"}, Steps: []scriptmodel.Step{bash("echo 1 > " + id + "; clone=$PWD; cd .autoagent; rm handoff.md; " + command), text("did " + id)}}
	}
	// The agent finds the mission's data by where its clone lies: <root>/autoagent-missions/hostile/<agent>.
	const secret = "$(dirname $(dirname $(dirname $clone)))/data/autoagent/hostile"
	w := newWorld(t, planned(step("passwd", "test -f passwd"), step("data", "test -f data"), step("folder", "test -f folder"), step("big", "test -f big")),
		hostile("passwd", "ln -s /etc/passwd handoff.md"), hostile("data", "ln -s "+secret+"/mission.json handoff.md"),
		hostile("folder", "cd ..; rm -r .autoagent; ln -s "+secret+" .autoagent"), hostile("big", "head -c 10485760 /dev/zero | tr '\\0' x > handoff.md"))
	w.must(0, "start", "hostile", "Four files", "--specialists", "codebuilder:2")
	if n := len(w.events("hostile", journal.DocumentMade)); n != 4 {
		t.Errorf("%d documents were made, want 4\n%s", n, w.history())
	}
	if n := len(w.events("hostile", journal.DocumentRefused)); n != 4*tick.DefaultLimits.Refusal {
		t.Errorf("%d refusals\n%s", n, w.history())
	}
	if tree := git(t, w.store("hostile").Repo(), "ls-tree", "-r", "--name-only", "main"); tree != "big\ndata\nfolder\npasswd" {
		t.Errorf("the product holds %q", tree)
	}
	for _, id := range []string{"passwd", "data", "folder", "big"} {
		if doc := w.kept("hostile", id); strings.Contains(doc, "root:") || strings.Contains(doc, "budget") || len(doc) > 2000 || !strings.Contains(doc, "did "+id) {
			t.Errorf("%s: %.3000s", id, doc)
		}
	}
}
