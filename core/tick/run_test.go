package tick

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/handoff"
	"example.com/AutoAgentProject/core/journal"
	"example.com/AutoAgentProject/core/ledger"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/money"
	"example.com/AutoAgentProject/core/runner"
)

func done() runner.Result {
	return runner.Result{Verdict: runner.Done, Text: "did it", Spend: runner.Spend{Nano: 500, Tokens: 50, Source: "result"}}
}

// TestRunOrder: the money is reserved and the hold says which run before the program starts, and the result is there
// when Run returns.
func TestRunOrder(t *testing.T) {
	w := newWorld(t, money.NanoUSD).begin()
	h, err := w.Hold("handoff-1")
	ok(t, err)
	looked := false
	w.fake.do = func(ctx context.Context, j runner.Job) (runner.Result, error) {
		looked = true
		on, err := w.Hold("handoff-1")
		if err != nil || on.Run != j.Run || on.Runs != 1 {
			t.Errorf("the hold says %+v, %v", on, err)
		}
		if b := w.book(); len(b.OpenRuns) != 1 || b.OpenRuns[0].ID != j.Run || !b.OpenRuns[0].Launched || b.OpenRuns[0].Cap != int64(j.Cap) {
			t.Errorf("the ledger says %+v", b.OpenRuns)
		}
		if j.Cap != money.Nano(2*dollar) || j.CapTokens != 0 || j.Wall <= 0 || j.Silence <= 0 || j.MaxTurns <= 0 || j.Model != "model-x" || j.Prompt != "do it" || j.SystemPrompt != "# Soul\n" {
			t.Errorf("job %+v", j)
		}
		var rec RunRecord
		dir := w.Store.Run("codebuilder-1", j.Run)
		if err := w.Store.Load(filepath.Join("agents", "codebuilder-1", "runs", j.Run, "run.json"), &rec); err != nil || rec.Owner != w.Owner || rec.Step != "a" {
			t.Errorf("record %+v, %v", rec, err)
		}
		if exists(filepath.Join(dir, "result.json")) || !exists(filepath.Join(dir, "prompt.md")) || !exists(j.Scratch) {
			t.Error("the folders of the run are not as they should be")
		}
		for _, e := range []runner.Event{{Kind: "tool", Text: "Edit a.go"}, {Kind: "usage", Text: "9 tokens"}} {
			j.Event(e)
		}
		if st, _ := w.Store.State(); st.Agents["codebuilder-1"].Text != "works on a: Edit a.go" || st.Agents["codebuilder-1"].Run != j.Run {
			t.Errorf("%+v", st.Agents["codebuilder-1"])
		}
		return done(), nil
	}
	res, out, err := w.Run(t.Context(), &h, w.ask())
	if !looked || out != Moved || err != nil || res.Text != "did it" {
		t.Fatal(looked, res, out, err)
	}
	if got, is, err := w.Result(h.Run); !is || err != nil || got.Text != "did it" {
		t.Error(got, is, err)
	}
	if b := w.book(); len(b.OpenRuns) != 0 || b.Used.N != 500 || b.ByStep["a"].Runs != 1 {
		t.Errorf("%+v", b)
	}
	if exists(w.Store.Scratch("codebuilder-1", h.Run)) {
		t.Error("the scratch folder was left")
	}
	if got, is, err := w.Result(""); is || err != nil || got.Text != "" {
		t.Error("no run has a result:", got, err)
	}
}

