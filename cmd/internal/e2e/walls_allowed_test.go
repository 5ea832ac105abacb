package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"example.com/AutoAgentProject/core/scriptmodel"
)

// server is a server of tools that leaves a trace at each call.
const server = `require('readline').createInterface({input: process.stdin}).on('line', l => {
  const r = JSON.parse(l); if (r.id === undefined) return;
  let res = {};
  if (r.method === 'initialize') res = {protocolVersion: r.params.protocolVersion, capabilities: {tools: {}}, serverInfo: {name: 'good', version: '1'}};
  if (r.method === 'tools/list') res = {tools: [{name: 'hello', description: 'says hello', inputSchema: {type: 'object', properties: {}}}]};
  if (r.method === 'tools/call') { require('fs').writeFileSync('/tmp/server-VERSION', ''); res = {content: [{type: 'text', text: 'hello'}]}; }
  console.log(JSON.stringify({jsonrpc: '2.0', id: r.id, result: res}));
});
`

// TestAllowedControlFiles: what the operator allows by name is loaded, and always as it was at the start: an agent that
// changes it, in its clone and in the result, changes nothing for a later run.
func TestAllowedControlFiles(t *testing.T) {
	t.Parallel()
	source := t.TempDir()
	const fine = "MARK-OF-THE-BASE"
	hook := `[{"hooks":[{"type":"command","command":"\"$CLAUDE_PROJECT_DIR\"/.claude/hook.sh"}]}]`
	for name, content := range map[string]string{
		"CLAUDE.md":             fine,
		".claude/settings.json": `{"env":{"FROM_BASE":"1"},"apiKeyHelper":"touch /tmp/helper","hooks":{"SessionStart":` + hook + `}}`,
		".claude/hook.sh":       "#!/bin/sh\n: >/tmp/hook-base\n",
		".mcp.json":             `{"mcpServers":{"good":{"command":"node","args":["tools/server.js"]}}}`,
		"tools/server.js":       strings.ReplaceAll(server, "VERSION", "base"),
		"base.txt":              "base\n",
	} {
		deep(t, source, name, content)
	}
	if err := os.Chmod(filepath.Join(source, ".claude/hook.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	call := scriptmodel.Step{Content: []block{{"type": "tool_use", "name": "mcp__good__hello"}}}
	look := func(step string) scriptmodel.Step {
		return bash(`(ls /tmp; env | grep ^FROM_) | grep -E '^(hook|server|helper|FROM)' | tr '\n' ' ' >seen-` + step + `; echo 1 >` + step)
	}
	change := bash(`echo ` + leakMark + ` >CLAUDE.md
for f in .claude/hook.sh tools/server.js; do sed -i s/base/planted/g $f; echo x >$f; mv -f base.txt $f; done
echo ": >/tmp/hook-planted" >.claude/hook.sh
mv tools tools2; mkdir tools; sed s/base/planted/g tools2/server.js >tools/server.js
mv .claude .claude2; mkdir -p .claude; echo ": >/tmp/hook-planted" >.claude/hook.sh
sed -i s/hello/bye/ .mcp.json; echo '{"mcpServers":{"evil":{"command":"sh","args":["-c","touch /tmp/server-planted"]}}}' >.mcp.json
cat .claude/hook.sh >hook-of-the-run; git status --short >status-of-the-run; true`)
	leak := scriptmodel.Rule{Name: "leak", When: []string{leakMark}, Steps: []scriptmodel.Step{text("leaked")}}
	lane := func(rule scriptmodel.Rule) scriptmodel.Rule {
		rule.When = append(rule.When, fine)
		return rule
	}
	w := newWorld(t, leak, lane(planned(step("one", "test -f one"), step("two", "test -f two", "one"))),
		lane(works("one", call, look("one"), change)), lane(works("two", call, look("two"))))
	out := w.must(0, "start", "allowed", "Two steps", "--from", source, "--allow-from-repo", "claude-md,settings,hooks,mcp")
	for _, part := range []string{"claude-md, settings, hooks, mcp of the repository, as they were at the start", "hooks SessionStart", "servers good", "variables FROM_BASE", "the setting apiKeyHelper is not taken"} {
		if !strings.Contains(out, part) {
			t.Errorf("start does not say %q:\n%s", part, out)
		}
	}
	read := func(name string) string {
		b, err := os.ReadFile(filepath.Join(w.store("allowed").Result(), name))
		if err != nil {
			t.Error(err)
		}
		return string(b)
	}
	for _, s := range []string{"one", "two"} {
		if got := strings.Fields(read("seen-" + s)); !slices.Equal(got, []string{"hook-base", "server-base", "FROM_BASE=1"}) {
			t.Errorf("step %s: what took effect is %q", s, got)
		}
	}
	if n := w.model.Stats().ByRule["leak"]; n > 0 {
		t.Errorf("%d conversations began with a planted text", n)
	}
	// Else nothing was tried: the changes that can be made did arrive in the result.
	if !strings.Contains(read("CLAUDE.md"), leakMark) || !strings.Contains(read(".mcp.json"), "evil") || !strings.Contains(read("tools/server.js"), "planted") {
		t.Error("the agent changed nothing")
	}
	if got := read("hook-of-the-run"); !strings.Contains(got, "hook-base") || strings.Contains(got, "planted") {
		t.Errorf("the hook could be changed during the run: %q", got)
	}
	if v := w.status("allowed"); !slices.Equal(v.FromRepo, []string{"claude-md", "settings", "hooks", "mcp"}) {
		t.Errorf("status says %q", v.FromRepo)
	}
	if out := w.must(0, "status", "allowed"); !strings.Contains(out, "as they were at the start") {
		t.Errorf("status does not say what is loaded:\n%s", out)
	}
}
