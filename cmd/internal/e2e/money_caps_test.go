package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/AutoAgentProject/core/journal"
	"example.com/AutoAgentProject/core/money"
	"example.com/AutoAgentProject/core/plan"
	"example.com/AutoAgentProject/core/scriptmodel"
)

// configure writes the person's configuration.
func (w *world) configure(text string) {
	w.t.Helper()
	for _, e := range w.env {
		if home, ok := strings.CutPrefix(e, "HOME="); ok {
			dir := filepath.Join(home, ".config", "autoagent")
			if err := os.MkdirAll(dir, 0o700); err != nil {
				w.t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "config.yaml"), []byte(text), 0o600); err != nil {
				w.t.Fatal(err)
			}
		}
	}
}

// TestCapOfTwoMissions: two missions at once spend no more together than the cap of the day; both wait then, and both go on
// to their ends when the cap is raised, while a person's pause of one of them stays.
func TestCapOfTwoMissions(t *testing.T) {
	t.Parallel()
	var steps []plan.ProposedStep
	rules := []scriptmodel.Rule{{}}
	for n := range 3 {
		id := fmt.Sprintf("s%d", n+1)
		dear := bash("echo more >> " + id)
		dear.Usage = map[string]any{"input_tokens": 4500, "output_tokens": 4500}
		steps, rules = append(steps, step(id, "test -f "+id)), append(rules, works(id, dear, dear, dear, dear)) // $0.216, so that one mission alone passes the cap
	}
	rules[0] = planned(steps...)
	w := newWorld(t, rules...)
	const dayCap = 600_000_000
	w.configure("daily_cap: 0.60usd\n")
	ids := []string{"left", "right"}
	var ends []func() (int, string)
	for _, id := range ids {
		_, wait := w.background("start", id, "Talk")
		ends = append(ends, wait)
	}
	for _, id := range ids {
		w.until(id+" waits for the cap", func() bool {
			w.do("tick", id, "codebuilder-1") // as its timer does each minute
			return len(w.events(id, journal.Paused)) > 0
		})
	}
	for _, id := range ids {
		w.do("tick", id, "codebuilder-1") // the cap is what it was
		v := w.status(id)
		if v.Stop != nil || len(v.Pauses) != 1 || v.Pauses[0].Cause != "cap" || v.Pauses[0].Until.IsZero() {
			t.Errorf("%s: %+v %+v", id, v.Stop, v.Pauses)
		}
		if told := w.events(id, journal.Paused); len(told) != 1 || told[0].Level != journal.Blocker {
			t.Errorf("%s: told %+v", id, told)
		}
	}
	if cost := served(w); cost > dayCap || cost < dayCap/3 {
		t.Errorf("served %s of %s", money.FormatUSD(cost), money.FormatUSD(dayCap))
	}
	if out := w.must(0, "budget", "show", "left"); !strings.Contains(out, "of $0.60 used by all missions") {
		t.Errorf("budget show:\n%s", out)
	}

	before := served(w)
	w.must(0, "pause", "right")
	w.configure("daily_cap: 50usd\n")
	w.do("tick", "left", "codebuilder-1")
	if code, out := ends[0](); code != 0 {
		t.Fatalf("left ended with %d\n%s%s", code, out, w.history())
	}
	w.do("tick", "right", "codebuilder-1")
	if v := w.status("right"); v.Stop != nil || len(v.Pauses) != 1 || v.Pauses[0].Cause != "human" {
		t.Errorf("right: %+v", v.Pauses)
	}
	w.must(0, "resume", "right")
	if code, out := ends[1](); code != 0 {
		t.Fatalf("right ended with %d\n%s%s", code, out, w.history())
	}
	if served(w) == before {
		t.Error("nothing was spent after the cap was raised")
	}
}
