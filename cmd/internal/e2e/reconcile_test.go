package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/store"
	"example.com/AutoAgentProject/core/systemdengine"
	"example.com/AutoAgentProject/core/usererr"
)

// TestReconcile: with the rights of its unit and the real programs, reconcile puts back what was lost of a mission, ends
// one whose folder is gone with the agent that works on it, and finishes one whose start was cut off. In both managers.
func TestReconcile(t *testing.T) {
	t.Parallel()
	p := newPerson(t, planned(step("zero", "true"), step("first", "true", "zero")), works("zero", bash("echo 0 > zero")), stubborn("mark-in-the-host"))
	for _, c := range []struct { // alice first: who has no root of their own yet takes the system's
		who                  string
		root, units, manager string
		start                func(...string) (int, string)
		flags, run           []string
	}{
		{"alice", "/home/alice/.local/share/autoagent", "/home/alice/.config/systemd/user", "alice", p.do, []string{"--engine", "systemd"}, []string{"systemd-run", "--user"}},
		{"", "/var/lib/autoagent", "/etc/systemd/system", "", p.asRoot, []string{"--run-as", "alice"}, []string{"systemd-run", "-pNoNewPrivileges=yes",
			"-pCapabilityBoundingSet=CAP_KILL CAP_SETUID CAP_SETGID CAP_SYS_PTRACE CAP_DAC_READ_SEARCH", "-pProtectSystem=full", "-pReadWritePaths=/etc/systemd/system"}},
	} {
		who := c.who
		id := "seen-by-" + map[bool]string{true: "root", false: who}[who == ""]
		start := func(id string) {
			t.Helper()
			if code, out := c.start(append([]string{"start", id, "Work that never ends", "--budget", "5usd"}, c.flags...)...); code != 0 {
				t.Fatalf("start: %d\n%s", code, out)
			}
		}
		reconcile := func(want ...string) {
			t.Helper()
			ctx, done := context.WithTimeout(t.Context(), patience)
			defer done()
			out, code := p.host.Run(ctx, who, append(c.run, "--quiet", "--wait", "--pipe", "/srv/autoagent/AutoAgentProject", "reconcile", "--json")...)
			var rep systemdengine.Report
			var got []string
			err := json.Unmarshal([]byte(out[max(strings.Index(out, "{\n"), 0):]), &rep) // the log comes before it
			for _, i := range rep.Items {
				got = append(got, i.Mission+" "+i.What+" "+string(i.Outcome))
			}
			if err != nil || code != 0 || strings.Join(got, ", ") != strings.Join(want, ", ") {
				t.Errorf("reconcile by %q: %d, %v, not %q\n%s", who, code, err, want, out)
			}
		}
		living := func() int {
			n := 0
			for _, x := range p.host.Processes() {
				if strings.Contains(strings.Join(x.Args, " "), "mark-in-the-host") {
					n++
				}
			}
			return n
		}
		dir := filepath.Join(c.root, "data/autoagent", id)

		start(id)
		p.until("the agent works", func() bool { return living() >= 4 })
		reconcile()
		timer := filepath.Join(c.units, "forge-autoagent-"+id+"-quota.timer")
		before, err := os.ReadFile(p.host.Path(timer))
		if err := errors.Join(err, os.Remove(p.host.Path(timer))); err != nil {
			t.Fatal(err)
		}
		p.host.Systemctl(c.manager, "stop", "forge-autoagent-"+id+"-reporter.socket")
		reconcile(id + " repair done")
		if now, err := os.ReadFile(p.host.Path(timer)); err != nil || string(now) != string(before) {
			t.Errorf("it is %q, %v", now, err)
		}
		if got := p.host.Systemctl(c.manager, "is-active", "forge-autoagent-"+id+"-quota.timer", "forge-autoagent-"+id+"-reporter.socket"); got != "active\nactive" {
			t.Errorf("put back: %s", got)
		}
		if living() < 4 {
			t.Error("the agent was disturbed")
		}
		if err := os.RemoveAll(p.host.Path(dir)); err != nil {
			t.Fatal(err)
		}
		reconcile(id + " end done")
		if n := living(); n > 0 {
			t.Errorf("%d of it live", n)
		}
		reconcile()

		half := "half-" + id
		start(half)
		dir = filepath.Join(c.root, "data/autoagent", half)
		units, _ := filepath.Glob(p.host.Path(filepath.Join(c.units, "forge-autoagent*")))
		var names []string
		for _, u := range units {
			names = append(names, filepath.Base(u))
			err = errors.Join(err, os.Remove(u))
		}
		p.host.Systemctl(c.manager, append([]string{"stop"}, names...)...)
		p.host.Systemctl(c.manager, "daemon-reload")
		record := p.host.Path(filepath.Join(dir, "mission.json"))
		b, rerr := os.ReadFile(record)
		b = regexp.MustCompile(`"created_at": "[^"]*"`).ReplaceAll(b, []byte(`"created_at": "2026-01-02T03:04:05Z"`))
		old := time.Now().Add(-time.Hour)
		if err := errors.Join(err, rerr, os.WriteFile(record, b, 0o600), os.Chtimes(record, old, old), os.RemoveAll(p.host.Path(filepath.Join(dir, store.Handed)))); err != nil {
			t.Fatal(err)
		}
		reconcile(half + " give up done")
		var stop mission.Stop
		if b, err = os.ReadFile(p.host.Path(filepath.Join(dir, "stop.json"))); err != nil || json.Unmarshal(b, &stop) != nil || stop.Cause != mission.FailedEnd {
			t.Errorf("%s, %v", b, err)
		}
		if _, out := p.host.Run(t.Context(), "", "find", c.root, "-user", "root"); out != 0 {
			t.Error("root cannot look")
		} else if left, _ := p.host.Run(t.Context(), "", "find", filepath.Join(c.root, "data"), "-user", "root"); left != "" {
			t.Errorf("root left its own files:\n%s", left)
		}
		reconcile()
		if code, out := c.start("reconcile", "--uninstall"); code != int(usererr.OK) {
			t.Errorf("uninstall: %d\n%s", code, out)
		}
		if out := p.host.Systemctl(c.manager, "list-units", "--all", "--no-legend", "--plain", "forge-autoagent*"); out != "" {
			t.Errorf("still loaded:\n%s", out)
		}
	}
}
