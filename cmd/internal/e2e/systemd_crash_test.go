package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/engine"
	"example.com/AutoAgentProject/core/ledger"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/plan"
	"example.com/AutoAgentProject/core/scriptmodel"
	"example.com/AutoAgentProject/core/units"
)

// threeSteps is a script for two agents: two steps beside each other and one that needs both. Each takes a little while.
func threeSteps() []scriptmodel.Rule {
	slow := func(id string) scriptmodel.Rule {
		s := bash("echo " + id + " > " + id)
		s.DelayMS = 700
		return works(id, s)
	}
	return []scriptmodel.Rule{planned(step("left", "test -f left"), step("right", "test -f right"), step("both", "test -f both", "left", "right")),
		slow("left"), slow("right"), slow("both")}
}

// once checks that a mission of threeSteps ended as if nothing had happened: every step merged once, every handoff
// finished once, every run paid once, every message made once.
func (p *person) once(id string) {
	t := p.t
	t.Helper()
	p.ended(id)
	st := p.store(id)
	if v := p.status(id); v.Phase != "completed" || v.Budget.Reserved != 0 {
		t.Errorf("phase %q, reserved %d: %v", v.Phase, v.Budget.Reserved, v.Warnings)
	}
	pl, err := st.Plan()
	if err != nil || !pl.AllDone() || pl.Round != 1 || len(pl.Steps) != 3 {
		t.Fatalf("plan: %v %+v", err, pl)
	}
	log := p.git(id, "log", "--format=%s", "main")
	handoffs := 0
	for _, s := range pl.Steps {
		if n := strings.Count("\n"+log, "\n"+s.ID+":"); n != 1 {
			t.Errorf("step %s was merged %d times:\n%s", s.ID, n, log)
		}
		if s.State != plan.Done || len(s.Handoffs) != 1 {
			t.Errorf("step %s: %s after %d handoffs: %v", s.ID, s.State, len(s.Handoffs), s.Reasons)
		}
		handoffs += len(s.Handoffs)
	}
	boxes := map[string]int{}
	for _, agent := range []string{"codebuilder-1", "codebuilder-2"} {
		for _, box := range []string{"new", "in_process", "completed", "failed"} {
			names, _ := filepath.Glob(filepath.Join(st.Agent(agent), "inbox", box, "*.handoff"))
			boxes[box] += len(names)
		}
	}
	if boxes["completed"] != handoffs || boxes["new"]+boxes["in_process"]+boxes["failed"] != 0 {
		t.Errorf("inboxes: %v, want %d completed", boxes, handoffs)
	}
	p.paid(id)
	var said []string
	messages, _ := filepath.Glob(filepath.Join(st.Notify(), "*", "*.json"))
	for _, m := range messages {
		b, _ := os.ReadFile(m)
		said = append(said, string(b[max(0, strings.Index(string(b), `"text"`)):]))
	}
	slices.Sort(said)
	if len(said) == 0 || len(slices.Compact(slices.Clone(said))) != len(said) {
		t.Errorf("messages: %q", said)
	}
	if left, _ := filepath.Glob(filepath.Join(st.Work(), ".cells", "*", "*")); len(left) > 0 {
		t.Errorf("scratch folders are left: %v", left)
	}
}

// ended waits until a mission has ended that met a crash. One in the last moment of its stop leaves the files of the stop's
// own service and slice, which nothing starts any more; reconcile takes them away.
func (p *person) ended(id string) {
	p.t.Helper()
	inert := func() bool {
		if p.loaded(id) != "" { // asked first: a stop that just ends is none
			return false
		}
		for _, path := range p.installed(id) {
			if name := filepath.Base(path); name != "forge-autoagent-"+id+"-stop.service" && name != mission.GuardSlice(id) {
				return false
			}
		}
		return len(p.installed(id)) > 0
	}
	tidied := false
	p.until(id+" has ended", func() bool {
		stop, err := p.store(id).Stopped()
		if err != nil || stop == nil {
			return false
		}
		if !tidied && inert() {
			tidied = true
			p.t.Log("THE CUT CAME IN THE LAST MOMENT OF THE STOP: TWO FILES ARE LEFT")
			if code, out := p.do("reconcile"); code != 0 {
				p.t.Errorf("reconcile: %d\n%s", code, out)
			}
		}
		return len(p.installed(id)) == 0
	})
	p.over(id)
}

