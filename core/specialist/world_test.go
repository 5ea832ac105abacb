package specialist

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
	"example.com/AutoAgentProject/core/proc"
	"example.com/AutoAgentProject/core/profession"
	"example.com/AutoAgentProject/core/queue"
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

// fake is an agent program that does what a test says.
type fake struct {
	runner.Runner // what a tick does not use
	jobs          []runner.Job
	do            func(runner.Job) runner.Result
}

func (f *fake) Run(_ context.Context, j runner.Job) (runner.Result, error) {
	f.jobs = append(f.jobs, j)
	if err := j.Launched(); err != nil {
		return runner.Result{}, err
	}
	return f.do(j), nil
}

func (f *fake) Recount(io.Reader) (runner.Spend, bool, error) { return runner.Spend{}, false, nil }

// world is a mission on the disk, whose first step went to codebuilder-1, and that agent's tick, begun.
type world struct {
	Specialist
	t    *testing.T
	fake *fake
}

func newWorld(t *testing.T, steps ...plan.Step) *world {
	t.Helper()
	for _, program := range []string{"git", "bwrap"} {
		if _, err := exec.LookPath(program); err != nil {
			if os.Getenv("CI") == "true" {
				t.Fatalf("%s is not installed", program)
			}
			t.Skipf("SKIPPED LOUDLY: %s is not installed, nothing of specialists is tested", program)
		}
	}
	root := store.Root(t.TempDir())
	st := root.Mission("my-site")
	ok(t, os.MkdirAll(st.Dir(), 0o700))
	ok(t, os.MkdirAll(st.Work(), 0o700))
	roster, err := mission.ParseRoster("codebuilder:2", []string{"codebuilder"})
	ok(t, err)
	m := mission.Mission{Version: mission.Version, ID: "my-site", Roster: roster, Model: "model-x", Path: "/usr/local/bin:/usr/bin:/bin",
		Budget: money.Amount{Unit: money.NanoUSD, N: 100 * int64(money.USD)}, MinRun: 1}
	for _, a := range roster {
		ok(t, st.Queue().Make(a.Name))
	}
	ok(t, st.Ledger().Create(t.Context(), m.Budget, noon))
	ok(t, st.PrepareTombstone())
	ok(t, st.CreateMission(m))
	profs, err := profession.Set{}.With(profession.Profession{Name: "codebuilder", Display: "CodeBuilder", Soul: "# Soul"})
	ok(t, err)
	repo, err := git.Init(t.Context(), st.Repo())
	ok(t, err)
	head, err := repo.Start(t.Context())
	ok(t, err)
	w := &world{t: t, fake: &fake{}}
	agent, _ := m.Agent("codebuilder-1")
	k := &tick.Tick{Store: st, Mission: m, Agent: agent, Professions: profs, Runner: w.fake, Limits: tick.DefaultLimits,
		Credential: func() (runner.Credential, error) { return runner.Credential{Kind: "api-key", Secret: "example"}, nil },
		Now:        func() time.Time { return noon }, Log: slog.New(slog.DiscardHandler)}
	w.Specialist = Specialist{k}
	manager := *k
	manager.Agent, _ = m.Agent("manager")
	ok(t, manager.Change(t.Context(), head, func(p *plan.Plan) error {
		for _, s := range steps {
			s.Profession, s.State, s.Round, s.Since = "codebuilder", plan.Waiting, 1, noon
			p.Steps = append(p.Steps, s)
		}
		p.Round = 1
		return nil
	}))
	out, end, err := k.Begin(t.Context())
	if out != tick.Idle || err != nil {
		t.Fatal(out, err)
	}
	t.Cleanup(end)
	return w
}

// step is a step that is done when its own file is there.
func step(id string, needs ...string) plan.Step {
	return plan.Step{ID: id, Title: "Make " + id, Brief: "Write " + id + ".txt.", Verify: "test -f " + id + ".txt",
		Acceptance: []string{id + " is there"}, DependsOn: needs}
}

