package mission

import (
	"regexp"
	"strings"

	"example.com/AutoAgentProject/core/usererr"
)

// idPattern is the rule of ids: a lower-case letter, then up to 39 letters, digits or dashes.
var idPattern = regexp.MustCompile(`^[a-z][a-z0-9-]{0,39}$`)

const idHint = "an id is 1 to 40 of a-z, 0-9 and -, begins with a letter, has no -- and no - at its end, for example my-site"

// CheckID says whether s can be the id of a mission. Ids go into unit names, folder names and branch names, so they
// must mean the same in all of them.
func CheckID(s string) error {
	switch {
	case s == "":
		return usererr.New(usererr.Usage, idHint, "the mission needs an id")
	case len(s) > 40:
		return usererr.New(usererr.Usage, idHint, "the id has %d characters, at most 40 are allowed", len(s))
	case !idPattern.MatchString(s) || strings.Contains(s, "--") || strings.HasSuffix(s, "-"):
		return usererr.New(usererr.Usage, idHint, "%q cannot be a mission's id", s)
	}
	return nil
}

// CheckAgent says whether s can be the name of an agent: the same characters as an id.
func CheckAgent(s string) error {
	if !idPattern.MatchString(s) || strings.Contains(s, "--") || strings.HasSuffix(s, "-") {
		return usererr.New(usererr.Usage, "agents are named like manager, codebuilder-1, reporter, quota", "%q cannot be an agent's name", s)
	}
	return nil
}
