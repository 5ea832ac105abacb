package view

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/engine"
	"example.com/AutoAgentProject/core/handoff"
	"example.com/AutoAgentProject/core/ledger"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/money"
	"example.com/AutoAgentProject/core/plan"
	"example.com/AutoAgentProject/core/profession"
	"example.com/AutoAgentProject/core/store"
	"example.com/AutoAgentProject/core/usererr"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

const dollar = int64(money.USD)

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// world is a mission on the disk, as it is in the middle of its work.
type world struct {
	t    *testing.T
	st   *store.Store
	live engine.Live
	err  error // of asking who ticks it
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, st: store.Root(t.TempDir()).Mission("my-site"), live: engine.Live{Ticking: true, By: "embedded", Next: map[string]time.Time{"codebuilder-1": noon.Add(time.Minute)}}}
	st, ctx := w.st, t.Context()
	ok(t, os.MkdirAll(st.Dir(), 0o700))
	ok(t, os.MkdirAll(st.Work(), 0o700))
	roster, err := mission.ParseRoster("codebuilder:2", []string{"codebuilder"})
	ok(t, err)
	for _, a := range roster {
		ok(t, st.Queue().Make(a.Name))
	}
	ok(t, st.CreateMission(mission.Mission{Version: mission.Version, ID: "my-site", Engine: "embedded", CreatedAt: noon, Roster: roster, Payer: "an API key",
		Budget: money.Amount{Unit: money.NanoUSD, N: 4 * dollar}, MaxRun: mission.Duration(4 * time.Hour)}))
	ok(t, os.WriteFile(st.Goal(), []byte("Make a page.\nBlue.\n"), 0o600))
	ok(t, st.PrepareTombstone())
	l := st.Ledger()
	ok(t, l.Create(ctx, money.Amount{Unit: money.NanoUSD, N: 4 * dollar}, noon))
	ok(t, l.Spend(ctx, "r1", ledger.Spent{Nano: money.USD, Tokens: 9, Unpriced: []string{"model-y"}, Agent: "codebuilder-1"}, noon))
	_, _, err = l.Reserve(ctx, ledger.ReserveRequest{Run: "r2", Agent: "codebuilder-1", StepLimit: dollar, Now: noon})
	ok(t, err)
	ok(t, st.SetPhase(ctx, "working", noon))
	ok(t, st.SetLine(ctx, "codebuilder-1", store.Line{Text: "works on a", Doing: "working", Step: "a", Run: "r2"}, "", noon))
	ok(t, st.SetLine(ctx, "manager", store.Line{Text: "waits", Doing: "waiting"}, "", noon))
	_, err = st.Clock(ctx, func(c mission.Clock) mission.Clock {
		return mission.Clock{Version: mission.Version, Used: mission.Duration(time.Hour)}
	})
	ok(t, err)
	ok(t, st.ChangePlan(ctx, func(p *plan.Plan) (bool, error) {
		p.Round = 1
		p.Steps = []plan.Step{
			{ID: "a", Title: "Make a", Profession: "codebuilder", Agent: "codebuilder-1", State: plan.Working, DependsOn: []string{}, Handoffs: make([]plan.Handoff, 2), Reasons: []string{"old", "it was red\nvery"}},
			{ID: "b", Title: "Make b", Profession: "codebuilder", State: plan.Waiting, DependsOn: []string{"a"}},
		}
		return true, nil
	}))
	name, _, e := handoff.NewWork(handoff.Work{From: "manager", To: "codebuilder-1", Task: "a", Commit: "0123456789", At: noon})
	ok(t, st.Queue().Send("manager", name, e))
	_, err = st.Queue().Deliver("manager", noon)
	ok(t, err)
	return w
}

func (w *world) read() Mission {
	w.t.Helper()
	profs, err := profession.Set{}.With(profession.Profession{Name: "codebuilder", Display: "CodeBuilder"})
	ok(w.t, err)
	v, err := Read(w.t.Context(), w.st, func(context.Context, string) (engine.Live, error) { return w.live, w.err }, profs, noon.Add(time.Hour))
	ok(w.t, err)
	return v
}

func (w *world) write(name, text string) {
	w.t.Helper()
	ok(w.t, os.WriteFile(filepath.Join(w.st.Dir(), name), []byte(text), 0o600))
}

