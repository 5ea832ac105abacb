package tick

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/cell"
	"example.com/AutoAgentProject/core/journal"
	"example.com/AutoAgentProject/core/ledger"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/money"
	"example.com/AutoAgentProject/core/proc"
	"example.com/AutoAgentProject/core/runner"
)

func TestBegin(t *testing.T) {
	w := newWorld(t, money.NanoUSD)
	out, end, err := w.Begin(t.Context())
	if out != Idle || err != nil {
		t.Fatal(out, err)
	}
	var r Running
	ok(t, w.Store.Load(RunningName("codebuilder-1"), &r))
	if self, _ := proc.Self(); r.Process != self || !r.At.Equal(noon) || w.Owner != self {
		t.Errorf("%+v", r)
	}
	if out, end, err := w.as("codebuilder-1").Begin(t.Context()); out != Busy || err != nil {
		t.Error(out, err)
	} else {
		end()
	}
	out, other, err := w.as("codebuilder-2").Begin(t.Context())
	if out != Idle || err != nil {
		t.Error("another agent is no hindrance:", out, err)
	}
	other()
	end()
	ok(t, w.Stop(mission.Aborted, "enough"))
	for range 2 { // the lock is given back
		if out, end, err := w.Begin(t.Context()); out != Over || err != nil {
			t.Error(out, err)
		} else {
			end()
		}
	}
}

// TestBeginAfterADeath: what the run of a dead tick cost is counted once, by the best witness there is.
func TestBeginAfterADeath(t *testing.T) {
	type state struct {
		launched           bool
		result, transcript string
	}
	result := func(r runner.Result) string {
		b, _ := json.Marshal(r)
		return string(b)
	}
	three := result(runner.Result{Verdict: runner.Done, Spend: runner.Spend{Nano: 300, Tokens: 30, Source: "result"}})
	for name, c := range map[string]struct {
		state
		nano, tokens int64 // the cap of the run is 2 dollars
		source       string
	}{
		"reserved":                        {state{}, 0, 0, ""},
		"reserved, with a transcript":     {state{false, "", "9 9\n"}, 0, 0, ""},
		"launched, nothing else":          {state{true, "", ""}, 2 * dollar, 0, "reservation"},
		"launched, nothing was spent":     {state{true, "", "hello\n"}, 2 * dollar, 0, "reservation"},
		"launched, with a transcript":     {state{true, "", "400 40\n100 10\n"}, 500, 50, "stream"},
		"launched, with a result":         {state{true, three, ""}, 300, 30, "result"},
		"the transcript shows more":       {state{true, three, "400 40\n"}, 400, 40, "stream"},
		"the result shows more":           {state{true, three, "200 20\n"}, 300, 30, "result"},
		"killed at no cost":               {state{true, result(runner.Result{Verdict: runner.Killed}), ""}, 0, 0, ""},
		"a result that cannot be read":    {state{true, `{"verdict":`, ""}, 2 * dollar, 0, "reservation"},
		"only the transcript can be read": {state{true, "\x00\x00", "7 7\n"}, 7, 7, "stream"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, money.NanoUSD)
			l := w.Store.Ledger()
			for run, agent := range map[string]string{"r1": "codebuilder-1", "r2": "codebuilder-2"} {
				limit, d, err := l.Reserve(t.Context(), ledger.ReserveRequest{Run: run, Agent: agent, Step: "a", Model: "m", StepLimit: 2 * dollar, AgentsDue: 2, Now: noon})
				if d != money.Admit || limit != 2*dollar || err != nil {
					t.Fatal(limit, d, err)
				}
			}
			dir := w.Store.Run("codebuilder-1", "r1")
			ok(t, os.MkdirAll(dir, 0o700))
			if c.launched {
				ok(t, l.Launch(t.Context(), "r1", noon))
			}
			for file, text := range map[string]string{"result.json": c.result, "stream.jsonl": c.transcript} {
				if text != "" {
					ok(t, os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600))
				}
			}
			ok(t, w.Stop(mission.Aborted, "counted also when it is over"))
			for range 2 { // once is enough
				if out, _, err := w.Begin(t.Context()); out != Over || err != nil {
					t.Fatal(out, err)
				}
			}
			b := w.book()
			if int64(b.Nano) != c.nano || b.Tokens != c.tokens || len(b.OpenRuns) != 1 || b.OpenRuns[0].ID != "r2" {
				t.Errorf("%d, %d tokens, open %+v", b.Nano, b.Tokens, b.OpenRuns)
			}
			if told := w.said(journal.Repaired); len(told) != 1 || told[0].Run != "r1" || told[0].Step != "a" {
				t.Errorf("told %+v", told)
			}
			if lines, _ := os.ReadFile(filepath.Join(w.Store.Dir(), "ledger.jsonl")); c.source != "" && !strings.Contains(string(lines), `"source":"`+c.source+`"`) {
				t.Errorf("no source %q in %s", c.source, lines)
			}
			if bad, _ := filepath.Glob(filepath.Join(dir, "result.json.bad-*")); (len(bad) == 1) != (c.result != "" && !json.Valid([]byte(c.result))) {
				t.Errorf("set aside: %v", bad)
			}
		})
	}
}

