package systemdengine

import (
	"fmt"
	"testing"

	"example.com/AutoAgentProject/core/testkit"
	"example.com/AutoAgentProject/core/units"
)

func TestExposure(t *testing.T) {
	testkit.Need(t, testkit.OnPath("systemd-analyze"), "systemd-analyze")
	score := func(name, more string) (n float64) {
		t.Helper()
		text := "[Service]\nType=oneshot\nExecStart=:/bin/true\n" + more
		said, err := Exposure(t.Context(), units.File{Name: name, Text: []byte(text)})
		if err != nil {
			t.Fatal(err)
		}
		word := ""
		if _, err := fmt.Sscanf(said, "%f %s", &n, &word); err != nil {
			t.Fatalf("%q: %v", said, err)
		}
		return n
	}
	open := score("forge-autoagent-my-site-manager.service", "")
	walled := score("forge-autoagent-my-site-manager.service", "NoNewPrivileges=yes\nCapabilityBoundingSet=\nProtectSystem=strict\nProtectHome=yes\nPrivateNetwork=yes\nUser=nobody\n")
	if !(walled < open && open <= 10) {
		t.Errorf("open %v, walled %v", open, walled)
	}
	if said, err := Exposure(t.Context(), units.File{Name: "x.service", Text: []byte("no unit")}); err == nil {
		t.Errorf("nonsense has an exposure: %q", said)
	}
}