// paid checks a ledger against the runs that lie there: each reserved once, ended once, and none that is not in it.
func (p *person) paid(id string) {
	p.t.Helper()
	st := p.store(id)
	book, err := st.Ledger().Read()
	if err != nil || book.Reserved.N != 0 || len(book.OpenRuns) != 0 || book.Used.N > book.Budget.N {
		p.t.Errorf("ledger: %v, reserved %v, open %v, used %v", err, book.Reserved, book.OpenRuns, book.Used)
	}
	b, _ := os.ReadFile(filepath.Join(st.Dir(), "ledger.jsonl"))
	reserved, launched, ended := map[string]int{}, map[string]int{}, map[string]int{}
	for line := range strings.Lines(string(b)) {
		var r ledger.Record
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			p.t.Errorf("ledger: %v: %s", err, line)
		}
		switch r.Kind {
		case ledger.Reserve:
			reserved[r.Run]++
		case ledger.Launch:
			launched[r.Run]++
		case ledger.Spend, ledger.Release:
			ended[r.Run]++
		}
	}
	for run, n := range reserved {
		if n != 1 || ended[run] != 1 {
			p.t.Errorf("run %s reserved %d times and ended %d times:\n%s", run, n, ended[run], b)
		}
	}
	runs, _ := filepath.Glob(filepath.Join(st.Dir(), "agents", "*", "runs", "*"))
	for _, dir := range runs {
		if run := filepath.Base(dir); launched[run] > 0 && ended[run] != 1 {
			p.t.Errorf("run %s is not paid for", run)
		}
	}
	for run := range launched {
		if !slices.ContainsFunc(runs, func(dir string) bool { return filepath.Base(dir) == run }) {
			p.t.Errorf("of run %s nothing is there", run)
		}
	}
	var asked, counted int64
	for _, u := range p.model.Stats().ByModel {
		asked += u.Output
	}
	for _, u := range book.ByModel {
		counted += u.Output
	}
	p.t.Logf("%s: %d runs, %s used, the model gave %d tokens, %d are in the ledger", id, len(reserved), book.Used, asked, counted)
}

// TestSystemdPowerCuts kills everything in the host at once, in the middle of a mission, and boots it again: the mission
// goes on by itself and ends as if nothing had happened. By default one mission meets two cuts, and the user's manager
// killed alone in between; with AUTOAGENT_FULL=1 ten missions meet one cut each as well.
func TestSystemdPowerCuts(t *testing.T) {
	mostly(t, units.User, func(t *testing.T, manager units.Manager) {
		seed := uint64(time.Now().UnixNano())
		random := rand.New(rand.NewPCG(seed, 1))
		p := personOf(t, manager, append(team("goal of halfway", "mark-of-halfway", 1), threeSteps()...))
		start := func(id string) {
			p.start(id, "Three steps", "--specialists", "codebuilder:2", "--verify", "test -f both", "--budget", "100usd")
		}
		reach := func(id string, k int) { // where exactly it is cut is chance
			p.until(fmt.Sprintf("%d things happened in %s", k, id), func() bool {
				stop, _ := p.store(id).Stopped()
				return len(p.events(id, "")) >= k || stop != nil
			})
			time.Sleep(time.Duration(random.IntN(800)) * time.Millisecond)
			t.Logf("%s is cut after %d events (seed %d)", id, len(p.events(id, "")), seed)
		}
		cut := func(id string, k int) {
			reach(id, k)
			p.host.Crash()
			p.host.Boot()
		}
		start("cut")
		cut("cut", 2)
		if manager == units.User {
			reach("cut", 8)
			p.managerDies()
		} else {
			cut("cut", 8)
		}
		cut("cut", 16)
		p.once("cut")
		p.cutWhileStopping(random)
		if full() {
			for i := range 10 {
				id := fmt.Sprintf("cut-%d", i)
				start(id)
				cut(id, 1+2*i)
				p.once(id)
			}
		}
		p.nothingLeft()
	})
}

// cutWhileStopping cuts the power in the middle of an abort: the boot brings the stop back, which ends by itself.
func (p *person) cutWhileStopping(random *rand.Rand) {
	p.t.Helper()
	p.start("halfway", "goal of halfway", "--budget", "100usd")
	p.until("it works", func() bool { return len(p.marked("mark-of-halfway")) >= leftBy })
	ctx, cancel := context.WithCancel(p.t.Context())
	defer cancel()
	argv := append(slices.Clone(p.env), programs+"/AutoAgentProject", "abort", "halfway")
	abort := p.host.Command(ctx, p.asks(), argv...)
	if err := abort.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.until("it has its tombstone", func() bool { stop, err := p.store("halfway").Stopped(); return err == nil && stop != nil })
	time.Sleep(time.Duration(random.IntN(1500)) * time.Millisecond)
	p.host.Crash()
	cancel()
	_ = abort.Wait()
	p.host.Boot()
	var rec engine.Record
	_ = p.store("halfway").Load("stopping.json", &rec)
	p.t.Logf("the stop was cut after %d of its steps", len(rec.Steps))
	p.ended("halfway")
	p.stopped("halfway", "mark-of-halfway")
	ends := 0
	for _, e := range p.events("halfway", "mission_stopped") {
		if e.Level == "end" {
			ends++
		}
	}
	if ends != 1 {
		p.t.Errorf("its end was told %d times", ends)
	}
}

// managerDies kills the manager of the user alone. systemd does not start it again by itself: the next login does.
func (p *person) managerDies() {
	p.t.Helper()
	p.host.Systemctl("", "kill", "--kill-whom=main", "--signal=KILL", p.managerUnit())
	p.until("the manager is down", func() bool { return p.host.Systemctl("", "is-active", p.managerUnit()) == "failed" })
	if n := len(p.marked("--mission")); n > 0 {
		p.t.Errorf("%d processes outlive the manager", n)
	}
	p.host.Systemctl("", "start", p.managerUnit())
}
