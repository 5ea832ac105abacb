package specialist

import (
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/claude"
	"example.com/AutoAgentProject/core/journal"
	"example.com/AutoAgentProject/core/money"
	"example.com/AutoAgentProject/core/plan"
	"example.com/AutoAgentProject/core/profession"
	"example.com/AutoAgentProject/core/recovery"
	"example.com/AutoAgentProject/core/scriptmodel"
	"example.com/AutoAgentProject/core/tick"
)

type block = map[string]any

func says(text string) scriptmodel.Step {
	return scriptmodel.Step{Content: []block{{"type": "text", "text": text}}}
}

func bash(command string) scriptmodel.Step {
	return scriptmodel.Step{Content: []block{{"type": "tool_use", "name": "Bash", "input": block{"command": command}}}}
}

func write(file, content string) scriptmodel.Step {
	return scriptmodel.Step{Content: []block{{"type": "tool_use", "name": "Write", "input": block{"file_path": "{{cwd}}/" + file, "content": content}}}}
}

// hangs begins an answer and falls silent.
func hangs() scriptmodel.Step {
	s := says(strings.Repeat("thinking about it ", 50))
	s.ChunkBytes, s.HangAfter = 40, 5
	return s
}

// real makes the world's agent program the real one; its model is played. Each list of answers is one run's, in order.
func (w *world) real(prof profession.Profession, runs ...[]scriptmodel.Step) *scriptmodel.Server {
	w.t.Helper()
	program, err := claude.Find(os.Getenv)
	if err != nil {
		if os.Getenv("CI") == "true" {
			w.t.Fatal(err)
		}
		w.t.Skip("SKIPPED LOUDLY: the agent program is not installed (make tools), nothing of this is tested")
	}
	var script scriptmodel.Script
	for i, steps := range runs {
		r := scriptmodel.Rule{Steps: steps}
		if i > 0 { // what a run is told shows how often it was tried
			r.When = []string{"This is try " + string(rune('0'+i))}
		}
		if i == 0 {
			r.Not = []string{"This is try "}
		}
		script.Rules = append(script.Rules, r)
	}
	model, err := scriptmodel.New(script, scriptmodel.Options{})
	ok(w.t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ok(w.t, err)
	go func() { _ = model.Serve(l) }() // its end is ours
	w.t.Cleanup(func() { model.Close() })
	prof.Name, prof.Display, prof.Soul, prof.Writes = "codebuilder", "CodeBuilder", "# Soul", true
	if prof.Tools == nil {
		prof.Tools = []string{"Read", "Write", "Bash"}
	}
	w.Professions, err = profession.Set{}.With(prof)
	ok(w.t, err)
	w.Mission.Upstream, w.Mission.Model = "http://"+l.Addr().String(), "claude-sonnet-5-5"
	w.Runner = claude.New(claude.Config{Program: program, Launcher: w.Tick, Price: money.Default().Cost})
	return model
}

// until does steps of the tick until the step is in a state.
func (w *world) until(id string, want plan.State) *plan.Step {
	w.t.Helper()
	for range 8 {
		w.once(tick.Moved)
		if s := w.step(id); s.State == want {
			return s
		}
	}
	w.t.Fatalf("step %s is %+v, want it %s", id, w.step(id), want)
	return nil
}

// intervened is what was told of helping on, oldest first.
func (w *world) intervened() []string {
	var out []string
	for _, e := range w.said(journal.Intervened) {
		out = append(out, e.Text)
	}
	return out
}

// short is longer than the program needs to start on a machine with much else to do.
const short = 4 * time.Second

// slow leaves tests that wait for long out of the short form.
func slow(t *testing.T) {
	t.Helper()
	if os.Getenv("AUTOAGENT_FULL") == "" {
		t.Skip("only with AUTOAGENT_FULL=1")
	}
}

// TestInterventions: each fault of a run, made by the real program with a played model, is met as the table says, and the step
// is done in the end.
func TestInterventions(t *testing.T) {
	failing := scriptmodel.Step{Status: 400, ErrType: "invalid_request_error", ErrMsg: "not like this"}
	good := []scriptmodel.Step{write("a.txt", "x"), says("I did it.")}
	for name, c := range map[string]struct {
		prof  profession.Profession
		first []scriptmodel.Step
		then  []scriptmodel.Step // the next run's; nil: there is none
		fault recovery.Fault
		told  string // in the next run's prompt, or in the event
	}{
		"silent":          {profession.Profession{Silence: short}, []scriptmodel.Step{write("half.txt", "x"), hangs()}, good, recovery.Silent, `files changed so far: "half.txt"`},
		"loop":            {profession.Profession{Silence: 20 * time.Second}, []scriptmodel.Step{bash("cat nothing")}, good, recovery.Loop, "times with the same input, and nothing changed"},
		"too long":        {profession.Profession{Silence: time.Minute, Wall: 10 * time.Second}, []scriptmodel.Step{bash("timeout 30 sh -c 'while :; do :; done'")}, good, recovery.Overtime, "the run took longer than 10s"},
		"stuck":           {profession.Profession{Silence: short}, []scriptmodel.Step{chatter()}, good, recovery.Stuck, "no file, commit or message changed for 8s"},
		"max turns":       {profession.Profession{MaxTurns: 2, Silence: time.Minute}, []scriptmodel.Step{bash("true"), bash("date"), bash("ls")}, good, recovery.TooLong, "Do the smallest part of the step"},
		"refusal":         {profession.Profession{Silence: time.Minute}, []scriptmodel.Step{{Content: []block{{"type": "text", "text": "no"}}, StopReason: "refusal"}}, good, recovery.Refused, "Do the smallest part of the step"},
		"error with work": {profession.Profession{Silence: time.Minute}, []scriptmodel.Step{write("half.txt", "x"), failing}, good, recovery.HalfBroken, `files changed so far: "half.txt"`},
		"a tool is missing": {profession.Profession{Silence: time.Minute, Required: []string{"Bash"}},
			[]scriptmodel.Step{write("a.txt", "x"), says("I did it."), bash("true"), says("Now I did it.")}, nil, recovery.Undone, "answered without having called Bash, and was told to"},
		"a tool stays missing": {profession.Profession{Silence: time.Minute, Required: []string{"Bash"}},
			[]scriptmodel.Step{write("a.txt", "x"), says("I did it."), says("I did it."), says("No.")}, []scriptmodel.Step{bash("true"), says("I did it.")}, recovery.Undone, "it did not call Bash, although it was told to"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.fault == recovery.Stuck || c.fault == recovery.Overtime {
				slow(t)
			}
			w := newWorld(t, step("a"))
			runs := [][]scriptmodel.Step{c.first, c.then}
			if c.then == nil {
				runs = runs[:1]
			}
			model := w.real(c.prof, runs...)
			a := w.until("a", plan.Done)
			said := strings.Join(w.intervened(), "\n")
			tries := 1
			if c.then == nil {
				tries = 0
			} else if !strings.Contains(said, "("+string(c.fault)+", try 1 of 3)") {
				t.Errorf("said:\n%s", said)
			}
			if a.Tries != tries || w.result("a.txt") != "x" {
				t.Errorf("%d tries, result %q", a.Tries, w.result("a.txt"))
			}
			if all := w.lastPrompt() + said; !strings.Contains(all, c.told) {
				t.Errorf("nothing says %q:\n%s", c.told, all)
			}
			if model.Stats().Refused > 0 {
				t.Errorf("%+v", model.Stats())
			}
		})
	}
}

