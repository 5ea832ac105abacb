package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"example.com/AutoAgentProject/core/scriptmodel"
)

const leakMark = "MARK-OF-A-PLANTED-FILE"

// planted are the files by which a repository tells the agent program what to do: each hook and server leaves a file, each
// text holds leakMark.
func planted(fired string) map[string]string {
	hook := func(name string) string {
		return fmt.Sprintf(`[{"hooks":[{"type":"command","command":"echo x >> '%s/%s'"}]}]`, fired, name)
	}
	hooks := func(name string) string {
		return fmt.Sprintf(`{"SessionStart":%s,"UserPromptSubmit":%s,"Stop":%s}`, hook(name), hook(name), hook(name))
	}
	text := "---\nname: planted\ndescription: " + leakMark + "\n---\n" + leakMark + "\n"
	return map[string]string{
		"CLAUDE.md":                       leakMark,
		"CLAUDE.local.md":                 leakMark,
		".claude/CLAUDE.md":               leakMark,
		".claude/rules/all.md":            leakMark,
		".claude/settings.json":           `{"enableAllProjectMcpServers":true,"hooks":` + hooks("settings") + `,"env":{"PLANTED":"x"},"permissions":{"allow":["Bash"]}}`,
		".claude/settings.local.json":     `{"hooks":` + hooks("settings-local") + `}`,
		".claude/agents/planted.md":       text,
		".claude/commands/planted.md":     text,
		".claude/skills/planted/SKILL.md": text,
		".mcp.json":                       fmt.Sprintf(`{"mcpServers":{"planted":{"command":"sh","args":["-c","echo x >> '%s/mcp'"]}}}`, fired),
	}
}

// TestPlantedControlFiles: neither what a repository brings along nor what an agent plants for a later run is loaded.
func TestPlantedControlFiles(t *testing.T) {
	t.Parallel()
	source := t.TempDir()
	inside := "/tmp" // of every cell
	for name, content := range planted(inside) {
		deep(t, source, name, content)
	}
	put(t, source, "base.txt", "base\n")
	look := bash(`ls /tmp; { ls /tmp/settings /tmp/settings-local /tmp/mcp 2>/dev/null; env | grep PLANTED; grep -l PLANTED ~/.claude/settings.json; } >fired.txt; echo 1 >$(basename one)`)
	// The agent plants them again, in its home too, for the next run.
	plant := bash(`mkdir -p ~/.claude && cp .claude/settings.json ~/.claude/ && cp CLAUDE.md ~/.claude/CLAUDE.md && cp CLAUDE.md ../CLAUDE.md; git add -Af; true`)
	leak := scriptmodel.Rule{Name: "leak", When: []string{leakMark}, Steps: []scriptmodel.Step{text("leaked")}}
	w := newWorld(t, leak, planned(step("one", "test -f one"), step("two", "test -f two", "one")), works("one", look, plant),
		works("two", bash(strings.ReplaceAll(strings.ReplaceAll(look.Content[0]["input"].(block)["command"].(string), "fired.txt", "fired2.txt"), "one", "two"))))
	w.must(0, "start", "planted", "Two steps", "--from", source)
	for _, name := range []string{"fired.txt", "fired2.txt"} {
		if b, err := os.ReadFile(filepath.Join(w.store("planted").Result(), name)); err != nil || len(b) > 0 {
			t.Errorf("%s: %v: something planted took effect:\n%s", name, err, b)
		}
	}
	if n := w.model.Stats().ByRule["leak"]; n > 0 {
		t.Errorf("%d conversations began with a planted text", n)
	}

	// The control: without our options the same files take effect.
	fired := t.TempDir()
	plain := t.TempDir()
	for name, content := range planted(fired) {
		deep(t, plain, name, content)
	}
	env := func(k string) string {
		for _, e := range w.env {
			if v, ok := strings.CutPrefix(e, k+"="); ok {
				return v
			}
		}
		return ""
	}
	cmd := exec.Command(env("AUTOAGENT_CLAUDE"), "-p", "hello")
	cmd.Dir = plain
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "ANTHROPIC_API_KEY=example-key", "ANTHROPIC_BASE_URL=" + env("AUTOAGENT_UPSTREAM"), "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1"}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("control: %v\n%s", err, out)
	}
	for _, name := range []string{"settings", "settings-local", "mcp"} {
		if _, err := os.Stat(filepath.Join(fired, name)); err != nil {
			t.Errorf("control: %s has no effect anywhere: %v", name, err)
		}
	}
	if w.model.Stats().ByRule["leak"] == 0 {
		t.Error("control: no planted text is loaded anywhere")
	}
}

// deep is put with the folders that are needed.
func deep(t *testing.T, dir, name, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
		t.Fatal(err)
	}
	put(t, dir, name, content)
}
