package claude

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/money"
	"example.com/AutoAgentProject/core/runner"
)

func exampleJob() runner.Job {
	return runner.Job{Run: "0c9d7a52-5a4e-4f0c-9a39-6a3a4f6a3c10", Dir: "/m/builder", Scratch: "/m/.cells/builder/r1", SystemPrompt: "s", Prompt: "p",
		Model: "claude-sonnet-5-5", Tools: []string{"Read", "Write", "Edit", "Bash"}, MaxTurns: 12, Cap: 1_250_000_000, Wall: time.Minute, Silence: time.Minute,
		Credential: runner.Credential{Kind: apiKey, Secret: "example-secret"}}
}

func TestArguments(t *testing.T) {
	j := exampleJob()
	j.Schema = json.RawMessage("{ \"type\" : \"object\" }")
	got, err := arguments(j, "/role.md", []string{"/in/a", "/in/b"})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose", "--include-partial-messages",
		"--model", "claude-sonnet-5-5", "--session-id", j.Run, "--system-prompt-file", "/role.md",
		"--restricted", "--setting-sources", "", "--strict-mcp-config", "--disable-slash-commands",
		"--permission-mode", "dontAsk", "--permission-prompts", "none", "--max-turns", "12", "--max-budget-usd", "1.25",
		"--json-schema", `{"type":"object"}`, "--tools", "Read,Write,Edit,Bash", "--allowedTools", "Edit(./**)", "Edit(//m/builder/**)", "Bash", "--add-dir", "/in/a", "/in/b"}
	if !slices.Equal(got, want) {
		t.Errorf("\n got %q\nwant %q", got, want)
	}
	j.Schema, j.Cap, j.Tools = nil, 0, nil
	if got, _ = arguments(j, "/role.md", nil); !slices.Equal(got[len(got)-4:], []string{"--max-turns", "12", "--tools", ""}) {
		t.Errorf("without tools: %q", got)
	}
}

func TestAllowed(t *testing.T) {
	for tools, want := range map[string]string{
		"Read Glob Grep": "", "Write": "Edit(./**) Edit(//m/x/**)", "Edit NotebookEdit Write Bash": "Edit(./**) Edit(//m/x/**) Bash", "Bash WebSearch WebFetch": "Bash WebSearch WebFetch",
	} {
		if got := strings.Join(allowed(strings.Fields(tools), "/m/x"), " "); got != want {
			t.Errorf("allowed(%s) = %q, want %q", tools, got, want)
		}
	}
}

func TestEnvironment(t *testing.T) {
	c := New(Config{Path: "/bin"})
	j := exampleJob()
	want := []string{"PATH=/bin", "LANG=C.UTF-8", "HOME=/home/agent", "CLAUDE_CONFIG_DIR=/home/agent/.claude", "TMPDIR=/tmp", "CLAUDE_CODE_TMPDIR=/tmp",
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_TELEMETRY=1", "DISABLE_ERROR_REPORTING=1", "DISABLE_AUTOUPDATER=1",
		"CLAUDE_CODE_DISABLE_BACKGROUND_TASKS=1", "CLAUDE_CODE_DISABLE_FILE_MENTIONS=1", "CLAUDE_CODE_DISABLE_LEGACY_MODEL_REMAP=1",
		"CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK=1", "CLAUDE_CODE_MAX_RETRIES=2", "API_TIMEOUT_MS=120000", "CLAUDE_BYTE_STREAM_IDLE_TIMEOUT_MS=120000"}
	if got := c.environment(j); !slices.Equal(got, append(slices.Clone(want), "CLAUDE_CODE_MAX_OUTPUT_TOKENS=16000", "ANTHROPIC_API_KEY=example-secret")) {
		t.Errorf("with a key: %q", got)
	}
	j.Credential.Kind, j.BaseURL, j.MaxOutput = planToken, "http://127.0.0.1:1", 4096
	if got := c.environment(j); !slices.Equal(got, append(slices.Clone(want), "CLAUDE_CODE_MAX_OUTPUT_TOKENS=4096", "CLAUDE_CODE_OAUTH_TOKEN=example-secret", "ANTHROPIC_BASE_URL=http://127.0.0.1:1")) {
		t.Errorf("with a token: %q", got)
	}
}

