package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/AutoAgentProject/core/journal"
	"example.com/AutoAgentProject/core/scriptmodel"
)

// stream is all that the run of a step printed.
func (w *world) stream(id, step string) string {
	w.t.Helper()
	var all strings.Builder
	dirs, _ := filepath.Glob(filepath.Join(w.store(id).Dir(), "agents", "*", "runs", "*"))
	for _, dir := range dirs {
		if b, _ := os.ReadFile(filepath.Join(dir, "run.json")); strings.Contains(string(b), `"step": "`+step+`"`) {
			b, _ := os.ReadFile(filepath.Join(dir, "stream.jsonl"))
			all.Write(b)
		}
	}
	return all.String()
}

// TestNotesOfAgents: an agent whose profession may write notes checks its drafts in its cell, by the gate that judges them after the
// run; what is wrong comes back into the conversation, what is right is sent and told to the recipient's next run. The gate in the cell
// cannot be changed and shows nothing of the mission but names. An agent whose profession may not is refused.
func TestNotesOfAgents(t *testing.T) {
	t.Parallel()
	draft := func(name, to, message string) string {
		return "printf 'type: note\\nto: " + to + "\\npriority: 50\\nmessage: " + message + "\\n' > .autoagent/outbox/" + name + "\n"
	}
	check := "/run/autoagent/handoff check; echo first-check=$?\n"
	look := "cat /run/autoagent/handoff.json; ls -A /run/autoagent; echo x > /run/autoagent/handoff.json || echo cannot-write\n" +
		"ls " + "/data 2>&1; git status --porcelain\n"
	review := scriptmodel.Rule{Name: "review", When: []string{"# Your step: Step one (one)"}, Steps: []scriptmodel.Step{
		bash(draft("a", "nobody", "the port is 8081") + draft("b", "codebuilder-1,manager", "the line ends with a dot") + check + look),
		bash(writesDocument(goodDocument) + "mkdir -p review && echo fine > review/one.md"), text("reviewed"),
		bash(draft("a", "codebuilder-1", "the port is 8081") + "/run/autoagent/handoff check; echo second-check=$?"), text("reviewed"),
	}}
	build := scriptmodel.Rule{Name: "build", When: []string{"# Your step: Step two (two)"}, Steps: []scriptmodel.Step{
		bash("echo 2 > two.txt; mkdir .autoagent/outbox;" + draft("q", "manager", "which port?") + writesDocument(goodDocument)), text("built"),
		bash("/run/autoagent/handoff check .autoagent/outbox/q; echo third-check=$?; rm .autoagent/outbox/q; /run/autoagent/handoff check; echo fourth-check=$?"), text("built"),
	}}
	one := step("one", "test -f review/one.md")
	one.Profession = "reviewer"
	w := newWorld(t, planned(one, step("two", "test -f two.txt", "one")), review, build)
	w.must(0, "start", "words", "Say it", "--specialists", "codebuilder:1,reviewer:1", "--verify", "test -f two.txt")

	said := w.stream("words", "one")
	for _, want := range []string{`HANDOFF INVALID: .autoagent/outbox/a`, `there is no such role; write one of manager, codebuilder-1, reviewer-1`, "HANDOFF VALID: .autoagent/outbox/b",
		"DOCUMENT INVALID: .autoagent/handoff.md", "first-check=2", "second-check=0", "cannot-write"} {
		if !strings.Contains(said, want) {
			t.Errorf("the reviewer's run does not show %q", want)
		}
	}
	if strings.Contains(said, w.root+"/data") {
		t.Error("the cell shows where the mission's data lies")
	}
	said = w.stream("words", "two")
	for _, want := range []string{"codebuilder-1 may not write notes", "third-check=2", "fourth-check=0"} {
		if !strings.Contains(said, want) {
			t.Errorf("the builder's run does not show %q", want)
		}
	}
	if n := len(w.events("words", journal.DraftRefused)); n != 2 {
		t.Errorf("%d drafts went back, want 2\n%s", n, w.history())
	}
	prompts := w.told("words", "two")
	if len(prompts) != 1 || !strings.Contains(prompts[0], "> reviewer-1: the port is 8081\n") || !strings.Contains(prompts[0], "> reviewer-1: the line ends with a dot\n") ||
		strings.Contains(prompts[0], "## Notes that you may write") {
		t.Errorf("the builder is told:\n%s", prompts)
	}
	if p := w.told("words", "one"); len(p) != 1 || !strings.Contains(p[0], "to: <one or more of manager, codebuilder-1;") {
		t.Errorf("the reviewer is told:\n%s", p)
	}
	sent := 0
	for _, e := range w.events("words", journal.MailReceived) {
		if strings.Contains(e.Text, "a note from reviewer-1: ") {
			sent++
		}
	}
	if sent != 3 { // one to one, one to two
		t.Errorf("%d notes came\n%s", sent, w.history())
	}
	for agent, want := range map[string]int{"manager": 1, "codebuilder-1": 2} {
		notes := 0
		list, err := w.store("words").Queue().Entries(agent)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range list {
			if e.Box == "completed" && e.Text.Or("type", "") == "note" && e.Text.Or("from", "") == "reviewer-1" {
				notes++
			}
		}
		if notes != want {
			t.Errorf("%s got %d notes, want %d", agent, notes, want)
		}
	}
	if tree := git(t, w.store("words").Repo(), "ls-tree", "-r", "--name-only", "main"); tree != "review/one.md\ntwo.txt" {
		t.Errorf("the product holds %q", tree)
	}
}
