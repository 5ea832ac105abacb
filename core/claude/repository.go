package claude

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/runner"
	"example.com/AutoAgentProject/core/usererr"
)

// Tree is the files of one commit of a repository.
type Tree struct {
	Modes map[string]string                 // by path: 100644, 100755, 120000 as git writes them
	Read  func(path string) ([]byte, error) // the content; of a link, its target
}

// Files of a repository that the program reads.
const (
	settingsFile = ".claude/settings.json"
	serversFile  = ".mcp.json"
	ownFolder    = ".claude"
)

type taken struct{ runner.Taken }

// TakeFrom takes what is allowed. A file that cannot be understood is an error; one that is not there is left.
func TakeFrom(t Tree, allowed []string) (runner.Taken, error) {
	out := taken{runner.Taken{Version: 1}}
	has := func(word string) bool { return slices.Contains(allowed, word) }
	var commands []string
	if has(mission.FromClaudeMD) {
		if err := out.instructions(t); err != nil {
			return out.Taken, err
		}
	}
	if has(mission.FromSettings) || has(mission.FromHooks) {
		c, err := out.settings(t, has(mission.FromSettings), has(mission.FromHooks))
		if err != nil {
			return out.Taken, err
		}
		commands = append(commands, c...)
	}
	if has(mission.FromMCP) {
		c, err := out.servers(t)
		if err != nil {
			return out.Taken, err
		}
		commands = append(commands, c...)
	}
	if len(commands) > 0 {
		out.fixed(t, commands)
	}
	return out.Taken, nil
}

// File reads a regular file of the tree; a link that stays in the tree is followed once, because CLAUDE.md is often one.
func (t Tree) File(name string) (text []byte, mode fs.FileMode, err error) {
	if t.Modes[name] == "120000" {
		target, err := t.Read(name)
		if err != nil {
			return nil, 0, err
		}
		name = path.Join(path.Dir(name), string(target))
	}
	switch t.Modes[name] {
	case "100644":
		mode = 0o600
	case "100755":
		mode = 0o700
	default:
		return nil, 0, fmt.Errorf("%s: %w", name, fs.ErrNotExist)
	}
	text, err = t.Read(name)
	return text, mode, err
}

func (o *taken) instructions(t Tree) error {
	var b strings.Builder
	for _, name := range []string{"CLAUDE.md", ".claude/CLAUDE.md"} {
		text, _, err := t.File(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "\n## %s of the repository\n\n%s\n", name, strings.TrimSpace(strings.ToValidUTF8(string(text), "\uFFFD")))
		o.Found = append(o.Found, name)
	}
	if o.Instructions = b.String(); o.Instructions == "" {
		o.Left = append(o.Left, "there is no CLAUDE.md")
	}
	return nil
}