func TestCommand(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "one.txt")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	j := exampleJob()
	j.Scratch, j.Inputs = filepath.Join(dir, "run"), []string{dir, file, "/etc/hostname"}
	cmd, err := New(Config{Program: "/opt/claude"}).command(j)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(filepath.Join(j.Scratch, "in", "system-prompt.md")); err != nil || string(b) != "s" {
		t.Errorf("system prompt %q, %v", b, err)
	}
	if strings.Contains(strings.Join(cmd.Argv, " "), j.Credential.Secret) || strings.Contains(strings.Join(cmd.Argv, "\n"), "\np\n") {
		t.Errorf("argv %q", cmd.Argv)
	}
	if cmd.Argv[0] != "/opt/claude" || !slices.Equal(cmd.Argv[len(cmd.Argv)-3:], []string{"--add-dir", dir, "/etc"}) {
		t.Errorf("argv %q", cmd.Argv)
	}
	if !slices.Equal(cmd.Writable, []string{j.Dir}) || !slices.Equal(cmd.ReadOnly, []string{j.Scratch + "/in", "/opt/claude", dir, file, "/etc/hostname"}) ||
		cmd.Dir != j.Dir || cmd.Home != j.Scratch+"/home" || cmd.Tmp != j.Scratch+"/tmp" {
		t.Errorf("%+v", cmd)
	}
	for _, d := range []string{cmd.Home, cmd.Tmp, filepath.Join(j.Scratch, "in")} {
		if info, err := os.Stat(d); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v", d, info, err)
		}
	}
	j.Inputs = []string{"/no/such/input"}
	if _, err := New(Config{}).command(j); err == nil {
		t.Error("an input that is not there")
	}
}

func TestDollars(t *testing.T) {
	for n, want := range map[money.Nano]string{1: "0.000000001", money.USD: "1", 1_250_000_000: "1.25", 1_000_000_001: "1.000000001", 30 * money.USD: "30", 100_000_000: "0.1"} {
		if got := dollars(n); got != want {
			t.Errorf("dollars(%d) = %s, want %s", n, got, want)
		}
	}
}

func TestCheckJob(t *testing.T) {
	if err := check(exampleJob()); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(j *runner.Job){
		"id that is no UUID":           func(j *runner.Job) { j.Run = "run-1" },
		"id in another form":           func(j *runner.Job) { j.Run = strings.ToUpper(j.Run) },
		"tool with a comma":            func(j *runner.Job) { j.Tools = []string{"Read,Bash"} },
		"tool with a scope":            func(j *runner.Job) { j.Tools = []string{"Bash(ls)"} },
		"tool twice":                   func(j *runner.Job) { j.Tools = []string{"Read", "Read"} },
		"tool like an option":          func(j *runner.Job) { j.Tools = []string{"--restricted"} },
		"unknown credential":           func(j *runner.Job) { j.Credential.Kind = "cookie" },
		"secret with a line end":       func(j *runner.Job) { j.Credential.Secret = "a\nLD_PRELOAD=x" },
		"base URL with NUL":            func(j *runner.Job) { j.BaseURL = "http://x\x00" },
		"schema that is no JSON":       func(j *runner.Job) { j.Schema = json.RawMessage("{") },
		"schema too long":              func(j *runner.Job) { j.Schema = json.RawMessage(`"` + strings.Repeat("x", maxSchema) + `"`) },
		"prompt too long":              func(j *runner.Job) { j.Prompt = strings.Repeat("x", maxPrompt+1) },
		"prompt that is not UTF-8":     func(j *runner.Job) { j.Prompt = "\xff" },
		"blank system prompt":          func(j *runner.Job) { j.SystemPrompt = "\t" },
		"NUL in the system prompt":     func(j *runner.Job) { j.SystemPrompt = "a\x00" },
		"folder with dots":             func(j *runner.Job) { j.Dir = "/m/../etc" },
		"root as the folder":           func(j *runner.Job) { j.Dir = "/" },
		"input that is not absolute":   func(j *runner.Job) { j.Inputs = []string{"in"} },
		"negative tokens":              func(j *runner.Job) { j.CapTokens = -1 },
		"negative output":              func(j *runner.Job) { j.MaxOutput = -1 },
		"model with an argument in it": func(j *runner.Job) { j.Model = "a b" },
	} {
		j := exampleJob()
		spoil(&j)
		if err := check(j); err == nil {
			t.Errorf("%s was taken", name)
		} else if strings.Contains(err.Error(), "LD_PRELOAD") {
			t.Errorf("%s: the error tells the secret: %v", name, err)
		}
	}
}

