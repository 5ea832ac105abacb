package telegram

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/journal"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/notify"
	"example.com/AutoAgentProject/core/store"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// clock is a time that tests set.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// hand is what does the person's bidding in tests: it decides and notes for real and counts.
type hand struct {
	now  func() time.Time
	mu   sync.Mutex
	did  []string
	fail error
}

func (h *hand) Live(_ context.Context, root store.Root) ([]string, error) {
	ids, err := root.IDs()
	var live []string
	for _, id := range ids {
		if stop, err := root.Mission(id).Stopped(); err == nil && stop == nil {
			live = append(live, id)
		}
	}
	return live, err
}

func (h *hand) Do(_ context.Context, a Action, key string) (string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.fail != nil {
		return "", h.fail
	}
	h.did = append(h.did, strings.TrimSpace(fmt.Sprintf("%s %s %s", a.Verb, a.Mission, a.Note)))
	st := a.Root.Mission(a.Mission)
	switch a.Verb {
	case Approve, Reject, Skip:
		v := mission.Approved
		if a.Verb == Reject {
			v = mission.Rejected
		}
		asked, mine, err := st.Decide(a.N, mission.Decision{Verdict: v, Note: a.Note, By: "Telegram", Key: key}, h.now())
		if err != nil {
			return "", err
		}
		if !mine {
			return fmt.Sprintf("approval %d was decided before: %s", a.N, asked.Decision.Said()), nil
		}
		return fmt.Sprintf("approval %d is %s", asked.N, asked.Decision.Said()), nil
	case Tell:
		fresh, err := st.AddNote(store.Note{Key: key, At: a.At, By: "Telegram", Text: a.Note})
		return fmt.Sprint("noted ", fresh), err
	}
	return a.Verb + " done", nil
}

func (h *hand) done() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]string(nil), h.did...)
}

// world is a root with missions, a fake Telegram and a poller that steps by hand.
type world struct {
	*Poller
	t     testing.TB
	fake  *fake
	clock *clock
	hand  *hand
	log   *lockedBuffer
	root  store.Root
	roots []store.Root
}

func newWorld(t testing.TB, ids ...string) *world {
	t.Helper()
	return worldAt(t, t.TempDir(), newFake(t), ids...)
}

func worldAt(t testing.TB, dir string, f *fake, ids ...string) *world {
	t.Helper()
	root := store.Root(dir)
	for _, id := range ids {
		ok(t, os.MkdirAll(root.Mission(id).Dir(), 0o700))
		ok(t, root.Mission(id).PrepareTombstone())
	}
	w := &world{t: t, fake: f, clock: &clock{now: noon}, log: &lockedBuffer{}, root: root, roots: []store.Root{root}}
	w.hand = &hand{now: w.clock.Now}
	w.Poller = &Poller{Client: f.client(), Who: Who{User: testUser, Chat: testChat}, Roots: func() ([]store.Root, error) { return w.roots, nil }, Dir: Folder(root.Host(), testToken),
		Bot: Hash(testToken), Hands: w.hand, Now: w.clock.Now, Log: slog.New(slog.NewTextHandler(w.log, nil)), PollTime: time.Second, Pause: 10 * time.Millisecond}
	ok(t, w.Open())
	return w
}

// put queues a message.
func (w *world) put(id, label, text string, level journal.Level) {
	w.t.Helper()
	ok(w.t, w.box("my-site").Put(notify.Row{ID: id, Label: label, Mission: "my-site", At: w.clock.Now(), Level: level, Text: text}))
}

func (w *world) box(id string) notify.Outbox { return notify.Outbox{Dir: w.root.Mission(id).Notify()} }

func (w *world) courier() *notify.Courier {
	return &notify.Courier{Channel: Sender{Client: w.Client, Chat: w.Chat, Moved: w.moved}, Outboxes: func() ([]notify.Outbox, error) { return w.outboxes() },
		Dir: w.Dir, Now: w.Now, Log: w.Log}
}

// step sends at most one message.
func (w *world) step() (left int) {
	w.t.Helper()
	_, _, left, err := w.courier().Step(w.t.Context())
	ok(w.t, err)
	return left
}

// texts are what the chat shows.
func (w *world) texts() []string {
	var out []string
	for _, m := range w.fake.shown() {
		out = append(out, m.Text)
	}
	return out
}

// said checks what the chat shows.
func (w *world) said(where string, want ...string) {
	w.t.Helper()
	got := w.texts()
	if len(got) != len(want) {
		w.t.Errorf("%s: the chat shows %q, want %q", where, got, want)
		return
	}
	for i := range want {
		if got[i] != want[i] {
			w.t.Errorf("%s: the chat shows %q, want %q", where, got[i], want[i])
		}
	}
}

// take takes in what waits at Telegram and does it.
func (w *world) take() {
	w.t.Helper()
	list, err := w.Client.Updates(w.t.Context(), w.state.Offset, 0)
	ok(w.t, err)
	ok(w.t, w.Take(list))
	w.Work(w.t.Context())
}

// answers are the poller's own messages, not sent yet.
func (w *world) answers() []notify.Row {
	w.t.Helper()
	rows, _, err := w.Outbox().Pending(w.clock.Now())
	ok(w.t, err)
	return rows
}

func (w *world) lastAnswer() string {
	rows := w.answers()
	if len(rows) == 0 {
		return ""
	}
	return rows[len(rows)-1].Text
}

func writeFile(path, text string) error { return os.WriteFile(path, []byte(text), 0o600) }

// lockedBuffer is a log that can be read while it is written.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
