package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/scriptmodel"
	"example.com/AutoAgentProject/core/units"
)

// TestSystemdIdle: many missions that wait for a person stand beside each other under one manager of a user. Each of
// their timers has a next run, nobody asks the model, and what an hour of this costs is told. With AUTOAGENT_FULL=1 there
// are twenty missions for five minutes; else three, each of whose agents ticks twice at once.
func TestSystemdIdle(t *testing.T) {
	t.Parallel()
	missions, window := 3, time.Duration(0)
	if full() {
		missions, window = 20, 5*time.Minute
	}
	down := scriptmodel.Rule{Name: "login lost", Steps: []scriptmodel.Step{{Status: 401, ErrType: "authentication_error", ErrMsg: "invalid x-api-key"}}}
	p := personOf(t, units.User, []scriptmodel.Rule{down})
	var timers, services []string
	var ids []string
	for i := range missions {
		id := fmt.Sprintf("idle-%d", i)
		p.start(id, "Wait for a login", "--specialists", "codebuilder:6")
		ids = append(ids, id)
		for _, name := range p.names(id) {
			if strings.HasSuffix(name, ".timer") {
				timers = append(timers, name)
				services = append(services, strings.TrimSuffix(name, ".timer")+".service")
			}
		}
	}
	for _, id := range ids {
		p.until(id+" waits", func() bool {
			pauses, err := p.store(id).Pauses(time.Now())
			return err == nil && len(pauses) > 0 && len(p.events(id, "run_ended")) > 0
		})
	}
	p.until("nobody ticks", func() bool { return p.listed("--state=activating,active", "forge-autoagent-*.service") == "" })

	requests, cpu, began, starts := p.model.Stats().Requests, p.cpu(), time.Now(), p.ticks()
	if window > 0 {
		time.Sleep(window) // this is what is measured
	} else {
		for range 2 {
			p.systemctl(append([]string{"start"}, services...)...)
		}
	}
	cpu, starts = p.cpu()-cpu, p.ticks()-starts
	if starts < len(services) {
		t.Errorf("%d ticks in %v", starts, time.Since(began))
	}
	if n := p.model.Stats().Requests - requests; n != 0 {
		t.Errorf("%d requests of missions that wait", n)
	}
	each := cpu / time.Duration(max(starts, 1))
	hour := time.Duration(len(services)) * time.Duration(time.Hour/units.DefaultTickEvery)
	t.Logf("%d missions, %d agents: %d ticks took %v of CPU with systemd's part, %v each; an hour has %d ticks, %v of CPU, %.1f%% of one core, no request",
		missions, len(services), starts, cpu.Round(time.Millisecond), each.Round(100*time.Microsecond), hour, (each * hour).Round(time.Second), 100*float64(each*hour)/float64(time.Hour))
	for _, id := range ids {
		v := p.status(id)
		if !v.Live.Ticking || len(v.Live.Trouble) > 0 || v.Stop != nil {
			t.Errorf("%s: %+v", id, v.Live)
		}
	}
	p.until("each timer has a next run", func() bool {
		for _, block := range strings.Split(p.systemctl(append([]string{"show", "-p", "Id,ActiveState,SubState,NextElapseUSecMonotonic"}, timers...)...), "\n\n") {
			if !strings.Contains(block, "ActiveState=active\n") || !strings.Contains(block, "SubState=waiting") && !strings.Contains(block, "SubState=running") ||
				strings.Contains(block, "SubState=waiting") && strings.Contains(block, "NextElapseUSecMonotonic=infinity") {
				return false
			}
		}
		return true
	})
	for _, id := range ids {
		if code, out := p.do("abort", id); code != 0 {
			t.Errorf("abort %s: %d\n%s", id, code, out)
		}
	}
	p.nothingLeft()
}

// cpu is what the owner's manager and everything below it have used.
func (p *person) cpu() time.Duration {
	p.t.Helper()
	uid := p.host.UID(owner)
	b, err := os.ReadFile(filepath.Join(p.host.CgroupRoot(), "user.slice", fmt.Sprintf("user-%d.slice", uid), fmt.Sprintf("user@%d.service", uid), "cpu.stat"))
	if err != nil {
		p.t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) == 2 && f[0] == "usage_usec" {
			us, _ := strconv.ParseInt(f[1], 10, 64)
			return time.Duration(us) * time.Microsecond
		}
	}
	p.t.Fatalf("no CPU time in %s", b)
	return 0
}

// ticks counts the ticks that systemd has finished so far.
func (p *person) ticks() int {
	n := 0
	for _, e := range p.host.Journal(p.asks(), "SYSLOG_IDENTIFIER=systemd") {
		if strings.HasPrefix(e["MESSAGE"], "Started forge-autoagent-") && strings.Contains(e["MESSAGE"], ": a tick of ") {
			n++
		}
	}
	return n
}
