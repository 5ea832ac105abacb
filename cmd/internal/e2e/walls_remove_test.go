package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRemove: what is elsewhere goes without a trace, what is not is kept at a place that is told, and a live mission stays.
func TestRemove(t *testing.T) {
	t.Parallel()
	shop := t.TempDir()
	git(t, shop, "init", "-q", "-b", "trunk")
	put(t, shop, "base", "base\n")
	git(t, shop, "add", "-A")
	git(t, shop, "-c", "user.name=a", "-c", "user.email=a@host.example", "commit", "-qm", "base")
	long := bash("true")
	long.DelayMS = 170_000
	rule := works("one", bash("echo 1 > one"))
	aborted := works("half", bash("echo precious > half-done"), long)
	plan := planned(step("half", "test -f half"))
	plan.Name, plan.When = "plan of half", append(plan.When, "Half of it")
	w := newWorld(t, plan, planned(step("one", "test -f one")), rule, aborted)
	remove := func(id string, more ...string) (kept string, why string) {
		t.Helper()
		var r struct {
			Kept string
			Why  []string
		}
		if err := json.Unmarshal([]byte(w.must(0, append([]string{"remove", id, "--json"}, more...)...)), &r); err != nil {
			t.Fatal(err)
		}
		for _, dir := range []string{w.store(id).Dir(), w.store(id).Work(), w.store(id).Logs()} {
			if _, err := os.Lstat(dir); err == nil {
				t.Errorf("%s: %s is left", id, dir)
			}
		}
		if left, _ := filepath.Glob(filepath.Join(w.root, ".new-*")); len(left) > 0 {
			t.Errorf("%s: left %v", id, left)
		}
		return r.Kept, strings.Join(r.Why, "; ")
	}

	w.must(0, "start", "delivered", "One step", "--from", shop)
	w.must(0, "deliver", "delivered")
	if kept, why := remove("delivered"); kept != "" {
		t.Errorf("kept although it was delivered: %s (%s)", kept, why)
	}
	w.must(3, "remove", "delivered") // there is none of that name

	w.must(0, "start", "undelivered", "One step", "--from", shop)
	kept, why := remove("undelivered")
	if !strings.Contains(why, "not delivered") || git(t, filepath.Join(kept, "repo.git"), "show", "main:one") != "1" {
		t.Errorf("the only copy of the work: %q, %s", kept, why)
	}

	_, wait := w.background("start", "half", "Half of it")
	w.until("the agent has begun", func() bool {
		_, err := os.Stat(filepath.Join(w.store("half").Clone("codebuilder-1"), "half-done"))
		return err == nil
	})
	if code, out := w.do("remove", "half"); code == 0 || !strings.Contains(out, "has not ended") {
		t.Errorf("a live mission: %d\n%s", code, out)
	}
	w.must(0, "abort", "half")
	wait()
	kept, why = remove("half")
	if b, err := os.ReadFile(filepath.Join(kept, "codebuilder-1", "half-done")); err != nil || string(b) != "precious\n" {
		t.Errorf("files that were not committed: %q, %v (%s)", b, err, why)
	}
	if _, err := os.Stat(filepath.Join(kept, "manager")); err == nil {
		t.Error("the manager's clone is kept although nothing is in it")
	}

	w.must(0, "start", "all", "One step", "--from", shop)
	w.must(0, "deliver", "all", "--branch", "all")
	if kept, _ := remove("all", "--keep-work"); kept == "" {
		t.Error("--keep-work keeps nothing")
	} else if _, err := os.Stat(filepath.Join(kept, "codebuilder-1", "one")); err != nil {
		t.Error(err)
	}
}