func (w *world) stop(c mission.Cause) {
	w.t.Helper()
	_, err := w.st.Stop(mission.Stop{Cause: c, Reason: "so it was", By: "person", At: noon})
	ok(w.t, err)
}

func (w *world) stopping(done bool) {
	w.t.Helper()
	ok(w.t, w.st.Save("stopping.json", engine.Record{Version: mission.Version, Done: done, Steps: []engine.Step{{Name: engine.TicksEnded, At: noon}, {Name: engine.Told, At: noon.Add(time.Minute)}}}))
}

func agent(v Mission, name string) Agent {
	for _, a := range v.Agents {
		if a.Name == name {
			return a
		}
	}
	return Agent{}
}

func TestRead(t *testing.T) {
	w := newWorld(t)
	v := w.read()
	if v.ID != "my-site" || v.Phase != "working" || v.Goal != "Make a page." || v.Payer != "an API key" || v.Unreadable || v.Result != "" || v.Stop != nil {
		t.Errorf("%+v", v)
	}
	if want := (Budget{Unit: money.NanoUSD, Total: 4 * dollar, Used: dollar, Reserved: dollar, Remaining: 3 * dollar, Percent: 25, Text: "$1.00 of $4.00 (25%)"}); v.Budget != want {
		t.Errorf("%+v", v.Budget)
	}
	if want := (Time{Used: mission.Duration(time.Hour), Left: mission.Duration(3 * time.Hour), Limited: true}); v.Time != want {
		t.Errorf("%+v", v.Time)
	}
	if len(v.Steps) != 2 || v.Steps[0].Returned != 1 || v.Steps[0].Reason != "it was red" || v.Steps[0].State != plan.Working || v.Steps[1].Returned != 0 || v.Steps[1].Reason != "" || v.Steps[1].DependsOn[0] != "a" {
		t.Errorf("%+v", v.Steps)
	}
	a := agent(v, "codebuilder-1")
	if a.Doing != "working" || a.Run != "r2" || a.Display != "AutoAgent-CodeBuilder-1" || a.Line != "works on a" || a.Inbox.New != 1 || !a.Next.Equal(noon.Add(time.Minute)) || len(v.Agents) != 5 {
		t.Errorf("%+v", a)
	}
	if len(v.Warnings) != 1 || !strings.Contains(v.Warnings[0], "model-y") {
		t.Errorf("%q", v.Warnings)
	}
	ok(t, os.Mkdir(w.st.Result(), 0o700))
	if v := w.read(); v.Result != w.st.Result() {
		t.Errorf("%q", v.Result)
	}
}

// TestWithoutGateway: as long as a mission can work, it is said that nothing of ours stands between its runs and the model.
func TestWithoutGateway(t *testing.T) {
	for cause, says := range map[mission.Cause]bool{"": true, mission.Budget: true, mission.Completed: false} {
		w := newWorld(t)
		m, err := w.st.Mission()
		ok(t, err)
		m.Gateway = mission.GatewayOff
		b, err := json.Marshal(m)
		ok(t, err)
		w.write("mission.json", string(b))
		if cause != "" {
			w.stop(cause)
		}
		if v := w.read(); slices.Contains(v.Warnings, mission.WithoutGateway) != says {
			t.Errorf("%q: %q", cause, v.Warnings)
		}
	}
}

// TestLists: whoever reads the JSON gets lists, never null.
func TestLists(t *testing.T) {
	w := newWorld(t)
	ok(t, os.Remove(filepath.Join(w.st.Dir(), "plan.json")))
	b, err := json.Marshal(w.read())
	ok(t, err)
	for _, list := range []string{`"pauses":[]`, `"steps":[]`, `"warnings":[`, `"agents":[`} {
		if !strings.Contains(string(b), list) {
			t.Errorf("no %s in %s", list, b)
		}
	}
	_, err = w.st.Pause(t.Context(), mission.Pause{Cause: "human", Reason: "lunch"}, noon)
	ok(t, err)
	if v := w.read(); len(v.Pauses) != 1 || v.Pauses[0].Reason != "lunch" {
		t.Errorf("%+v", v.Pauses)
	}
}

