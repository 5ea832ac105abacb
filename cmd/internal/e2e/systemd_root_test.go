package e2e

import (
	"fmt"
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
