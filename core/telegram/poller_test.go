package telegram

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/journal"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/notify"
)

// until waits for a condition.
func until(t testing.TB, what string, cond func() bool) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for !cond() {
		if time.Now().After(deadline) {
			t.Fatal("never: " + what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// runs lets the poller run as it does for real, with the real clock.
func (w *world) runs() (stop func()) {
	w.t.Helper()
	w.Now, w.Every, w.hand.now = time.Now, time.Millisecond, time.Now
	ctx, cancel := context.WithCancel(w.t.Context())
	ended := make(chan error)
	go func() { ended <- w.Run(ctx, nil) }()
	return func() {
		w.t.Helper()
		cancel()
		if err := <-ended; err != nil {
			w.t.Error(err)
		}
	}
}

// TestMissionsShareABot: three missions, one poller: everything goes out and comes in, by its mission, and nobody else
// polls the bot.
func TestMissionsShareABot(t *testing.T) {
	t.Parallel()
	ids := []string{"docs", "my-site", "shop"}
	w := newWorld(t, ids...)
	stop := w.runs()
	for i := range 5 {
		for _, id := range ids {
			ok(t, w.box(id).Put(notify.Row{ID: fmt.Sprint(i), Label: fmt.Sprintf("%s m-%d", id, i), Mission: id, At: time.Now(), Level: journal.Milestone, Text: "."}))
			w.fake.writes(fmt.Sprintf("%s: note %d", id, i))
		}
	}
	until(t, "all notes", func() bool { return len(w.hand.done()) == 15 })
	until(t, "all messages", func() bool { return strings.Count(strings.Join(w.texts(), "\n"), " m-") == 15 })
	until(t, "all answers", func() bool { return strings.Count(strings.Join(w.texts(), "\n"), "noted true") == 15 })
	stop()
	for _, id := range ids {
		if notes, err := w.root.Mission(id).Notes(); err != nil || len(notes) != 5 {
			t.Errorf("%s: %d notes, %v", id, len(notes), err)
		}
	}
	if strings.Contains(w.log.String(), "Conflict") {
		t.Error(w.log.String())
	}
}

// TestButtonsClose: after a decision, wherever it was taken, the message says so and has no buttons.
func TestButtonsClose(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "my-site")
	w.clock.now = time.Now()
	a, yes, _ := w.ask("s1")
	b, _, _ := w.ask("s2")
	for _, x := range []mission.Approval{a.Approval, b.Approval} {
		ok(t, w.box("my-site").Put(notify.Row{ID: notify.ApprovalRow(x.N), Label: fmt.Sprint("a-", x.N), Mission: "my-site", At: time.Now(), Level: journal.Blocker, Title: "May it?", Text: "x",
			Approval: x.N, Buttons: notify.ApprovalButtons("my-site", x)}))
	}
	w.fake.edits = []fault{html502, slow(1), lost}
	stop := w.runs()
	until(t, "both are asked", func() bool { return len(w.fake.shown()) == 2 })
	w.fake.presses(testUser, yes)
	_, _, err := w.root.Mission("my-site").Decide(b.N, mission.Decision{Verdict: mission.Rejected, Note: "not now", By: "at the terminal", Key: "k"}, time.Now())
	ok(t, err)
	closed := func() (n int) {
		for _, m := range w.fake.shown() {
			if m.Edited == 1 && len(m.Keyboard.InlineKeyboard) == 0 {
				n++
			}
		}
		return n
	}
	until(t, "both are closed", func() bool { return closed() == 2 })
	until(t, "the press is answered", func() bool { w.fake.mu.Lock(); defer w.fake.mu.Unlock(); return len(w.fake.answered) == 1 })
	stop()
	got := w.texts()
	if !slices.Contains(got, "[a-1] May it?\nx\n\n→ approved (Telegram)") || !slices.Contains(got, "[a-2] May it?\nx\n\n→ rejected (at the terminal): not now") {
		t.Errorf("%q", got)
	}
	before := w.fake.count("editMessageText")
	stop = w.runs()
	w.fake.writes("hello")
	until(t, "hello", func() bool { return slices.Contains(w.hand.done(), "tell my-site hello") })
	stop()
	if n := w.fake.count("editMessageText"); n != before {
		t.Errorf("%d more edits", n-before)
	}
}

// TestButtonsCloseLater: an edit that has to wait is not tried before its time.
func TestButtonsCloseLater(t *testing.T) {
	w := newWorld(t, "my-site")
	a, _, _ := w.ask("s")
	ok(t, w.box("my-site").Put(notify.Row{ID: notify.ApprovalRow(1), Label: "a-1", Mission: "my-site", At: noon, Level: journal.Blocker, Text: "x", Approval: 1, Buttons: notify.ApprovalButtons("my-site", a.Approval)}))
	w.step()
	_, _, err := w.root.Mission("my-site").Decide(1, mission.Decision{Verdict: mission.Rejected, Key: "k"}, noon)
	ok(t, err)
	w.fake.edits = []fault{slow(30), refused(403, "Forbidden: no")}
	for i, c := range []struct {
		wait  time.Duration
		edits int
	}{{0, 1}, {30 * time.Second, 1}, {time.Second, 2}, {59 * time.Second, 2}, {time.Second, 3}, {time.Hour, 3}} {
		w.clock.add(c.wait)
		for range 3 {
			w.closeButtons(t.Context())
		}
		if n := w.fake.count("editMessageText"); n != c.edits {
			t.Errorf("%d: %d edits", i, n)
		}
	}
	if m := w.fake.shown(); len(m[0].Keyboard.InlineKeyboard) != 0 {
		t.Errorf("%+v", m[0])
	}
}

// TestPollIsNoBusyLoop: a peer that answers at once is asked once in a while, one that refuses even less.
func TestPollIsNoBusyLoop(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "my-site")
	w.clock.now = time.Now()
	w.PollTime = 20 * time.Millisecond // the fake answers after that
	stop := w.runs()
	until(t, "some polls", func() bool { return w.fake.count("getUpdates") >= 5 })
	begun, before := time.Now(), w.fake.count("getUpdates")
	until(t, "more polls", func() bool { return w.fake.count("getUpdates") >= before+10 })
	if d := time.Since(begun); d < 9*20*time.Millisecond {
		t.Errorf("10 polls in %s", d)
	}
	stop()
	// Somebody else has the bot.
	until(t, "the last poll is over", func() bool {
		w.fake.mu.Lock()
		defer w.fake.mu.Unlock()
		was := w.fake.polling
		w.fake.polling = true
		return !was
	})
	before = w.fake.count("getUpdates")
	stop = w.runs()
	w.put("1", "m-1", "x", journal.Milestone)
	until(t, "sending goes on", func() bool { return len(w.fake.shown()) == 1 })
	until(t, "the conflict is told", func() bool {
		return strings.Contains(w.log.String(), "Conflict: terminated by other getUpdates request")
	})
	stop()
	if n := w.fake.count("getUpdates") - before; n > 3 {
		t.Errorf("%d polls against a conflict", n)
	}
}

// TestUntilIdle: it ends when nothing is live and nothing is left, not before.
func TestUntilIdle(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "my-site")
	w.clock.now = time.Now()
	w.Now, w.Every = time.Now, time.Millisecond
	w.put("1", "e-1", "the end", journal.End)
	w.fake.breaks(html502)
	asked := 0
	if err := w.Run(t.Context(), func() bool { asked++; return asked > 3 }); err != nil {
		t.Error(err)
	}
	w.said("before it left", "[e-1] the end")
	if asked != 4 {
		t.Errorf("asked %d times", asked)
	}
}

