package specialist

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/AutoAgentProject/core/git"
	"example.com/AutoAgentProject/core/handoff"
	"example.com/AutoAgentProject/core/journal"
	"example.com/AutoAgentProject/core/plan"
	"example.com/AutoAgentProject/core/runner"
	"example.com/AutoAgentProject/core/tick"
)

const document = `## Summary
SUMMARY
## Decisions
none
## Spec updates
none
## Work product
- a.txt: it
## Context for the next
- Files: a.txt
- Specs: none
- Warnings: none
## Open questions
none
`

// writesDocument writes the document as the agent of a job.
func writesDocument(t *testing.T, j runner.Job, text string) {
	ok(t, os.WriteFile(filepath.Join(j.Dir, handoff.DocumentFile), []byte(text), 0o600))
}

func (w *world) kept(step string, attempt int) string {
	b, _ := w.Repo().Document(w.t.Context(), git.DocsRef("my-site"), handoff.DocumentPath(step, attempt))
	return string(b)
}

// TestFollow: what a run is told about its document, turn by turn.
func TestFollow(t *testing.T) {
	w := newWorld(t, step("a"))
	w.fake.do = func(j runner.Job) runner.Result {
		ok(t, os.WriteFile(filepath.Join(j.Dir, "a.txt"), nil, 0o600))
		if b, err := os.ReadFile(filepath.Join(j.Dir, handoff.DocumentFile)); string(b) != handoff.Skeleton() {
			t.Errorf("the skeleton is %q, %v", b, err)
		}
		if got := j.Follow(runner.Turn{N: 1, Text: "BLOCKED: x"}); got != "" {
			t.Errorf("a blocked agent is told %q", got)
		}
		if got := j.Follow(runner.Turn{N: 1, Text: "done"}); !strings.Contains(got, "was not written") {
			t.Errorf("without a document: %q", got)
		}
		writesDocument(t, j, strings.Replace(document, "SUMMARY", "", 1))
		for n := range w.Limits.Refusal {
			if got := j.Follow(runner.Turn{N: 2 + n, Text: "I wrote it"}); !strings.Contains(got, "## Summary: it is missing or empty; say in at most") {
				t.Errorf("bad, time %d: %q", n+1, got)
			}
		}
		if got := j.Follow(runner.Turn{N: 9, Text: "I wrote it"}); got != "" {
			t.Errorf("told once more: %q", got)
		}
		writesDocument(t, j, document)
		if got := j.Follow(runner.Turn{N: 10, Text: "I wrote it"}); got != "" {
			t.Errorf("a good one: %q", got)
		}
		return runner.Result{Verdict: runner.Done, Text: "I wrote it"}
	}
	w.once(tick.Moved)
	if a := w.step("a"); a.State != plan.Done || a.Summary != "SUMMARY" || !strings.Contains(w.kept("a", 1), "## Summary\n\nSUMMARY\n") {
		t.Errorf("%+v, kept:\n%s", a, w.kept("a", 1))
	}
	if n := len(w.said(journal.DocumentRefused)); n != 1+w.Limits.Refusal || len(w.said(journal.DocumentMade)) != 0 {
		t.Errorf("%d times refused", n)
	}
}

// TestTheTalkCostsNoWork: when the talk about the document ends at a limit, the work that was done before goes on with a document
// of its own answer.
func TestTheTalkCostsNoWork(t *testing.T) {
	for _, class := range []string{"budget", "max-turns", "silence"} {
		w := newWorld(t, step("a"))
		w.fake.do = func(j runner.Job) runner.Result {
			ok(t, os.WriteFile(filepath.Join(j.Dir, "a.txt"), nil, 0o600))
			j.Follow(runner.Turn{N: 1, Text: "THE-ANSWER"})
			return runner.Result{Verdict: runner.Failed, Class: class, Reason: "it ended", Text: "hm"}
		}
		w.once(tick.Moved)
		if a := w.step("a"); a.State != plan.Done || a.Summary != "THE-ANSWER" || len(w.fake.jobs) != 1 || len(w.said(journal.DocumentMade)) != 1 {
			t.Errorf("%s: %+v, %d runs", class, a, len(w.fake.jobs))
		}
	}
}

// TestDocumentOfEachAttempt: a step that came back has a document for each time, and only the last one is passed on; a tick
// that died behind it keeps the first that was kept.
func TestDocumentOfEachAttempt(t *testing.T) {
	w := newWorld(t, step("a"), step("b", "a"))
	does := func(file, text string) {
		w.fake.do = func(j runner.Job) runner.Result {
			ok(t, os.WriteFile(filepath.Join(j.Dir, file), nil, 0o600))
			writesDocument(t, j, text)
			return runner.Result{Verdict: runner.Done, Text: "x"}
		}
	}
	does("wrong.txt", strings.Replace(document, "SUMMARY", "FIRST", 1))
	w.once(tick.Moved)
	if w.step("a").Last().Hops != 1 {
		t.Errorf("its way back is no hop: %+v", w.step("a").Handoffs)
	}
	does("a.txt", strings.Replace(document, "SUMMARY", "SECOND", 1))
	w.once(tick.Moved)
	if !strings.Contains(w.kept("a", 1), "FIRST") || !strings.Contains(w.kept("a", 2), "SECOND") || !strings.HasPrefix(w.kept("a", 2), "from: codebuilder-1 | to: step b | run: ") {
		t.Errorf("kept:\n%s\n%s", w.kept("a", 1), w.kept("a", 2))
	}
	does("b.txt", document)
	w.once(tick.Moved)
	if p := w.fake.jobs[2].Prompt; !strings.Contains(p, "> SECOND\n") || strings.Contains(p, "FIRST") || w.step("b").Last().Hops != 2 {
		t.Errorf("%d hops, prompt:\n%s", w.step("b").Last().Hops, p)
	}
	h := tick.Hold{Commit: w.main()}
	writesDocument(t, w.fake.jobs[0], "changed afterwards")
	if d, err := w.document(t.Context(), &h, *w.step("b"), "again"); err != nil || d.Summary != "SUMMARY" {
		t.Errorf("the second time: %+v, %v", d, err)
	}
}
