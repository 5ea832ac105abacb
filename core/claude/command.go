package claude

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"example.com/AutoAgentProject/core/money"
	"example.com/AutoAgentProject/core/runner"
)

// The kinds of a credential.
const (
	apiKey    = "api-key"
	planToken = "plan-token"
)

// Where the program sees the run's home and tmp behind the walls.
const (
	insideHome = "/home/agent"
	insideTmp  = "/tmp"
)

// Files beside the system prompt.
const (
	settingsName = "settings.json"
	serversName  = "servers.json"
)

const (
	permissionMode = "dontAsk"
	defaultOutput  = 16000 // tokens of one response
)

// command makes the run's folders and everything that is needed to start the program, but for its pipes.
func (c *Claude) command(j runner.Job) (runner.Command, error) {
	cmd := runner.Command{Dir: j.Dir, Env: c.environment(j), Writable: []string{j.Dir},
		Home: filepath.Join(j.Scratch, "home"), Tmp: filepath.Join(j.Scratch, "tmp")}
	in := filepath.Join(j.Scratch, "in")
	for _, d := range []string{cmd.Home, cmd.Tmp, in} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return cmd, fmt.Errorf("prepare run %s: %w", j.Run, err)
		}
	}
	role := filepath.Join(in, "system-prompt.md")
	if err := os.WriteFile(role, []byte(j.SystemPrompt), 0o600); err != nil {
		return cmd, fmt.Errorf("prepare run %s: %w", j.Run, err)
	}
	for name, text := range map[string]json.RawMessage{settingsName: j.Settings, serversName: j.Servers} {
		if text == nil {
			continue
		}
		if err := os.WriteFile(filepath.Join(in, name), text, 0o600); err != nil {
			return cmd, fmt.Errorf("prepare run %s: %w", j.Run, err)
		}
	}
	cmd.Fixed = j.Fixed
	readable, err := readableDirs(j.Inputs)
	if err != nil {
		return cmd, fmt.Errorf("prepare run %s: %w", j.Run, err)
	}
	cmd.ReadOnly = append([]string{in, c.cfg.Program}, j.Inputs...)
	args, err := arguments(j, role, readable)
	cmd.Argv = append([]string{c.cfg.Program}, args...)
	return cmd, err
}

// readableDirs are the folders that the file tools are opened for. The program takes folders only, so that a single
// file stands for its folder; what else that folder holds is not there behind the walls.
func readableDirs(inputs []string) ([]string, error) {
	var dirs []string
	for _, p := range inputs {
		info, err := os.Stat(p)
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			p = filepath.Dir(p)
		}
		if p == "/" {
			return nil, fmt.Errorf("an input directly in / would open everything to the file tools")
		}
		if !slices.Contains(dirs, p) {
			dirs = append(dirs, p)
		}
	}
	return dirs, nil
}

// arguments is the command line after the program's name. No text of a person or a model is on it.
func arguments(j runner.Job, role string, readable []string) ([]string, error) {
	a := []string{"-p",
		"--input-format", "stream-json", "--output-format", "stream-json", "--verbose", "--include-partial-messages",
		"--model", j.Model, "--session-id", j.Run, "--system-prompt-file", role,
		"--restricted", "--setting-sources", "", "--strict-mcp-config", "--disable-slash-commands",
		"--permission-mode", permissionMode, "--permission-prompts", "none",
		"--max-turns", strconv.Itoa(j.MaxTurns)}
	if j.Cap > 0 {
		a = append(a, "--max-budget-usd", dollars(j.Cap))
	}
	if j.Effort != "" {
		a = append(a, "--effort", j.Effort)
	}
	if j.Schema != nil {
		var b bytes.Buffer
		if err := json.Compact(&b, j.Schema); err != nil {
			return nil, fmt.Errorf("schema of run %s: %w", j.Run, err)
		}
		a = append(a, "--json-schema", b.String())
	}
	if j.Settings != nil {
		a = append(a, "--settings", filepath.Join(filepath.Dir(role), settingsName))
	}
	if j.Servers != nil {
		a = append(a, "--mcp-config", filepath.Join(filepath.Dir(role), serversName))
	}
	a = append(a, "--tools", strings.Join(j.Tools, ","))
	rules := allowed(j.Tools, j.Dir)
	for _, name := range serverNames(j.Servers) {
		rules = append(rules, "mcp__"+name)
	}
	if len(rules) > 0 {
		a = append(append(a, "--allowedTools"), rules...)
	}
	if len(readable) > 0 {
		a = append(append(a, "--add-dir"), readable...)
	}
	return a, nil
}

// allowed are the permission rules for the offered tools. Reading is bounded by the folders alone; writing stays below
// the working folder, wherever the last command went to ("./" means where it went, "//" a path from the root); a command may do what the walls let it do; the web is allowed to whom it was offered.
func allowed(tools []string, dir string) []string {
	var rules []string
	for _, t := range tools {
		switch t {
		case "Write", "Edit", "NotebookEdit":
			if !slices.Contains(rules, "Edit(./**)") {
				rules = append(rules, "Edit(./**)", "Edit(/"+dir+"/**)")
			}
		case "Bash", "WebFetch", "WebSearch":
			rules = append(rules, t)
		}
	}
	return rules
}

// environment is the whole environment of the program.
func (c *Claude) environment(j runner.Job) []string {
	output := j.MaxOutput
	if output == 0 {
		output = defaultOutput
	}
	env := []string{
		"PATH=" + c.cfg.Path,
		"LANG=C.UTF-8",
		"HOME=" + insideHome,
		"CLAUDE_CONFIG_DIR=" + insideHome + "/.claude",
		"TMPDIR=" + insideTmp,
		"CLAUDE_CODE_TMPDIR=" + insideTmp,
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
		"DISABLE_TELEMETRY=1",
		"DISABLE_ERROR_REPORTING=1",
		"DISABLE_AUTOUPDATER=1",
		"CLAUDE_CODE_DISABLE_BACKGROUND_TASKS=1",
		"CLAUDE_CODE_DISABLE_FILE_MENTIONS=1",
		"CLAUDE_CODE_DISABLE_LEGACY_MODEL_REMAP=1",
		"CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK=1",
		"CLAUDE_CODE_MAX_RETRIES=2",
		"API_TIMEOUT_MS=120000",
		"CLAUDE_BYTE_STREAM_IDLE_TIMEOUT_MS=120000",
		"CLAUDE_CODE_MAX_OUTPUT_TOKENS=" + strconv.Itoa(output),
	}
	switch j.Credential.Kind {
	case apiKey:
		env = append(env, "ANTHROPIC_API_KEY="+j.Credential.Secret)
	case planToken:
		env = append(env, "CLAUDE_CODE_OAUTH_TOKEN="+j.Credential.Secret)
	}
	if j.BaseURL != "" {
		env = append(env, "ANTHROPIC_BASE_URL="+j.BaseURL)
	}
	return env
}

// dollars writes an amount as a decimal number, exactly.
func dollars(n money.Nano) string {
	s := fmt.Sprintf("%d.%09d", n/money.USD, n%money.USD)
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
}
