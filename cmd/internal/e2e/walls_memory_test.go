package e2e

import (
	"strings"
	"testing"

	"example.com/AutoAgentProject/core/journal"
	"example.com/AutoAgentProject/core/testkit"
)

// TestMemoryRunsOut: commands that together take more than the mission may are ended by the kernel, that is told as what it
// is, and the mission goes on. The bound is the smallest one that can be set, so the agent program works with it.
func TestMemoryRunsOut(t *testing.T) {
	t.Parallel()
	greedy := bash(`for i in 1 2 3 4; do python3 -c 'x = b"x" * (400 << 20); import time; time.sleep(5)' & done; wait; echo 1 >one`)
	w := newWorld(t, planned(step("one", "true")), works("one", greedy, bash("echo 1 >one")))
	for _, e := range w.env {
		if home, ok := strings.CutPrefix(e, "HOME="); ok {
			deep(t, home, ".config/autoagent/config.yaml", "memory: 1GiB\ntasks: 128\n")
		}
	}
	code, out := w.do("start", "memory", "Take too much")
	testkit.Need(t, strings.Contains(out, "bounded by memory"), "A CGROUP THAT BOUNDS MEMORY")
	told := w.events("memory", journal.MemoryRanOut)
	if len(told) == 0 || !strings.Contains(told[0].Text, "memory of the mission ran out") {
		t.Errorf("it is not told: %d\n%s\n%s", code, out, w.history())
	}
	if code != 0 {
		t.Errorf("start ended with %d\n%s\n%s", code, out, w.history())
	}
}