func TestPhase(t *testing.T) {
	stops := func(c mission.Cause, done bool) func(*world) {
		return func(w *world) { w.stop(c); w.stopping(done) }
	}
	for name, c := range map[string]struct {
		set        func(*world)
		phase      string
		doing      string // what the agent that worked does
		unreadable bool
		ended      bool
	}{
		"working":                      {func(*world) {}, "working", "working", false, false},
		"starting":                     {func(w *world) { ok(w.t, os.Remove(filepath.Join(w.st.Dir(), "state.json"))) }, "starting", "", false, false},
		"nobody ticks":                 {func(w *world) { w.live = engine.Live{} }, "interrupted: working", "stopped", false, false},
		"not known who ticks":          {func(w *world) { w.live, w.err = engine.Live{}, errors.New("no bus") }, "unknown: working", "unknown", false, false},
		"not known, and told to stop":  {func(w *world) { w.err = errors.New("no bus"); w.stop(mission.Aborted) }, "stopping: aborted", "stopped", false, false},
		"told to stop":                 {func(w *world) { w.stop(mission.Aborted) }, "stopping: aborted", "stopped", false, false},
		"on the way":                   {stops(mission.Aborted, false), "stopping: aborted", "stopped", false, false},
		"aborted":                      {stops(mission.Aborted, true), "aborted", "stopped", false, true},
		"completed":                    {stops(mission.Completed, true), "completed", "stopped", false, true},
		"failed":                       {stops(mission.FailedEnd, true), "failed", "stopped", false, true},
		"out of money":                 {stops(mission.Budget, true), "halted: budget", "stopped", false, true},
		"out of time":                  {stops(mission.Time, true), "halted: time", "stopped", false, true},
		"damage":                       {stops(mission.Damage, true), "halted: damage", "stopped", false, true},
		"a damaged record of the stop": {func(w *world) { w.stop(mission.Completed); w.write("stopping.json", `{"done":true`) }, "stopping: completed", "stopped", true, false},
		"a damaged tombstone":          {func(w *world) { w.write("stop.json", "\x00") }, "stopping", "stopped", true, false},
		"a damaged tombstone, proven":  {func(w *world) { w.write("stop.json", "\x00"); w.stopping(true) }, "stopped", "stopped", true, true},
	} {
		w := newWorld(t)
		c.set(w)
		v := w.read()
		a := agent(v, "codebuilder-1")
		if v.Phase != c.phase || a.Doing != c.doing || v.Unreadable != c.unreadable || v.EndedAt.Equal(noon.Add(time.Minute)) != c.ended {
			t.Errorf("%s: %q, the agent is %q, unreadable %v, ended %s, %q", name, v.Phase, a.Doing, v.Unreadable, v.EndedAt, v.Warnings)
		}
		if a.Doing == "stopped" && a.Run != "" {
			t.Errorf("%s: a run of a stopped agent", name)
		}
		if nobody := strings.Contains(fmt.Sprint(v.Warnings), "nobody ticks"); nobody != (name == "nobody ticks") {
			t.Errorf("%s: %q", name, v.Warnings)
		}
		if w.err != nil && !strings.Contains(fmt.Sprint(v.Warnings), "no bus") {
			t.Errorf("%s: %q", name, v.Warnings)
		}
		if m := agent(v, "manager"); c.doing != "" && m.Doing != "waiting" {
			t.Errorf("%s: who waits is %q", name, m.Doing)
		}
	}
}

