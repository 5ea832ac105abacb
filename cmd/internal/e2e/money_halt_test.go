package e2e

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"example.com/AutoAgentProject/core/journal"
	"example.com/AutoAgentProject/core/ledger"
	"example.com/AutoAgentProject/core/money"
	"example.com/AutoAgentProject/core/units"
	"example.com/AutoAgentProject/core/wake"
)

// haltedAgents is how many agents, each with leftBy stubborn processes, a budget's halt ends: three, with AUTOAGENT_FULL=1 six.
func haltedAgents() int {
	if full() {
		return 6
	}
	return 3
}

// works starts a mission of six agents and waits until each has left its stubborn processes behind.
func (p *person) works(id string) {
	p.t.Helper()
	p.start(id, "goal of "+id, "--specialists", fmt.Sprintf("codebuilder:%d", haltedAgents()), "--budget", "100usd")
	p.until("all work", func() bool { return len(p.marked("mark-"+id)) >= leftBy*haltedAgents() })
}

// spendAll lets the ledger of a mission show that all its money is used, as if the count of an earlier run had come late, and
// wakes who watches, as every tick that counts does. It returns the moment of the first.
func (p *person) spendAll(id string) time.Time {
	p.t.Helper()
	at := time.Now()
	if err := p.store(id).Ledger().Spend(p.t.Context(), "late", ledger.Spent{Nano: 100 * money.USD, Tokens: 1, Agent: "codebuilder-1"}, at); err != nil {
		p.t.Fatal(err)
	}
	runtime := "/run"
	if p.manager == units.User {
		runtime = fmt.Sprintf("/run/user/%d", p.host.UID(owner))
	}
	if err := wake.Send(p.host.Path(units.WakeSocket(runtime, id, "quota"))); err != nil {
		p.t.Fatal(err)
	}
	return at
}

// emptied waits until no marked process and no process in a control group of the mission is left.
func (p *person) emptied(id, mark string) {
	p.t.Helper()
	p.until("all of "+id+" is dead", func() bool {
		if len(p.marked(mark)) > 0 {
			return false
		}
		empty := true
		_ = filepath.WalkDir(p.host.CgroupRoot(), func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() && strings.HasPrefix(d.Name(), "forge-autoagent-"+id+"-codebuilder") {
				if b, err := os.ReadFile(filepath.Join(path, "cgroup.procs")); err == nil && len(b) > 0 {
					empty = false
				}
			}
			return nil
		})
		return empty
	})
}

