package profession

import (
	"strings"

	"example.com/AutoAgentProject/core/front"
)

// SoulSections are the sections every soul has, as headings of the second level.
func SoulSections() []string {
	return []string{"Core Values", "Working Style", "Handoff Ritual", "Quality Standard"}
}

// CheckSoul says what a soul lacks, as a usererr of code Usage. file is its name for messages.
func CheckSoul(file string, data []byte) error {
	text, err := front.Clean(file, data)
	if err != nil {
		return err
	}
	lines := strings.Split(text, "\n")
	for _, want := range SoulSections() {
		at, filled := 0, false
		for i, l := range lines {
			l = strings.TrimSpace(l)
			switch {
			case l == "## "+want && at > 0:
				return front.Fault(file, i+1, "", "the section %q was there in line %d already", want, at)
			case l == "## "+want:
				at = i + 1
			case at > 0 && !filled && strings.HasPrefix(l, "## "):
				return front.Fault(file, at, "", "the section %q is empty", want)
			case at > 0 && l != "":
				filled = true
			}
		}
		switch {
		case at == 0:
			return front.Fault(file, len(lines), "a soul has the sections "+strings.Join(SoulSections(), ", "), "the section %q is missing", "## "+want)
		case !filled:
			return front.Fault(file, at, "", "the section %q is empty", want)
		}
	}
	return nil
}
