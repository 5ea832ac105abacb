package e2e

import (
	"strings"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/journal"
	"example.com/AutoAgentProject/core/mission"
)

// TestResume: a mission that halted for money and then for time goes on to its end after more of each, and only then.
func TestResume(t *testing.T) {
	t.Parallel()
	dear := bash("echo more >> log.txt")
	dear.Usage = map[string]any{"input_tokens": 20_000, "output_tokens": 1000} // $0.075
	w := newWorld(t, planned(step("dear", "test -f log.txt"), step("slow", "test -f done", "dear")), works("dear", dear, dear, dear, dear),
		works("slow", bash("[ -f here ] || { touch here; sleep 60; }"), bash("echo 1 > done")))
	w.must(7, "start", "my-site", "Spend", "--budget", "0.20usd", "--max-hours", "1h")
	if v := w.status("my-site"); v.Phase != "halted: budget" {
		t.Fatalf("phase %q", v.Phase)
	}
	w.must(7, "resume", "my-site") // what is left covers no request: it halts again, and nothing is spent
	if v := w.status("my-site"); v.Phase != "halted: budget" || v.Budget.Used > v.Budget.Total {
		t.Errorf("phase %q, budget %+v", v.Phase, v.Budget)
	}
	for _, args := range [][]string{{"budget", "add", "my-site", "10%"}, {"budget", "add", "my-site", "1Mtok"}, {"budget", "add", "my-site", "0usd"}, {"hours", "add", "my-site", "0"}} {
		w.must(2, args...)
	}
	if out := w.must(0, "budget", "add", "my-site", "4.80usd"); !strings.Contains(out, "resume my-site") {
		t.Errorf("budget add:\n%s", out)
	}
	_, err := w.store("my-site").Clock(t.Context(), func(c mission.Clock) mission.Clock {
		c.Used = mission.Duration(time.Hour - 8*time.Second)
		return c
	})
	if err != nil {
		t.Fatal(err)
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
	if n := len(w.events("my-site", journal.MissionStopped)); n != 4 {
		t.Errorf("%d ends were told", n)
	}
	if n := len(w.events("my-site", journal.MissionResumed)); n != 3 {
		t.Errorf("%d resumes were told", n)
	}
}

// TestResumeTicked: in both managers a halted mission has no units, and gets them back when it goes on. Of the system's
// manager only root can bring it back.
func TestResumeTicked(t *testing.T) {
	t.Parallel()
	dear := bash("echo more >> log.txt")
	dear.Usage = map[string]any{"input_tokens": 20_000, "output_tokens": 1000}
	p := newPerson(t, planned(step("dear", "test -f log.txt")), works("dear", dear, dear, dear))
	await := func(id, phase string) {
		t.Helper()
		p.until(id+" is "+phase, func() bool { return p.status(id).Phase == phase })
	}
	for _, who := range []string{"user", "system"} {
		id, do, root := who+"-site", p.do, "/home/alice/.local/share/autoagent"
		args := []string{"start", id, "Spend", "--engine", "systemd", "--budget", "0.20usd"}
		if who == "system" {
			do, root = p.asRoot, "/var/lib/autoagent"
			args = append(args, "--run-as", "alice")
		}
		p.env = append(p.env[:3:3], "AUTOAGENT_ROOT="+root)
		if code, out := do(args...); code != 0 {
			t.Fatalf("start: %d\n%s", code, out)
		}
		await(id, "halted: budget")
		if code, out := p.do("budget", "add", id, "4usd"); code != 0 {
			t.Fatalf("budget add: %d\n%s", code, out)
		}
		if who == "system" {
			if code, out := p.do("resume", id); code != 4 || !strings.Contains(out, "sudo AutoAgentProject resume") {
				t.Errorf("resume by the owner: %d\n%s", code, out)
			}
		}
		if code, out := do("resume", id); code != 0 {
			t.Fatalf("resume: %d\n%s", code, out)
		}
		await(id, "completed")
	}
	p.until("both managers have forgotten them", func() bool {
		return p.host.Systemctl("", "list-units", "--all", "--no-legend", "forge-autoagent*-site*")+p.host.Systemctl(owner, "list-units", "--all", "--no-legend", "forge-autoagent*-site*") == ""
	})
	p.nothingLeft()
}