// chatter is one long, cheerful answer that comes drop by drop.
func chatter() scriptmodel.Step {
	s := says(strings.Repeat("All is well. ", 4000))
	s.ChunkBytes, s.GapMS = 10, 50
	return s
}

// lastPrompt is what the latest run was told.
func (w *world) lastPrompt() string {
	w.t.Helper()
	var last string
	var at time.Time
	dir := w.Store.Agent("codebuilder-1") + "/runs"
	runs, err := os.ReadDir(dir)
	ok(w.t, err)
	for _, r := range runs {
		info, err := os.Stat(dir + "/" + r.Name() + "/prompt.md")
		ok(w.t, err)
		if info.ModTime().After(at) {
			b, err := os.ReadFile(dir + "/" + r.Name() + "/prompt.md")
			ok(w.t, err)
			last, at = string(b), info.ModTime()
		}
	}
	return last
}

// TestNothingToGoOnFrom: an error before anything was changed is met by a run that is told nothing.
func TestNothingToGoOnFrom(t *testing.T) {
	t.Parallel()
	w := newWorld(t, step("a"))
	failing := scriptmodel.Step{Status: 400, ErrType: "invalid_request_error", ErrMsg: "not like this"}
	w.real(profession.Profession{Silence: time.Minute}, []scriptmodel.Step{failing})
	w.once(tick.Moved)
	if s := w.step("a"); s.Tries != 1 || s.State != plan.Working {
		t.Fatalf("%+v", s)
	}
	w.real(profession.Profession{Silence: time.Minute}, []scriptmodel.Step{write("a.txt", "x"), says("I did it.")})
	if w.until("a", plan.Done); strings.Contains(w.lastPrompt(), "ended") || strings.Contains(w.lastPrompt(), "interrupted") {
		t.Error(w.lastPrompt())
	}
}

