package e2e

import (
	"os"
	"strings"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/scriptmodel"
	"example.com/AutoAgentProject/core/store"
	"example.com/AutoAgentProject/core/units"
)

// twoSteps is a script for missions that end by themselves; goal is a text of the goal by which the plan is found.
func twoSteps(goal string) []scriptmodel.Rule {
	plan := planned(step("one", "test -f one"), step("two", "test -f two", "one"))
	plan.Name, plan.When = goal, append(plan.When, goal)
	return []scriptmodel.Rule{plan, works("one", bash("echo 1 >> one")), works("two", bash("echo 2 >> two"))}
}

// TestSystemdMission: a start that cannot put one of its units in place leaves nothing; one that can hands the mission to
// systemd, which ticks it until it has finished by itself and has left nothing behind. The goal is bytes for the agents,
// and nothing to systemd or a shell.
func TestSystemdMission(t *testing.T) {
	both(t, func(t *testing.T, manager units.Manager) {
		goal := "Two steps\n[Service]\nExecStartPre=/bin/touch /tmp/pwned %h ${HOME} $HOME %n \\ \"q\" 's' `touch /tmp/pwned` $(touch /tmp/pwned) 😀\nUser=root"
		p := personOf(t, manager, twoSteps(goal))
		stands := p.unitDir() + "/forge-autoagent-my-site-stop.socket" // the third of the units
		p.inside(p.asks(), "mkdir -p "+stands)
		code, out := p.do(p.starting("my-site", goal)...)
		if code == 0 || !strings.Contains(out, "forge-autoagent-my-site-stop.socket") {
			t.Errorf("start: %d\n%s", code, out)
		}
		if ids, err := store.Root(p.host.Path(p.missions())).IDs(); err != nil || len(ids) > 0 {
			t.Errorf("missions: %v, %v", ids, err)
		}
		p.inside(p.asks(), "rmdir "+stands)
		p.nothingLeft()
		if p.model.Stats().Requests > 0 {
			t.Error("the model was asked")
		}

		out = p.start("my-site", goal, "--verify", "test -f one && test -f two")
		if !strings.Contains(out, "MISSION=my-site") {
			t.Errorf("start does not say where the journal is:\n%s", out)
		}
		if v := p.status("my-site"); !v.Live.Ticking || len(v.Live.Next) == 0 {
			t.Errorf("nobody ticks it: %+v", v.Live)
		}
		if b, err := os.ReadFile(p.store("my-site").Goal()); err != nil || string(b) != goal {
			t.Errorf("%v: the goal is now %q", err, b)
		}
		for _, path := range p.installed("my-site") {
			if st, err := os.Lstat(path); err != nil || !st.Mode().IsRegular() {
				continue
			}
			if b, err := os.ReadFile(path); err != nil || strings.Contains(string(b), "pwned") || strings.Contains(string(b), "😀") {
				t.Errorf("%s: %v\n%s", path, err, b)
			}
		}
		p.over("my-site")
		if v := p.status("my-site"); v.Phase != "completed" || v.Budget.Reserved != 0 || v.Live.Ticking { // the plan is found by the whole goal
			t.Errorf("phase %q, reserved %d, %+v\n%s", v.Phase, v.Budget.Reserved, v.Live, p.history())
		}
		if _, err := os.Lstat(p.host.Path("/tmp/pwned")); err == nil {
			t.Error("something was executed")
		}
		p.nothingLeft()
		if manager == units.System { // a user's manager does not hand LogExtraFields= to the journal
			p.told("my-site", "manager", "codebuilder-1")
		}
	})
}

