package e2e

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"example.com/AutoAgentProject/core/scriptmodel"
	"example.com/AutoAgentProject/core/units"
)

// TestSystemdAbortUnderFaults: five missions with stubborn children are aborted, each while something is wrong. Afterwards
// nothing of them comes back, whatever is started again.
func TestSystemdAbortUnderFaults(t *testing.T) {
	mostly(t, units.System, func(t *testing.T, manager units.Manager) {
		ids := []string{"hung-tick", "hung-program", "full-disk", "no-bus", "two-shells"}
		var rules []scriptmodel.Rule
		for _, id := range ids {
			rules = append(rules, team("goal of "+id, "mark-"+id, 1)...)
		}
		p := personOf(t, manager, rules)
		small := p.home() + "/small"
		p.inside("", "mkdir -p "+small+" && mount -t tmpfs -o size=256m,mode=700,uid="+fmt.Sprint(p.host.UID(owner))+" small "+small)
		for _, id := range ids {
			if id == "full-disk" {
				p.place(id, small)
			}
			p.start(id, "goal of "+id)
		}
		for _, id := range ids {
			p.until(id+" works", func() bool { return len(p.marked("sleep 9999 && echo mark-"+id)) >= leftBy-1 })
		}
		p.killable("hung-tick")

		p.signal(unix.SIGSTOP, "autoagent-specialist", "--mission hung-tick")
		p.signal(unix.SIGSTOP, "/srv/claude/", "hung-program/")
		fill := p.host.Start(owner, "sh", "-c", "while :; do head -c 16M /dev/zero >> "+small+"/fill; sleep 0.02; done 2>/dev/null")
		p.until("the disk is full", func() bool {
			var st unix.Statfs_t
			return unix.Statfs(p.host.Path(small), &st) == nil && st.Bavail == 0
		})

		var all sync.WaitGroup
		for i, id := range append(ids, "two-shells") {
			who := p.asks()
			if i%2 == 1 { // with the system's manager one of the two shells is root's, the other one the owner's
				who = owner
			}
			all.Go(func() {
				began := time.Now()
				code, out := p.as(who, "abort", id)
				t.Logf("abort of %s took %v", id, time.Since(began).Round(time.Millisecond))
				if code != 0 || !strings.Contains(out, "is aborted") {
					t.Errorf("abort %s: %d\n%s", id, code, out)
				}
				if left := p.marked("mark-" + id); len(left) > 0 {
					t.Errorf("abort of %s said that it was over: %v", id, left)
				}
			})
		}
		all.Go(func() {
			for range 3 {
				if out := p.systemctl("restart", "dbus.service"); out != "" {
					t.Errorf("the bus: %s", out)
				}
			}
		})
		p.until("all of the full disk's is dead", func() bool { return len(p.marked("mark-full-disk")) == 0 })
		_ = unix.Kill(-fill.Process.Pid, unix.SIGKILL)
		_ = fill.Wait()
		p.inside(owner, "rm "+small+"/fill")
		all.Wait()
		for _, id := range ids {
			p.stopped(id, "mark-"+id)
		}
		p.nothingLeft("mark-")

		happened := func() (n int) {
			for _, id := range ids {
				if p.places[id] == "" { // the small disk does not outlive a boot
					n += len(p.events(id, ""))
				}
			}
			return n
		}
		requests, events := p.model.Stats().Requests, happened()
		nothing := func(after string) {
			t.Helper()
			p.nothingLeft("mark-", "--mission")
			if p.model.Stats().Requests != requests || happened() != events {
				t.Errorf("after %s the model was asked, or something happened\n%s", after, p.history())
			}
		}
		p.systemctl("daemon-reload")
		nothing("a reload")
		if manager == units.User {
			p.host.Systemctl("", "restart", p.managerUnit())
		} else {
			p.systemctl("daemon-reexec")
		}
		nothing("a restart of the manager")
		p.host.Shutdown()
		p.host.Boot()
		nothing("a boot")
	})
}

// killable checks that no unit of a mission can outlive its stop: systemd's own words.
func (p *person) killable(id string) {
	p.t.Helper()
	n := 0
	for _, name := range p.names(id) {
		if !strings.HasSuffix(name, ".service") {
			continue
		}
		n++
		got := map[string]string{}
		for line := range strings.Lines(p.systemctl("show", name)) {
			key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			got[key] = value
		}
		for key, want := range map[string]string{"KillMode": "mixed", "SendSIGKILL": "yes", "KillSignal": "15", "FinalKillSignal": "9",
			"TimeoutStopUSec": "15s", "StartLimitIntervalUSec": "0", "Delegate": "no", "OOMPolicy": "continue"} {
			if got[key] != want {
				p.t.Errorf("%s: %s=%s, want %s", name, key, got[key], want)
			}
		}
		longest := map[string]string{"oneshot": got["TimeoutStartUSec"], "exec": got["RuntimeMaxUSec"]}[got["Type"]]
		if d, err := time.ParseDuration(strings.ReplaceAll(longest, " ", "")); longest == "" || longest == "infinity" || err == nil && d <= 0 {
			p.t.Errorf("%s may run for ever", name)
		}
		for _, secret := range []string{"example-key", "goal of"} {
			if strings.Contains(fmt.Sprint(got), secret) {
				p.t.Errorf("%s shows %q", name, secret)
			}
		}
	}
	if n < 5 {
		p.t.Errorf("%s has %d services", id, n)
	}
}

// signal sends a signal to all processes whose arguments hold all the texts.
func (p *person) signal(s unix.Signal, texts ...string) {
	p.t.Helper()
	n := 0
	for _, x := range p.host.Processes() {
		line, all := strings.Join(x.Args, " "), true
		for _, text := range texts {
			all = all && strings.Contains(line, text)
		}
		if all {
			n++
			_ = unix.Kill(x.PID, s)
		}
	}
	if n == 0 {
		p.t.Fatalf("no process has %q", texts)
	}
}