// writes lets the agent program write files into its folder and end well.
func (w *world) writes(kv ...string) {
	w.fake.do = func(j runner.Job) runner.Result {
		for i := 0; i < len(kv); i += 2 {
			ok(w.t, os.MkdirAll(filepath.Dir(filepath.Join(j.Dir, kv[i])), 0o700))
			ok(w.t, os.WriteFile(filepath.Join(j.Dir, kv[i]), []byte(kv[i+1]), 0o600))
		}
		return runner.Result{Verdict: runner.Done, Text: "I did it."}
	}
}

func (w *world) ends(r runner.Result) { w.fake.do = func(runner.Job) runner.Result { return r } }

// once does one step and wants it to end so.
func (w *world) once(want tick.Outcome) {
	w.t.Helper()
	if out, err := w.Once(w.t.Context()); out != want || err != nil {
		w.t.Fatalf("outcome %d, %v; want %d", out, err, want)
	}
}

func (w *world) step(id string) *plan.Step {
	w.t.Helper()
	p, err := w.Store.Plan()
	ok(w.t, err)
	return p.Step(id)
}

func (w *world) main() string {
	w.t.Helper()
	c, err := w.Repo().Resolve(w.t.Context(), git.Main)
	ok(w.t, err)
	return c
}

// result is the text of a file in the published result; "-" if it is not there.
func (w *world) result(name string) string {
	b, err := os.ReadFile(filepath.Join(w.Store.Result(), name))
	if err != nil {
		return "-"
	}
	return string(b)
}

// box is the folder of the inbox that holds the last handoff of a step.
func (w *world) box(s *plan.Step) string {
	return w.Store.Queue().Where("codebuilder-1", s.Last().Name)
}

func (w *world) claimPath(name string) string {
	return filepath.Join(w.Store.Agent("codebuilder-1"), "inbox", "in_process", name+".claim")
}

func (w *world) claim(name string) (c queue.Claim) {
	w.t.Helper()
	b, err := os.ReadFile(w.claimPath(name))
	ok(w.t, err)
	ok(w.t, json.Unmarshal(b, &c))
	return c
}

// holdOf is the hold on the disk; its key is empty if there is none.
func (w *world) holdOf() (h tick.Hold) {
	_ = w.Store.Load(filepath.Join("agents", "codebuilder-1", "hold.json"), &h)
	return h
}

func (w *world) said(kind string) (out []journal.Event) {
	w.t.Helper()
	events, _, _, err := w.Store.Journal().Read(0)
	ok(w.t, err)
	for _, e := range events {
		if e.Kind == kind {
			out = append(out, e)
		}
	}
	return out
}

// others brings a commit with files onto main, as another agent does.
func (w *world) others(kv ...string) string {
	w.t.Helper()
	dir := filepath.Join(w.t.TempDir(), "tree")
	run := func(in string, args ...string) {
		c := exec.Command("git", append([]string{"-c", "user.name=Pat Example", "-c", "user.email=pat@example.com"}, args...)...)
		c.Dir, c.Env = in, append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
		if out, err := c.CombinedOutput(); err != nil {
			w.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	run("/", "clone", "--quiet", "--branch=main", w.Store.Repo(), dir)
	for i := 0; i < len(kv); i += 2 {
		ok(w.t, os.WriteFile(filepath.Join(dir, kv[i]), []byte(kv[i+1]), 0o600))
	}
	run(dir, "add", "-A")
	run(dir, "commit", "--quiet", "-m", "Others.")
	run(dir, "push", "--quiet", "origin", "HEAD:refs/heads/main")
	return w.main()
}

// deadProcess is a process of this boot that is gone.
func deadProcess(t *testing.T) proc.ID {
	t.Helper()
	c := exec.Command("sleep", "600")
	ok(t, c.Start())
	id, err := proc.Of(c.Process.Pid)
	ok(t, err)
	ok(t, c.Process.Kill())
	_ = c.Wait()
	return id
}
