package telegram

import (
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/journal"
	"example.com/AutoAgentProject/core/ledger"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/money"
	"example.com/AutoAgentProject/core/plan"
	"example.com/AutoAgentProject/core/reporter"
	"example.com/AutoAgentProject/core/tick"
)

var update = flag.Bool("update", false, "write testdata/mission.txt")

// TestTranscript is what a person sees of a whole mission: two milestones, a blocker, an approval by a button, and the
// halt when the budget is used up.
func TestTranscript(t *testing.T) {
	w := newWorld(t)
	st := w.root.Mission("my-site")
	for _, a := range []string{"manager", "codebuilder-1", "designer-1", "reporter"} {
		ok(t, st.Queue().Make(a))
	}
	ok(t, st.PrepareTombstone())
	budget := money.Amount{Unit: money.NanoUSD, N: 1_200_000_000}
	ok(t, st.Ledger().Create(t.Context(), budget, noon))
	m := mission.Mission{Version: 1, ID: "my-site", CreatedAt: noon, Budget: budget, MaxRun: mission.Duration(4 * time.Hour), From: &mission.Source{Kind: "git"}}
	r := reporter.Reporter{Tick: &tick.Tick{Store: st, Mission: m, Agent: mission.Agent{Name: "reporter", Role: mission.Reporter}, Now: w.clock.Now, Log: slog.New(slog.DiscardHandler)}}
	var script strings.Builder
	shown, toasts := 0, 0
	at := func(d time.Duration) { w.clock.add(noon.Add(d).Sub(w.clock.Now())) }
	// tick lets the reporter and the poller do what is due, and writes down what the chat shows.
	ticks := func() {
		t.Helper()
		for {
			out, err := r.Once(t.Context())
			if ok(t, err); out != tick.Moved {
				break
			}
		}
		w.take()
		for w.step() > 0 {
			w.clock.add(time.Second)
		}
		w.closeButtons(t.Context())
		for ; toasts < len(w.fake.answered); toasts++ {
			fmt.Fprintf(&script, "── %s  shown for a moment\n%s\n\n", w.clock.Now().Format("15:04"), w.fake.answered[toasts])
		}
		for _, m := range w.fake.shown()[shown:] {
			fmt.Fprintf(&script, "── %s  bot\n%s\n", w.clock.Now().Format("15:04"), m.Text)
			for _, row := range m.Keyboard.InlineKeyboard {
				for _, b := range row {
					fmt.Fprintf(&script, "  ( %s )", b.Text)
				}
				script.WriteString("\n")
			}
			script.WriteString("\n")
			shown++
		}
	}
	event := func(e journal.Event) { e.At = w.clock.Now(); ok(t, st.Journal().Add(e)) }
	spend := func(agent, step string, usd int64) {
		run := agent + step + w.clock.Now().String()
		ok(t, st.Ledger().Spend(t.Context(), run, ledger.Spent{Nano: money.Nano(usd * 10_000_000), Tokens: usd * 1000, Source: "stream", Agent: agent, Step: step}, w.clock.Now()))
	}
	change := func(f func(*plan.Plan)) {
		ok(t, st.ChangePlan(t.Context(), func(p *plan.Plan) (bool, error) { f(p); return true, nil }))
	}
	done := func(id string) {
		change(func(p *plan.Plan) { p.Step(id).State = plan.Done })
		event(journal.Event{Kind: journal.StepDone, Level: journal.Milestone, Step: id, Text: fmt.Sprintf("step %s is done: %s", id, map[string]string{"page": "Build the page", "colours": "Choose the colours", "form": "Build the contact form"}[id])})
	}
	person := func(what string) {
		fmt.Fprintf(&script, "── %s  person\n%s\n\n", w.clock.Now().Format("15:04"), what)
	}

	change(func(p *plan.Plan) {
		p.Accept(plan.Proposal{Steps: []plan.ProposedStep{{ID: "page", Title: "Build the page"}, {ID: "colours", Title: "Choose the colours"}, {ID: "form", Title: "Build the contact form"}}}, noon)
	})
	spend("manager", "", 6)
	event(journal.Event{Kind: journal.PlanAccepted, Level: journal.Milestone, Text: "the plan has 3 steps"})
	ticks()
	at(21 * time.Minute)
	spend("codebuilder-1", "page", 21)
	done("page")
	ticks()
	at(24 * time.Minute)
	spend("designer-1", "colours", 9)
	done("colours")
	ticks()
	at(40 * time.Minute)
	ticks()
	at(52 * time.Minute)
	_, err := st.Pause(t.Context(), mission.Pause{Cause: "login", Reason: "the login was refused"}, w.clock.Now())
	ok(t, err)
	event(journal.Event{Kind: journal.Paused, Level: journal.Blocker, Incident: "login-1", Text: "the login was refused: 401 Unauthorized; AutoAgentProject login takes a new one"})
	ticks()
	at(112 * time.Minute)
	ticks()
	at(113 * time.Minute)
	person("/ack")
	w.fake.writes("/ack")
	ticks()
	at(120 * time.Minute)
	ok(t, st.Unpause(t.Context(), "login", w.clock.Now()))
	a, _, err := st.Ask(t.Context(), mission.Approval{Kind: mission.Deviation, Title: "the plan wants to leave the goal", Subject: "s", By: "manager",
		Text: "The new plan leaves the goal as the first plan read it:\n- the acceptance \"the form sends mail\" of the first plan is dropped\n\nIts steps:\n- Build a form that stores messages (codebuilder)"}, w.clock.Now())
	ok(t, err)
	ticks()
	at(131 * time.Minute)
	person("( Approve )")
	shownKeys := w.fake.shown()[shown-1].Keyboard.InlineKeyboard
	w.fake.presses(testUser, *shownKeys[0][0].CallbackData)
	ticks()
	for _, msg := range w.fake.shown() {
		if msg.Edited > 0 {
			fmt.Fprintf(&script, "── %s  the question becomes\n%s\n\n", w.clock.Now().Format("15:04"), msg.Text)
		}
	}
	if d := w.decision(a.N); d == nil || d.Verdict != mission.Approved {
		t.Fatalf("%+v", d)
	}
	at(150 * time.Minute)
	spend("codebuilder-1", "form", 84)
	_, err = st.Stop(mission.Stop{Cause: mission.Budget, Reason: "$1.20 of $1.20 is used", By: "quota", At: w.clock.Now()})
	ok(t, err)
	event(journal.Event{Kind: journal.BudgetCrossed, Level: journal.Blocker, Incident: "budget-100", Text: "100% of the budget is used: $1.20 of $1.20"})
	ok(t, os.MkdirAll(st.Result(), 0o700))
	event(journal.Event{Kind: journal.MissionStopped, Level: journal.End, Text: "mission my-site halted: budget"})
	ticks()
	at(20 * time.Hour)
	ticks()

	got := strings.ReplaceAll(script.String(), string(w.root), "/srv/example")
	path := filepath.Join("testdata", "mission.txt")
	if *update {
		ok(t, os.MkdirAll("testdata", 0o755))
		ok(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	ok(t, err)
	if got != string(want) {
		t.Errorf("the chat shows\n%s", got)
	}
}
