package manager

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/cell"
	"example.com/AutoAgentProject/core/git"
	"example.com/AutoAgentProject/core/journal"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/money"
	"example.com/AutoAgentProject/core/plan"
	"example.com/AutoAgentProject/core/profession"
	"example.com/AutoAgentProject/core/runner"
	"example.com/AutoAgentProject/core/store"
	"example.com/AutoAgentProject/core/tick"
)

// The test binary is also the shim inside of cells.
func TestMain(m *testing.M) {
	cell.ShimMain()
	os.Exit(m.Run())
}

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// fake is an agent program that gives these answers, each as long as Follow asks for another. The last one is repeated.
type fake struct {
	runner.Runner // what a tick does not use
	jobs          []runner.Job
	answers       []string
	given         int
	asked         []string // what Follow said
	verdict       runner.Verdict
}

func (f *fake) Run(_ context.Context, j runner.Job) (runner.Result, error) {
	f.jobs = append(f.jobs, j)
	if err := j.Launched(); err != nil {
		return runner.Result{}, err
	}
	for n := 1; ; n++ {
		answer := json.RawMessage(f.answers[min(f.given, len(f.answers)-1)])
		f.given++
		more := j.Follow(runner.Turn{N: n, Structured: answer})
		if more == "" {
			return runner.Result{Verdict: f.verdict, Reason: "so it was", Structured: answer, Turns: n}, nil
		}
		f.asked = append(f.asked, more)
	}
}

func (f *fake) Recount(io.Reader) (runner.Spend, bool, error) { return runner.Spend{}, false, nil }

// world is a mission on the disk and its manager's tick, begun.
type world struct {
	Manager
	t    *testing.T
	fake *fake
}

func newWorld(t *testing.T, goal, verify string) *world {
	t.Helper()
	for _, program := range []string{"git", "bwrap"} {
		if _, err := exec.LookPath(program); err != nil {
			if os.Getenv("CI") == "true" {
				t.Fatalf("%s is not installed", program)
			}
			t.Skipf("SKIPPED LOUDLY: %s is not installed, nothing of the manager is tested", program)
		}
	}
	st := store.Root(t.TempDir()).Mission("my-site")
	ok(t, os.MkdirAll(st.Dir(), 0o700))
	ok(t, os.MkdirAll(st.Work(), 0o700))
	roster, err := mission.ParseRoster("codebuilder:2", []string{"codebuilder"})
	ok(t, err)
	m := mission.Mission{Version: mission.Version, ID: "my-site", Roster: roster, Model: "model-x", Path: "/usr/local/bin:/usr/bin:/bin", Verify: verify,
		Budget: money.Amount{Unit: money.NanoUSD, N: 100 * int64(money.USD)}, StepLimit: int64(money.USD), MinRun: 1}
	for _, a := range roster {
		ok(t, st.Queue().Make(a.Name))
	}
	ok(t, os.WriteFile(st.Goal(), []byte(goal), 0o600))
	ok(t, st.Ledger().Create(t.Context(), m.Budget, noon))
	ok(t, st.PrepareTombstone())
	ok(t, st.CreateMission(m))
	set := profession.Set{}
	for _, name := range []string{"codebuilder", "manager"} {
		set, err = set.With(profession.Profession{Name: name, Description: "the " + name, Soul: "# Soul"})
		ok(t, err)
	}
	repo, err := git.Init(t.Context(), st.Repo())
	ok(t, err)
	_, err = repo.Start(t.Context())
	ok(t, err)
	w := &world{t: t, fake: &fake{verdict: runner.Done, answers: []string{good}}}
	agent, _ := m.Agent("manager")
	w.Manager = Manager{&tick.Tick{Store: st, Mission: m, Agent: agent, Professions: set, Runner: w.fake, Limits: tick.DefaultLimits,
		Credential: func() (runner.Credential, error) { return runner.Credential{Kind: "api-key", Secret: "example"}, nil },
		Now:        func() time.Time { return noon }, Log: slog.New(slog.DiscardHandler)}}
	out, end, err := w.Begin(t.Context())
	if out != tick.Idle || err != nil {
		t.Fatal(out, err)
	}
	t.Cleanup(end)
	return w
}

const (
	good = `{"steps":[{"id":"a","title":"Make a","brief":"B","profession":"codebuilder","depends_on":[],"verify":"true","acceptance":["x"]}]}`
	bad  = `{"steps":[{"id":"a","title":"Make a","brief":"B","profession":"pilot","depends_on":[],"verify":"true","acceptance":["x"]}]}`
)

func (w *world) once(want tick.Outcome) {
	w.t.Helper()
	if out, err := w.Once(w.t.Context()); out != want || err != nil {
		w.t.Fatalf("outcome %d, %v; want %d", out, err, want)
	}
}

func (w *world) plan() *plan.Plan {
	w.t.Helper()
	p, err := w.Store.Plan()
	ok(w.t, err)
	return p
}

func (w *world) stop() mission.Stop {
	s, err := w.Store.Stopped()
	ok(w.t, err)
	if s == nil {
		return mission.Stop{}
	}
	return *s
}

