package mission

import "strings"

// UnitNames returns the names of all systemd units that a mission renders, with any engine: the names are reserved
// from the start, so that a mission can never meet another one's units.
func UnitNames(id string, roster []Agent) []string {
	base := "forge-autoagent-" + id
	names := []string{
		base + ".target",
		base + "-stop.service", base + "-stop.socket",
		Slice(id), GuardSlice(id),
	}
	for _, a := range roster {
		for _, kind := range []string{".service", ".timer", ".socket"} {
			names = append(names, base+"-"+a.Name+kind)
		}
	}
	return names
}

// Slice is the slice of a mission's agents. Dashes nest slices, so the id's are escaped: mission my must not contain my-site.
func Slice(id string) string { return "forge-autoagent-" + escape(id) + ".slice" }

// GuardSlice is the slice of what stops a mission, outside of Slice: whoever stops must not sit in what it kills.
func GuardSlice(id string) string { return "forge-autoagentguard-" + escape(id) + ".slice" }

func escape(id string) string { return strings.ReplaceAll(id, "-", `\x2d`) }

// Collision returns a unit name that both missions would render, or "".
func Collision(idA string, a []Agent, idB string, b []Agent) string {
	have := map[string]bool{}
	for _, n := range UnitNames(idA, a) {
		have[n] = true
	}
	for _, n := range UnitNames(idB, b) {
		if have[n] {
			return n
		}
	}
	return ""
}
