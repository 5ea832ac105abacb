package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"example.com/AutoAgentProject/core/scriptmodel"
	"example.com/AutoAgentProject/core/testkit"
	"example.com/AutoAgentProject/core/units"
)

// TestSystemdRemove: of a mission that systemd ticked nothing is left after remove, but for work that is nowhere else; and
// after make uninstall nothing of the programs and the host's units, which is refused while a mission lives.
func TestSystemdRemove(t *testing.T) {
	mostly(t, units.User, func(t *testing.T, manager units.Manager) {
		source, err := filepath.Abs("../../..")
		if err != nil {
			t.Fatal(err)
		}
		long := bash("true")
		long.DelayMS = 170_000
		plan := planned(step("half", "test -f half"))
		plan.Name, plan.When = "plan of half", append(plan.When, "Half of it")
		p := personOf(t, manager, append([]scriptmodel.Rule{plan, works("half", bash("echo precious >half-done"), long)}, twoSteps("Two steps")...),
			testkit.Bind{Host: source, Inside: "/srv/source"})
		remove := func(id string, more ...string) string {
			t.Helper()
			code, out := p.as(owner, append([]string{"remove", id, "--json"}, more...)...)
			var r struct{ Kept string }
			if err := json.Unmarshal([]byte(out), &r); code != 0 || err != nil {
				t.Fatalf("remove %s: %d\n%s\n%s", id, code, out, p.history())
			}
			p.goneFrom(id)
			p.nothingLeft(" " + id)
			return r.Kept
		}
		p.start("half", "Half of it")
		p.until("the agent has begun", func() bool {
			_, err := os.Stat(filepath.Join(p.store("half").Clone("codebuilder-1"), "half-done"))
			return err == nil
		})
		if code, out := p.as(owner, "remove", "half"); code == 0 || !strings.Contains(out, "has not ended") {
			t.Errorf("a live mission: %d\n%s", code, out)
		}
		uninstall := []string{"make", "-C", "/srv/source", "uninstall", "PREFIX=" + filepath.Dir(programs) + "/copy"}
		p.host.Run(t.Context(), "", "sh", "-c", "mkdir -p /srv/copy && cp -r "+programs+" /srv/copy/bin")
		if out, code := p.host.Run(t.Context(), p.asks(), uninstall...); code == 0 || !strings.Contains(out, "half") {
			t.Errorf("uninstall beside a live mission: %d\n%s", code, out)
		}
		if code, out := p.do("abort", "half"); code != 0 {
			t.Fatalf("abort: %d\n%s", code, out)
		}
		kept := remove("half")
		if b, err := os.ReadFile(p.host.Path(filepath.Join(kept, "codebuilder-1", "half-done"))); err != nil || string(b) != "precious\n" {
			t.Errorf("files that were not committed: %q, %v", b, err)
		}

		p.start("whole", "Two steps", "--verify", "test -f two")
		p.over("whole")
		if kept := remove("whole", "--keep-work"); kept == "" {
			t.Error("--keep-work keeps nothing")
		} else if _, err := os.Stat(p.host.Path(filepath.Join(kept, "codebuilder-1", "two"))); err != nil {
			t.Error(err)
		}

		if manager == units.User {
			p.host.Run(t.Context(), "", "chown", "-R", owner, "/srv/copy")
		}
		if out, code := p.host.Run(t.Context(), p.asks(), uninstall...); code != 0 {
			t.Fatalf("uninstall: %d\n%s", code, out)
		}
		if left, _ := filepath.Glob(p.host.Path("/srv/copy/bin/*")); len(left) > 0 {
			t.Errorf("programs are left: %q", left)
		}
		if line := p.listed("forge-autoagent*"); strings.Contains(line, ".service") || strings.Contains(line, ".timer") {
			t.Errorf("units are loaded: %s", line)
		}
		if files := p.inside("", "find "+p.unitDir()+" -name 'forge-autoagent*'"); files != "" {
			t.Errorf("units are left: %s", files)
		}
	})
}

// TestSystemdStartFails: a start in which a step fails leaves no unit, file or process. Steps are what the programs write; by
// default a few of them fail, with AUTOAGENT_FULL=1 each.
func TestSystemdStartFails(t *testing.T) {
	mostly(t, units.User, func(t *testing.T, manager units.Manager) {
		p := personOf(t, manager, twoSteps("Two steps"))
		p.inside("", "mkdir -p -m 1777 /srv/steps; touch /srv/steps/list; chmod 666 /srv/steps/list")
		plain := p.env
		p.env = append(slices.Clone(plain), "AUTOAGENT_TESTONLY_STEPS=/srv/steps/list")
		p.start("first", "Two steps")
		p.env = plain
		p.do("abort", "first")
		list := strings.Fields(strings.ReplaceAll(p.inside("", "cat /srv/steps/list"), "first", "ID"))
		var faults []string // step:text
		for i := 0; i+2 < len(list); i += 3 {
			path := regexp.MustCompile(`[0-9]{3,}`).ReplaceAllString(list[i+2], "\n")
			parts := strings.Split(path, "\n")
			text := parts[len(parts)-1] // behind what is chance in it
			if len(text) < 4 {
				text = parts[0]
			}
			if f := list[i+1] + ":" + text; !slices.Contains(faults, f) {
				faults = append(faults, f)
			}
		}
		t.Logf("%d steps, %d faults", len(list)/3, len(faults))
		if len(faults) < 20 {
			t.Fatalf("a start has no more steps than %q", faults)
		}
		refused := 0
		for i, f := range faults {
			if !full() && i%(len(faults)/6) != 0 {
				continue
			}
			id := fmt.Sprintf("fails-%d", i)
			f = strings.ReplaceAll(f, "ID", id)
			p.env = append(slices.Clone(plain), "AUTOAGENT_TESTONLY_FAIL="+f+":28")
			code, out := p.do(p.starting(id, "Two steps")...)
			p.env = plain
			if code == 0 { // a step that a mission does without
				t.Logf("%s: the mission goes on", f)
				if code, out := p.do("abort", id); code != 0 {
					t.Errorf("%s: abort: %d\n%s", f, code, out)
				}
				p.nothingLeft()
				continue
			}
			refused++
			if !strings.Contains(out, "error: ") || strings.Contains(out, "panic") {
				t.Errorf("%s: %d\n%s", f, code, out)
			}
			p.goneFrom(id)
			p.nothingLeft("start " + id)
		}
		if refused == 0 {
			t.Error("no fault had an effect")
		}
	})
}

// goneFrom fails the test if a folder of a mission is left.
func (p *person) goneFrom(id string) {
	p.t.Helper()
	st := p.store(id)
	for _, dir := range []string{st.Dir(), st.Work(), st.Logs()} {
		if _, err := os.Lstat(dir); err == nil {
			p.t.Errorf("%s: %s is left", id, dir)
		}
	}
	if left, _ := filepath.Glob(p.host.Path(p.missions()) + "/.new-*"); len(left) > 0 {
		p.t.Errorf("%s: left %v", id, left)
	}
	if left := p.inside("", "find "+p.unitDir()+" -name '*"+id+"*'"); left != "" {
		p.t.Errorf("%s: units are left: %s", id, left)
	}
}
