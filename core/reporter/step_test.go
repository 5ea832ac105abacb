//go:build testonly

package reporter

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/journal"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/store"
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
		Now: func() time.Time { return noon }, Log: slog.New(slog.DiscardHandler)}}
	if _, err := r.Once(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// TestKilledAtEachStep kills a tick at each of its steps; the next one says the rest, and nothing twice.
func TestKilledAtEachStep(t *testing.T) {
	n := 1
	for ; ; n++ {
		root := t.TempDir()
		r := begun(t, root)
		r.happened(t, journal.Milestone, "", "zero")
		r.once(t, "before", tick.Moved, "zero")
		for i := range 3 {
			r.happened(t, journal.Blocker, fmt.Sprint(i), fmt.Sprint("b", i))
		}
		c := exec.CommandContext(t.Context(), os.Args[0])
		c.Env = append(os.Environ(), childRoot+"="+root, fmt.Sprintf("AUTOAGENT_TESTONLY_KILL=%d", n))
		if c.Run() == nil {
			break
		}
		r.happened(t, journal.End, "", "end")
		if _, err := r.Once(t.Context()); err != nil {
			t.Error(err)
		}
		r.said(t, fmt.Sprintf("killed at step %d", n), "zero|b0|b1|b2|end")
	}
	if n < 12 {
		t.Errorf("a tick has %d steps only", n-1)
	}
}