// TestBusyCompiler: a run that says nothing for much longer than its silence while a child computes is left alone.
func TestBusyCompiler(t *testing.T) {
	t.Parallel()
	w := newWorld(t, step("a"))
	w.real(profession.Profession{Silence: short}, []scriptmodel.Step{bash("timeout 9 sh -c 'while :; do :; done'; echo x > a.txt"), says("I did it.")})
	began := time.Now()
	w.once(tick.Moved)
	if s := w.step("a"); s.State != plan.Done || s.Tries != 0 || time.Since(began) < 9*time.Second {
		t.Errorf("%+v after %v: %v", s, time.Since(began), w.intervened())
	}
}

// TestSleepingChild: a child that only waits is no sign of life.
func TestSleepingChild(t *testing.T) {
	slow(t)
	t.Parallel()
	w := newWorld(t, step("a"))
	w.real(profession.Profession{Silence: short}, []scriptmodel.Step{bash("sleep 100")}, []scriptmodel.Step{write("a.txt", "x"), says("I did it.")})
	w.until("a", plan.Done)
	if said := w.intervened(); len(said) != 1 || !strings.Contains(said[0], "(silent, try 1 of 3)") {
		t.Error(said)
	}
}

// TestExhausted: the counter is the step's, whatever the faults were, also over ticks that died; then a person is asked, once.
func TestExhausted(t *testing.T) {
	slow(t)
	t.Parallel()
	w := newWorld(t, step("a"))
	turns := []scriptmodel.Step{bash("true"), bash("date"), bash("ls")}
	w.real(profession.Profession{MaxTurns: 2, Silence: short}, turns, []scriptmodel.Step{hangs()}, turns, turns)
	w.once(tick.Moved)
	// The tick dies after it counted and before it wrote down that there is to be another run.
	h := w.holdOf()
	h.Run, h.After = h.After, ""
	ok(t, w.Keep(h))
	w.once(tick.Moved)
	if s := w.step("a"); s.Tries != 1 {
		t.Fatalf("a run counted twice: %+v", s)
	}
	a := w.until("a", plan.Blocked)
	if a.Tries != recovery.MaxTries || !strings.Contains(a.Reasons[0], "it was helped on 3 times") {
		t.Errorf("%+v", a)
	}
	for range 3 {
		w.once(tick.Idle)
	}
	if told := w.said(journal.StepBlocked); len(told) != 1 || told[0].Level != journal.Blocker {
		t.Errorf("told %+v", told)
	}
	runs, err := os.ReadDir(w.Store.Agent("codebuilder-1") + "/runs")
	if ok(t, err); len(runs) != 1+recovery.MaxTries {
		t.Errorf("%d runs", len(runs))
	}
	if todo, err := os.ReadFile(w.Store.Todo()); err != nil || strings.Count(string(todo), "- [ ] 🚫") != 1 {
		t.Errorf("%s, %v", todo, err)
	}
}

// TestNothingMade: an agent that only talks is paused after so many runs in a row, whatever the steps were; one that makes
// something is not.
func TestNothingMade(t *testing.T) {
	slow(t)
	t.Parallel()
	w := newWorld(t, step("a"), step("b"), step("c"), step("d"))
	ok(t, w.Store.ChangePlan(t.Context(), func(p *plan.Plan) (bool, error) { // one agent has it all
		for i := range p.Steps {
			p.Steps[i].Agent = "codebuilder-1"
		}
		return true, nil
	}))
	model := w.real(profession.Profession{Silence: time.Minute}, []scriptmodel.Step{says("I did it.")})
	for n := range recovery.MaxEmpty {
		w.once(tick.Moved)
		if b := tick.ReadBreaker(w.Store, "codebuilder-1"); b.Empty != n+1 {
			t.Fatalf("run %d: %+v", n+1, b)
		}
		if told := w.said(journal.AgentPaused); len(told) > 0 != (n == recovery.MaxEmpty-1) {
			t.Fatalf("run %d: told %+v", n+1, told)
		}
		if n == 1 || n == 3 { // both tries of a step are over: the next one
			w.hand()
		}
	}
	asked := model.Stats().Requests
	for range 3 {
		w.once(tick.Later)
	}
	if n := model.Stats().Requests; n != asked {
		t.Errorf("it was asked %d times more", n-asked)
	}
}

// hand gives this agent the next step that waits.
func (w *world) hand() {
	w.t.Helper()
	ok(w.t, w.Change(w.t.Context(), w.main(), func(p *plan.Plan) error {
		for i := range p.Steps {
			if s := &p.Steps[i]; s.Agent == "codebuilder-2" && s.State == plan.Assigned {
				s.State, s.Agent = plan.Waiting, "codebuilder-1"
				return nil
			}
		}
		return nil
	}))
}