// TestUnreadable: what cannot be read is told, and the rest is shown.
func TestUnreadable(t *testing.T) {
	good := newWorld(t).read()
	for file, lost := range map[string]func(*Mission){
		"plan.json":                   func(v *Mission) { v.Steps = good.Steps },
		"ledger.jsonl":                func(v *Mission) { v.Budget = good.Budget },
		"clock.json":                  func(v *Mission) { v.Time = good.Time },
		"pauses.json":                 func(*Mission) {},
		"state.json":                  func(*Mission) {},
		"goal.md":                     func(v *Mission) { v.Goal = good.Goal },
		"agents/codebuilder-1/inbox/": func(v *Mission) { v.Agents[1].Inbox = good.Agents[1].Inbox },
	} {
		w := newWorld(t)
		path := filepath.Join(w.st.Dir(), file)
		switch {
		case strings.HasSuffix(file, "/"):
			ok(t, os.Rename(path, path+".away"))
		case file == "goal.md": // and it must not wait for a writer
			ok(t, os.Remove(path))
			ok(t, syscall.Mkfifo(path, 0o600))
		default:
			w.write(file, "\x00\x00")
		}
		v := w.read()
		if !v.Unreadable || len(v.Warnings) == 0 {
			t.Errorf("%s: it is not told", file)
		}
		if same(v, good) && file != "pauses.json" && file != "state.json" {
			t.Errorf("%s: nothing is missing", file)
		}
		if lost(&v); !same(v, good) {
			t.Errorf("%s: the rest is not shown:\n%+v\nwant\n%+v", file, v, good)
		}
	}
	// The last good state is said to be just that.
	w := newWorld(t)
	w.write("state.json", "{")
	if v := w.read(); !strings.Contains(fmt.Sprint(v.Warnings), "last good of 12:00 UTC") || v.Phase != "working" {
		t.Errorf("%q, %s", v.Warnings, v.Phase)
	}
}

// same compares what is shown, without what tells of damage and where the files lie.
func same(a, b Mission) bool {
	for _, v := range []*Mission{&a, &b} {
		v.Warnings, v.Unreadable, v.Repo = nil, false, ""
		v.Agents = append([]Agent{}, v.Agents...)
		for i := range v.Agents {
			v.Agents[i].Inbox.Oldest = time.Time{}
			v.Agents[i].Since = time.Time{}
			if v.Agents[i].Name == "manager" { // its line was the last change, which the last good state lacks
				v.Agents[i].Line, v.Agents[i].Doing = "", ""
			}
		}
	}
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return string(x) == string(y)
}

func TestUnreadableMission(t *testing.T) {
	w := newWorld(t)
	read := func(st *store.Store) error {
		_, err := Read(t.Context(), st, func(context.Context, string) (engine.Live, error) { return w.live, nil }, profession.Set{}, noon)
		return err
	}
	w.write("mission.json", "{")
	if err := read(w.st); usererr.CodeOf(err) != usererr.Unreadable {
		t.Error(err)
	}
	if err := read(store.Root(t.TempDir()).Mission("gone")); usererr.CodeOf(err) != usererr.NotFound {
		t.Error(err)
	}
}

func TestMoney(t *testing.T) {
	w := newWorld(t)
	ok(t, w.st.Ledger().Spend(t.Context(), "r3", ledger.Spent{Nano: 5 * money.USD}, noon))
	if b := w.read().Budget; b.Remaining != 0 || b.Percent != 150 || b.Text != "$6.00 of $4.00 (150%)" {
		t.Errorf("%+v", b)
	}
	ok(t, w.st.Ledger().SetBudget(t.Context(), money.Amount{Unit: money.NanoUSD, N: 12 * dollar}, "", noon))
	if b := w.read().Budget; b.Total != 12*dollar || b.Percent != 50 {
		t.Errorf("%+v", b)
	}
}

func TestFirstLine(t *testing.T) {
	long := strings.Repeat("日", 300)
	for in, want := range map[string]string{
		"Make a page.":                      "Make a page.",
		"# Title\nText\n":                   "# Title",
		"\n\n \t\n  First.  \nSecond.":      "First.",
		"Windows\r\nlines\r\n":              "Windows",
		"\x1b[31mred\x1b[0m\x07 x\ty":       "[31mred [0m  x y",
		"\x1b\x07\nafter a line of nothing": "after a line of nothing",
		"bad \xff\xfe bytes":                "bad  bytes",
		long:                                strings.Repeat("日", 199) + "…",
		strings.Repeat("\n", 5000) + "far":  "far",
	} {
		path := filepath.Join(t.TempDir(), "goal.md")
		ok(t, os.WriteFile(path, []byte(in), 0o600))
		if got, err := firstLine(path); got != want || err != nil {
			t.Errorf("%.40q: %.60q, %v; want %.60q", in, got, err, want)
		}
	}
	for _, in := range []string{"", " \n\t\n", "\x00"} {
		path := filepath.Join(t.TempDir(), "goal.md")
		ok(t, os.WriteFile(path, []byte(in), 0o600))
		if got, err := firstLine(path); got != "" || err == nil {
			t.Errorf("%q: %q, %v", in, got, err)
		}
	}
}
