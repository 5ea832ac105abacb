package manager

import (
	"testing"
	"time"

	"example.com/AutoAgentProject/core/journal"
	"example.com/AutoAgentProject/core/queue"
	"example.com/AutoAgentProject/core/tick"
)

// TestMailThatNobodyTakes: the person is told once, over any number of ticks.
func TestMailThatNobodyTakes(t *testing.T) {
	w := newWorld(t, "goal", "")
	w.once(tick.Moved) // the plan; its step goes to codebuilder-1, whom nobody ticks
	now := noon
	w.Now = func() time.Time { return now }
	for _, c := range []struct {
		after time.Duration
		told  int
	}{{0, 0}, {queue.OldMail - time.Second, 0}, {queue.OldMail, 1}, {2 * queue.OldMail, 1}} {
		now = noon.Add(c.after)
		w.once(tick.Idle)
		if n := w.said(journal.MailOld); n != c.told {
			t.Errorf("after %s: told %d times, want %d", c.after, n, c.told)
		}
	}
}
