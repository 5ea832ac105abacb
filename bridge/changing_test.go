package bridge_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/journal"
	"example.com/AutoAgentProject/core/plan"
	"example.com/AutoAgentProject/core/store"
	"example.com/AutoAgentProject/core/testkit"
	"example.com/AutoAgentProject/core/view"
)

// TestChanging: missions come, change and go while many look; nobody gets a fault, and at the end all see the last state.
func TestChanging(t *testing.T) {
	root := store.Root(t.TempDir())
	now := time.Now()
	w := testkit.Tell(t, root, "steady", "A site.\n", now, time.Hour)
	w.Step("a", "Make a", "codebuilder", "codebuilder-1", plan.Working, time.Hour)
	run := w.Run("codebuilder-1", "a", time.Hour, 0, "", 0, testkit.Said("x"))
	w.Repo("x", map[string]string{"a.txt": "a\n"})
	w.Ticked()
	w.Write("working")
	base := serve(t, root)
	ctx, end := context.WithCancel(t.Context())
	var all sync.WaitGroup
	var changes, looks atomic.Int64
	limit := 300 // changes of each kind
	if os.Getenv("AUTOAGENT_FULL") != "" {
		limit = 20000
	}
	churn := func(each func(int) error) {
		all.Go(func() {
			for i := range limit {
				if err := each(i); err != nil && ctx.Err() == nil {
					t.Error(err)
					return
				}
				changes.Add(1)
			}
		})
	}
	dir := w.St.Dir()
	replace := func(name, text string) error { // as files.Replace does, without the disk's patience
		tmp := filepath.Join(dir, "."+filepath.Base(name)+"1")
		return errors.Join(os.WriteFile(tmp, []byte(text), 0o600), os.Rename(tmp, filepath.Join(dir, name)))
	}
	state, err := os.ReadFile(filepath.Join(dir, "state.json"))
	ok(t, err)
	churn(func(i int) error {
		if i%3 == 0 {
			return replace("state.json", "{")
		}
		return replace("state.json", strings.Replace(string(state), `"works`, fmt.Sprintf(`"%d works`, i), 1))
	})
	churn(func(i int) error {
		f, err := os.OpenFile(filepath.Join(dir, "events.jsonl"), os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = fmt.Fprintf(f, `{"version":1,"at":%q,"kind":%q,"level":"routine","text":"event %d"}`+"\n", time.Now().UTC().Format(time.RFC3339Nano), journal.PersonTold, i)
		return err
	})
	churn(func(i int) error {
		f, err := os.OpenFile(filepath.Join(w.St.Run("codebuilder-1", run), "stream.jsonl"), os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = fmt.Fprintln(f, testkit.Said(fmt.Sprint("line ", i)))
		return err
	})
	churn(func(i int) error { // missions that come and go
		if i%10 != 0 {
			return nil
		}
		passing := filepath.Join(root.Home(), fmt.Sprintf("passing-%d", i%50))
		if err := os.RemoveAll(passing); err != nil {
			return err
		}
		return os.CopyFS(passing, os.DirFS(filepath.Join(dir, "agents"))) // a mission without most of its files
	})
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	var lookers sync.WaitGroup
	for n, path := range []string{"/", "/missions/steady", "/missions/steady/runs/" + run, "/missions/steady/tasks/a", "/api/v1/missions/steady", "/api/v1/missions", "/metrics", "/missions/passing-10"} {
		lookers.Go(func() {
			for ctx.Err() == nil {
				r, err := http.Get(base + path)
				if err != nil {
					t.Error(err)
					return
				}
				b, err := io.ReadAll(r.Body)
				r.Body.Close()
				if err != nil || r.StatusCode != 200 && !(n == 7 && r.StatusCode == 404) {
					t.Errorf("%s: %s %v\n%.300s", path, r.Status, err, b)
					return
				}
				looks.Add(1)
			}
		})
	}
	<-done
	end()
	lookers.Wait()
	ok(t, replace("state.json", string(state)))
	var d view.Detail
	get(t, base+"/api/v1/missions/steady", &d)
	if n := len(d.Events); n != view.ShownEvents || d.Events[n-1].Text != fmt.Sprintf("event %d", limit-1) || d.Phase != "working" {
		t.Errorf("%d events, %+v, %s", n, d.Events[n-1], d.Phase)
	}
	t.Logf("%d changes, %d looks", changes.Load(), looks.Load())
	if looks.Load() < 20 {
		t.Errorf("only %d looks", looks.Load())
	}
}
