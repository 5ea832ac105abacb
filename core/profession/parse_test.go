package profession

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/front"
	"example.com/AutoAgentProject/core/usererr"
)

func parseFile(t *testing.T, name string) Profession {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	p, err := Parse(name, data)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// equal compares lists where nil (not said) and empty (said to be none) differ.
func equal(a, b []string) bool {
	return slices.Equal(a, b) && (a == nil) == (b == nil)
}

func TestPlainSubagentFileLoadsUnchanged(t *testing.T) {
	p := parseFile(t, "subagent-plain.md")
	if p.Name != "api-auditor" || p.Display != "ApiAuditor" || p.Model != "sonnet" || p.Writes || p.Source != "subagent-plain.md" {
		t.Errorf("read as %+v", p)
	}
	if want := []string{"Read", "Grep", "Glob", "Bash"}; !equal(p.Tools, want) {
		t.Errorf("tools %q, want %q", p.Tools, want)
	}
	if p.Owns != nil || p.Ignored != nil || p.MaxTurns != 0 || p.Wall != 0 {
		t.Errorf("the file says nothing about owns, turns and time, but: %+v", p)
	}
	if want := "You audit HTTP handlers.\n"; !strings.HasPrefix(p.Body, want) {
		t.Errorf("body begins %q", p.Body[:30])
	}
	if want := "---\n\nAnswer with findings by file and line."; !strings.HasSuffix(p.Body, want) {
		t.Errorf("the body was cut at its own ---: %q", p.Body)
	}
}

func TestSubagentFileWithEveryKeyLoadsUnchanged(t *testing.T) {
	p := parseFile(t, "subagent-all-keys.md")
	if want := []string{"Read", "Edit"}; !equal(p.Tools, want) || !p.Writes {
		t.Errorf("tools %q, writes %v; want %q and true", p.Tools, p.Writes, want)
	}
	if p.MaxTurns != 30 || p.Model != "" {
		t.Errorf("turns %d, model %q; want 30 and none", p.MaxTurns, p.Model)
	}
	want := []string{"MultiEdit", "TodoWrite", "background", "color", "effort", "hooks", "initialPrompt", "isolation", "mcpServers",
		"memory", "permissionMode", "skills"}
	if !equal(p.Ignored, want) {
		t.Errorf("ignored %q, want %q", p.Ignored, want)
	}
}

func TestDescriptionMayHoldColonsUnquoted(t *testing.T) {
	p := parseFile(t, "subagent-colon.md")
	want := `Use this agent when logs must be read. Examples: <example>Context: it's slow.\nuser: 'why?'\nassistant: "Let me see: the log-reader."</example>`
	if p.Description != want {
		t.Errorf("description %q", p.Description)
	}
	if !equal(p.Tools, localTools()) {
		t.Errorf("a file without tools offers %q", p.Tools)
	}
	for _, web := range []string{"WebFetch", "WebSearch"} {
		if slices.Contains(p.Tools, web) {
			t.Errorf("a file without tools offers %s", web)
		}
	}
}

const ours = `---
name: pipe-fitter
display: PipeFitter
description: |
  Fits pipes.
  Twice.
tools: [Read, "Bash", Write]
required_tools: Write
model: claude-example-5
owns:
  - "src/**"
  - "{a,b}.txt"
reads: docs/**
handoff_to: [tester, pipe-fitter]
notes: true
gates: design, code
verify:
  - go test ./...
  - echo "a, b"
max_turns: 12
wall: 1h30m
silence: 90s # a comment
---
Fit.
`

func TestOwnKeys(t *testing.T) {
	for name, text := range map[string]string{
		"plain":       ours,
		"CRLF":        strings.ReplaceAll(ours, "\n", "\r\n"),
		"BOM":         "\ufeff" + ours,
		"white fence": strings.ReplaceAll(ours, "---\n", "--- \t\n"),
	} {
		t.Run(name, func(t *testing.T) {
			p, err := Parse("p.md", []byte(text))
			if err != nil {
				t.Fatal(err)
			}
			for key, pair := range map[string][2][]string{
				"tools":          {p.Tools, {"Read", "Bash", "Write"}},
				"required_tools": {p.Required, {"Write"}},
				"owns":           {p.Owns, {"src/**", "{a,b}.txt"}},
				"reads":          {p.Reads, {"docs/**"}},
				"handoff_to":     {p.HandoffTo, {"tester", "pipe-fitter"}},
				"gates":          {p.Gates, {"design", "code"}},
				"verify":         {p.Verify, {"go test ./...", `echo "a, b"`}},
				"ignored":        {p.Ignored, nil},
				"texts": {{p.Name, p.Display, p.Description, p.Model, p.Body},
					{"pipe-fitter", "PipeFitter", "Fits pipes.\nTwice.", "claude-example-5", "Fit."}},
			} {
				if !equal(pair[0], pair[1]) {
					t.Errorf("%s: %q, want %q", key, pair[0], pair[1])
				}
			}
			if !p.Notes || p.MaxTurns != 12 || p.Wall != 90*time.Minute || p.Silence != 90*time.Second || !p.Writes {
				t.Errorf("turns %d wall %s silence %s writes %v", p.MaxTurns, p.Wall, p.Silence, p.Writes)
			}
		})
	}
}

func TestModelAsATable(t *testing.T) {
	p, err := Parse("p.md", []byte("---\nname: a\ndescription: b\nmodel: {tier: strong, effort: low, max_output: 8000}\nfallback: [standard, claude-example-5]\nbudget: 200ktok\nowns: [\"spec:goals\", src/**]\n---\nx\n"))
	if err != nil {
		t.Fatal(err)
	}
	if p.Model != "strong" || p.Effort != "low" || p.MaxOutput != 8000 || p.Budget != "200ktok" || !equal(p.Fallback, []string{"standard", "claude-example-5"}) {
		t.Errorf("%+v", p)
	}
	if !equal(p.Owns, []string{".autoagent/specs/goals.md", "src/**"}) || !p.OwnsSpec("goals") || p.OwnsSpec("plans") || !p.ReadsSpec("goals") {
		t.Errorf("owns %q", p.Owns)
	}
}

func TestNoToolsAtAll(t *testing.T) {
	p, err := Parse("p.md", []byte("---\nname: oracle\ndescription: answers\ntools: []\n---\nAnswer.\n"))
	if err != nil || len(p.Tools) != 0 || p.Writes || p.MayChange("a") {
		t.Errorf("tools %q, writes %v, err %v", p.Tools, p.Writes, err)
	}
}

func TestFaultsAreToldWithTheirLine(t *testing.T) {
	// With it, name stands in line 2, description in line 3, the case's text from line 4 on.
	with := func(rest string) string {
		return "---\nname: a\ndescription: b\n" + rest + "\n---\nBody.\n"
	}
	for _, c := range []struct {
		name, text string
		line       string
		says       string
	}{
		{"no front matter", "# Hello\n\nname: a\n", "1", "no front matter"},
		{"empty file", "", "1", "no front matter"},
		{"blank line first", "\n---\nname: a\n---\nx", "1", "no front matter"},
		{"front matter left open", "---\nname: a\ndescription: b\n", "1", "not closed"},
		{"empty front matter", "---\n---\nBody", "1", "empty"},
		{"only a comment", "---\n# x\n---\nBody", "1", "empty"},
		{"no body", "---\nname: a\ndescription: b\n---\n \n", "4", "no instructions"},
		{"no name", "---\ndescription: b\n---\nx", "1", "no name"},
		{"no description", "---\nname: a\n---\nx", "1", "no description"},
		{"a list", "---\n- name\n---\nx", "2", "key: value"},
		{"a text", "---\nhello\n---\nx", "2", "key: value"},
		{"two documents", "---\nname: a\n...\ndescription: b\n---\nx", "1", "more than one"},
		{"not UTF-8", with("display: B\xff"), "4", "not UTF-8"},
		{"control character", with("display: B\x1b"), "4", "control character"},
		{"control character in the body", with("") + "\n\x00", "8", "control character"},
		{"too large", with("") + strings.Repeat("x", front.MaxFile), "1", "bytes"},
		{"large front matter", with("# " + strings.Repeat("x", front.MaxFront)), "1", "front matter"},

		{"unknown key", with("colour: red"), "4", `no key "colour"`},
		{"nearly a key", with("max-turns: 3"), "4", "written max_turns"},
		{"nearly a key, plural", with("tool: Read"), "4", "written tools"},
		{"key is a number", with("7: red"), "4", "not a key"},
		{"merge key", with("<<: {wall: 1m}"), "4", "not a key"},
		{"key twice", with("wall: 1m\nwall: 2m"), "5", "wall"},
		{"max_turns in both spellings", with("max_turns: 3\nmaxTurns: 3"), "5", "line 4"},
		{"bad YAML", with("owns: [a"), "4", "not YAML"},
		{"bad YAML after a free description", "---\nname: a\ndescription: b: c\nowns: [a\n---\nx", "4", "not YAML"},
		{"tab as indentation", with("owns:\n\t- a"), "5", "not YAML"},

		{"name is a number", "---\nname: 7\ndescription: b\n---\nx", "2", "must be a text, not a number"},
		{"name is nothing", "---\nname:\ndescription: b\n---\nx", "2", "not nothing"},
		{"name in capitals", "---\ndescription: b\nname: Alice\n---\nx", "3", "name"},
		{"name with two dashes", "---\nname: a--b\ndescription: b\n---\nx", "2", "name"},
		{"name with a path", "---\nname: ../a\ndescription: b\n---\nx", "2", "name"},
		{"long name", "---\nname: " + strings.Repeat("a", MaxName+1) + "\ndescription: b\n---\nx", "2", "at most 37"},
		{"name of a part", "---\nname: quota\ndescription: b\n---\nx", "2", "part of every mission"},
		{"empty description", "---\nname: a\ndescription: \"\"\n---\nx", "3", "empty"},
		{"description is a list", "---\nname: a\ndescription: [b]\n---\nx", "3", "not a list"},
		{"display with markup", with("display: <b>"), "4", "letters and digits"},
		{"model with a space", with("model: a b"), "4", "model"},
		{"model like a flag", with("model: --danger"), "4", "model"},
		{"anchor", with("model: &m a"), "4", "anchor"},

		{"tools is a number", with("tools: 3"), "4", "list of texts"},
		{"tools is nothing", with("tools:"), "4", "not nothing"},
		{"tools is a table", with("tools: {Read: true}"), "4", "not a table"},
		{"tools holds a table", with("tools:\n  - Read\n  - Bash: x"), "6", "holds a table"},
		{"tools holds a number", with("tools: [Read, 3]"), "4", "holds a number"},
		{"unknown tool", with("tools:\n  - Read\n  - Fly"), "6", "no such tool"},
		{"unknown tool after a comma", with("tools: Read, Fly"), "4", `"Fly"`},
		{"tool in small letters", with("tools: [read]"), "4", "written Read"},
		{"tool with a scope", with("tools: [\"Bash(git *)\"]"), "4", "write Bash alone"},
		{"tool twice", with("tools:\n  - Read\n  - Bash\n  - Read"), "7", `"Read" twice, first in line 5`},
		{"tool twice after a comma", with("tools: Read,Read"), "4", "twice"},
		{"trailing comma", with("tools: Read,"), "4", "empty entry"},
		{"required but not offered", with("tools: Read\nrequired_tools: Bash"), "5", "not offered"},
		{"required but taken away", with("required_tools: Bash\ndisallowedTools: Bash"), "4", "not offered"},
		{"required cannot be a forgone one", with("required_tools: TodoWrite"), "4", "no such tool"},
		{"taking away a misspelt tool", with("disallowedTools: Wirte"), "4", "no such tool"},
		{"taking away a scope", with("disallowedTools: [\"Bash(rm *)\"]"), "4", "write Bash alone"},

		{"owns nothing", with("owns: \"\""), "4", "empty entry"},
		{"owns outside", with("owns:\n  - src/**\n  - ../x"), "6", "inside the repository"},
		{"owns the root", with("owns: /etc/**"), "4", "inside the repository"},
		{"owns by exception", with("owns: \"!a\""), "4", "exceptions"},
		{"owns half stars", with("owns: src/**.go"), "4", "stand alone"},
		{"owns an open bracket", with("owns: \"a[\""), "4", "brackets"},
		{"owns without editing", with("tools: [Read]\nowns: [a]"), "5", "no tool changes files"},
		{"reads outside", with("reads: a/../b"), "4", "inside the repository"},
		{"handoff to nobody", with("handoff_to: [Tester]"), "4", "name"},
		{"notes in words", with("notes: now and then"), "4", "true or false"},
		{"unknown gate", with("gates: lunch"), "4", "no such gate"},
		{"verify is a number", with("verify: [1]"), "4", "holds a number"},

		{"owns a spec outside", with("owns: \"spec:../x\""), "4", "inside the repository"},
		{"a temperature", with("model:\n  tier: cheap\n  temperature: 0.2"), "6", "no setting for the temperature"},
		{"a tier that is none", with("model: {tier: huge}"), "4", "one of cheap, standard, strong"},
		{"a tier and an id", with("model: {tier: cheap, id: x}"), "4", "it is one of them"},
		{"an effort that is none", with("model: {effort: heroic}"), "4", "low, medium or high"},
		{"model with an unknown key", with("model:\n  name: x"), "5", `model has no key "name"`},
		{"model says a key twice", with("model:\n  id: x\n  id: y"), "6", "already defined"},
		{"output beyond", with("model: {max_output: 200000}"), "4", "1 to 128000"},
		{"a fallback that is none", with("fallback: [a b]"), "4", "exact id"},
		{"a budget in percent", with("budget: 10%"), "4", "such as 0.50usd"},
		{"a budget in numbers", with("budget: 5"), "4", "budget must be"},

		{"no turns", with("max_turns: 0"), "4", "1 to 1000"},
		{"negative turns", with("maxTurns: -1"), "4", "maxTurns must be 1 to 1000"},
		{"endless turns", with("max_turns: 1001"), "4", "1 to 1000"},
		{"turns beyond numbers", with("max_turns: 99999999999999999999"), "4", "max_turns"},
		{"half a turn", with("max_turns: 1.5"), "4", "whole number"},
		{"turns as a text", with("max_turns: \"3\""), "4", "not a text"},
		{"wall without unit", with("wall: 45"), "4", "such as 45m"},
		{"wall in words", with("wall: an hour"), "4", "such as 45m"},
		{"wall negative", with("wall: -5m"), "4", "between"},
		{"wall of days", with("wall: 25h"), "4", "between"},
		{"silence beyond wall", with("silence: 2h\nwall: 1h"), "4", "longer than wall"},

		{"Claude's key of the wrong type", with("background: yes please"), "4", "background"},
		{"Claude's hooks as a text", with("hooks: x"), "4", "hooks"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Parse("dir/a.md", []byte(c.text))
			if err == nil {
				t.Fatal("it was accepted")
			}
			if !strings.HasPrefix(err.Error(), "dir/a.md:"+c.line+": ") || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error %q; want line %s and %q", err, c.line, c.says)
			}
			if usererr.CodeOf(err) != usererr.Usage || strings.ContainsAny(err.Error(), "\t\n\x00\x1b") || strings.Contains(err.Error(), "%!") {
				t.Errorf("not one clean line of code usage: %q", err)
			}
		})
	}
}

