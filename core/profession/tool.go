package profession

import (
	"fmt"
	"slices"
	"strings"
)

// KnownTools are the tools a profession can offer, in the names the agent program gives them.
func KnownTools() []string {
	return []string{"Read", "Write", "Edit", "Glob", "Grep", "Bash", "NotebookEdit", "WebFetch", "WebSearch"}
}

// localTools are what a file without the key tools offers: all that stay in the cell. What comes from the web costs
// money and is written by strangers, so a file must name it.
func localTools() []string {
	return []string{"Read", "Write", "Edit", "Glob", "Grep", "Bash", "NotebookEdit"}
}

// forgone says whether a tool may stand in a file and is left out: older versions of the agent program had it, newer
// ones do not offer it any more, and they leave it out of such files too.
func forgone(tool string) bool {
	switch tool {
	case "TodoWrite", "TodoRead", "LS", "MultiEdit", "NotebookRead", "BashOutput", "KillShell", "KillBash":
		return true
	}
	return false
}

// edits says whether a tool changes files.
func edits(tool string) bool {
	return tool == "Write" || tool == "Edit" || tool == "NotebookEdit"
}

// checkTool says why a tool cannot be offered.
func checkTool(name string) error {
	base, _, _ := strings.Cut(name, "(")
	if reason := refusal(base); reason != "" {
		return fmt.Errorf("this tool is never offered: %s", reason)
	}
	return checkKnown(name)
}

// checkDenied says why a tool cannot be taken away. A misspelt one would stay, so it is refused; one that is never
// offered may be named.
func checkDenied(name string) error {
	base, _, _ := strings.Cut(name, "(")
	if refusal(base) != "" || forgone(base) {
		return nil
	}
	return checkKnown(name)
}

func checkKnown(name string) error {
	if slices.Contains(KnownTools(), name) {
		return nil
	}
	base, _, _ := strings.Cut(name, "(")
	for _, known := range KnownTools() {
		switch {
		case base == known:
			return fmt.Errorf("write %s alone: a tool is offered whole, the walls around a run are its scope", known)
		case strings.EqualFold(base, known):
			return fmt.Errorf("there is no such tool, it is written %s", known)
		}
	}
	return fmt.Errorf("there is no such tool, there are %s", strings.Join(KnownTools(), ", "))
}

// refusal gives the reason why a tool of the agent program is never offered, or nothing.
func refusal(tool string) string {
	switch tool {
	case "Task", "Agent", "Workflow", "SendMessage", "ListAgents", "TeamCreate", "TeamDelete":
		return "an agent does not start or address agents; only the plan does"
	case "ScheduleWakeup", "RemoteTrigger", "Monitor":
		return "a run leaves nothing behind that goes on or comes back later"
	case "Skill":
		return "a skill brings instructions and tools that the profession does not name"
	case "AskUserQuestion", "EnterPlanMode", "ExitPlanMode":
		return "nobody is there to answer during a run"
	case "EnterWorktree", "ExitWorktree":
		return "an agent works in the one folder it was given"
	}
	switch {
	case strings.HasPrefix(tool, "Cron"), strings.HasPrefix(tool, "Task"):
		return "a run leaves nothing behind that goes on or comes back later"
	case strings.HasPrefix(tool, "mcp__"):
		return "runs are not connected to MCP servers"
	}
	return ""
}
