package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/journal"
	"example.com/AutoAgentProject/core/money"
	"example.com/AutoAgentProject/core/plan"
	"example.com/AutoAgentProject/core/scriptmodel"
)

// served is what the scripted model's answers cost by the price list.
func served(w *world) (sum money.Nano) {
	prices := money.Default()
	for model, u := range w.model.Stats().ByModel {
		n, _ := prices.Cost(model, money.Usage{Input: u.Input, Output: u.Output, CacheRead: u.CacheRead, CacheWrite5m: u.CacheWrite5m, CacheWrite1h: u.CacheWrite1h}, time.Now(), false)
		sum += n
	}
	return sum
}

// config writes the person's configuration.
func (w *world) config(text string) {
	w.t.Helper()
	dir := ""
	for _, kv := range w.env {
		if home, ok := strings.CutPrefix(kv, "HOME="); ok {
			dir = filepath.Join(home, ".config", "autoagent")
		}
	}
	if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "config.yaml"), []byte(text), 0o600)); err != nil {
		w.t.Fatal(err)
	}
}

// dearAgents is a mission whose agents, with AUTOAGENT_FULL=1 six, can all work at once and talk much. What they say costs more
// than the budget that comes with it.
func dearAgents(t *testing.T) (w *world, agents int, start []string) {
	t.Helper()
	if agents = 3; full() {
		agents = 6
	}
	var steps []plan.ProposedStep
	var rules []scriptmodel.Rule
	for n := range agents {
		id := fmt.Sprintf("s%d", n+1)
		steps = append(steps, step(id, "test -f "+id))
		var talk []scriptmodel.Step
		for range 6 {
			dear := bash("echo more >> " + id)
			dear.Usage = map[string]any{"input_tokens": 3000, "output_tokens": 3000}
			dear.GapMS = 20 // streams are under way when the money ends
			talk = append(talk, dear)
		}
		rules = append(rules, works(id, talk...))
	}
	w = newWorld(t, append([]scriptmodel.Rule{planned(steps...)}, rules...)...)
	// No cheaper model: with one the last of the money would be enough.
	w.config("cheap_model: claude-sonnet-5-5\n")
	return w, agents, []string{"start", "dear", "Talk", "--budget", fmt.Sprintf("%.2fusd", 0.15*float64(agents)), "--specialists", fmt.Sprintf("codebuilder:%d", agents)}
}

// TestBudgetIsABound: agents work at once and the money ends in the middle of their streams. What the model answered
// never costs more than the budget, most of it is used, nothing lives afterwards, and with more money it goes on to the end.
func TestBudgetIsABound(t *testing.T) {
	t.Parallel()
	w, _, start := dearAgents(t)
	w.must(7, start...)
	v := w.status("dear")
	cost := served(w)
	t.Logf("served %s, charged %s, of %s", money.FormatUSD(cost), money.FormatUSD(money.Nano(v.Budget.Used)), money.FormatUSD(money.Nano(v.Budget.Total)))
	if v.Phase != "halted: budget" || cost > money.Nano(v.Budget.Total) || v.Budget.Used > v.Budget.Total || money.Nano(v.Budget.Used) < cost || v.Budget.Reserved != 0 {
		t.Errorf("phase %q, served %s, %+v\n%s", v.Phase, money.FormatUSD(cost), v.Budget, w.history())
	}
	w.noneAlive()
	w.must(0, "budget", "add", "dear", "10usd")
	w.must(0, "resume", "dear")
	if v := w.status("dear"); v.Phase != "completed" || served(w) > money.Nano(v.Budget.Total) {
		t.Errorf("phase %q\n%s", v.Phase, w.history())
	}
}

// TestWithoutTheGateway: then at most the answer in flight of each agent passes the budget, and start and status say how it is.
func TestWithoutTheGateway(t *testing.T) {
	t.Parallel()
	w, agents, start := dearAgents(t)
	w.must(7, append(start, "--gateway", "off")...)
	v := w.status("dear")
	inFlight, _ := money.Default().Cost("claude-sonnet-5-5", money.Usage{Input: 3000, Output: 3000}, time.Now(), false)
	t.Logf("served %s of %s", money.FormatUSD(served(w)), money.FormatUSD(money.Nano(v.Budget.Total)))
	if cost := served(w); v.Phase != "halted: budget" || cost > money.Nano(v.Budget.Total)+money.Nano(agents)*inFlight {
		t.Errorf("phase %q, served %s", v.Phase, money.FormatUSD(cost))
	}
}

// TestWordsWithoutWork: an agent says each time that it is done and changes nothing. The same step comes back once, three plans are
// tried, and then the mission ends with a message; it never goes on asking.
func TestWordsWithoutWork(t *testing.T) {
	t.Parallel()
	same := planned(step("big", "test -f big"))
	same.Not = nil
	idle := scriptmodel.Rule{Name: "big", When: []string{"# Your step: Step big (big)"}, Steps: []scriptmodel.Step{text("All done, everything works.")}}
	w := newWorld(t, idle, same)
	w.must(1, "start", "talk", "Something big")
	if n := len(w.events("talk", journal.RunStarted)); n > 3+3*2 { // three plans, two runs of the step in each
		t.Errorf("%d runs\n%s", n, w.history())
	}
	end := w.events("talk", journal.MissionStopped)
	if v := w.status("talk"); v.Phase != "failed" || len(end) != 1 || end[0].Level != journal.End {
		t.Errorf("phase %q, told %+v", v.Phase, end)
	}
}
