package app

import (
	"os"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/journal"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/notify"
	"example.com/AutoAgentProject/core/store"
)

// TestEnded: a poller waits for the last message itself, which is there a moment after the event of the end.
func TestEnded(t *testing.T) {
	st := store.Root(t.TempDir()).Mission("my-site")
	stop := mission.Stop{Cause: mission.Aborted, At: time.Now().Add(-time.Minute)}
	is := func(what string, want bool) {
		t.Helper()
		if ended(st, stop) != want {
			t.Errorf("%s: %v", what, !want)
		}
	}
	if err := os.MkdirAll(st.Dir(), 0o700); err != nil {
		t.Fatal(err)
	}
	is("nothing was told", false)
	if err := st.Journal().Add(journal.Event{At: time.Now(), Kind: journal.MissionStopped, Level: journal.End}); err != nil {
		t.Fatal(err)
	}
	is("there is no message yet", false)
	box := notify.Outbox{Dir: st.Notify()}
	put := func(id string, at time.Time) {
		if err := box.Put(notify.Row{ID: id, Mission: "my-site", At: at, Level: journal.End}); err != nil {
			t.Fatal(err)
		}
	}
	put("old", stop.At.Add(-time.Hour))
	is("that of an earlier halt", false)
	put("new", time.Now())
	is("it is there", true)
}
