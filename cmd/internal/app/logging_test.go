package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/store"
	"example.com/AutoAgentProject/core/usererr"
)

func TestJournalCommand(t *testing.T) {
	for manager, want := range map[string]string{
		"user": "journalctl --user MISSION=my-site", "": "journalctl --user MISSION=my-site", "system": "journalctl MISSION=my-site",
	} {
		if got := strings.Join(journalCommand(manager, "my-site"), " "); got != want {
			t.Errorf("%q: %s", manager, got)
		}
	}
}

// growing is a buffer that a test looks into while it is written.
type growing struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (g *growing) Write(p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.b.Write(p)
}

func (g *growing) String() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.b.String()
}

// TestRotation: a log file is closed when it is full, a follower misses no line and repeats none, and old files go.
func TestRotation(t *testing.T) {
	t.Parallel()
	st := store.Root(t.TempDir()).Mission("my-site")
	path := st.AgentLog("manager")
	file := logFile(path)
	if file.MaxSize != 10 || file.MaxBackups != 5 {
		t.Errorf("a log file has %d MB and %d files before it", file.MaxSize, file.MaxBackups)
	}
	file.MaxSize, file.MaxBackups = 1, 2
	defer file.Close()

	out := &growing{}
	c := &cli{env: Env{Stdout: out}}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- c.tail(ctx, st, path, true) }()

	var want strings.Builder
	files := func() int {
		found, _ := filepath.Glob(filepath.Join(st.Logs(), "*"))
		return len(found)
	}
	await := func(what string, ok func() bool) {
		t.Helper()
		for end := time.Now().Add(20 * time.Second); !ok(); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("waited in vain until %s: %d of %d bytes", what, len(out.String()), want.Len())
			}
		}
	}
	seen := map[string]bool{}
	for n := 0; n < 20; n++ { // each burst is 200 KB, so that many of them rotate the file in their middle
		for i := range 200 {
			line := fmt.Sprintf("line %d.%d %s", n, i, strings.Repeat("x", 1000))
			fmt.Fprintln(file, line)
			fmt.Fprintln(&want, line)
		}
		found, _ := filepath.Glob(filepath.Join(st.Logs(), "manager-*.log"))
		for _, f := range found {
			seen[f] = true
		}
		await("the follower is there", func() bool { return len(out.String()) >= want.Len() })
	}
	if out.String() != want.String() {
		t.Error("the follower missed lines or repeated some")
	}
	if len(seen) < 3 {
		t.Errorf("there were %d rotations", len(seen))
	}
	await("old files are gone", func() bool { return files() == 3 })
	stop() // Ctrl-C
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if err := c.events(ctx, st, true); err != nil {
		t.Error(err)
	}
}

// TestTickSaysItOnce: how a tick ended badly stands once on stderr and once in the agent's log, with all that finds it.
func TestTickSaysItOnce(t *testing.T) {
	t.Parallel()
	root := store.Root(t.TempDir())
	st := root.Mission("my-site")
	if err := errors.Join(os.MkdirAll(st.Dir(), 0o700), st.CreateMission(mission.Mission{Version: mission.Version, ID: "my-site", Roster: []mission.Agent{{Name: "quota", Role: mission.Quota}}}),
		os.WriteFile(filepath.Join(st.Dir(), "ledger.jsonl"), []byte("damaged\n"), 0o600), os.MkdirAll(st.Agent("quota"), 0o700)); err != nil {
		t.Fatal(err)
	}
	var errs bytes.Buffer
	status := TickMain(mission.Quota, Env{Args: []string{"--root", string(root), "--mission", "my-site"}, Stdout: &errs, Stderr: &errs, Getenv: func(string) string { return "" }})
	if status != int(usererr.Unreadable) || strings.Count(errs.String(), "autoagent-quota: error: ") != 1 || strings.Count(errs.String(), "\n") != 2 {
		t.Errorf("exit status %d\n%s", status, &errs)
	}
	log, err := os.ReadFile(st.AgentLog("quota"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`level=ERROR msg="the tick ended badly" mission=my-site agent=quota tick=20`, "ledger"} {
		if !strings.Contains(string(log), want) {
			t.Errorf("the log lacks %s:\n%s", want, log)
		}
	}
}
