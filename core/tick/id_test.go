package tick

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/runner"
)

func TestNewID(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		id := NewID(noon)
		if !regexp.MustCompile(`^20260301T120000Z-[0-9a-f]{6}$`).MatchString(id) || seen[id] {
			t.Fatalf("%q, seen before: %v", id, seen[id])
		}
		seen[id] = true
	}
	if a, b := NewID(noon), NewID(noon.Add(time.Second).In(time.FixedZone("", -3600))); a >= b {
		t.Errorf("%s does not come before %s", a, b)
	}
}

func TestSay(t *testing.T) {
	seen := map[string]bool{}
	for _, kind := range []string{"start", "tool", "text", "usage", "retry", "limit", "result", "later"} {
		s := say("manager", runner.Event{Kind: kind, Text: "something"})
		if !strings.HasPrefix(s, "manager ") || !strings.Contains(s, "something") || seen[s] {
			t.Errorf("%s: %q", kind, s)
		}
		seen[s] = true
	}
}
