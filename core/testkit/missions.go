package testkit

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"example.com/AutoAgentProject/core/engine"
	"example.com/AutoAgentProject/core/git"
	"example.com/AutoAgentProject/core/journal"
	"example.com/AutoAgentProject/core/ledger"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/money"
	"example.com/AutoAgentProject/core/plan"
	"example.com/AutoAgentProject/core/proc"
	"example.com/AutoAgentProject/core/runner"
	"example.com/AutoAgentProject/core/store"
)

// Told is a mission on the disk as its ticks would have left it, told in a few words, for who shows missions. Nothing ticks it.
type Told struct {
	T    testing.TB
	St   *store.Store
	M    mission.Mission
	Now  time.Time
	Plan plan.Plan

	seq    int
	events []journal.Event
	ledger []ledger.Record
	lines  map[string]store.Line
}

// Tell begins a mission that was started some time ago, with a manager, two codebuilders, a tester, quota and reporter.
func Tell(t testing.TB, root store.Root, id, goal string, now time.Time, ago time.Duration) *Told {
	t.Helper()
	begin := now.Add(-ago).UTC()
	m := mission.Mission{Version: mission.Version, ID: id, CreatedAt: begin, Engine: "embedded", Model: "claude-sonnet-5-5", Payer: "the plan that this machine is logged in with (max5)",
		Budget: money.Amount{Unit: money.NanoUSD, N: 4 * int64(money.USD)}, BudgetAsked: "10%", BudgetSentence: "10% of a day's $40.00 is $4.00", MaxRun: mission.Duration(4 * time.Hour), Verify: "make test",
		Credentials: "/home/example/.config/autoagent/login.json", Program: "/opt/example/claude", Path: "/usr/bin:/bin", Tool: "0.1.0", Agents: "claude 2.1.0"}
	for name, role := range map[string]mission.Role{"manager": mission.Manager, "codebuilder-1": mission.Specialist, "codebuilder-2": mission.Specialist, "tester-1": mission.Specialist, "quota": mission.Quota, "reporter": mission.Reporter} {
		prof := ""
		if role == mission.Specialist || role == mission.Manager {
			prof, _, _ = strings.Cut(name, "-")
		}
		m.Roster = append(m.Roster, mission.Agent{Name: name, Role: role, Profession: prof})
	}
	order := []string{"manager", "codebuilder-1", "codebuilder-2", "tester-1", "quota", "reporter"}
	sorted := make([]mission.Agent, len(order))
	for _, a := range m.Roster {
		for i, n := range order {
			if a.Name == n {
				sorted[i] = a
			}
		}
	}
	m.Roster = sorted
	w := &Told{T: t, St: root.Mission(id), M: m, Now: now.UTC(), Plan: plan.Plan{Version: mission.Version, Round: 1, Steps: []plan.Step{}, Acceptance: []string{}}, lines: map[string]store.Line{}}
	for _, a := range m.Roster {
		for _, d := range []string{"inbox/new", "inbox/in_process", "inbox/completed", "inbox/failed", "outbox/new", "outbox/sent", "outbox/failed", "runs"} {
			w.do(os.MkdirAll(filepath.Join(w.St.Agent(a.Name), d), 0o700))
		}
		w.lines[a.Name] = store.Line{Text: "nothing to do", Doing: "idle", Since: begin}
	}
	w.do(os.MkdirAll(w.St.Work(), 0o700))
	w.Put("goal.md", goal)
	w.ledger = append(w.ledger, ledger.Record{Kind: ledger.Budget, At: begin, Cap: m.Budget.N, Unit: m.Budget.Unit})
	w.Event(ago, journal.MissionStarted, journal.Milestone, "manager", "", "", "mission "+id+" started with a budget of $4.00 and 4h")
	return w
}

func (w *Told) do(err error) {
	w.T.Helper()
	if err != nil {
		w.T.Fatal(err)
	}
}

// Put writes a file of the mission as it is given.
func (w *Told) Put(name, text string) {
	w.T.Helper()
	p := filepath.Join(w.St.Dir(), name)
	w.do(os.MkdirAll(filepath.Dir(p), 0o700))
	w.do(os.WriteFile(p, []byte(text), 0o600))
}

// JSON writes a document of the mission.
func (w *Told) JSON(name string, v any) {
	w.T.Helper()
	b, err := json.MarshalIndent(v, "", "  ")
	w.do(err)
	w.Put(name, string(b))
}

func (w *Told) ago(d time.Duration) time.Time { return w.Now.Add(-d) }

// Event adds an event of some time ago.
func (w *Told) Event(ago time.Duration, kind string, level journal.Level, agent, step, run, text string) {
	w.events = append(w.events, journal.Event{Version: 1, At: w.ago(ago), Kind: kind, Level: level, Agent: agent, Step: step, Run: run, Text: text})
}

// Line says what an agent does, since some time ago.
func (w *Told) Line(agent, doing, text, step, run string, ago time.Duration) {
	w.lines[agent] = store.Line{Text: text, Doing: doing, Step: step, Run: run, Since: w.ago(ago)}
}

