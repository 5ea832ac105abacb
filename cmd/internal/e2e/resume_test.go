package e2e

import (
	"strings"
	"testing"

	"example.com/AutoAgentProject/core/journal"
)

// TestResume: a mission that halted for money and then for time goes on to its end after more of each, and only then.
func TestResume(t *testing.T) {
	t.Parallel()
	dear := bash("echo more >> log.txt")
	dear.Usage = map[string]any{"input_tokens": 20_000, "output_tokens": 1000} // $0.075
	w := newWorld(t, planned(step("dear", "test -f log.txt"), step("slow", "test -f done", "dear")), works("dear", dear, dear, dear, dear),
		works("slow", bash("[ -f here ] || { touch here; sleep 60; }"), bash("echo 1 > done")))
	w.must(7, "start", "my-site", "Spend", "--budget", "0.20usd", "--max-hours", "20s")
	if v := w.status("my-site"); v.Phase != "halted: budget" {
		t.Fatalf("phase %q", v.Phase)
	}
	if out := w.must(7, "resume", "my-site"); !strings.Contains(out, "budget add my-site") {
		t.Errorf("resume without money:\n%s", out)
	}
	for _, args := range [][]string{{"budget", "add", "my-site", "10%"}, {"budget", "add", "my-site", "1Mtok"}, {"budget", "add", "my-site", "0usd"}, {"hours", "add", "my-site", "0"}} {
		w.must(2, args...)
	}
	if out := w.must(0, "budget", "add", "my-site", "4.80usd"); !strings.Contains(out, "resume my-site") {
		t.Errorf("budget add:\n%s", out)
	}
	w.must(7, "resume", "my-site")
	v := w.status("my-site")
	if v.Phase != "halted: time" || v.Budget.Total != 5_000_000_000 {
		t.Fatalf("phase %q, budget %+v\n%s", v.Phase, v.Budget, w.history())
	}
	if out := w.must(7, "resume", "my-site"); !strings.Contains(out, "hours add my-site") {
		t.Errorf("resume without time:\n%s", out)
	}
	w.must(0, "hours", "add", "my-site", "0.1")
	w.must(0, "resume", "my-site")
	if v := w.status("my-site"); v.Phase != "completed" || v.Stop == nil {
		t.Errorf("phase %q\n%s", v.Phase, w.history())
	}
	w.must(5, "resume", "my-site")
	w.must(5, "budget", "add", "my-site", "1usd")
	w.must(5, "hours", "add", "my-site", "1")
	if n := len(w.events("my-site", journal.MissionStopped)); n != 3 {
		t.Errorf("%d ends were told", n)
	}
	if n := len(w.events("my-site", journal.MissionResumed)); n != 2 {
		t.Errorf("%d resumes were told", n)
	}
}