// TestRunOutcomes: in every outcome the reservation is closed, and only a result about the work is one.
func TestRunOutcomes(t *testing.T) {
	spend := runner.Spend{Nano: 500, Tokens: 50, Source: "result"}
	ends := func(v runner.Verdict, class string) func(*world) {
		return func(w *world) {
			w.answers(runner.Result{Verdict: v, Class: class, Reason: "so it was", Spend: spend})
		}
	}
	for name, c := range map[string]struct {
		set    func(*world)
		out    Outcome
		fails  bool
		used   int64
		runs   int // counted against the work
		result bool
		pause  string
		stop   mission.Cause
	}{
		"done":             {ends(runner.Done, ""), Moved, false, 500, 1, true, "", ""},
		"failed":           {ends(runner.Failed, "max-turns"), Moved, false, 500, 1, true, "", ""},
		"its money ended":  {ends(runner.Failed, "budget"), Moved, false, 500, 1, true, "", ""},
		"usage limit":      {ends(runner.Later, "usage-limit"), Later, false, 500, 0, false, "limit", ""},
		"server":           {ends(runner.Later, "server"), Later, false, 500, 0, false, "limit", ""},
		"login lost":       {ends(runner.LoginLost, "auth"), Later, false, 500, 0, false, "login", ""},
		"no credit":        {ends(runner.Failed, "credit"), Later, false, 500, 0, false, "limit", ""},
		"another program":  {ends(runner.Failed, "init-mismatch"), Later, false, 500, 0, false, "stall", ""},
		"no such model":    {ends(runner.Failed, "model"), Later, false, 500, 0, false, "stall", ""},
		"paid extra usage": {ends(runner.Failed, "overage"), Over, false, 500, 1, false, "", mission.Budget},
		"killed":           {ends(runner.Killed, ""), Over, false, 500, 0, false, "", ""},
		"not started": {func(w *world) {
			w.fake.do = func(context.Context, runner.Job) (runner.Result, error) {
				return runner.Result{}, errors.New("no such program")
			}
		}, Idle, true, 0, 1, false, "", ""},
		"no login": {func(w *world) {
			w.Credential = func() (runner.Credential, error) { return runner.Credential{}, errors.New("not there") }
		}, Later, false, 0, 0, false, "login", ""},
		"no folder for the run": {func(w *world) {
			ok(w.t, os.MkdirAll(w.Store.Agent("codebuilder-1"), 0o700))
			ok(w.t, os.WriteFile(filepath.Join(w.Store.Agent("codebuilder-1"), "runs"), nil, 0o600))
		}, Idle, true, 0, 1, false, "", ""},
		"the hold cannot be written": {func(w *world) {
			ok(w.t, os.MkdirAll(filepath.Join(w.Store.Dir(), w.holdName(), "x"), 0o700))
		}, Idle, true, 0, 1, false, "", ""},
		"the result cannot be written": {func(w *world) {
			w.fake.do = func(_ context.Context, j runner.Job) (runner.Result, error) {
				return done(), os.MkdirAll(filepath.Join(w.Store.Run("codebuilder-1", j.Run), "result.json", "x"), 0o700)
			}
		}, Idle, true, 500, 1, false, "", ""},
		"the transcript shows more": {func(w *world) {
			w.fake.do = func(_ context.Context, j runner.Job) (runner.Result, error) {
				_, err := j.Transcript.Write([]byte("900 90\n"))
				return done(), err
			}
		}, Moved, false, 900, 1, true, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, money.NanoUSD).begin()
			w.answers(done())
			c.set(w)
			h := Hold{Version: mission.Version, Key: "k"}
			_, out, err := w.Run(t.Context(), &h, w.ask())
			if out != c.out || (err != nil) != c.fails {
				t.Errorf("outcome %d, %v", out, err)
			}
			if b := w.book(); len(b.OpenRuns) != 0 || b.Used.N != c.used {
				t.Errorf("used %d, open %+v", b.Used.N, b.OpenRuns)
			}
			if h.Runs != c.runs {
				t.Errorf("%d runs are counted", h.Runs)
			}
			for _, j := range w.fake.jobs { // whatever the hold says: also a tick that died here finds the same
				if _, is, _ := w.Result(j.Run); is != c.result {
					t.Errorf("a result: %v", is)
				}
			}
			if p := w.causes(); len(p) > 1 || c.pause != "" && p[c.pause].Reason == "" || c.pause == "" && len(p) > 0 {
				t.Errorf("pauses %+v", p)
			}
			stop, _ := w.Store.Stopped()
			if (stop != nil) != (c.stop != "") || stop != nil && stop.Cause != c.stop {
				t.Errorf("stop %+v", stop)
			}
		})
	}
}

func TestNoRunAfterTheTombstone(t *testing.T) {
	w := newWorld(t, money.NanoUSD).begin()
	w.fake.do = func(context.Context, runner.Job) (runner.Result, error) {
		t.Error("a program was started")
		return done(), nil
	}
	ok(t, w.Stop(mission.Aborted, "enough"))
	h := Hold{Version: mission.Version, Key: "k"}
	if _, out, err := w.Run(t.Context(), &h, w.ask()); out != Over || err != nil {
		t.Error(out, err)
	}
	if b := w.book(); len(b.OpenRuns) != 0 || b.Used.N != 0 {
		t.Errorf("%+v", b)
	}
}

// TestStopEndsARun: the tombstone ends the context of what runs, and what it cost until then counts.
func TestStopEndsARun(t *testing.T) {
	w := newWorld(t, money.NanoUSD).begin()
	w.fake.do = func(ctx context.Context, j runner.Job) (runner.Result, error) {
		ok(t, w.Stop(mission.Aborted, "enough"))
		select {
		case <-ctx.Done():
		case <-time.After(2 * time.Minute):
			t.Error("the run was not ended")
		}
		if context.Cause(ctx) != ErrStopped {
			t.Error(context.Cause(ctx))
		}
		return runner.Result{Verdict: runner.Killed, Spend: runner.Spend{Nano: 40, Tokens: 4}}, nil
	}
	h := Hold{Version: mission.Version, Key: "k"}
	if _, out, err := w.Run(t.Context(), &h, w.ask()); out != Over || err != nil || h.Runs != 0 || h.Run != "" {
		t.Error(out, err, h)
	}
	if b := w.book(); len(b.OpenRuns) != 0 || b.Used.N != 40 {
		t.Errorf("%+v", b)
	}
	// A start that the stop overtook is the stop's doing, however the runner says it.
	w.fake.do = func(ctx context.Context, j runner.Job) (runner.Result, error) { return runner.Result{}, ctx.Err() }
	if _, out, err := w.Run(t.Context(), &h, w.ask()); out != Over || err != nil {
		t.Error(out, err)
	}
}

