package systemdengine_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/engine"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/store"
	"example.com/AutoAgentProject/core/testkit"
	"example.com/AutoAgentProject/core/units"
)

const (
	program = "/opt-test/program" // this test's, in a host
	tmp     = "/var/tmp"          // on the host's disk; a unit's own /tmp would hide what the tests write
)

// host is a machine with this test's program in it.
func host(t *testing.T) *testkit.Host {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(t.TempDir(), "program")
	if out, err := exec.Command("install", "-m", "755", self, copied).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return testkit.NewHost(t, testkit.HostOptions{Users: []string{owner}, Linger: []string{owner}, Binds: []testkit.Bind{{Host: copied, Inside: program}}})
}

// inside runs a test of this package in the host, as who starts missions with that manager.
func inside(t *testing.T, h *testkit.Host, m units.Manager, test string, env ...string) {
	t.Helper()
	user := ""
	if m == units.User {
		user = owner
	}
	ctx, cancel := context.WithTimeout(t.Context(), 9*time.Minute)
	defer cancel()
	argv := append([]string{"env", "TMPDIR=" + tmp, "CI=true", "AUTOAGENT_TEST_INSIDE=" + string(m)}, env...)
	out, exit := h.Run(ctx, user, append(argv, program, "-test.run=^"+test+"$", "-test.v", "-test.timeout=8m")...)
	if exit != 0 || !strings.Contains(out, "--- PASS: "+test) || strings.Contains(out, "--- SKIP") {
		t.Errorf("%s in the host, %s manager: exit %d\n%s", test, m, exit, out)
		for _, e := range h.Journal("", "--lines=25") {
			t.Log(e["_SYSTEMD_UNIT"], e["_SYSTEMD_USER_UNIT"], e["MESSAGE"])
		}
		return
	}
	t.Log(out)
}

// clean checks that nothing of any mission is left in either manager.
func clean(t *testing.T, h *testkit.Host) {
	t.Helper()
	for user, dir := range map[string]string{"": "/etc/systemd/system", owner: "/home/" + owner + "/.config/systemd/user"} {
		if got := h.Systemctl(user, "list-units", "--all", "--plain", "--no-legend", "forge-autoagent-*", "forge-autoagentguard-*"); got != "" {
			t.Errorf("the manager of %q still has\n%s", user, got)
		}
		out, _ := h.Run(t.Context(), "", "find", dir, "(", "-name", "*autoagent*", "-o", "-name", ".tmp*", ")")
		if out != "" && !strings.Contains(out, "No such file") {
			t.Errorf("in the folder of units of %q there still is\n%s", user, out)
		}
	}
	out, _ := h.Run(t.Context(), "", "find", "/sys/fs/cgroup", "-name", "forge-autoagent*-*")
	if out != "" {
		t.Errorf("there still are control groups:\n%s", out)
	}
}

// needInside leaves a test to inside.
func needInside(t *testing.T) {
	t.Helper()
	if manager() == "" {
		t.Skip("this is run by another test, in a host")
	}
}

// eachInside runs tests of this package in one host, with both managers at the same time, which know nothing of each other.
func eachInside(t *testing.T, h *testkit.Host, tests []string, env ...string) {
	t.Helper()
	t.Run("in", func(t *testing.T) {
		for _, m := range []units.Manager{units.System, units.User} {
			t.Run(string(m), func(t *testing.T) {
				t.Parallel()
				for _, test := range tests {
					inside(t, h, m, test, env...)
				}
			})
		}
	})
}

func TestHost(t *testing.T) {
	for _, tests := range [][]string{{"TestInside"}, {"TestEdges", "TestBus"}, {"TestReconcile"}} {
		t.Run(tests[0], func(t *testing.T) {
			t.Parallel()
			h := host(t)
			eachInside(t, h, tests)
			clean(t, h)
		})
	}
}

// TestHostCrash: after a crash of the machine a mission ticks again, and a stop that was cut off is finished, both with
// nobody's help.
func TestHostCrash(t *testing.T) {
	t.Parallel()
	h := host(t)
	for i, phase := range []string{"begin", "again", "finish"} {
		if i > 0 {
			h.Crash()
			h.Boot()
		}
		if eachInside(t, h, []string{"TestCrash"}, "AUTOAGENT_TEST_PHASE="+phase); t.Failed() {
			return
		}
	}
	clean(t, h)
}

func TestInside(t *testing.T) {
	needInside(t)
	testkit.EngineSuite(t, func(t *testing.T, root store.Root, command func(mission.Mission, mission.Agent) []string, every time.Duration) engine.Engine {
		bin := t.TempDir()
		w := wire(t, string(root), bin, every, nil)
		file := filepath.Join(bin, "wired.json")
		o := owned{w.engine(file), file, command}
		t.Cleanup(func() { // after a test that ended early
			ids, _ := root.IDs()
			for _, id := range ids {
				_, _ = root.Mission(id).Stop(mission.Stop{Cause: mission.Aborted, Reason: "the test is over", By: "test", At: time.Now()})
				if _, err := o.Stop(context.Background(), id); err != nil {
					t.Error(err)
				}
			}
		})
		return o
	})
}
