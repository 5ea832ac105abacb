package e2e

import (
	"fmt"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/engine"
	"example.com/AutoAgentProject/core/plan"
	"example.com/AutoAgentProject/core/scriptmodel"
	"example.com/AutoAgentProject/core/units"
)

// leaves is a command that leaves children behind in every way, each with the mark in its arguments, and never ends.
func leaves(mark string) string {
	sleep := fmt.Sprintf("sleep 9999 && echo %s", mark)
	return fmt.Sprintf(`setsid nohup sh -c '%[1]s' >/dev/null 2>&1 &
(setsid sh -c "sh -c '%[1]s' >/dev/null 2>&1 &" &)
sh -c "trap '' TERM HUP INT; %[1]s" >/dev/null 2>&1 &
python3 -c 'import time; time.sleep(9999)' %[2]s || sleep 9999`, sleep, mark)
}

const leftBy = 4 // marked processes of one agent at least, by leaves

// team is a script for so many agents, each of which leaves children behind that carry the mark.
func team(goal, mark string, agents int) []scriptmodel.Rule {
	var steps []plan.ProposedStep
	var rules []scriptmodel.Rule
	for i := range agents {
		id := fmt.Sprintf("%s-%d", mark, i+1)
		steps = append(steps, step(id, "true"))
		rules = append(rules, works(id, bash("echo half > "+id+"\n"+leaves(mark))))
	}
	first := planned(steps...)
	first.Name, first.When = goal, append(first.When, goal)
	return append(rules, first)
}

// stopped checks a mission that was aborted: nothing of it lives or is there, and its money is counted.
func (p *person) stopped(id, mark string) {
	p.t.Helper()
	if left := p.marked(mark); len(left) > 0 {
		p.t.Errorf("alive although abort said it is over: %v", left)
	}
	if left := p.loaded(id); left != "" || len(p.installed(id)) > 0 {
		p.t.Errorf("still loaded or installed: %s %v", left, p.installed(id))
	}
	if v := p.status(id); v.Phase != "aborted" || v.Budget.Reserved != 0 || v.Live.Ticking {
		p.t.Errorf("phase %q, reserved %d, %+v", v.Phase, v.Budget.Reserved, v.Live)
	}
	p.paid(id)
}

// abortTeam aborts a mission of six agents with stubborn children and says how long that took, when the last of
// their processes was dead, and how long it took systemd to kill the same kind of processes in as many units.
func abortTeam(t testing.TB, manager units.Manager) (abort, dead, kill time.Duration) {
	const agents = 6
	p := personOf(t, manager, team("Work that never ends", "mark-of-six", agents))
	p.start("six", "Work that never ends", "--specialists", fmt.Sprintf("codebuilder:%d", agents), "--budget", "100usd")
	p.until("all work", func() bool { return len(p.marked("mark-of-six")) >= leftBy*agents })
	began := time.Now()
	gone := make(chan time.Duration)
	go func() {
		for len(p.marked("mark-of-six")) > 0 {
			time.Sleep(5 * time.Millisecond)
		}
		gone <- time.Since(began)
	}()
	code, out := p.do("abort", "six")
	abort, dead = time.Since(began), <-gone
	var rec engine.Record
	if err := p.store("six").Load("stopping.json", &rec); err != nil {
		t.Error(err)
	}
	for _, s := range rec.Steps {
		t.Logf("%8v %s", s.At.Sub(began).Round(time.Millisecond), s.Name)
	}
	if code != 0 {
		t.Errorf("abort: %d\n%s", code, out)
	}
	p.stopped("six", "mark-of-six")
	p.nothingLeft("mark-of-six")

	return abort, dead, p.bareKill(agents)
}

// bareKill says how long systemd takes to kill what so many units with stubborn processes left behind.
func (p *person) bareKill(agents int) time.Duration {
	p.t.Helper()
	for i := range agents {
		argv := []string{"systemd-run", "--quiet", "--slice=bare.slice", "--collect", fmt.Sprintf("--unit=bare-%d", i), "sh", "-c", leaves("mark-of-bare")}
		if p.manager == units.User {
			argv = append(argv[:1:1], append([]string{"--user"}, argv[1:]...)...)
		}
		if out, exit := p.host.Run(p.t.Context(), p.asks(), argv...); exit != 0 {
			p.t.Fatalf("systemd-run: %d\n%s", exit, out)
		}
	}
	p.until("they run", func() bool { return len(p.marked("mark-of-bare")) >= leftBy*agents })
	began := time.Now()
	p.systemctl("kill", "--signal=KILL", "bare-*.service")
	for len(p.marked("mark-of-bare")) > 0 {
		time.Sleep(5 * time.Millisecond)
	}
	return time.Since(began)
}

// TestSystemdAbort: abort ends six agents and everything that they left behind, and says so only then.
func TestSystemdAbort(t *testing.T) {
	mostly(t, units.User, func(t *testing.T, manager units.Manager) {
		abort, dead, kill := abortTeam(t, manager)
		t.Logf("after %v all were dead, after %v abort had proven it and taken the units away; a bare systemctl kill of such processes took %v",
			dead.Round(time.Millisecond), abort.Round(time.Millisecond), kill.Round(time.Millisecond))
	})
}

// BenchmarkSystemdAbort compares abort, which ends in order, counts and takes all units away, with a bare SIGKILL.
func BenchmarkSystemdAbort(b *testing.B) {
	for _, manager := range []units.Manager{units.User, units.System} {
		b.Run(string(manager), func(b *testing.B) {
			var abort, dead, kill time.Duration
			for range b.N {
				a, d, k := abortTeam(b, manager)
				abort, dead, kill = abort+a, dead+d, kill+k
			}
			b.ReportMetric(abort.Seconds()/float64(b.N), "s/abort")
			b.ReportMetric(dead.Seconds()/float64(b.N), "s/dead")
			b.ReportMetric(kill.Seconds()/float64(b.N), "s/kill")
			b.ReportMetric(float64(dead)/float64(kill), "dead/kill")
		})
	}
}