func TestToolsThatStartThingsAreRefusedWithTheReason(t *testing.T) {
	for tool, reason := range map[string]string{
		"Task": "agent", "Agent": "agent", "Agent(reviewer, tester)": "agent", "Workflow": "agent", "SendMessage": "agent",
		"ScheduleWakeup": "leaves nothing behind", "RemoteTrigger": "leaves nothing behind", "CronCreate": "leaves nothing behind",
		"CronAnythingNew": "leaves nothing behind", "TaskOutput": "leaves nothing behind", "Skill": "skill",
		"AskUserQuestion": "nobody", "EnterWorktree": "one folder", "mcp__x__y": "MCP",
	} {
		_, err := Parse("a.md", []byte("---\nname: a\ndescription: b\ntools:\n  - Read\n  - "+tool+"\n---\nx"))
		if err == nil || !strings.HasPrefix(err.Error(), "a.md:6: ") || !strings.Contains(err.Error(), "never offered") || !strings.Contains(err.Error(), reason) {
			t.Errorf("%s: %v; want line 6 and %q", tool, err, reason)
		}
	}
}

func TestKnownToolsAreAccepted(t *testing.T) {
	p, err := Parse("a.md", []byte("---\nname: a\ndescription: b\ntools: "+strings.Join(KnownTools(), ", ")+"\n---\nx"))
	if err != nil || !equal(p.Tools, KnownTools()) {
		t.Errorf("%q, %v", p.Tools, err)
	}
	for tool, writes := range map[string]bool{"Write": true, "Edit": true, "NotebookEdit": true, "Bash": false, "Read": false} {
		p, err := Parse("a.md", []byte("---\nname: a\ndescription: b\ntools: "+tool+"\n---\nx"))
		if err != nil || p.Writes != writes {
			t.Errorf("%s: writes %v, %v", tool, p.Writes, err)
		}
	}
}
