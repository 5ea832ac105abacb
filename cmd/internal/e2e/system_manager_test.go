package e2e

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// asRoot runs AutoAgentProject as the host's root.
func (p *person) asRoot(args ...string) (int, string) {
	p.t.Helper()
	ctx, done := context.WithTimeout(p.t.Context(), 3*time.Minute)
	defer done()
	out, exit := p.host.Run(ctx, "", append(append([]string{}, append(p.env, "/srv/autoagent/AutoAgentProject")...), args...)...)
	return exit, out
}

// TestSystemManager: root starts a mission for somebody else in the system's manager. It finishes by itself, its owner
// sees and aborts it without root, root aborts it too, and nothing is left.
func TestSystemManager(t *testing.T) {
	p := newPerson(t, planned(step("one", "test -f one"), step("two", "test -f two", "one")), works("one", bash("echo 1 > one")), works("two", bash("echo 2 > two")))
	nothingLeft := func() {
		t.Helper()
		if out := p.host.Systemctl("", "list-units", "--all", "--no-legend", "--plain", "forge-autoagent-*", "forge-autoagentguard-*"); strings.TrimSpace(out) != "" {
			t.Errorf("still loaded:\n%s", out)
		}
		if left, _ := filepath.Glob(p.host.Path("/etc/systemd/system/forge-autoagent*")); len(left) > 0 {
			t.Errorf("still installed: %v", left)
		}
	}
	code, out := p.asRoot("start", "my-site", "Two steps", "--run-as", "alice", "--budget", "5usd", "--verify", "test -f one && test -f two")
	t.Log(out)
	if code != 0 || !strings.Contains(out, "the system's manager ticks it") {
		t.Fatalf("start: %d\n%s", code, out)
	}
	for end := time.Now().Add(90 * time.Second); p.status("my-site").Phase != "completed"; time.Sleep(300 * time.Millisecond) {
		if time.Now().After(end) {
			_, events := p.do("logs", "my-site")
			_, st := p.do("status", "my-site")
			t.Fatalf("it does not finish\n%s\n%s\n%v", events, st, p.host.Journal(""))
		}
	}
	time.Sleep(time.Second)
	nothingLeft()
	for _, who := range []string{"owner", "root"} {
		if code, out := p.asRoot("start", who+"-ends-it", "Two steps", "--run-as", "alice", "--budget", "5usd"); code != 0 {
			t.Fatalf("start: %d\n%s", code, out)
		}
		abort := p.do
		if who == "root" {
			abort = p.asRoot
		}
		if code, out := abort("abort", who+"-ends-it"); code != 0 {
			t.Errorf("abort by %s: %d\n%s\n%v", who, code, out, p.host.Journal(""))
		}
		if v := p.status(who + "-ends-it"); v.Phase != "aborted" {
			t.Errorf("%+v", v)
		}
		nothingLeft()
	}
}

// TestDemoIsTicked: the demo lets the user manager tick where it answers, also one that ends at log-out, shows what happens
// and ends with the mission.
func TestDemoIsTicked(t *testing.T) {
	p := newPerson(t, planned(step("none", "true"))) // its own model is the one that answers
	code, out := p.do("demo", "--dir", "/home/alice/demo")
	if code != 0 || !strings.Contains(out, "your user manager ticks it") || !strings.Contains(out, "completed") {
		t.Errorf("demo: %d\n%s", code, out)
	}
	p.nothingLeft()
}
