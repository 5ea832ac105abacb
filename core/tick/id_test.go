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
		if !regexp.MustCompile(`^20260301T120000Z-[0-9a-f]{6}$`).MatchString(id) {
			t.Fatal(id)
		}
		seen[id] = true
	}
	if len(seen) < 995 { // of 24 random bits, two of 1000 are the same in 3 of 100 tries
		t.Errorf("%d different ids of 1000", len(seen))
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