// TestOneForEachBot: the second one is told; the lock goes with the process that holds it.
func TestOneForEachBot(t *testing.T) {
	dir := t.TempDir()
	unlock, err := Lock(dir, "a")
	ok(t, err)
	if _, err := Lock(dir, "a"); !errors.Is(err, ErrTaken) {
		t.Error(err)
	}
	other, err := Lock(dir, "b")
	ok(t, err)
	other()
	unlock()
	unlock, err = Lock(dir, "a")
	ok(t, err)
	unlock()
	// A process that holds it and dies.
	c := exec.Command("flock", dir+"/autoagent-poller-a.lock", "-c", "echo held; exec sleep 60")
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := c.StdoutPipe()
	ok(t, err)
	if err := c.Start(); err != nil {
		t.Skip("flock is not installed")
	}
	_, err = out.Read(make([]byte, 8))
	ok(t, err)
	if _, err := Lock(dir, "a"); !errors.Is(err, ErrTaken) {
		t.Error(err)
	}
	ok(t, syscall.Kill(-c.Process.Pid, syscall.SIGKILL))
	_ = c.Wait()
	until(t, "it is free", func() bool {
		unlock, err := Lock(dir, "a")
		if err == nil {
			unlock()
		}
		return err == nil
	})
	if Hash(testToken) == Hash(testToken+"x") || strings.Contains(Hash(testToken), testToken[:6]) || len(Hash(testToken)) != 16 {
		t.Error(Hash(testToken))
	}
	if st, err := os.Stat(dir + "/autoagent-poller-a.lock"); err != nil || st.Size() != 0 {
		t.Error("the lock holds something", err)
	}
}