func (w *world) said(kind string) (n int) {
	w.t.Helper()
	events, _, _, err := w.Store.Journal().Read(0)
	ok(w.t, err)
	for _, e := range events {
		if e.Kind == kind {
			n++
		}
	}
	return n
}

// set puts every step of the plan into a state.
func (w *world) set(s plan.State) {
	w.t.Helper()
	ok(w.t, w.Store.ChangePlan(w.t.Context(), func(p *plan.Plan) (bool, error) {
		for i := range p.Steps {
			p.Steps[i].State = s
		}
		return true, nil
	}))
}

func (w *world) phaseIs(want string) {
	w.t.Helper()
	if st, err := w.Store.State(); err != nil || st.Phase != want {
		w.t.Errorf("phase %q, %v; want %q", st.Phase, err, want)
	}
}

func TestPlan(t *testing.T) {
	w := newWorld(t, "Make a page.\n", "")
	w.once(tick.Moved)
	p := w.plan()
	if p.Round != 1 || len(p.Steps) != 1 || p.Steps[0].State != plan.Assigned || p.Steps[0].Agent != "codebuilder-1" ||
		w.Store.Queue().Where("codebuilder-1", p.Steps[0].Last().Name) != "new" {
		t.Fatalf("%+v", p)
	}
	j := w.fake.jobs[0]
	if !strings.Contains(j.Prompt, "\n=====\nMake a page.\n=====\n") || !strings.Contains(j.Prompt, "- codebuilder (2): the codebuilder\n") ||
		!strings.Contains(string(j.Schema), `"enum":["codebuilder"]`) {
		t.Errorf("prompt:\n%s\nschema: %s", j.Prompt, j.Schema)
	}
	w.phaseIs("working")
	for range 2 { // nothing changed: nobody is asked
		w.once(tick.Idle)
	}
	if len(w.fake.jobs) != 1 || w.said(journal.PlanAccepted) != 1 {
		t.Error(len(w.fake.jobs), w.said(journal.PlanAccepted))
	}
}

// TestRefusal: a refused plan goes back into the same conversation, at most Limits.Refusal times, and at most MaxRuns
// conversations are held.
func TestRefusal(t *testing.T) {
	w := newWorld(t, "g", "")
	w.fake.answers = []string{bad, `null`, good}
	w.once(tick.Moved)
	if w.plan().Round != 1 || len(w.fake.jobs) != 1 || len(w.fake.asked) != 2 || w.said(journal.PlanRefused) != 2 ||
		!strings.Contains(w.fake.asked[0], `nobody in the roster is a "pilot"`) || !strings.Contains(w.fake.asked[1], "the plan has no step") {
		t.Fatalf("%d runs, asked %q", len(w.fake.jobs), w.fake.asked)
	}
	w = newWorld(t, "g", "")
	w.fake.answers = []string{bad}
	for n := 1; n < MaxRuns; n++ {
		w.once(tick.Moved)
		if len(w.fake.jobs) != n || len(w.fake.asked) != n*w.Limits.Refusal || w.plan().Round != 0 {
			t.Fatalf("%d runs, %d refusals", len(w.fake.jobs), len(w.fake.asked))
		}
	}
	w.once(tick.Over)
	if s := w.stop(); len(w.fake.jobs) != MaxRuns || s.Cause != mission.FailedEnd || !strings.Contains(s.Reason, "pilot") {
		t.Errorf("%d runs, %+v", len(w.fake.jobs), s)
	}
}

// TestPlanAfterADeath: what a run before the death answered is used; nobody is asked again.
func TestPlanAfterADeath(t *testing.T) {
	w := newWorld(t, "g", "")
	h, err := w.Hold("plan-1")
	ok(t, err)
	head, err := w.Repo().Resolve(t.Context(), git.Main)
	ok(t, err)
	if _, out, err := w.ask(t.Context(), &h, w.plan(), head, "", false); out != tick.Moved || err != nil { // and dies
		t.Fatal(out, err)
	}
	w.once(tick.Moved)
	if w.plan().Round != 1 || len(w.fake.jobs) != 1 {
		t.Error(w.plan().Round, len(w.fake.jobs))
	}
	// Accepted is accepted: whoever comes with what was true before changes nothing.
	if out, err := w.Manager.plan(t.Context(), &plan.Plan{}, head, "", 0, false); out != tick.Moved || err != nil || w.plan().Round != 1 || w.said(journal.PlanAccepted) != 1 {
		t.Error(out, err, w.plan().Round)
	}
	// Ticks that died in their runs are no attempts, until they are too many.
	w = newWorld(t, "g", "")
	ok(t, w.Keep(tick.Hold{Version: mission.Version, Key: "plan-1", Run: "gone", Runs: 1, Deaths: maxDeaths - 1}))
	w.once(tick.Over)
	if w.stop().Cause != mission.FailedEnd || len(w.fake.jobs) != 0 {
		t.Errorf("%+v, %d runs", w.stop(), len(w.fake.jobs))
	}
	w = newWorld(t, "g", "")
	ok(t, w.Keep(tick.Hold{Version: mission.Version, Key: "plan-1", Run: "gone", Runs: MaxRuns, Deaths: 1}))
	w.once(tick.Moved)
	if w.plan().Round != 1 || len(w.fake.jobs) != 1 {
		t.Error("a death was counted as an attempt:", w.plan().Round, w.stop())
	}
}

