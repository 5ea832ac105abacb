package tick

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/cell"
	"example.com/AutoAgentProject/core/git"
	"example.com/AutoAgentProject/core/journal"
	"example.com/AutoAgentProject/core/ledger"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/money"
	"example.com/AutoAgentProject/core/profession"
	"example.com/AutoAgentProject/core/runner"
	"example.com/AutoAgentProject/core/store"
)

// The test binary is also the shim inside of cells.
func TestMain(m *testing.M) {
	cell.ShimMain()
	os.Exit(m.Run())
}

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

const dollar = int64(money.USD)

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// need skips where a program is missing, except in CI.
func need(t *testing.T, program string) {
	t.Helper()
	if _, err := exec.LookPath(program); err == nil {
		return
	}
	if os.Getenv("CI") == "true" {
		t.Fatalf("%s is not installed", program)
	}
	t.Skipf("SKIPPED LOUDLY: %s is not installed, nothing of this is tested", program)
}

// fake is an agent program that does what a test says. Lines "<nano> <tokens>" of a transcript are what it spent.
type fake struct {
	runner.Runner // what a tick does not use
	jobs          []runner.Job
	do            func(context.Context, runner.Job) (runner.Result, error)
}

func (f *fake) Run(ctx context.Context, j runner.Job) (runner.Result, error) {
	f.jobs = append(f.jobs, j)
	if err := j.Launched(); err != nil {
		return runner.Result{}, err
	}
	return f.do(ctx, j)
}

func (f *fake) Recount(r io.Reader) (s runner.Spend, started bool, err error) {
	for in := bufio.NewScanner(r); in.Scan(); started = true {
		var nano, tokens int64
		if _, err := fmt.Sscan(in.Text(), &nano, &tokens); err == nil {
			s.Nano, s.Tokens, s.Source = s.Nano+money.Nano(nano), s.Tokens+tokens, "stream"
		}
	}
	return s, started, nil
}

// world is a mission on the disk and one agent of it, whose tick has not begun.
type world struct {
	*Tick
	t    *testing.T
	fake *fake
	at   time.Time
}

func newWorld(t *testing.T, unit money.Unit) *world {
	t.Helper()
	root := store.Root(t.TempDir())
	st := root.Mission("my-site")
	ok(t, os.MkdirAll(st.Dir(), 0o700))
	ok(t, os.MkdirAll(st.Work(), 0o700))
	login := filepath.Join(string(root), "login")
	ok(t, os.WriteFile(login, []byte("example"), 0o600))
	ok(t, os.Chtimes(login, noon.Add(-time.Hour), noon.Add(-time.Hour)))
	roster, err := mission.ParseRoster("codebuilder:3", []string{"codebuilder"})
	ok(t, err)
	m := mission.Mission{Version: mission.Version, ID: "my-site", Roster: roster, Model: "model-x", Path: "/usr/local/bin:/usr/bin:/bin",
		Budget: money.Amount{Unit: unit, N: 10 * dollar}, StepLimit: 2 * dollar, MinRun: dollar / 10, Credentials: login}
	for _, a := range roster {
		ok(t, st.Queue().Make(a.Name))
	}
	ok(t, st.Ledger().Create(t.Context(), m.Budget, noon))
	ok(t, st.PrepareTombstone())
	ok(t, st.CreateMission(m))
	profs, err := profession.Set{}.With(profession.Profession{Name: "codebuilder", Display: "CodeBuilder", Tools: []string{"Read"}, Soul: "# Soul"})
	ok(t, err)
	w := &world{t: t, at: noon, fake: &fake{}}
	agent, _ := m.Agent("codebuilder-1")
	w.Tick = &Tick{Store: st, Mission: m, Agent: agent, Professions: profs, Runner: w.fake, Limits: DefaultLimits,
		Credential: func() (runner.Credential, error) { return runner.Credential{Kind: "api-key", Secret: "example"}, nil },
		Now:        func() time.Time { return w.at }, Log: slog.New(slog.DiscardHandler)}
	return w
}

// as is the tick of another agent of the same mission.
func (w *world) as(name string) *Tick {
	k := *w.Tick
	k.Agent, _ = w.Mission.Agent(name)
	return &k
}

// begin begins the tick; it ends with the test.
func (w *world) begin() *world {
	w.t.Helper()
	out, end, err := w.Begin(w.t.Context())
	if out != Idle || err != nil {
		w.t.Fatal(out, err)
	}
	w.t.Cleanup(end)
	return w
}

// answers lets the agent program end with that result.
func (w *world) answers(r runner.Result) {
	w.fake.do = func(context.Context, runner.Job) (runner.Result, error) { return r, nil }
}

func (w *world) ask() Ask {
	p, _ := w.Professions.Get("codebuilder")
	return Ask{Step: "a", Profession: p, Dir: w.Store.Clone(w.Agent.Name), Prompt: "do it"}
}

func (w *world) book() ledger.Book {
	w.t.Helper()
	b, err := w.Store.Ledger().Read()
	ok(w.t, err)
	return b
}

// said are the events of some kinds, oldest first; of all without a kind.
func (w *world) said(kinds ...string) (out []journal.Event) {
	w.t.Helper()
	events, _, _, err := w.Store.Journal().Read(0)
	ok(w.t, err)
	for _, e := range events {
		for _, k := range kinds {
			if e.Kind == k {
				out = append(out, e)
			}
		}
		if len(kinds) == 0 {
			out = append(out, e)
		}
	}
	return out
}

// causes are the pauses in force.
func (w *world) causes() map[string]mission.Pause {
	w.t.Helper()
	p, err := w.Store.Pauses(w.at)
	ok(w.t, err)
	m := map[string]mission.Pause{}
	for _, c := range p {
		m[c.Cause] = c
	}
	return m
}

// repo makes the mission's repository.
func (w *world) repo() (head string) {
	w.t.Helper()
	need(w.t, "git")
	r, err := git.Init(w.t.Context(), w.Store.Repo())
	ok(w.t, err)
	head, err = r.Start(w.t.Context())
	ok(w.t, err)
	return head
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
