//go:build testonly

package reporter

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/journal"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/store"
	"example.com/AutoAgentProject/core/testkit"
	"example.com/AutoAgentProject/core/tick"
)

const childRoot = "REPORTER_TEST_ROOT"

func TestMain(m *testing.M) {
	root := os.Getenv(childRoot)
	if root == "" {
		os.Exit(m.Run())
	}
	st := store.Root(root).Mission("my-site")
	r := Reporter{&tick.Tick{Store: st, Mission: mission.Mission{Version: mission.Version, ID: "my-site"}, Agent: mission.Agent{Name: "reporter"},
		Now: func() time.Time { return noon.Add(time.Hour) }, Log: slog.New(slog.DiscardHandler)}}
	if _, err := r.Once(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// killed lets a tick die at a point, as kill says; the next one says the rest, and nothing twice. False: nothing was killed.
func killed(t *testing.T, point string, kill func(c *exec.Cmd)) bool {
	t.Helper()
	root := t.TempDir()
	w := begun(t, root)
	w.stepDone("m0")
	w.tick()
	w.stepDone("m1")
	w.tick()
	for i := range 3 {
		w.happened(journal.Blocker, fmt.Sprint(i), fmt.Sprint("b", i))
	}
	_, _, err := w.Store.Ask(t.Context(), mission.Approval{Kind: mission.Deviation, Title: "q", Subject: "s", By: "manager"}, noon)
	ok(t, err)
	c := exec.CommandContext(t.Context(), os.Args[0])
	c.Env = append(os.Environ(), childRoot+"="+root)
	kill(c)
	if c.Run() == nil {
		return false
	}
	w.later(time.Hour)
	w.stop(mission.Completed, "done")
	w.tick()
	var all []string
	for _, r := range w.rows() {
		all = append(all, r.Title+"\n"+r.Text)
	}
	text := strings.Join(all, "\n")
	for _, want := range []string{"• m0", "• m1", "b0\n", "b1\n", "b2\n", "Mission my-site completed"} {
		if strings.Count(text, want) != 1 {
			t.Errorf("killed at %s: %q is told %d times:\n%s", point, want, strings.Count(text, want), text)
		}
	}
	if len(w.rows()) > 8 {
		t.Errorf("killed at %s: %d messages", point, len(w.rows()))
	}
	return true
}

// TestKilledAtEachStep kills a tick at each of its steps.
func TestKilledAtEachStep(t *testing.T) {
	n := 1
	for killed(t, fmt.Sprint("step ", n), func(c *exec.Cmd) { c.Env = append(c.Env, fmt.Sprintf("AUTOAGENT_TESTONLY_KILL=%d", n)) }) {
		n++
	}
	if n < 15 {
		t.Errorf("a tick has %d steps only", n-1)
	}
}

// TestKilledAtEachCall kills it at the system calls that change the disk.
func TestKilledAtEachCall(t *testing.T) {
	t.Parallel()
	testkit.KillAtCalls(t, os.Getenv("AUTOAGENT_FULL") != "", 6, func(t *testing.T, point string, under func(*exec.Cmd)) bool { return killed(t, point, under) })
}
