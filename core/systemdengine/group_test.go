package systemdengine

import (
	"testing"

	"example.com/AutoAgentProject/core/mission"
)

func TestBelow(t *testing.T) {
	for id, want := range map[string]string{
		"my":      "forge.slice/forge-autoagent.slice/forge-autoagent-my.slice",
		"my-site": `forge.slice/forge-autoagent.slice/forge-autoagent-my\x2dsite.slice`,
	} {
		if got := below(mission.Slice(id)); got != want {
			t.Errorf("%s: %s, want %s", id, got, want)
		}
	}
}

// TestTrees: what is found holds this process, or there is an error.
func TestTrees(t *testing.T) {
	found, err := trees()
	if err == nil && len(found) == 0 {
		t.Error("neither a tree nor an error")
	}
	for _, p := range found {
		if p.Mount == "" || p.Inode == 0 {
			t.Errorf("%+v", p)
		}
	}
}
