package claude

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"example.com/AutoAgentProject/core/runner"
)

// mismatch says how a run was set up otherwise than asked; empty: as asked. What is not said counts as otherwise.
func mismatch(e *event, j runner.Job) string {
	source := "ANTHROPIC_API_KEY"
	if j.Credential.Kind == planToken {
		source = "none"
	}
	for _, c := range []struct{ what, got, want string }{
		{"model", e.Model, j.Model},
		{"session", e.SessionID, j.Run},
		{"permission mode", e.PermissionMode, permissionMode},
		{"source of the key", e.KeySource, source},
	} {
		if c.got != c.want {
			return fmt.Sprintf("%s %q instead of %q", c.what, oneLine(c.got), c.want)
		}
	}
	if e.Cwd != j.Dir {
		if real, err := filepath.EvalSymlinks(j.Dir); err != nil || e.Cwd != real {
			return fmt.Sprintf("working folder %q instead of %q", oneLine(e.Cwd), j.Dir)
		}
	}
	if e.FastMode != "" && e.FastMode != "off" {
		return "fast mode is on"
	}
	servers := serverNames(j.Servers)
	for _, s := range e.Servers {
		if !slices.Contains(servers, s.Name) {
			return fmt.Sprintf("the MCP server %q was not asked for", oneLine(s.Name))
		}
	}
	for _, t := range e.Tools {
		if !offered(t, j) {
			return fmt.Sprintf("the tool %q was not asked for", oneLine(t))
		}
	}
	return ""
}

// offered says whether a tool was asked for. The program shows the tool Agent as Task, and offers a tool of its own
// for a structured answer.
func offered(tool string, j runner.Job) bool {
	switch {
	case slices.Contains(j.Tools, tool):
		return true
	case tool == "Task":
		return slices.Contains(j.Tools, "Agent")
	case tool == "Agent":
		return slices.Contains(j.Tools, "Task")
	}
	for _, name := range serverNames(j.Servers) {
		if strings.HasPrefix(tool, "mcp__"+name+"__") || tool == "ListMcpResourcesTool" || tool == "ReadMcpResourceTool" {
			return true
		}
	}
	return tool == "StructuredOutput" && j.Schema != nil
}
