package e2e

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/testkit"
	"example.com/AutoAgentProject/core/units"
)

// TestSystemdBombsAreBounded: under low limits of the mission's slice one agent makes processes, another one takes memory,
// each as much as it gets. Neither gets more than the limit, the guard, which is in another slice, halts the mission for its
// money all the same, and nothing is left. Both bombs end by themselves should nothing bound them.
func TestSystemdBombsAreBounded(t *testing.T) {
	t.Parallel()
	const tasks, memory = 250, 1500
	many := bash(`until [ -e go ]; do sleep 0.1; done; exec python3 -c '
import subprocess, time
for n in range(600):
    try: subprocess.Popen(["sh", "-c", "trap : TERM; sleep 9999 && echo mark-many"], start_new_session=True)
    except OSError: time.sleep(0.01)
open("lit", "w").close()
time.sleep(9999)' mark-many`)
	much := bash(`python3 -c '
import time
b = []
for n in range(150): b.append(b"x" * (20 << 20))
time.sleep(9999)' mark-much; echo $? > died; exec python3 -c 'import time; time.sleep(9999)' mark-after`)
	rules := team("goal of bomb", "bomb", 2)
	rules[0].Steps[0], rules[1].Steps[0] = many, much
	p := personOf(t, units.System, rules)
	testkit.Need(t, p.host.Bounds("pids") && p.host.Bounds("memory"), "THE CONTROLLERS pids AND memory")
	slice := p.unitDir() + "/forge-autoagent-bomb.slice"
	p.inside("", "mkdir -p "+slice+".d && printf '[Slice]\nTasksMax="+strconv.Itoa(tasks)+"\nMemoryMax="+strconv.Itoa(memory)+"M\n' > "+slice+".d/low.conf && systemctl daemon-reload")
	p.start("bomb", "goal of bomb", "--specialists", "codebuilder:2", "--budget", "100usd")

	file := func(agent, name string) bool {
		_, err := os.Stat(filepath.Join(p.store("bomb").Clone(agent), name))
		return err == nil
	}
	either := func(name string) bool { return file("codebuilder-1", name) || file("codebuilder-2", name) }
	p.until("the one bomb went off", func() bool { return either("died") })
	for _, agent := range []string{"codebuilder-1", "codebuilder-2"} { // without processes to be had the first agent could not even begin
		if err := os.WriteFile(filepath.Join(p.store("bomb").Clone(agent), "go"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	p.until("the other bomb went off", func() bool { return either("lit") })
	if n := len(p.marked("mark-many")); n > tasks || n < tasks/10 {
		t.Errorf("%d processes under a limit of %d", n, tasks)
	}
	for name, most := range map[string]int{"TasksMax": tasks, "TasksCurrent": tasks, "MemoryMax": memory << 20, "MemoryCurrent": memory << 20} {
		got := strings.TrimSpace(p.systemctl("show", "--value", "-p", name, "forge-autoagent-bomb.slice"))
		if n, err := strconv.Atoi(got); err != nil || n <= 0 || n > most {
			t.Errorf("%s is %q, %v", name, got, err)
		}
	}
	for _, agent := range []string{"codebuilder-1", "codebuilder-2"} {
		if b, err := os.ReadFile(filepath.Join(p.store("bomb").Clone(agent), "died")); err == nil && string(b) != "137\n" {
			t.Errorf("what took memory ended with %q", b)
		}
	}
	at := p.spendAll("bomb")
	p.until("all is dead", func() bool { return len(p.marked("mark-")) == 0 })
	t.Logf("all were dead after %v", time.Since(at).Round(time.Millisecond))
	p.over("bomb")
	if v := p.status("bomb"); v.Phase != "halted: budget" || v.Budget.Reserved != 0 {
		t.Errorf("%q, %+v", v.Phase, v.Budget)
	}
	p.inside("", "rm -r "+slice+".d")
	p.nothingLeft("mark-")
}