func TestBeginAfterADeathCountsTokens(t *testing.T) {
	w := newWorld(t, money.Tokens)
	l := w.Store.Ledger()
	_, _, err := l.Reserve(t.Context(), ledger.ReserveRequest{Run: "r1", Agent: "codebuilder-1", StepLimit: 5000, Now: noon})
	ok(t, err)
	ok(t, l.Launch(t.Context(), "r1", noon))
	w.begin()
	if b := w.book(); b.Used.N != 5000 || b.Nano != 0 || len(b.OpenRuns) != 0 {
		t.Errorf("%+v", b)
	}
}

func TestBeginSweeps(t *testing.T) {
	w := newWorld(t, money.NanoUSD)
	kept := filepath.Join(t.TempDir(), "kept")
	ok(t, os.MkdirAll(kept, 0o700))
	ok(t, os.WriteFile(filepath.Join(kept, "file"), []byte("x"), 0o400))
	cells := w.Store.Cells("codebuilder-1")
	ok(t, os.MkdirAll(filepath.Join(cells, "run-1", "home", "deep", "deeper"), 0o700))
	ok(t, os.WriteFile(filepath.Join(cells, "run-1", "home", "deep", "file"), []byte("x"), 0o000))
	ok(t, os.Symlink(kept, filepath.Join(cells, "run-1", "home", "link")))
	ok(t, os.Symlink(kept, filepath.Join(cells, "link")))
	ok(t, os.WriteFile(filepath.Join(cells, "file"), nil, 0o000))
	for _, d := range []string{"run-1/home/deep/deeper", "run-1/home/deep", "run-1/home", "run-1"} {
		ok(t, os.Chmod(filepath.Join(cells, d), 0))
	}
	other := filepath.Join(w.Store.Cells("codebuilder-2"), "run-2")
	ok(t, os.MkdirAll(other, 0o700))
	w.begin()
	if left, err := os.ReadDir(cells); len(left) > 0 || err != nil {
		t.Error(left, err)
	}
	if !exists(filepath.Join(kept, "file")) || !exists(other) {
		t.Error("it swept what is not the agent's")
	}
}