func TestRunWithoutMoney(t *testing.T) {
	w := newWorld(t, money.NanoUSD).begin()
	w.answers(done())
	l := w.Store.Ledger()
	limit, _, err := l.Reserve(t.Context(), ledger.ReserveRequest{Run: "other", Agent: "codebuilder-2", MinRun: 10*dollar - 5, AgentsDue: 1, Now: noon})
	if ok(t, err); limit < 10*dollar-5 {
		t.Fatal(limit)
	}
	h := Hold{Version: mission.Version, Key: "k"}
	if _, out, err := w.Run(t.Context(), &h, w.ask()); out != Later || err != nil || h.Run != "" {
		t.Error("others may give some back:", out, err, h)
	}
	ok(t, l.Spend(t.Context(), "other", ledger.Spent{Nano: money.Nano(limit)}, noon))
	if _, out, err := w.Run(t.Context(), &h, w.ask()); out != Over || err != nil {
		t.Error(out, err)
	}
	if stop, _ := w.Store.Stopped(); stop == nil || stop.Cause != mission.Budget || len(w.fake.jobs) != 0 {
		t.Errorf("%+v, %d runs", stop, len(w.fake.jobs))
	}
}

func TestAgentsDue(t *testing.T) {
	w := newWorld(t, money.Tokens).begin()
	w.answers(done())
	seq := 0
	mail := func(to string) {
		seq++
		name, _, e := handoff.NewWork(handoff.Work{From: "manager", To: to, Task: "x", Commit: "0123456789", Seq: seq, At: noon})
		ok(t, w.Store.Queue().Send("manager", name, e))
		_, err := w.Store.Queue().Deliver("manager", noon)
		ok(t, err)
	}
	for _, c := range []struct {
		to  string
		due int
	}{{"", 2}, {"codebuilder-1", 2}, {"codebuilder-2", 2}, {"codebuilder-2", 2}, {"codebuilder-3", 3}} {
		if c.to != "" {
			mail(c.to)
		}
		if got := w.agentsDue(); got != c.due {
			t.Errorf("after mail to %q: %d, want %d", c.to, got, c.due)
		}
	}
	if got := w.as("manager").agentsDue(); got != 4 {
		t.Errorf("the manager and three with mail are %d", got)
	}
	w.Mission.StepLimit = 0
	h := Hold{Version: mission.Version, Key: "k"}
	if _, _, err := w.Run(t.Context(), &h, w.ask()); err != nil || w.fake.jobs[0].CapTokens != 10*dollar/3 || w.fake.jobs[0].Cap != 0 {
		t.Error("a third of it is this agent's:", err, w.fake.jobs[0].CapTokens)
	}
}

func TestHold(t *testing.T) {
	w := newWorld(t, money.NanoUSD)
	ok(t, w.Drop()) // there is none
	h, err := w.Hold("one")
	ok(t, err)
	h.Run, h.Runs, h.Prepared = "r1", 2, true
	ok(t, w.Keep(h))
	if got, err := w.Hold("one"); err != nil || got != h {
		t.Error(got, err)
	}
	if got, err := w.Hold("two"); err != nil || got != (Hold{Version: mission.Version, Key: "two"}) {
		t.Error(got, err)
	}
	path := filepath.Join(w.Store.Dir(), w.holdName())
	ok(t, os.WriteFile(path, []byte("\x00\x00"), 0o600))
	if got, err := w.Hold("one"); err != nil || got != (Hold{Version: mission.Version, Key: "one"}) {
		t.Error("a damaged one is begun anew:", got, err)
	}
	if bad, _ := filepath.Glob(path + ".bad-*"); len(bad) != 1 || exists(path) {
		t.Error("it was not set aside:", bad)
	}
}

func TestDied(t *testing.T) {
	h := Hold{Key: "k", Base: "b", Prepared: true, Run: "r1", Runs: 2, Waits: 1}
	for range 2 { // without a run nobody died in one
		h.Died()
		if want := (Hold{Key: "k", Base: "b", Prepared: true, Runs: 1, Waits: 1, Deaths: 1}); h != want {
			t.Errorf("%+v", h)
		}
	}
}

