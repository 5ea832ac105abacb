package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"example.com/AutoAgentProject/core/plan"
)

// TestKilledAtEachStep kills one tick at its N-th durable step, in every role, and lets the mission go on: it must end
// as if nothing had happened, with every step merged once and every handoff finished once. By default some steps of each
// are tried, with AUTOAGENT_FULL=1 all of them.
func TestKilledAtEachStep(t *testing.T) {
	t.Parallel()
	for program, c := range map[string]struct{ last, stride int }{
		"autoagent-specialist": {110, 18}, "autoagent-manager": {110, 27}, "autoagent-reporter": {6, 4}, "autoagent-quota": {6, 4},
	} {
		if full() {
			c.stride = 1
		}
		for n := min(2, c.stride); n <= c.last; n += c.stride {
			t.Run(fmt.Sprintf("%s/%d", program, n), func(t *testing.T) {
				t.Parallel()
				killed(t, program, n)
			})
		}
	}
}

func killed(t *testing.T, program string, n int) {
	w := newWorld(t, planned(step("one", "test -f one"), step("two", "test -f two", "one")), works("one", bash("echo 1 >> one")), works("two", bash("echo 2 >> two")))
	marker := filepath.Join(t.TempDir(), "killed")
	w.env = append(w.env, "AUTOAGENT_TESTONLY_PROGRAM="+program, fmt.Sprintf("AUTOAGENT_TESTONLY_KILL=%d", n), "AUTOAGENT_TESTONLY_ONCE="+marker)
	w.must(0, "start", "killed", "Two steps", "--verify", "test -f one && test -f two")
	if _, err := os.Stat(marker); err != nil {
		t.Logf("no tick of %s had %d steps", program, n)
	}
	st := w.store("killed")
	p, err := st.Plan()
	if err != nil || !p.AllDone() || p.Round != 1 {
		t.Fatalf("plan: %v %+v", err, p)
	}
	for _, s := range p.Steps {
		merged := git(t, w.root, "--git-dir", st.Repo(), "log", "--format=%s", "main", "--grep", "^"+s.ID+":")
		if strings.Count(merged, s.ID+":") != 1 {
			t.Errorf("step %s was merged as: %q", s.ID, merged)
		}
		if doc := w.kept("killed", s.ID); !strings.Contains(doc, "It is there, and I saw it.") {
			t.Errorf("the document of step %s:\n%s", s.ID, doc)
		}
		if s.State != plan.Done || len(s.Handoffs) != 1 {
			t.Errorf("step %s: %s after %d handoffs: %v", s.ID, s.State, len(s.Handoffs), s.Reasons)
		}
	}
	inbox := filepath.Join(st.Agent("codebuilder-1"), "inbox")
	for box, want := range map[string]int{"new": 0, "in_process": 0, "completed": 2, "failed": 0} {
		names, err := filepath.Glob(filepath.Join(inbox, box, "*.handoff"))
		if err != nil || len(names) != want {
			t.Errorf("inbox/%s holds %d, want %d: %v", box, len(names), want, names)
		}
	}
	book, err := st.Ledger().Read()
	if err != nil || book.Reserved.N != 0 || len(book.OpenRuns) != 0 {
		t.Errorf("ledger: %v, reserved %v, open %v", err, book.Reserved, book.OpenRuns)
	}
	// A run that had its result is not paid twice: at most one lane was played again.
	stats := w.model.Stats()
	if extra := stats.Requests - 6; extra > 2 {
		t.Errorf("%d requests more than without the kill: %v", extra, stats.ByRule)
	}
	messages, _ := filepath.Glob(filepath.Join(st.Notify(), "new", "*.json"))
	var said []string
	for _, m := range messages {
		b, _ := os.ReadFile(m)
		said = append(said, string(b[strings.Index(string(b), `"text"`):]))
	}
	slices.Sort(said)
	if len(slices.Compact(slices.Clone(said))) != len(said) {
		t.Errorf("a message was made twice: %v", said)
	}
	left, _ := filepath.Glob(filepath.Join(st.Work(), ".cells", "*", "*"))
	if len(left) > 0 {
		t.Errorf("scratch folders are left: %v", left)
	}
}