// TestBeginEndsTheCell: before a run is counted, its cell is proven gone.
func TestBeginEndsTheCell(t *testing.T) {
	need(t, "bwrap")
	w := newWorld(t, money.NanoUSD)
	_, _, err := w.Store.Ledger().Reserve(t.Context(), ledger.ReserveRequest{Run: "r1", Agent: "codebuilder-1", StepLimit: dollar, Now: noon})
	ok(t, err)
	dir := w.Store.Run("codebuilder-1", "r1")
	ok(t, os.MkdirAll(dir, 0o700))
	c, err := cell.Start(t.Context(), cell.Spec{Argv: []string{"sleep", "600"}, Env: []string{"PATH=/usr/bin:/bin"}, OnStart: noteCell(dir)})
	ok(t, err)
	ended := make(chan cell.Status, 1)
	go func() { s, _ := c.Wait(); ended <- s }()
	w.begin()
	select {
	case s := <-ended:
		if s.Signal == 0 {
			t.Errorf("%+v", s)
		}
	case <-time.After(2 * time.Minute):
		t.Fatal("the cell lives")
	}
	ok(t, EndCell(dir)) // again: it is gone
}

// TestEndCellOf: whoever may end more than an owner ends the owner's processes only, whatever the note says.
func TestEndCellOf(t *testing.T) {
	need(t, "bwrap")
	dir := t.TempDir()
	c, err := cell.Start(t.Context(), cell.Spec{Argv: []string{"sleep", "600"}, Env: []string{"PATH=/usr/bin:/bin"}, OnStart: noteCell(dir)})
	ok(t, err)
	ended := make(chan cell.Status, 1)
	go func() { s, _ := c.Wait(); ended <- s }()
	ok(t, EndCellOf(dir, os.Getuid()+1))
	if alive, err := c.Identity().Alive(); !alive || err != nil {
		t.Fatalf("another user's was ended: %v", err)
	}
	ok(t, EndCellOf(dir, os.Getuid()))
	select {
	case <-ended:
	case <-time.After(2 * time.Minute):
		t.Fatal("the cell lives")
	}
}

func TestEndCell(t *testing.T) {
	dir := t.TempDir()
	ok(t, EndCell(dir)) // none was started
	for _, text := range []string{"", "{", `{"pid":"x"}`} {
		ok(t, os.WriteFile(filepath.Join(dir, "cell.json"), []byte(text), 0o600))
		if err := EndCell(dir); err == nil {
			t.Errorf("%q proves that nothing lives", text)
		}
	}
	// A process that got the number of a cell later is not the cell.
	c := exec.Command("sleep", "600")
	ok(t, c.Start())
	defer func() { _ = c.Process.Kill(); _ = c.Wait() }()
	id, err := proc.Of(c.Process.Pid)
	ok(t, err)
	ok(t, noteCell(dir)(cell.Identity{Boot: id.Boot, PID: id.PID, Start: id.Start + 1, NS: 1}))
	ok(t, EndCell(dir))
	if alive, err := id.Alive(); !alive || err != nil {
		t.Error("it killed another process", err)
	}
}

func TestPausedLiftsALogin(t *testing.T) {
	w := newWorld(t, money.NanoUSD).begin()
	pause := func(cause string) {
		_, err := w.Store.Pause(t.Context(), mission.Pause{Cause: cause, Reason: cause}, w.at)
		ok(t, err)
	}
	pause("human")
	pause("login")
	touch := func(at time.Time) { ok(t, os.Chtimes(w.Mission.Credentials, at, at)) }
	look := func(want int) {
		t.Helper()
		p, err := w.Paused(t.Context())
		if ok(t, err); len(p) != want || len(w.causes()) != want {
			t.Errorf("%d pauses, on the disk %d, want %d", len(p), len(w.causes()), want)
		}
	}
	look(2)
	touch(noon)
	look(2) // as old as the pause: it is the one that was refused
	ok(t, os.Rename(w.Mission.Credentials, w.Mission.Credentials+".away"))
	look(2)
	ok(t, os.Rename(w.Mission.Credentials+".away", w.Mission.Credentials))
	touch(noon.Add(time.Millisecond))
	look(1)
	if _, is := w.causes()["human"]; !is {
		t.Error("it lifted the other one")
	}
	look(1)
	if told := w.said(journal.Unpaused); len(told) != 1 {
		t.Errorf("told %d times", len(told))
	}
}