// settings takes permissions, environment and hooks, and returns the hooks' commands. Whatever else settings can say (a
// helper for keys, another model, plugins) is ours to say.
func (o *taken) settings(t Tree, own, hooks bool) (commands []string, err error) {
	text, _, err := t.File(settingsFile)
	if errors.Is(err, fs.ErrNotExist) {
		o.Left = append(o.Left, "there is no "+settingsFile)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var in struct {
		Permissions struct {
			Allow, Ask, Deny []string
		}
		Env   map[string]string
		Hooks map[string][]struct {
			Matcher string           `json:"matcher,omitempty"`
			Hooks   []map[string]any `json:"hooks"`
		}
	}
	var all map[string]json.RawMessage
	if err := errors.Join(json.Unmarshal(text, &in), json.Unmarshal(text, &all)); err != nil {
		return nil, usererr.New(usererr.Usage, "correct it, or leave settings and hooks out", "%s of the repository cannot be understood: %v", settingsFile, err)
	}
	kept := map[string]any{}
	if own {
		if p := in.Permissions; len(p.Allow)+len(p.Ask)+len(p.Deny) > 0 {
			rules := map[string][]string{"allow": p.Allow, "ask": p.Ask, "deny": p.Deny}
			maps.DeleteFunc(rules, func(_ string, r []string) bool { return len(r) == 0 })
			kept["permissions"] = rules
			o.Found = append(o.Found, fmt.Sprintf("%d permission rules", len(p.Allow)+len(p.Ask)+len(p.Deny)))
		}
		for _, name := range slices.Sorted(maps.Keys(in.Env)) {
			if reserved(name) {
				o.Left = append(o.Left, "the variable "+name+" is not the repository's to set")
				delete(in.Env, name)
			}
		}
		if len(in.Env) > 0 {
			kept["env"] = in.Env
			o.Found = append(o.Found, "variables "+strings.Join(slices.Sorted(maps.Keys(in.Env)), ", "))
		}
		for _, key := range slices.Sorted(maps.Keys(all)) {
			if !slices.Contains([]string{"permissions", "env", "hooks", "$schema"}, key) {
				o.Left = append(o.Left, "the setting "+key+" is not taken")
			}
		}
	}
	if hooks && len(in.Hooks) > 0 {
		kept["hooks"] = in.Hooks
		for _, event := range slices.Sorted(maps.Keys(in.Hooks)) {
			for _, group := range in.Hooks[event] {
				for _, h := range group.Hooks {
					if c, ok := h["command"].(string); ok {
						commands = append(commands, c)
					}
				}
			}
		}
		o.Found = append(o.Found, "hooks "+strings.Join(slices.Sorted(maps.Keys(in.Hooks)), ", "))
	}
	if hooks && len(in.Hooks) == 0 {
		o.Left = append(o.Left, "there are no hooks in "+settingsFile)
	}
	if len(kept) > 0 {
		o.Settings, err = json.Marshal(kept)
	}
	return commands, err
}

// reserved says whether a variable leads the program, or what it starts, past the gateway or away from its own settings.
func reserved(name string) bool {
	upper := strings.ToUpper(name)
	for _, prefix := range []string{"ANTHROPIC_", "CLAUDE", "API_", "DISABLE_", "ENABLE_", "MAX_", "MCP_", "OTEL_", "AWS_", "GOOGLE_", "VERTEX_", "CLOUD_ML_", "NODE_", "BUN_", "LD_", "SSL_"} {
		if strings.HasPrefix(upper, prefix) {
			return true
		}
	}
	return strings.HasSuffix(upper, "_PROXY") || strings.ContainsAny(name, "=\x00") || name == "" ||
		slices.Contains([]string{"PATH", "HOME", "TMPDIR", "LANG", "SHELL", "IFS", "ENV", "BASH_ENV", "PWD"}, upper)
}

// serverName is what a server may be called: it becomes part of tools' names and of rules.
var serverName = regexp.MustCompile(`^[A-Za-z0-9-]+(_[A-Za-z0-9-]+)*$`)

func (o *taken) servers(t Tree) (commands []string, err error) {
	text, _, err := t.File(serversFile)
	if errors.Is(err, fs.ErrNotExist) {
		o.Left = append(o.Left, "there is no "+serversFile)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var in struct {
		Servers map[string]struct {
			Command string
			Args    []string
		} `json:"mcpServers"`
	}
	if err := json.Unmarshal(text, &in); err != nil {
		return nil, usererr.New(usererr.Usage, "correct it, or leave mcp out", "%s of the repository cannot be understood: %v", serversFile, err)
	}
	names := slices.Sorted(maps.Keys(in.Servers))
	for _, name := range names {
		if !serverName.MatchString(name) || len(name) > 40 {
			return nil, usererr.New(usererr.Usage, "give it another name, or leave mcp out", "%s of the repository has a server called %q", serversFile, name)
		}
		s := in.Servers[name]
		commands = append(commands, strings.Join(append([]string{s.Command}, s.Args...), " "))
	}
	if len(names) == 0 {
		o.Left = append(o.Left, "there are no servers in "+serversFile)
		return nil, nil
	}
	o.Found = append(o.Found, "servers "+strings.Join(names, ", "))
	var b bytes.Buffer
	err = json.Compact(&b, text)
	o.Servers = b.Bytes()
	return commands, err
}

// serverNames are the names in what --mcp-config is given.
func serverNames(servers json.RawMessage) []string {
	var in struct {
		Servers map[string]json.RawMessage `json:"mcpServers"`
	}
	_ = json.Unmarshal(servers, &in) // nothing: no server is expected then
	return slices.Sorted(maps.Keys(in.Servers))
}

var (
	pathLike = regexp.MustCompile(`[A-Za-z0-9_.@+/-]+`)
	scripts  = []string{".sh", ".bash", ".zsh", ".js", ".mjs", ".cjs", ".ts", ".mts", ".py", ".rb", ".pl", ".php", ".lua"}
)

// fixed are the folder .claude and the scripts that commands name: whoever could change them would say what the commands
// do. A script that is not in the tree is left, because whoever makes it does.
func (o *taken) fixed(t Tree, commands []string) {
	for name := range t.Modes {
		if strings.HasPrefix(name, ownFolder+"/") {
			o.Fixed = []string{ownFolder}
			break
		}
	}
	for _, c := range commands {
		c = strings.NewReplacer(`"$CLAUDE_PROJECT_DIR"/`, "./", "${CLAUDE_PROJECT_DIR}/", "./", "$CLAUDE_PROJECT_DIR/", "./").Replace(c)
		for _, word := range pathLike.FindAllString(c, -1) {
			name := path.Clean(word)
			mode := t.Modes[name]
			script := mode == "100755" || slices.Contains(scripts, path.Ext(name))
			switch {
			case !script && !strings.HasPrefix(word, "./"), !fs.ValidPath(name), slices.Contains(o.Fixed, name): // data, or nothing of the repository's
			case mode == "":
				o.Left = append(o.Left, fmt.Sprintf("%s is named by a command and is not in the repository: agents say what it is", name))
			case script && !strings.HasPrefix(name, ownFolder+"/"):
				o.Fixed = append(o.Fixed, name)
			}
		}
	}
}
