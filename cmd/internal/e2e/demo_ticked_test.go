package e2e

import (
	"context"
	"strings"
	"testing"
)

// asRoot runs AutoAgentProject as the host's root.
func (p *person) asRoot(args ...string) (int, string) {
	p.t.Helper()
	ctx, done := context.WithTimeout(p.t.Context(), patience)
	defer done()
	out, exit := p.host.Run(ctx, "", append(append([]string{}, append(p.env, "/srv/autoagent/AutoAgentProject")...), args...)...)
	return exit, out
}

// TestDemoIsTicked: the demo lets the user manager tick where it answers, also one that ends at log-out, shows what happens
// and ends with the mission.
func TestDemoIsTicked(t *testing.T) {
	t.Parallel()
	p := newPerson(t, planned(step("none", "true"))) // its own model is the one that answers
	code, out := p.do("demo", "--dir", "/home/alice/demo")
	if code != 0 || !strings.Contains(out, "your user manager ticks it") || !strings.Contains(out, "completed") {
		t.Errorf("demo: %d\n%s", code, out)
	}
	p.nothingLeft()
}