func TestPlanWaits(t *testing.T) {
	w := newWorld(t, "g", "")
	w.fake.verdict = runner.Later
	w.once(tick.Later)
	w.once(tick.Later) // paused: nobody is asked
	if len(w.fake.jobs) != 1 || w.stop().Cause != "" {
		t.Error(len(w.fake.jobs), w.stop())
	}
}

// TestReplan: a failed step brings another plan, with the reason; in the end the mission gives up.
func TestReplan(t *testing.T) {
	w := newWorld(t, "g", "")
	w.once(tick.Moved)
	for n := 2; n <= plan.MaxRounds; n++ {
		ok(t, w.Store.ChangePlan(t.Context(), func(p *plan.Plan) (bool, error) {
			p.Fail("a", "there is no compiler", noon)
			return true, nil
		}))
		w.once(tick.Moved)
		if p := w.plan(); p.Round != n || len(p.Steps) != 1 || !strings.Contains(w.fake.jobs[n-1].Prompt, "because step a failed: there is no compiler") {
			t.Fatalf("%+v", p)
		}
	}
	w.set(plan.Failed)
	w.once(tick.Over)
	if w.stop().Cause != mission.FailedEnd || len(w.fake.jobs) != plan.MaxRounds {
		t.Errorf("%+v", w.stop())
	}
}

// TestComplete: the end is proven first and published second, and only then it is the end.
func TestComplete(t *testing.T) {
	w := newWorld(t, "g", "test -d .")
	w.once(tick.Moved)
	w.set(plan.Done)
	w.once(tick.Moved)
	head, _ := w.Repo().Resolve(t.Context(), git.Main)
	if f := w.plan().Final; f.Commit != head || !f.Passed || w.said(journal.VerifyPassed) != 1 {
		t.Fatalf("%+v", f)
	}
	w.phaseIs("verifying")
	// The result cannot be shown: the mission is not over.
	ok(t, os.Mkdir(w.Store.Result(), 0o700))
	if out, err := w.Once(t.Context()); err == nil || w.stop().Cause != "" {
		t.Fatal(out, err, w.stop())
	}
	ok(t, os.Remove(w.Store.Result()))
	w.once(tick.Over)
	if _, err := os.Stat(w.Store.Result()); err != nil || w.stop().Cause != mission.Completed || w.said(journal.VerifyPassed) != 1 || w.said(journal.MissionFinished) != 1 {
		t.Error(err, w.stop(), w.said(journal.VerifyPassed))
	}
}

// TestVerifyOncePerTree: a failed proof of the whole brings another plan with its output, and is not repeated on the
// same tree.
func TestVerifyOncePerTree(t *testing.T) {
	w := newWorld(t, "g", "echo 2 tests failed; exit 1")
	w.once(tick.Moved)
	w.set(plan.Done)
	w.once(tick.Moved)
	if f := w.plan().Final; f.Passed || !strings.Contains(f.Output, "2 tests failed") || w.said(journal.VerifyFailed) != 1 {
		t.Fatalf("%+v", f)
	}
	w.fake.answers = []string{strings.Replace(good, `"a"`, `"b"`, 1)}
	w.once(tick.Moved)
	if w.said(journal.VerifyFailed) != 1 || w.plan().Round != 2 || !strings.Contains(w.fake.jobs[1].Prompt, "2 tests failed") {
		t.Error(w.said(journal.VerifyFailed), w.plan().Round)
	}
	if left, _ := os.ReadDir(w.Store.Cells("manager")); len(left) > 0 {
		t.Error("scratch folders were left:", left)
	}
}

// TestMail: whatever comes to the manager is filed.
func TestMail(t *testing.T) {
	w := newWorld(t, "g", "")
	w.once(tick.Moved)
	inbox := filepath.Join(w.Store.Agent("manager"), "inbox")
	for name, text := range map[string]string{
		"50_note.handoff": "id: 1\nfrom: codebuilder-1\nto: manager\nrecipient: manager\npriority: 50\ntype: note\nmessage: hello\n\n",
		"40_bad.handoff":  "nonsense",
	} {
		ok(t, os.WriteFile(filepath.Join(inbox, "new", name), []byte(text), 0o600))
	}
	w.once(tick.Idle)
	q := w.Store.Queue()
	if q.Where("manager", "50_note.handoff") != "completed" || q.Where("manager", "40_bad.handoff") != "failed" || w.said(journal.MailReceived) != 1 || w.said(journal.Repaired) != 1 {
		t.Error(q.Where("manager", "50_note.handoff"), q.Where("manager", "40_bad.handoff"))
	}
}
