package e2e

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTortureFiles damages each kind of file while nobody ticks the mission, as a power cut does, and lets it go on: it must
// complete, or stop because of the damage with the damaged file kept.
func TestTortureFiles(t *testing.T) {
	t.Parallel()
	names := []string{"plan.json", "ledger.jsonl", "clock.json", "pauses.json", "state.json", "state.good.json", "quota.json", "events.jsonl", "supervisor.json", "TODO-human.md",
		"ledger.jsonl.sums", "notify/cursor.json", "agents/codebuilder-1/hold.json", "agents/codebuilder-1/tick.json", "agents/codebuilder-1/breaker.json",
		"agents/codebuilder-1/detail.md", "agents/codebuilder-1/cell.json", "agents/codebuilder-1/inbox/in_process/*.claim", "agents/manager/sequence", "agents/manager/unread.json",
		"agents/codebuilder-1/runs/*/cell.json", "agents/codebuilder-1/runs/*/gateway.json", "agents/codebuilder-1/runs/*/run.json", "agents/codebuilder-1/runs/*/stream.jsonl", "agents/manager/runs/*/result.json"}
	kinds := map[string]func([]byte) []byte{
		"empty": func([]byte) []byte { return nil },
		"NUL":   func([]byte) []byte { return make([]byte, 4096) },
		"half":  func(b []byte) []byte { return b[:len(b)/2] },
	}
	m := &matrix{cells: map[string]map[string]int{}}
	t.Cleanup(func() { t.Logf("%d files damaged, %d were not there and do not count\n%s", m.count(), m.unfired, m) })
	n := 0
	for _, name := range names {
		for _, kind := range sorted(kinds) {
			if n++; os.Getenv("AUTOAGENT_FULL") == "" && n%37 != 13 { // two of them: a state and a hold
				continue
			}
			t.Run(name+" "+kind, func(t *testing.T) {
				t.Parallel()
				m.add(fault{role: "files", call: name, errn: kind}, damaged(t, name, kinds[kind]))
			})
		}
	}
}

func damaged(t *testing.T, name string, harm func([]byte) []byte) (outcome string) {
	long := bash("echo 1 > one")
	long.DelayMS = 60_000
	rule := works("one", bash("true"), long)
	again := works("one", bash("echo 1 > one"))
	again.Name, again.When = "again", append(again.When, "You were interrupted")
	w := newWorld(t, again, planned(step("one", "test -f one")), rule)
	cmd, wait := w.background("start", "tortured", "One step")
	w.until("the step runs", func() bool { return w.model.Stats().ByRule["one"] > 0 })
	_ = cmd.Process.Kill()
	wait()
	w.noneAlive()
	st := w.store("tortured")
	found, _ := filepath.Glob(filepath.Join(st.Dir(), name))
	if len(found) == 0 {
		return ""
	}
	path := found[0]
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	bad := harm(before)
	if err := os.WriteFile(path, bad, 0o600); err != nil {
		t.Fatal(err)
	}
	code, out := w.do("run", "tortured")
	stop, err := st.Stopped()
	switch {
	case err == nil && stop != nil && stop.Cause == "completed" && code == 0:
		if b, err := os.ReadFile(filepath.Join(st.Result(), "one")); err != nil || string(b) != "1\n" {
			t.Errorf("result: %q, %v", b, err)
		}
		return "completed"
	case err == nil && stop != nil && stop.Cause == "damage" && code == 6:
		if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, bad) {
			t.Errorf("what was damaged was overwritten: %v", err)
		}
		return "stopped: damage"
	case stop == nil && code == 6: // refused before anything was touched
		if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, bad) || !strings.Contains(out, filepath.Base(path)) {
			t.Errorf("refused, and the file was overwritten or is not named: %v\n%s", err, out)
		}
		w.do("abort", "tortured")
		return "refused: damage"
	}
	t.Errorf("exit status %d, %+v, %v\n%s%s", code, stop, err, out, w.history())
	return fmt.Sprint("LOST: ", code)
}
