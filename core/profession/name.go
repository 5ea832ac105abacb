package profession

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

var namePattern = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`)

// checkName says why a profession cannot have a name. Agents are named after their profession, and units, folders and
// branches after the agents.
func checkName(name string) error {
	switch {
	case !namePattern.MatchString(name):
		return fmt.Errorf("a name is a-z, 0-9 and single dashes, and begins with a letter")
	case len(name) > MaxName:
		return fmt.Errorf("a name has at most %d characters", MaxName)
	case name == "reporter" || name == "quota" || name == "stop":
		return fmt.Errorf("this is a part of every mission, not a profession")
	}
	return nil
}

// GateNames are the gates a profession can name.
func GateNames() []string { return []string{"goal", "design", "plan", "code", "review"} }

func checkGate(name string) error {
	if !slices.Contains(GateNames(), name) {
		return fmt.Errorf("there is no such gate, there are %s", strings.Join(GateNames(), ", "))
	}
	return nil
}
