package money

import (
	"maps"
	"strconv"
	"strings"
)

// Sessions remembers the last total that each session of the agent program reported, in JSON. A total belongs to the
// process or to the session, by the program's version; what a run cost follows from both.
type Sessions map[string]Nano

// carries is the first version whose total of a resumed session begins with what the session had cost before.
var carries = [3]int{2, 1, 277}

// Charge says what a run cost whose last result told this total, and what to remember. Up to 2.1.276 the total is that
// of the process. From 2.1.277 on it is that of the session, and the increase counts; one that went down began anew and
// counts whole, as does that of a version which cannot be read.
func (s Sessions) Charge(session, version string, total Nano) (Sessions, Nano) {
	next := maps.Clone(s)
	if next == nil {
		next = Sessions{}
	}
	total = max(total, 0)
	cost := total
	if before := s[session]; atLeast(version, carries) && total >= before {
		cost = total - before
	}
	next[session] = total
	return next, cost
}

// atLeast compares a version such as "2.1.300" or "2.1.300 (Claude Code)". What is none is below all.
func atLeast(version string, least [3]int) bool {
	version, _, _ = strings.Cut(strings.TrimSpace(version), " ")
	parts := strings.SplitN(version, ".", 3)
	if len(parts) != 3 {
		return false
	}
	for i, p := range parts {
		p, _, _ = strings.Cut(p, "-")
		n, err := strconv.Atoi(p)
		if err != nil {
			return false
		}
		if n != least[i] {
			return n > least[i]
		}
	}
	return true
}
