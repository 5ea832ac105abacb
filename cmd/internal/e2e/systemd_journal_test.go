package e2e

import (
	"os"
	"strings"
	"testing"
)

// TestSystemdJournal: what the ticks of a user manager say is found in that user's journal by mission, agent, run and
// tick, as sentences; the printed command and logs --journal show it.
func TestSystemdJournal(t *testing.T) {
	t.Parallel()
	p := newPerson(t, planned(step("one", "test -f one")), works("one", bash("echo 1 > one")))
	code, out := p.do("start", "my-site", "One step", "--engine", "systemd", "--budget", "5usd", "--verify", "test -f one")
	if code != 0 || !strings.Contains(out, "journalctl --user MISSION=my-site -f\n") {
		t.Fatalf("start: %d\n%s", code, out)
	}
	code, followed := p.do("logs", "my-site", "--journal", "-f") // until it ends
	if code != 0 || p.status("my-site").Phase != "completed" {
		t.Fatalf("logs --journal -f: %d, the mission is %s\n%s", code, p.status("my-site").Phase, followed)
	}
	if code, out := p.do("logs", "my-site", "codebuilder-1", "--journal"); code != 0 || !strings.Contains(out, ": codebuilder-1 started a run") || strings.Contains(out, ": manager started a run") {
		t.Errorf("logs --journal of an agent: %d\n%s", code, out)
	}

	runs, ticks := map[string]string{}, map[string]string{}
	for _, e := range p.host.Journal("alice", "MISSION=my-site") {
		agent, run, tick := e["AGENT"], e["RUN"], e["TICK"]
		if e["_TRANSPORT"] != "journal" || agent == "" || tick == "" {
			continue // systemd's own, or a stop's
		}
		if strings.Contains(e["MESSAGE"], "level=") || strings.Contains(e["MESSAGE"], "mission=") || e["MESSAGE"] == "" {
			t.Errorf("this is no sentence: %q", e["MESSAGE"])
		}
		if e["SYSLOG_IDENTIFIER"] == "" || e["PRIORITY"] == "" {
			t.Errorf("a line lacks its identifier or priority: %v", e)
		}
		if old, ok := ticks[tick]; ok && old != agent {
			t.Errorf("tick %s is of %s and of %s", tick, old, agent)
		}
		ticks[tick] = agent
		if run != "" {
			runs[run] = agent
		}
		if !strings.Contains(followed, strings.SplitN(e["MESSAGE"], "\n", 2)[0]) {
			t.Errorf("logs --journal -f did not show %q", e["MESSAGE"])
		}
	}
	of := map[string]int{}
	for run, agent := range runs {
		if _, err := os.Stat(p.host.Path("/home/alice/.local/share/autoagent/data/autoagent/my-site/agents/" + agent + "/runs/" + run)); err != nil {
			t.Errorf("the journal has a run that there is not: %v", err)
		}
		of[agent]++
	}
	if of["manager"] != 1 || of["codebuilder-1"] != 1 {
		t.Errorf("the journal has runs of %v", of)
	}
	for run, agent := range runs {
		if lines := p.host.Journal("alice", "MISSION=my-site", "AGENT="+agent, "RUN="+run); len(lines) < 3 {
			t.Errorf("%d lines of run %s of %s", len(lines), run, agent)
		}
	}
	if len(ticks) < 3 {
		t.Errorf("lines of ticks %v", ticks)
	}

	// A tick that ends badly says so once, where it is found; and so does a stop.
	for _, x := range []struct {
		agent string
		exit  int
		argv  []string
	}{
		{"designer-9", 125, []string{"/srv/autoagent/autoagent-specialist", "--root", "/home/alice/.local/share/autoagent", "--mission", "my-site", "--agent", "designer-9"}},
		{"", 3, []string{"/srv/autoagent/AutoAgentProject", "stop-mission", "no-such"}},
	} {
		mission := "my-site"
		if x.agent == "" {
			mission = "no-such"
		}
		out, exit := p.host.Run(t.Context(), "alice", append([]string{"systemd-run", "--user", "--wait", "--quiet", "--collect", "--unit=try-" + mission}, x.argv...)...)
		if exit != x.exit {
			t.Errorf("%v: exit status %d\n%s", x.argv, exit, out)
		}
		var said []map[string]string
		comes(func() bool {
			said = p.host.Journal("alice", "MISSION="+mission, "PRIORITY=3", "_TRANSPORT=journal")
			return len(said) > 0
		})
		if len(said) != 1 || said[0]["AGENT"] != x.agent || !strings.HasPrefix(said[0]["SYSLOG_IDENTIFIER"], "autoagent-s") || said[0]["MESSAGE"] == "" {
			t.Errorf("%v: the journal has %v", x.argv, said)
		}
	}
}
