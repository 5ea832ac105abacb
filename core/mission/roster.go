package mission

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"example.com/AutoAgentProject/core/usererr"
)

// Role is which binary ticks an agent.
type Role string

const (
	Manager    Role = "manager"
	Specialist Role = "specialist"
	Reporter   Role = "reporter"
	Quota      Role = "quota"
)

// Agent is a named member of the roster.
type Agent struct {
	Name       string `json:"name"`                 // manager, codebuilder-1, reporter, quota
	Role       Role   `json:"role"`                 //
	Profession string `json:"profession,omitempty"` // of the manager and the specialists
}

// Display is the name shown to people and used in commits: AutoAgent-CodeBuilder-1. title is the profession's own
// spelling; empty takes the name's first letter in upper case.
func (a Agent) Display(title string) string {
	base, number := a.Name, ""
	if i := strings.LastIndexByte(a.Name, '-'); i > 0 {
		base, number = a.Name[:i], a.Name[i+1:]
	}
	if title == "" {
		title = strings.ToUpper(base[:1]) + base[1:]
	}
	if number == "" {
		return "AutoAgent-" + title
	}
	return "AutoAgent-" + title + "-" + number
}

// Limits of a roster.
const (
	MaxPerProfession = 12
	MaxSpecialists   = 20
	WarnSpecialists  = 7 // above this many one manager loses the thread
)

// ParseRoster reads "codebuilder:2,designer:1" (a count of 1 may be left out) into the roster of a mission: manager,
// the specialists in the order given, reporter, quota. known holds the professions that exist.
func ParseRoster(s string, known []string) ([]Agent, error) {
	roster := []Agent{{Name: "manager", Role: Manager, Profession: "manager"}}
	seen := map[string]bool{}
	total := 0
	choice := slices.DeleteFunc(slices.Clone(known), func(k string) bool { return k == "manager" })
	hint := "write --specialists codebuilder:2,designer:1; professions: " + strings.Join(choice, ", ")
	for part := range strings.SplitSeq(s, ",") {
		part = strings.TrimSpace(part)
		kind, count, counted := strings.Cut(part, ":")
		n := 1
		if counted {
			v, err := strconv.Atoi(count)
			if err != nil || strconv.Itoa(v) != count {
				return nil, usererr.New(usererr.Usage, hint, "%q in --specialists has no count", part)
			}
			n = v
		}
		switch {
		case part == "":
			return nil, usererr.New(usererr.Usage, hint, "--specialists has an empty entry")
		case kind == "manager":
			return nil, usererr.New(usererr.Usage, hint, "a mission has one manager already; name specialists only")
		case !slices.Contains(choice, kind):
			return nil, usererr.New(usererr.Usage, hint, "there is no profession %q", kind)
		case seen[kind]:
			return nil, usererr.New(usererr.Usage, hint, "%q stands twice in --specialists", kind)
		case n < 1 || n > MaxPerProfession:
			return nil, usererr.New(usererr.Usage, hint, "%d agents of %s are not possible, 1 to %d are", n, kind, MaxPerProfession)
		}
		seen[kind] = true
		total += n
		if total > MaxSpecialists {
			return nil, usererr.New(usererr.Usage, hint, "%d specialists are too many, at most %d", total, MaxSpecialists)
		}
		for i := 1; i <= n; i++ {
			roster = append(roster, Agent{Name: fmt.Sprintf("%s-%d", kind, i), Role: Specialist, Profession: kind})
		}
	}
	return append(roster, Agent{Name: "reporter", Role: Reporter}, Agent{Name: "quota", Role: Quota}), nil
}

// Specialists returns the specialists of a roster, in order.
func Specialists(roster []Agent) []Agent {
	return slices.DeleteFunc(slices.Clone(roster), func(a Agent) bool { return a.Role != Specialist })
}