// TestSystemdBudgetHalts: the money of agents with stubborn processes is used up while all of them work. Everything of the
// mission ends and nothing else does; nothing but more money and resume brings it back.
func TestSystemdBudgetHalts(t *testing.T) {
	mostly(t, units.User, func(t *testing.T, manager units.Manager) {
		rules := append(team("goal of dear", "mark-dear", haltedAgents()), team("goal of other", "mark-other", 1)...)
		p := personOf(t, manager, rules)
		p.start("other", "goal of other")
		bystander := p.host.Start(owner, "sh", "-c", "trap '' TERM HUP INT; exec python3 -c 'import time; time.sleep(9999)' mark-bystander forge-autoagent-dear")
		p.works("dear")
		p.until("the other works", func() bool { return len(p.marked("mark-other")) >= leftBy })
		others := p.pids("mark-other")

		p.signal(unix.SIGSTOP, "autoagent-specialist", "--mission dear", "--agent codebuilder-1") // a tick that hangs
		p.signal(unix.SIGSTOP, "/srv/claude/", "codebuilder-2")                                   // a program that does
		at := p.spendAll("dear")
		p.emptied("dear", "mark-dear")
		t.Logf("all were dead after %v", time.Since(at).Round(time.Millisecond))
		p.over("dear")
		halted := func(after string) {
			t.Helper()
			v := p.status("dear")
			if v.Phase != "halted: budget" || v.Budget.Reserved != 0 || v.Live.Ticking {
				t.Errorf("after %s: phase %q, reserved %d, %+v\n%s", after, v.Phase, v.Budget.Reserved, v.Live, p.history())
			}
			if left := p.marked("mark-dear"); len(left) > 0 || p.loaded("dear") != "" || len(p.installed("dear")) > 0 {
				t.Errorf("after %s: %v, %s %v", after, left, p.loaded("dear"), p.installed("dear"))
			}
		}
		halted("the halt")
		if now := p.pids("mark-other"); !slices.Equal(now, others) || len(p.pids("mark-bystander")) == 0 {
			t.Errorf("others were touched: %v, before %v; bystander %v", now, others, p.pids("mark-bystander"))
		}
		for _, pid := range p.pids("mark-bystander") { // a boot would wait for it
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		_ = bystander.Wait()
		if code, out := p.do("abort", "other"); code != 0 {
			t.Errorf("abort: %d\n%s", code, out)
		}

		requests, events := p.model.Stats().Requests, len(p.events("dear", ""))
		for _, args := range [][]string{p.starting("dear", "goal of dear"), {"run", "dear"}, {"resume", "dear"}, {"hours", "add", "dear", "1"},
			{"reconcile"}, {"tick", "dear", "manager"}, {"tick", "dear", "codebuilder-1"}, {"pause", "dear"}} {
			code, out := p.do(args...)
			if slices.Contains([]string{"start", "run", "resume", "pause"}, args[0]) && code == 0 {
				t.Errorf("%v: %d\n%s", args, code, out)
			}
		}
		p.systemctl("daemon-reload")
		halted("all of that")
		p.host.Shutdown()
		p.host.Boot()
		if code, out := p.do("reconcile"); code != 0 {
			t.Errorf("reconcile: %d\n%s", code, out)
		}
		halted("a boot")
		if p.model.Stats().Requests != requests || len(p.events("dear", journal.RunStarted)) != haltedAgents()+1 {
			t.Errorf("something was asked: %d requests, before %d; %d events, before %d\n%s", p.model.Stats().Requests, requests, len(p.events("dear", "")), events, p.history())
		}

		if code, out := p.do("budget", "add", "dear", "100usd"); code != 0 {
			t.Errorf("budget add: %d\n%s", code, out)
		}
		if code, out := p.do("resume", "dear"); code != 0 {
			t.Fatalf("resume: %d\n%s", code, out)
		}
		p.until("all work again", func() bool { return len(p.marked("mark-dear")) >= leftBy*haltedAgents() })
		if code, out := p.do("abort", "dear"); code != 0 {
			t.Errorf("abort: %d\n%s", code, out)
		}
		p.stopped("dear", "mark-dear")
		p.nothingLeft("mark-dear", "mark-other")
	})
}

// pids are the marked processes, sorted.
func (p *person) pids(mark string) (out []int) {
	for _, x := range p.marked(mark) {
		out = append(out, x.PID)
	}
	slices.Sort(out)
	return out
}

// BenchmarkSystemdBudgetHalt measures how long it takes from the record with which the budget is used up until no process of
// six agents with stubborn processes is left, beside a bare SIGKILL of as many such processes, on the same host.
func BenchmarkSystemdBudgetHalt(b *testing.B) {
	for _, manager := range []units.Manager{units.User, units.System} {
		b.Run(string(manager), func(b *testing.B) {
			rounds := max(b.N, 5)
			if full() {
				rounds = max(b.N, 20)
			}
			var halt, kill []time.Duration
			p := personOf(b, manager, team("goal of dear", "mark-dear", haltedAgents()))
			for n := range rounds {
				id := fmt.Sprintf("dear-%d", n+1)
				p.start(id, "goal of dear", "--specialists", fmt.Sprintf("codebuilder:%d", haltedAgents()), "--budget", "100usd")
				p.until("all work", func() bool { return len(p.marked("mark-dear")) >= leftBy*haltedAgents() })
				at := p.spendAll(id)
				p.emptied(id, "mark-dear")
				halt = append(halt, time.Since(at))
				p.over(id)
				kill = append(kill, p.bareKill(haltedAgents()))
			}
			for name, d := range map[string][]time.Duration{"halt": halt, "kill": kill} {
				slices.Sort(d)
				b.ReportMetric(d[len(d)/2].Seconds(), "s/"+name+"-p50")
				b.ReportMetric(d[len(d)*9/10].Seconds(), "s/"+name+"-p90")
				b.ReportMetric(d[len(d)-1].Seconds(), "s/"+name+"-max")
			}
			b.ReportMetric(float64(halt[len(halt)/2])/float64(kill[len(kill)/2]), "halt/kill")
		})
	}
}