func TestMismatch(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	right := func() (*event, runner.Job) {
		j := exampleJob()
		j.Dir = dir
		return &event{SessionID: j.Run, hello: hello{Cwd: dir, Model: j.Model, PermissionMode: "dontAsk", KeySource: "ANTHROPIC_API_KEY", FastMode: "off", Tools: []string{"Bash", "Read"}}}, j
	}
	for _, c := range []struct {
		name   string
		change func(e *event, j *runner.Job)
		want   string // part of the finding; empty: all right
	}{
		{"as asked", func(*event, *runner.Job) {}, ""},
		{"folder by a link", func(_ *event, j *runner.Job) { j.Dir = link }, ""},
		{"structured answer", func(e *event, j *runner.Job) {
			e.Tools, j.Schema = append(e.Tools, "StructuredOutput"), json.RawMessage("{}")
		}, ""},
		{"agents, by their other name", func(e *event, j *runner.Job) { e.Tools, j.Tools = []string{"Task"}, []string{"Agent"} }, ""},
		{"plan", func(e *event, j *runner.Job) { e.KeySource, j.Credential.Kind = "none", planToken }, ""},
		{"structured answer not asked for", func(e *event, _ *runner.Job) { e.Tools = append(e.Tools, "StructuredOutput") }, "StructuredOutput"},
		{"agents not asked for", func(e *event, _ *runner.Job) { e.Tools = []string{"Task"} }, "Task"},
		{"other folder", func(e *event, _ *runner.Job) { e.Cwd = "/etc" }, "/etc"},
		{"other session", func(e *event, _ *runner.Job) { e.SessionID = "x" }, "session"},
		{"other mode", func(e *event, _ *runner.Job) { e.PermissionMode = "bypassPermissions" }, "bypassPermissions"},
		{"another one pays", func(e *event, j *runner.Job) { j.Credential.Kind = planToken }, "source of the key"},
		{"servers", func(e *event, _ *runner.Job) { e.Servers = append(e.Servers, server{}) }, "MCP"},
		{"servers that were asked for", func(e *event, j *runner.Job) {
			j.Servers, e.Servers = json.RawMessage(`{"mcpServers":{"good":{"command":"x"}}}`), []server{{"good"}}
			e.Tools = append(e.Tools, "mcp__good__hello", "ListMcpResourcesTool")
		}, ""},
		{"another server", func(e *event, j *runner.Job) {
			j.Servers, e.Servers = json.RawMessage(`{"mcpServers":{"good":{"command":"x"}}}`), []server{{"good"}, {"bad"}}
		}, `"bad"`},
		{"a tool of another server", func(e *event, j *runner.Job) {
			j.Servers, e.Tools = json.RawMessage(`{"mcpServers":{"good":{"command":"x"}}}`), append(e.Tools, "mcp__bad__hello")
		}, "mcp__bad__hello"},
		{"fast", func(e *event, _ *runner.Job) { e.FastMode = "on" }, "fast"},
	} {
		e, j := right()
		c.change(e, &j)
		if got := mismatch(e, j); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
