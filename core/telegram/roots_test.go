package telegram

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"example.com/AutoAgentProject/core/journal"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/notify"
	"example.com/AutoAgentProject/core/store"
)

// another gives the world a second root with missions.
func (w *world) another(name string, ids ...string) store.Root {
	w.t.Helper()
	root := store.Root(filepath.Join(w.t.TempDir(), name))
	for _, id := range ids {
		ok(w.t, os.MkdirAll(root.Mission(id).Dir(), 0o700))
		ok(w.t, root.Mission(id).PrepareTombstone())
	}
	w.roots = append(w.roots, root)
	return root
}

// TestTwoRootsOneBot: one poller serves both. Missions with the same id are told apart in their messages, an answer by a button
// goes to the one that asked, and a text that could mean both is asked back.
func TestTwoRootsOneBot(t *testing.T) {
	w := newWorld(t, "my-site", "docs")
	work := w.another("Work", "my-site", "shop")
	for _, root := range w.roots {
		for _, id := range []string{"docs", "my-site", "shop"} {
			if st := root.Mission(id); dirExists(st.Dir()) {
				ok(t, notify.Outbox{Dir: st.Notify()}.Put(notify.Row{ID: "0", Label: id + " b-1", Mission: id, At: noon, Level: journal.Blocker, Text: "."}))
			}
		}
	}
	for w.step() > 0 {
		w.clock.add(Sender{Chat: w.Chat}.Gap())
	}
	all := strings.Join(w.texts(), "\n")
	for _, want := range []string{"[docs b-1]", "[shop b-1]", "[my-site@work b-1]", "[my-site@"} {
		if !strings.Contains(all, want) {
			t.Errorf("%s is missing: %s", want, all)
		}
	}
	if strings.Contains(all, "[my-site b-1]") {
		t.Errorf("two missions have one name: %s", all)
	}

	var yes []string
	for i, root := range w.roots {
		a, _, err := root.Mission("my-site").Ask(t.Context(), mission.Approval{Kind: mission.Deviation, Title: "t", Subject: fmt.Sprint(i), By: "manager"}, noon)
		ok(t, err)
		yes = append(yes, notify.ApprovalButtons("my-site", a.Approval)[0].Data)
	}
	w.fake.presses(testUser, yes[1])
	w.take()
	if a, _ := w.root.Mission("my-site").Approval(1); a.Decision != nil {
		t.Error("the other mission got the answer")
	}
	if a, _ := work.Mission("my-site").Approval(1); a.Decision == nil || a.Decision.Verdict != mission.Approved {
		t.Errorf("%+v", a)
	}

	says := func(text, want string) {
		t.Helper()
		w.fake.writes(text)
		w.take()
		for w.step() > 0 {
			w.clock.add(Sender{Chat: w.Chat}.Gap())
		}
		if got := w.texts(); !strings.Contains(got[len(got)-1], want) {
			t.Errorf("%s: %q", text, got[len(got)-1])
		}
	}
	says("/pause my-site", "2 missions have this id, name one of them: my-site@")
	says("/pause my-site@work", "pause done")
	if d := w.hand.done(); d[len(d)-1] != "pause my-site" {
		t.Errorf("%q", d)
	}
	says("my-site@work: a note", "noted true")
	if notes, _ := work.Mission("my-site").Notes(); len(notes) != 1 {
		t.Errorf("%d notes", len(notes))
	}
	says("/pause my-site@nowhere", "there is no mission my-site@nowhere")
	says("/pause", "4 missions are live, name one of them: docs, my-site@")
	says("/abort my-site@work", "Abort my-site for good?")
	q := w.state.Aborts
	if len(q) != 1 || q[0].Root != work {
		t.Fatalf("%+v", q)
	}
	w.fake.presses(testUser, notify.AbortButtons("my-site", q[0].Token)[0].Data)
	w.take()
	if d := w.hand.done(); d[len(d)-1] != "do-abort my-site" {
		t.Errorf("%q", d)
	}
	_, err := work.Mission("my-site").Stop(mission.Stop{Cause: mission.Aborted, By: "person", At: noon})
	ok(t, err)
	says("/pause my-site", "pause done") // the one that is live
}

// TestRoots: a root is served from the moment it is added until it is gone, under one name.
func TestRoots(t *testing.T) {
	r := Roots{Dir: t.TempDir()}
	one, two := t.TempDir(), t.TempDir()
	link := filepath.Join(t.TempDir(), "link")
	ok(t, os.Symlink(one, link))
	for _, root := range []string{one, two, one, link} {
		ok(t, r.Add(store.Root(root)))
	}
	want := []store.Root{store.Root(one), store.Root(two)}
	slices.Sort(want)
	if all, err := r.All(); err != nil || !slices.Equal(all, want) {
		t.Error(all, err)
	}
	ok(t, os.WriteFile(filepath.Join(r.Dir, "roots", "0000000000000000.json"), []byte(`{"version":1,"root":"/etc"}`), 0o600))
	ok(t, os.WriteFile(filepath.Join(r.Dir, "roots", Hash(two)+".json"), []byte("\x00\x00"), 0o600))
	ok(t, os.Remove(one))
	if all, err := r.All(); err != nil || len(all) != 0 {
		t.Error(all, err)
	}
}