// TestWaits: without a time given each wait is longer than the one before; a time given, or any other end, begins anew.
func TestWaits(t *testing.T) {
	w := newWorld(t, money.NanoUSD).begin()
	h := Hold{Version: mission.Version, Key: "k"}
	run := func(r runner.Result) time.Duration {
		t.Helper()
		w.answers(r)
		if _, out, err := w.Run(t.Context(), &h, w.ask()); err != nil || r.Verdict == runner.Later && out != Later {
			t.Fatal(out, err)
		}
		p, is := w.causes()["limit"]
		if !is {
			return 0
		}
		d := p.Until.Sub(w.at)
		w.at = p.Until
		return d
	}
	later := runner.Result{Verdict: runner.Later, Class: "server", Reason: "busy"}
	reset := func(d time.Duration) runner.Result {
		return runner.Result{Verdict: runner.Later, Class: "usage-limit", Reason: "used up", ResetAt: w.at.Add(d)}
	}
	for _, want := range []time.Duration{1, 2, 4} {
		if got := run(later); got != want*time.Minute {
			t.Errorf("waits %s, want %d minutes", got, want)
		}
	}
	if got := run(reset(2 * time.Hour)); got < 2*time.Hour || got >= 2*time.Hour+time.Minute {
		t.Errorf("waits %s, told were 2 h", got)
	}
	if got := run(later); got != time.Minute {
		t.Errorf("waits %s after a told wait", got)
	}
	if got := run(reset(-time.Hour)); got != 2*time.Minute {
		t.Errorf("waits %s for a time of the past", got)
	}
	if run(done()); h.Waits != 0 {
		t.Errorf("%d waits after good work", h.Waits)
	}
	if got := run(later); got != time.Minute {
		t.Errorf("waits %s after good work", got)
	}
	if h.Runs != 1 {
		t.Errorf("%d runs are counted, one was work", h.Runs)
	}
}

// TestTold: each occurrence is told once, at the level that it has for the person.
func TestTold(t *testing.T) {
	for class, c := range map[string]struct {
		verdict runner.Verdict
		level   journal.Level
		lift    string
	}{
		"server":        {runner.Later, journal.Routine, ""},
		"usage-limit":   {runner.Later, journal.Milestone, ""},
		"auth":          {runner.LoginLost, journal.Blocker, "login"},
		"credit":        {runner.Failed, journal.Blocker, ""},
		"init-mismatch": {runner.Failed, journal.Blocker, ""},
		"model":         {runner.Failed, journal.Blocker, ""},
	} {
		t.Run(class, func(t *testing.T) {
			w := newWorld(t, money.NanoUSD).begin()
			w.answers(runner.Result{Verdict: c.verdict, Class: class, Reason: "so it was"})
			h := Hold{Version: mission.Version, Key: "k"}
			for n := range 2 { // two occurrences, each noticed twice
				for range 2 {
					_, _, err := w.Run(t.Context(), &h, w.ask())
					ok(t, err)
				}
				told := w.said(journal.Paused)
				if len(told) != n+1 || told[n].Level != c.level {
					t.Fatalf("told %+v", told)
				}
				if c.level == journal.Blocker && (told[n].Incident == "" || n > 0 && told[n].Incident == told[0].Incident) {
					t.Errorf("incidents %q, %q", told[0].Incident, told[n].Incident)
				}
				w.at = w.at.Add(time.Hour)
				if c.lift != "" {
					ok(t, w.Store.Unpause(t.Context(), c.lift, w.at))
				}
			}
		})
	}
}

// TestPausesAreASet: another cause does not replace the first.
func TestPausesAreASet(t *testing.T) {
	w := newWorld(t, money.NanoUSD).begin()
	h := Hold{Version: mission.Version, Key: "k"}
	for _, r := range []runner.Result{{Verdict: runner.Later, Class: "server"}, {Verdict: runner.LoginLost}, {Verdict: runner.Failed, Class: "model"}} {
		w.answers(r)
		_, _, err := w.Run(t.Context(), &h, w.ask())
		ok(t, err)
	}
	if p := w.causes(); len(p) != 3 || !p["login"].Until.IsZero() || p["limit"].Until.IsZero() || p["stall"].Until.IsZero() {
		t.Errorf("%+v", p)
	}
}

func TestUnpricedIsTold(t *testing.T) {
	w := newWorld(t, money.NanoUSD).begin()
	r := done()
	r.Spend.Unpriced = []string{"model-y"}
	w.answers(r)
	h := Hold{Version: mission.Version, Key: "k"}
	_, _, err := w.Run(t.Context(), &h, w.ask())
	ok(t, err)
	if told := w.said(journal.UnpricedModel); len(told) != 1 || w.book().Unpriced[0] != "model-y" {
		t.Errorf("%+v", told)
	}
}
