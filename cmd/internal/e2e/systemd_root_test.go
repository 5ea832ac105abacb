package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"example.com/AutoAgentProject/core/cell"
	"example.com/AutoAgentProject/core/proc"
	"example.com/AutoAgentProject/core/units"
)

// TestSystemdRootIsNoTool: the stop that root carries out for an owner reads what the owner can write. It kills nobody
// else's process by it, and leaves no file of root's below the root.
func TestSystemdRootIsNoTool(t *testing.T) {
	t.Parallel()
	p := personOf(t, units.System, team("goal of site", "mark-of-site", 1))
	victim := p.host.Start("", "sleep", "4242.5")
	defer func() { _ = victim.Process.Kill(); _ = victim.Wait() }()
	p.start("site", "goal of site")
	p.until("it works", func() bool { return len(p.marked("mark-of-site")) >= leftBy })
	named := false
	for _, x := range p.marked("4242.5") {
		st, err := proc.ReadStat(x.PID)
		if err != nil || x.UID != 0 {
			continue
		}
		boot, err := proc.Boot()
		if err != nil {
			t.Fatal(err)
		}
		var ns unix.Stat_t
		if err := unix.Stat(fmt.Sprintf("/proc/%d/ns/pid", x.PID), &ns); err != nil {
			t.Fatal(err)
		}
		id := cell.Identity{Boot: boot, PID: x.Inside, Start: st.Start, NS: ns.Ino}
		p.inside(owner, fmt.Sprintf(`printf '{"boot":"%s","pid":%d,"start":%d,"ns":%d}' > %s/data/autoagent/site/agents/reporter/cell.json`, id.Boot, id.PID, id.Start, id.NS, p.missions()))
		named = true
	}
	if !named {
		t.Fatal("there is no process of root's to name")
	}
	if code, out := p.as(owner, "abort", "site"); code != 0 {
		t.Errorf("abort: %d\n%s", code, out)
	}
	p.stopped("site", "mark-of-site")
	if len(p.marked("4242.5")) == 0 {
		t.Error("a process of root's was killed because a file of somebody else's named it as a cell")
	}
	if out := p.inside("", "find "+p.missions()+" ! -user "+owner); out != "" {
		t.Errorf("these are not the owner's:\n%s", out)
	}
	p.nothingLeft()
}

// TestSystemdRootMakesNothingForOthers: the configuration of the user that a mission runs as names a folder of the system's
// as root. Root makes it for nobody.
func TestSystemdRootMakesNothingForOthers(t *testing.T) {
	t.Parallel()
	p := personOf(t, units.System, twoSteps("Two steps"))
	const wanted = "/etc/systemd/system/forge-autoagent-reconcile.service.d"
	p.inside(owner, "mkdir -p ~/.config/autoagent && echo 'root: "+wanted+"' > ~/.config/autoagent/config.yaml")
	env := slices.DeleteFunc(slices.Clone(p.env), func(kv string) bool { return strings.HasPrefix(kv, "AUTOAGENT_ROOT=") })
	out, code := p.host.Run(t.Context(), "", append(append(env, programs+"/AutoAgentProject"), p.starting("my-site", "Two steps")...)...)
	if code != 4 || !strings.Contains(out, "the root cannot be written") {
		t.Errorf("start: %d\n%s", code, out)
	}
	if out := p.inside("", "ls -d "+wanted+" 2>&1; true"); !strings.Contains(out, "No such file") {
		t.Errorf("it was made: %s", out)
	}
	p.inside(owner, "rm ~/.config/autoagent/config.yaml")
	p.nothingLeft()
	p.inside("", "mkdir /srv/loose && cp "+programs+"/* /srv/loose && chmod 0777 /srv/loose/autoagent-manager")
	out, code = p.host.Run(t.Context(), "", append(append(env, "/srv/loose/AutoAgentProject"), p.starting("my-site", "Two steps")...)...)
	if code != 4 || !strings.Contains(out, "only root can change") {
		t.Errorf("programs that anybody can change: %d\n%s", code, out)
	}
}
