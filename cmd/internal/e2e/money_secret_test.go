package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/scriptmodel"
	"example.com/AutoAgentProject/core/units"
)

// looksFor is a step that writes into the file found what inside of its cell holds a text, by environment, arguments and
// files, and then waits for the file seen. The command itself does not hold the text.
func looksFor(secret, mark string) scriptmodel.Rule {
	pattern := secret[:3] + "[" + secret[3:4] + "]" + secret[4:]
	return works("look", bash(fmt.Sprintf(`cd "$PWD"
for p in /proc/[0-9]*; do grep -aslE '%[1]s' $p/environ $p/cmdline; done > .autoagent/found.tmp
find / -xdev \( -path /proc -o -path /sys -o -path /usr -o -path '*/.autoagent/found.tmp' \) -prune -o -type f -size -64M -print0 2>/dev/null | xargs -0 grep -aslE '%[1]s' >> .autoagent/found.tmp
for d in $(awk '{print $5}' /proc/self/mountinfo | grep -vE '^/(proc|sys|usr|dev)(/|$)'); do find "$d" -xdev -type f -size -64M -not -name found.tmp -print0 2>/dev/null | xargs -0 grep -aslE '%[1]s' >> .autoagent/found.tmp; done
echo searched >> .autoagent/found.tmp; mv .autoagent/found.tmp .autoagent/found
exec python3 -c 'import time; time.sleep(9999)' %[2]s`, pattern, mark)))
}

// showing are the processes in the cell of a process, as the machine sees them, whose environment or arguments hold a text;
// all is how many there are.
func showing(t *testing.T, pid int, secret string) (found []string, all int) {
	t.Helper()
	cell, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", pid))
	if err != nil {
		t.Fatal(err)
	}
	folders, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range folders {
		if ns, err := os.Readlink(dir + "/ns/pid"); err != nil || ns != cell {
			continue
		}
		all++
		for _, name := range []string{"environ", "cmdline"} {
			if b, err := os.ReadFile(filepath.Join(dir, name)); err == nil && strings.Contains(string(b), secret) {
				found = append(found, dir+"/"+name)
			}
		}
	}
	return found, all
}

// marked is the process of a world with that word as its last argument, 0 if there is none.
func marked(mark string) int {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range files {
		if b, err := os.ReadFile(f); err == nil && strings.HasSuffix(strings.TrimRight(string(b), "\x00"), "time.sleep(9999)\x00"+mark) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(f)))
			return pid
		}
	}
	return 0
}

// TestLoginIsInNoCell: in no process of a running cell, by environment, arguments or any file that it can read, is the login.
// Without the gateway it is there, and the same search finds it.
func TestLoginIsInNoCell(t *testing.T) {
	t.Parallel()
	const secret = "example-key"
	for _, gateway := range []string{"on", "off"} {
		t.Run(gateway, func(t *testing.T) {
			t.Parallel()
			mark := fmt.Sprintf("mark-%d-%s", os.Getpid(), gateway)
			w := newWorld(t, planned(step("look", "true")), looksFor(secret, mark))
			w.env = append(w.env, "ANTHROPIC_API_KEY=sk-ant-stray", "CLAUDE_CODE_OAUTH_TOKEN=sk-ant-stray") // in the person's shell
			_, wait := w.background("start", "look", "Look around", "--gateway", gateway)
			w.until("it has looked", func() bool { return marked(mark) != 0 })
			outside, all := showing(t, marked(mark), secret)
			inside, err := os.ReadFile(filepath.Join(w.store("look").Clone("codebuilder-1"), ".autoagent", "found"))
			if err != nil || all < 3 {
				t.Fatalf("%d processes, %v", all, err)
			}
			t.Logf("%d processes, %q; inside %q", all, outside, inside)
			if clean := len(outside) == 0 && string(inside) == "searched\n"; clean != (gateway == "on") {
				t.Errorf("with the gateway %s: %q; inside %q", gateway, outside, inside)
			}
			if stray, _ := showing(t, marked(mark), "sk-ant-stray"); len(stray) > 0 {
				t.Errorf("a key of the person's shell is in %q", stray)
			}
			if gateway == "off" {
				for _, out := range []string{w.must(0, "status", "look"), w.must(0, "list")} {
					if strings.Contains(out, secret) {
						t.Error("the login is shown")
					}
				}
				if out := w.must(0, "status", "look"); !strings.Contains(out, "without the gateway") {
					t.Errorf("status does not say it:\n%s", out)
				}
			}
			w.must(0, "abort", "look")
			if _, out := wait(); strings.Contains(out, "without the gateway") != (gateway == "off") {
				t.Errorf("start:\n%s", out)
			}
		})
	}
}

// TestSystemdLoginIsInNoCell: nor where systemd ticks, in either manager.
func TestSystemdLoginIsInNoCell(t *testing.T) {
	mostly(t, units.System, func(t *testing.T, manager units.Manager) {
		const secret = "example-key-of-sixteen"
		mark := fmt.Sprintf("mark-of-look-%s", manager)
		p := personOf(t, manager, []scriptmodel.Rule{planned(step("look", "true")), looksFor(secret, mark)})
		p.start("look", "Look around")
		var pid int
		p.until("it has looked", func() bool {
			for _, x := range p.marked(mark) {
				if slices.Contains(x.Args, "import time; time.sleep(9999)") {
					pid = x.PID
				}
			}
			return pid != 0
		})
		outside, all := showing(t, pid, secret)
		inside, err := os.ReadFile(filepath.Join(p.store("look").Clone("codebuilder-1"), ".autoagent", "found"))
		if err != nil || all < 3 || len(outside) > 0 || string(inside) != "searched\n" {
			t.Errorf("%d processes, %q; inside %q, %v", all, outside, inside, err)
		}
		began := time.Now()
		if code, out := p.do("abort", "look"); code != 0 {
			t.Errorf("abort after %v: %d\n%s", time.Since(began), code, out)
		}
		p.nothingLeft(mark)
	})
}
