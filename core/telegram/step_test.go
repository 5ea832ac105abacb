//go:build testonly

package telegram

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
	"example.com/AutoAgentProject/core/notify"
	"example.com/AutoAgentProject/core/store"
	"example.com/AutoAgentProject/core/testkit"
)

const (
	childRoot     = "TELEGRAM_TEST_ROOT"
	childEndpoint = "TELEGRAM_TEST_ENDPOINT"
)

// The test binary, started again with these variables, is a poller that leaves when all is done.
func TestMain(m *testing.M) {
	root := store.Root(os.Getenv(childRoot))
	if root == "" {
		os.Exit(m.Run())
	}
	c, err := New(testToken, os.Getenv(childEndpoint))
	if err == nil {
		p := &Poller{Client: c, Who: Who{User: testUser, Chat: testChat}, Roots: func() ([]store.Root, error) { return []store.Root{root}, nil }, Dir: Folder(root.Host(), testToken), Bot: Hash(testToken),
			Hands: &hand{now: time.Now}, Now: time.Now, Log: slog.New(slog.DiscardHandler), PollTime: time.Second, Pause: 5 * time.Millisecond, Every: time.Millisecond}
		err = p.Run(context.Background(), func() bool {
			sent, _ := notify.Outbox{Dir: root.Mission("my-site").Notify()}.Done(notify.Sent, "approval-")
			return p.state.Offset == 1003 && len(sent) == 1 && sent[0].Closed
		})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// killed runs a poller that dies at a point, as kill says, and after it one that ends in good order. Then every message arrived, at
// most one of them twice and then marked, and no decision and no note is lost or taken twice. False: nothing was killed.
func killed(t *testing.T, point string, kill func(c *exec.Cmd)) bool {
	t.Helper()
	f, root := newFake(t), t.TempDir()
	defer f.server.CloseClientConnections()
	ids := []string{"docs", "my-site", "shop"}
	w := worldAt(t, root, f, ids...)
	w.clock.now = time.Now()
	for _, id := range ids {
		for i, level := range []journal.Level{journal.Milestone, journal.Blocker} {
			ok(t, w.box(id).Put(notify.Row{ID: fmt.Sprint(i), Label: fmt.Sprintf("%s %s", id, level), Mission: id, At: w.clock.Now(), Level: level, Text: "."}))
		}
	}
	a, yes, no := w.ask("s")
	ok(t, w.box("my-site").Put(notify.Row{ID: notify.ApprovalRow(1), Label: "asks", Mission: "my-site", At: w.clock.Now(), Level: journal.Blocker, Text: "?", Approval: 1, Buttons: notify.ApprovalButtons("my-site", a.Approval)}))
	f.presses(testUser, yes)
	f.presses(testUser, no)
	f.writes("shop: a note")
	start := func(change func(c *exec.Cmd)) error {
		c := exec.CommandContext(t.Context(), os.Args[0])
		c.Env = append(os.Environ(), childRoot+"="+root, childEndpoint+"="+f.server.URL)
		change(c)
		out, err := c.CombinedOutput()
		if err != nil && len(out) > 0 && !strings.Contains(string(out), "killed by SIGKILL") {
			t.Errorf("%s: %s", point, out)
		}
		return err
	}
	if start(kill) == nil {
		return false
	}
	if err := start(func(*exec.Cmd) {}); err != nil {
		t.Fatalf("%s: the next one: %v", point, err)
	}
	all := strings.Join(w.texts(), "\n")
	again := strings.Count(all, notify.AgainMark)
	if again > 1 {
		t.Errorf("killed at %s: %d messages are repeated", point, again)
	}
	doubled := 0
	for _, label := range []string{"[docs milestone]", "[docs blocker]", "[my-site milestone]", "[my-site blocker]", "[shop milestone]", "[shop blocker]", "[asks]", "noted true"} {
		times := strings.Count(all, label)
		if label == "noted true" {
			times += strings.Count(all, "noted false") // kept, and answered by the next poller
		}
		if times < 1 || times > 2 {
			t.Errorf("killed at %s: %s is told %d times", point, label, times)
		}
		if times == 2 {
			doubled = 1
		}
	}
	f.mu.Lock()
	toasts := strings.Join(f.answered, "\n")
	f.mu.Unlock()
	if !strings.Contains(toasts, "approval 1 is approved") || !strings.Contains(toasts, "decided before: approved") {
		t.Errorf("killed at %s: the presses are answered %q", point, toasts)
	}
	if doubled > again {
		t.Errorf("killed at %s: something is told twice, and not marked:\n%s", point, all)
	}
	if d := w.decision(1); d == nil || d.Verdict != mission.Approved {
		t.Errorf("killed at %s: %+v", point, d)
	}
	if notes, err := w.root.Mission("shop").Notes(); err != nil || len(notes) != 1 {
		t.Errorf("killed at %s: %d notes, %v", point, len(notes), err)
	}
	if rows, _ := w.box("my-site").Done(notify.Parked, ""); len(rows) > 0 {
		t.Errorf("killed at %s: parked: %+v", point, rows)
	}
	return true
}

// TestPollerKilledAtEachStep kills the poller at each of its writes.
func TestPollerKilledAtEachStep(t *testing.T) {
	t.Parallel()
	every, n := 4, 1
	if os.Getenv("AUTOAGENT_FULL") != "" {
		every = 1
	}
	for killed(t, fmt.Sprint("step ", n), func(c *exec.Cmd) { c.Env = append(c.Env, fmt.Sprintf("AUTOAGENT_TESTONLY_KILL=%d", n)) }) {
		n += every
	}
	if n < 80 {
		t.Errorf("a poller has %d steps only", n)
	}
}

// TestPollerKilledAtEachCall kills it at its system calls: those that change the disk or reach the network.
func TestPollerKilledAtEachCall(t *testing.T) {
	t.Parallel()
	testkit.KillAtCalls(t, os.Getenv("AUTOAGENT_FULL") != "", 12, func(t *testing.T, point string, under func(*exec.Cmd)) bool { return killed(t, point, under) })
}