// Step adds a step to the plan.
func (w *Told) Step(id, title, profession, agent string, state plan.State, ago time.Duration, needs ...string) *plan.Step {
	s := plan.Step{ID: id, Title: title, Brief: title + ". Keep to what the goal says.", Profession: profession, Agent: agent, State: state, DependsOn: append([]string{}, needs...),
		Verify: "make test", Acceptance: []string{"make test passes"}, Round: 1, Since: w.ago(ago)}
	if agent != "" {
		s.Handoffs = []plan.Handoff{{Name: "x", ID: "x", From: "manager", At: w.ago(ago)}}
	}
	w.Plan.Steps = append(w.Plan.Steps, s)
	return &w.Plan.Steps[len(w.Plan.Steps)-1]
}

// Handoff puts a handoff into the mailbox of its recipient. Zero times have not come yet.
func (w *Told) Handoff(from, to, task string, created, taken, done time.Duration) {
	w.seq++
	at := w.ago(created)
	box := "new"
	head := fmt.Sprintf("id: %s_%06d_from_%s\nfrom: %s\nto: %s\nrecipient: %s\npriority: 50\ntype: git_handoff\nrole: %s\ntask: %s\ncommit: 0123456789\ncreated_at: %s\nenqueued_at: %s\n",
		at.Format("20060102T150405Z"), w.seq, from, from, to, to, from, task, at.Format(time.RFC3339Nano), at.Format(time.RFC3339Nano))
	if taken > 0 {
		box = "in_process"
		head += "dequeued_at: " + w.ago(taken).Format(time.RFC3339Nano) + "\n"
	}
	if done > 0 {
		box = "completed"
		head += "completed_at: " + w.ago(done).Format(time.RFC3339Nano) + "\n"
	}
	name := fmt.Sprintf("50_%s_%06d_from_%s_to_%s.handoff", at.Format("20060102T150405Z"), w.seq, from, to)
	w.Put(filepath.Join("agents", to, "inbox", box, name), head+"\nDo the step "+task+".\n")
}

// Run writes a run that began some time ago and ended, or with an end of 0 goes on. talk is what it said and did, see Talk.
func (w *Told) Run(agent, step string, began, ended time.Duration, verdict runner.Verdict, cents int64, talk ...string) string {
	w.T.Helper()
	id := uuid.NewSHA1(uuid.Nil, fmt.Appendf(nil, "%s %s %d", w.M.ID, agent, began)).String()
	dir := filepath.Join("agents", agent, "runs", id)
	start := w.ago(began)
	w.JSON(filepath.Join(dir, "run.json"), map[string]any{"version": 1, "run": id, "agent": agent, "step": step, "model": w.M.Model, "started": start, "cap": "$0.80", "owner": proc.ID{}})
	w.Put(filepath.Join(dir, "prompt.md"), "You work on the step "+step+".\n\nRead the handoff, do the work, say what you did.\n")
	w.Put(filepath.Join(dir, "system.md"), "You are a careful builder.\n")
	w.Put(filepath.Join(dir, "stream.jsonl"), strings.Join(append([]string{`{"type":"system","subtype":"init","model":"` + w.M.Model + `"}`}, talk...), "\n")+"\n")
	w.do(os.Chtimes(filepath.Join(w.St.Dir(), dir, "run.json"), start, start))
	nano := money.Nano(cents) * money.USD / 100
	w.ledger = append(w.ledger, ledger.Record{Kind: ledger.Reserve, At: start, Run: id, Agent: agent, Step: step, Model: w.M.Model, Cap: 8 * int64(money.USD) / 10, Unit: money.NanoUSD},
		ledger.Record{Kind: ledger.Launch, At: start, Run: id})
	w.Event(began, journal.RunStarted, journal.Routine, agent, step, id, agent+" started a run for "+step)
	if ended == 0 {
		return id
	}
	u := map[string]money.Usage{w.M.Model: {Input: 1200, Output: 900 * cents, CacheRead: 40000 * cents}}
	tokens := u[w.M.Model].Tokens()
	reason := ""
	if verdict != runner.Done {
		reason = "the tests were red"
	}
	w.JSON(filepath.Join(dir, "result.json"), runner.Result{Verdict: verdict, Reason: reason, Text: "I did what the step asked for and ran the tests.", Spend: runner.Spend{Nano: nano, Tokens: tokens, Requests: 7, ByModel: u, Source: "result"},
		Turns: 7, Denials: []string{}, Session: id, Started: start, Ended: w.ago(ended)})
	w.ledger = append(w.ledger, ledger.Record{Kind: ledger.Spend, At: w.ago(ended), Run: id, Nano: nano, Tokens: tokens, Requests: 7, ByModel: u, Source: "result"})
	w.Event(ended, journal.RunEnded, journal.Routine, agent, step, id, agent+" ended a run: "+string(verdict))
	return id
}

// The lines of a transcript, in the agent program's own form.
func Said(text string) string {
	return quoteLine(`{"type":"assistant","message":{"model":"claude-sonnet-5-5","content":[{"type":"text","text":%s}]}}`, text)
}

