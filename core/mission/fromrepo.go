package mission

import (
	"slices"
	"strings"

	"example.com/AutoAgentProject/core/usererr"
)

// What of a repository may be loaded into the agent program, by the words of --allow-from-repo.
const (
	FromClaudeMD = "claude-md" // CLAUDE.md
	FromSettings = "settings"  // permissions and environment of .claude/settings.json
	FromHooks    = "hooks"     // its hooks
	FromMCP      = "mcp"       // the servers of .mcp.json
	FromCraft    = "craft"     // professions, souls and flows below .autoagent
)

// FromRepoWords are those words, in the order in which they are shown.
func FromRepoWords() []string {
	return []string{FromClaudeMD, FromSettings, FromHooks, FromMCP, FromCraft}
}

// ParseFromRepo reads words as typed, each with or without commas, and returns each once in the order of FromRepoWords.
// "none", by itself, is none of them.
func ParseFromRepo(typed []string) ([]string, error) {
	var words []string
	for _, t := range typed {
		for w := range strings.SplitSeq(t, ",") {
			words = append(words, strings.TrimSpace(w))
		}
	}
	if len(words) == 0 || slices.Equal(words, []string{"none"}) {
		return nil, nil
	}
	hint := "write for example --allow-from-repo claude-md,hooks; there are " + strings.Join(FromRepoWords(), ", ") + ", and none"
	for _, w := range words {
		if !slices.Contains(FromRepoWords(), w) {
			return nil, usererr.New(usererr.Usage, hint, "nothing of a repository is called %q", w)
		}
	}
	return slices.DeleteFunc(FromRepoWords(), func(w string) bool { return !slices.Contains(words, w) }), nil
}