// TestSystemdNeighbours: a mission is aborted, the folder of another one is removed; both end with all that their agents
// left behind. The one whose id begins with the same word and a dash goes on and finishes.
func TestSystemdNeighbours(t *testing.T) {
	mostly(t, units.System, func(t *testing.T, manager units.Manager) {
		rules := append(team("goal of my", "mark-of-my", 1), team("goal of gone", "mark-of-gone", 1)...)
		escapes := bash("systemd-run --user --unit=escaped sleep 9999; systemd-run --unit=escaped sleep 9999; true")
		rules[0].Steps = append([]scriptmodel.Step{escapes}, rules[0].Steps...)
		p := personOf(t, manager, append(rules, twoSteps("Two steps")...))
		p.start("my", "goal of my")
		p.start("gone", "goal of gone")
		for _, id := range []string{"my", "gone"} {
			p.until(id+" works", func() bool { return len(p.marked("mark-of-"+id)) >= leftBy })
		}
		p.start("my-site", "Two steps", "--verify", "test -f one && test -f two")
		before := p.loaded("my-site")
		if code, out := p.do("abort", "my"); code != 0 {
			t.Errorf("abort: %d\n%s", code, out)
		}
		p.stopped("my", "mark-of-my")
		for _, user := range []string{"", owner} {
			if out := p.host.Systemctl(user, "list-units", "--all", "--no-legend", "escaped*"); out != "" {
				t.Errorf("an agent started a unit: %s", out)
			}
		}

		names := p.names("gone")
		p.inside(owner, "rm -rf "+p.missions()+"/data/autoagent/gone")
		p.systemctl("start", "--no-block", "forge-autoagent-gone-reporter.service") // as its timer does each minute
		began := time.Now()
		p.until("the units of gone are away", func() bool { return p.listed(names...) == "" })
		t.Logf("after a tick, the units of a mission without a folder were away within %v", time.Since(began).Round(10*time.Millisecond))

		if p.store("my-site").Exists() && strings.Count(p.loaded("my-site"), "\n") != strings.Count(before, "\n") {
			if stop, _ := p.store("my-site").Stopped(); stop == nil {
				t.Errorf("units of my-site are missing; before:\n%s\nnow:\n%s", before, p.loaded("my-site"))
			}
		}
		p.over("my-site")
		for _, e := range p.events("my-site", "") {
			if strings.Contains(e.Text, "cut off") || strings.Contains(e.Text, "came back") || strings.Contains(e.Text, "killed") {
				t.Errorf("the other one was disturbed: %s", e.Text)
			}
		}
		if v := p.status("my-site"); v.Phase != "completed" {
			t.Errorf("phase %q", v.Phase)
		}
		if n := p.model.Stats().ByRule["one"]; n != 2 {
			t.Errorf("the step had %d requests, want 2", n)
		}
		p.nothingLeft("mark-of-")
	})
}

// TestSystemdLogOut: a user manager that ends at log-out gets no mission unless that is meant. Then a log-out cuts the
// mission, and the next login goes on with it.
func TestSystemdLogOut(t *testing.T) {
	t.Parallel()
	p := personOf(t, units.User, append(team("goal of off", "mark-of-off", 1), threeSteps()...))
	linger := "/var/lib/systemd/linger/" + owner
	p.inside("", "rm "+linger)
	code, out := p.do(p.starting("my-site", "Three steps")...)
	if code == 0 || !strings.Contains(out, "loginctl enable-linger "+owner) {
		t.Errorf("start without linger: %d\n%s", code, out)
	}
	p.nothingLeft()
	out = p.start("my-site", "Three steps", "--no-linger", "--specialists", "codebuilder:2", "--verify", "test -f both")
	if !strings.Contains(out, "while you are logged in") {
		t.Errorf("start does not say what no linger means:\n%s", out)
	}
	p.start("off", "goal of off", "--no-linger")
	p.logOut()
	if n := len(p.marked("--mission")); n > 0 {
		t.Errorf("%d processes outlive the log-out", n)
	}
	// Who aborts now is not told that it is done, and it is done at the next login.
	if code, out := p.do("abort", "off"); code == 0 || !strings.Contains(out, "not proven stopped") {
		t.Errorf("abort without a manager: %d\n%s", code, out)
	}
	p.inside("", "touch "+linger) // a login that lasts
	p.host.Systemctl("", "start", p.managerUnit())
	p.over("off")
	p.stopped("off", "mark-of-off")
	p.once("my-site")
	p.nothingLeft()
}

// told fails the test if the journal has nothing of a mission's agent under its fields.
func (p *person) told(id string, agents ...string) {
	p.t.Helper()
	said := map[string]int{}
	for _, e := range p.host.Journal(p.asks(), "MISSION="+id) {
		said[e["AGENT"]]++
	}
	for _, agent := range agents {
		if said[agent] == 0 {
			p.t.Errorf("the journal has nothing of %s: %v", agent, said)
		}
	}
}