// Used is a call of a tool and what it answered.
func Used(tool, key, value, answer string) string {
	return fmt.Sprintf(`{"type":"assistant","message":{"model":"claude-sonnet-5-5","content":[{"type":"tool_use","name":%s,"input":{%s:%s}}]}}`, quoted(tool), quoted(key), quoted(value)) + "\n" +
		quoteLine(`{"type":"user","message":{"content":[{"type":"tool_result","content":%s}]}}`, answer)
}

func quoted(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

func quoteLine(format, text string) string { return fmt.Sprintf(format, quoted(text)) }

// Ask opens an approval.
func (w *Told) Ask(n int, title, text string, ago time.Duration, d *mission.Decision) {
	a := mission.Approval{Version: 1, N: n, Kind: mission.Deviation, Title: title, Text: text, Subject: mission.Hash([]byte(text)), By: "manager", Nonce: "NONCE-OF-A-BUTTON", At: w.ago(ago), Expires: w.ago(ago).Add(mission.ApprovalWait)}
	w.JSON(fmt.Sprintf("approvals/%04d.json", n), a)
	if d != nil {
		d.Version, d.N, d.Subject = 1, n, a.Subject
		w.JSON(fmt.Sprintf("approvals/%04d.decision.json", n), d)
	}
}

// Ticked lets this process be the one that ticks the mission.
func (w *Told) Ticked() {
	self, err := proc.Self()
	w.do(err)
	w.JSON("supervisor.json", map[string]any{"version": 1, "process": self, "since": w.Now})
	for _, a := range w.M.Roster {
		w.JSON(filepath.Join("agents", a.Name, "tick.json"), map[string]any{"version": 1, "process": proc.ID{Boot: self.Boot, PID: 1 << 22, Start: 1}, "at": w.Now.Add(-20 * time.Second)})
	}
}

// Stopped lets the mission have ended.
func (w *Told) Stopped(cause mission.Cause, by, reason string, ago time.Duration) {
	w.JSON("stop.json", mission.Stop{Version: 1, Cause: cause, Reason: reason, By: by, At: w.ago(ago)})
	var steps []engine.Step
	for _, s := range []string{engine.SocketsClosed, engine.TicksEnded, engine.Killed, engine.Proven, engine.Counted, engine.Told} {
		steps = append(steps, engine.Step{Name: s, At: w.ago(ago)})
	}
	w.JSON("stopping.json", engine.Record{Version: 1, Steps: steps, Proof: "cgroup empty", Done: true})
	for n, l := range w.lines {
		l.Doing, l.Text = "stopped", "stopped"
		w.lines[n] = l
	}
	w.Event(ago, journal.MissionStopped, journal.End, "", "", "", fmt.Sprintf("mission %s %s: %s", w.M.ID, cause.Phase(), reason))
}

// Repo gives the mission a repository whose main holds files beside an empty beginning.
func (w *Told) Repo(message string, files map[string]string) {
	w.T.Helper()
	ctx := context.Background()
	repo, err := git.Init(ctx, w.St.Repo())
	w.do(err)
	base, err := repo.Start(ctx)
	w.do(err)
	w.M.Base = base
	head := base
	for name, text := range files {
		head, err = repo.WithFile(ctx, head, name, []byte(text), git.Who{Name: "AutoAgent-CodeBuilder-1", Email: "codebuilder-1@autoagent.example"}, message, w.ago(30*time.Minute))
		w.do(err)
	}
	w.do(repo.CompareAndSwap(ctx, git.Main, head, base))
	w.do(repo.Publish(ctx, head, w.St.Work(), w.St.Result()))
}

// Write brings everything to the disk.
func (w *Told) Write(phase string) {
	w.T.Helper()
	w.JSON("mission.json", w.M)
	w.JSON("plan.json", w.Plan)
	w.JSON("state.json", store.State{Version: 1, Generation: 9, UpdatedAt: w.Now, Phase: phase, Agents: w.lines})
	w.JSON("clock.json", mission.Clock{Version: 1, Used: mission.Duration(min(w.Now.Sub(w.M.CreatedAt), 3*time.Hour)), ReadAt: w.Now})
	stable(w.events, func(e journal.Event) time.Time { return e.At })
	stable(w.ledger[1:], func(r ledger.Record) time.Time { return r.At })
	var b strings.Builder
	for i, r := range w.ledger {
		r.Version, r.Seq = 1, int64(i+1)
		line, err := json.Marshal(r)
		w.do(err)
		b.Write(append(line, '\n'))
	}
	w.Put("ledger.jsonl", b.String())
	b.Reset()
	for _, e := range w.events {
		line, err := json.Marshal(e)
		w.do(err)
		b.Write(append(line, '\n'))
	}
	w.Put("events.jsonl", b.String())
}

func stable[T any](list []T, at func(T) time.Time) {
	for i := 1; i < len(list); i++ {
		for j := i; j > 0 && at(list[j]).Before(at(list[j-1])); j-- {
			list[j], list[j-1] = list[j-1], list[j]
		}
	}
}

// Said is an event of this moment.
func (w *Told) Said(text string) journal.Event {
	return journal.Event{At: time.Now(), Kind: journal.PersonTold, Level: journal.Routine, Text: text}
}
