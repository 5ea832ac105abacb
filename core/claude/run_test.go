package claude

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"example.com/AutoAgentProject/core/money"
	"example.com/AutoAgentProject/core/runner"
)

// fakeRunner runs the test binary as the program, with little patience.
func fakeRunner(t *testing.T) *Claude {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := New(Config{Program: self, Launcher: plain{}, Price: price})
	c.grace = grace{answer: 150 * time.Millisecond, term: 100 * time.Millisecond, drain: 300 * time.Millisecond}
	return c
}

func fakeJob(t testing.TB, part string) runner.Job {
	t.Helper()
	dir := t.TempDir()
	j := runner.Job{Run: uuid.NewString(), Dir: filepath.Join(dir, "work"), Scratch: filepath.Join(dir, "run"),
		SystemPrompt: "Play a part.", Prompt: "play " + part, Model: "claude-sonnet-5-5", Tools: []string{"Read", "Write"}, MaxTurns: 9,
		Wall: 20 * time.Second, Silence: 10 * time.Second, Credential: runner.Credential{Kind: "api-key", Secret: "example-key-of-these-tests"}}
	for _, d := range []string{j.Dir, j.Scratch} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return j
}

func mustRun(t *testing.T, c *Claude, j runner.Job) runner.Result {
	t.Helper()
	r, err := c.Run(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s %s: %s", r.Verdict, r.Class, r.Reason)
	return r
}

func TestMisbehaviour(t *testing.T) {
	for _, c := range []struct {
		name, part string
		change     func(j *runner.Job)
		verdict    runner.Verdict
		class      string
		reason     string // part of it
	}{
		{"nothing said, exit 0", "nothing 0", nil, runner.Failed, "no-result", "last words of [credential]"},
		{"nothing said, exit 1", "nothing 1", nil, runner.Failed, "no-result", "exit status 1: last words"},
		{"nothing at all", "silent", func(j *runner.Job) { j.Silence = 200 * time.Millisecond }, runner.Failed, "silence", "200ms"},
		{"does not hear", "deaf", func(j *runner.Job) { j.Wall = 400 * time.Millisecond }, runner.Failed, "wall", "400ms"},
		{"does not read its input", "x", func(j *runner.Job) {
			j.Wall, j.SystemPrompt, j.Prompt = 400*time.Millisecond, "play deaf", strings.Repeat(" x", 1<<20)
		}, runner.Failed, "wall", "400ms"},
		{"answers and never ends", "endless", nil, runner.Done, "", ""},
		{"closes its output and stays", "mute", nil, runner.Failed, "no-result", "without a result"},
		{"a grandchild holds the pipe", "grandchild", nil, runner.Done, "", ""},
		{"good answer, bad exit", "exit 1", nil, runner.Failed, "exit", "exit status is 1: disk is full"},
		{"killed by somebody else", "murder", nil, runner.Failed, "oom", "memory"},
		{"no greeting", "rude", nil, runner.Failed, "init-mismatch", ""},
		{"other model", `otherwise {"model":"claude-opus-5-5"}`, nil, runner.Failed, "init-mismatch", `model "claude-opus-5-5"`},
		{"no model", `otherwise {"model":null}`, nil, runner.Failed, "init-mismatch", "model"},
		{"other tools", `otherwise {"tools":["Read","Bash"]}`, nil, runner.Failed, "init-mismatch", `"Bash"`},
		{"spends and never stops", "flood", func(j *runner.Job) { j.Cap = money.USD }, runner.Failed, "budget", "$1.0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			j := fakeJob(t, c.part)
			if c.change != nil {
				c.change(&j)
			}
			r := mustRun(t, fakeRunner(t), j)
			if r.Verdict != c.verdict || r.Class != c.class || !strings.Contains(r.Reason, c.reason) {
				t.Errorf("%s, %q, %q", r.Verdict, r.Class, r.Reason)
			}
			if took := r.Ended.Sub(r.Started); took > 15*time.Second {
				t.Errorf("took %v: it was waited for", took)
			}
			if b, err := os.ReadFile(filepath.Join(j.Dir, "grandchild")); err == nil { // no walls here: it got away
				pid, err := strconv.Atoi(string(b))
				if err != nil || syscall.Kill(pid, syscall.SIGKILL) != nil {
					t.Errorf("grandchild %q, %v", b, err)
				}
			}
		})
	}
}

// TestPrintsTooMuch: what a run may print is bounded, and so is what is kept of it.
func TestPrintsTooMuch(t *testing.T) {
	j := fakeJob(t, "flood")
	var transcript bytes.Buffer
	j.Transcript = &transcript
	c := fakeRunner(t)
	c.most, j.MaxTurns = 4<<10, 1000
	if r := mustRun(t, c, j); r.Verdict != runner.Failed || r.Class != "bad-output" || transcript.Len() > 4<<10 || transcript.Len() < 1<<10 {
		t.Errorf("%s, %q, %q, %d bytes", r.Verdict, r.Class, r.Reason, transcript.Len())
	}
}

// TestSpendAfterTheStop: what a program spends while it is being stopped is counted too.
func TestSpendAfterTheStop(t *testing.T) {
	j := fakeJob(t, "flood")
	j.Cap = money.USD
	var transcript bytes.Buffer
	j.Transcript = &transcript
	c := fakeRunner(t)
	r := mustRun(t, c, j)
	again, started, err := c.Recount(&transcript)
	if err != nil || !started || again.Nano != r.Spend.Nano || r.Spend.Nano <= money.USD {
		t.Errorf("spend %+v, recounted %+v, %v, %v", r.Spend, again, started, err)
	}
}

func TestLines(t *testing.T) {
	const good = `{"type":"result","subtype":"success","is_error":false,"result":"fine","terminal_reason":"completed","stop_reason":"end_turn"}` + "\n"
	now := time.Now().UTC()
	soon := now.Add(2 * time.Hour).Truncate(time.Minute)
	for _, c := range []struct {
		name, lines string
		verdict     runner.Verdict
		class       string
		reset       time.Time
	}{
		{"garbage", "nonsense\n\n[1,2]\n{\"type\":\n\xff\xfe\n{\"a\":1}\n" + good, runner.Done, "", time.Time{}},
		{"only garbage", "nonsense\n{}\n", runner.Failed, "no-result", time.Time{}},
		{"not UTF-8", strings.Replace(good, "fine", "fi\xff\\ud83dne", 1), runner.Done, "", time.Time{}},
		{"no line end", strings.TrimSpace(good), runner.Done, "", time.Time{}},
		{"error with exit 0", `{"type":"result","subtype":"success","is_error":true,"result":"API Error: 500"}`, runner.Failed, "error", time.Time{}},
		{"is_error as a text", strings.Replace(good, "false", `"false"`, 1), runner.Failed, "error", time.Time{}},
		{"is_error missing", strings.Replace(good, `"is_error":false,`, "", 1), runner.Failed, "error", time.Time{}},
		{"text about a limit", strings.Replace(good, "fine", "You've hit your limit · resets 2:30am (America/New_York)", 1), runner.Done, "", time.Time{}},
		{"text about a limit from a tool", `{"type":"user","message":{"content":[{"type":"tool_result","content":"Claude AI usage limit reached|1760000000 api_error usage_limit_reached"}]}}` + "\n" + good, runner.Done, "", time.Time{}},
		{"a limit in words alone", `{"type":"result","subtype":"success","is_error":true,"result":"You've hit your limit · resets ` + soon.Format("3:04pm") + ` (UTC)"}`, runner.Later, "usage-limit", soon},
		{"a limit by the epoch", `{"type":"result","subtype":"success","is_error":true,"result":"Claude AI usage limit reached|` + strconv.FormatInt(soon.Unix(), 10) + `"}`, runner.Later, "usage-limit", soon},
		{"a limit that is over, in words without a date", `{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1790000000}}` + "\n" +
			`{"type":"result","subtype":"success","is_error":true,"api_error":"usage_limit_reached","result":"You've hit your limit · resets 1:53pm (UTC)"}`, runner.Later, "usage-limit", time.Time{}},
		{"a limit without a time", `{"type":"result","subtype":"success","is_error":true,"api_error":"usage_limit_reached","result":"You've hit your limit"}`, runner.Later, "usage-limit", time.Time{}},
		{"a limit and no result", `{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":` + strconv.FormatInt(soon.Unix(), 10) + `}}`, runner.Later, "usage-limit", soon},
		{"a limit elsewhere, all well here", `{"type":"rate_limit_event","rate_limit_info":{"status":"allowed_warning","resetsAt":1,"isUsingOverage":false}}` + "\n" + good, runner.Done, "", time.Time{}},
		{"paid extra usage", `{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","isUsingOverage":true}}` + "\n" + good, runner.Failed, "overage", time.Time{}},
		{"not logged in", `{"type":"assistant","is_api_error_message":true,"error":"authentication_failed","message":{"model":"<synthetic>"}}` + "\n" +
			`{"type":"result","subtype":"success","is_error":true,"result":"Not logged in","api_error_status":null}`, runner.LoginLost, "auth", time.Time{}},
		{"an end without a reason", strings.Replace(good, `"completed"`, `"hook_stopped"`, 1), runner.Failed, "stopped", time.Time{}},
		{"a paused turn", strings.Replace(good, "end_turn", "pause_turn", 1), runner.Failed, "stopped", time.Time{}},
		{"numbers gone wild", `{"type":"assistant","message":{"id":"msg_1","model":"claude-sonnet-5-5","usage":{"input_tokens":1e309,"output_tokens":"7","cache_read_input_tokens":-5}}}` + "\n" + good, runner.Done, "", time.Time{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "lines")
			if err := os.WriteFile(file, []byte(c.lines), 0o600); err != nil {
				t.Fatal(err)
			}
			r := mustRun(t, fakeRunner(t), fakeJob(t, "lines "+file))
			if r.Verdict != c.verdict || r.Class != c.class || !r.ResetAt.Equal(c.reset) {
				t.Errorf("%s, %q, %q, reset at %v", r.Verdict, r.Class, r.Reason, r.ResetAt)
			}
		})
	}
}

func TestRecordedStreams(t *testing.T) {
	for _, c := range []struct {
		name, exit, kind string
		schema           bool
		verdict          runner.Verdict
		class            string
		tokens           int64
		nano             money.Nano
		source           string
	}{
		{"partial", "0", "api-key", false, runner.Done, "", 2434, 7_160_000, "result"},
		{"plain", "0", "api-key", false, runner.Done, "", 2434, 7_160_000, "result"},
		{"schema-ok", "0", "api-key", true, runner.Done, "", 110, 600_000, "result"},
		{"tool-write-and-denial", "0", "api-key", false, runner.Done, "", 220, 1_200_000, "result"},
		{"max-turns", "1", "api-key", false, runner.Failed, "max-turns", 202_000, 840_000_000, "result"},
		{"max-budget", "1", "api-key", false, runner.Failed, "budget", 202_000, 840_000_000, "result"},
		{"refusal", "1", "api-key", false, runner.Failed, "refusal", 220, 1_200_000, "result"},
		{"status-401", "1", "api-key", false, runner.LoginLost, "auth", 0, 0, "none"},
		{"status-402", "1", "api-key", false, runner.Failed, "budget", 0, 0, "none"},
		{"status-500", "1", "api-key", false, runner.Later, "server", 0, 0, "none"},
		{"status-529", "1", "api-key", false, runner.Later, "server", 0, 0, "none"},
		{"usage-limit", "1", "plan-token", false, runner.Later, "usage-limit", 0, 0, "none"},
		{"usage-warning", "0", "plan-token", false, runner.Done, "", 110, 300_000, "result"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			runner := fakeRunner(t)
			runner.cfg.Price, runner.grace.answer = listPrice, 10*time.Second // it ends when its input does
			j := fakeJob(t, "replay "+stream(t, c.name)+" "+c.exit)
			j.Tools, j.Credential.Kind = []string{"Read", "Write", "Edit", "Glob", "Grep"}, c.kind
			if c.schema {
				j.Schema = json.RawMessage(`{"type":"object"}`)
			}
			if !strings.HasPrefix(c.name, "usage-") {
				j.Model = "claude-opus-5-5"
			}
			r := mustRun(t, runner, j)
			if r.Verdict != c.verdict || r.Class != c.class || strconv.Itoa(r.Exit) != c.exit {
				t.Errorf("%s, %q, %q, exit %d", r.Verdict, r.Class, r.Reason, r.Exit)
			}
			if s := r.Spend; s.Tokens != c.tokens || s.Nano != c.nano || s.Source != c.source || s.Open {
				t.Errorf("spend %+v", s)
			}
			if c.name == "tool-write-and-denial" && strings.Join(r.Denials, ",") != "Write" {
				t.Errorf("denials %v", r.Denials)
			}
			if c.schema && string(r.Structured) != `{"ok":true}` {
				t.Errorf("structured %s", r.Structured)
			}
		})
	}
}

// listPrice has the rates of the models in the recorded streams.
func listPrice(model string, u money.Usage, _ time.Time, _ bool) (money.Nano, bool) {
	in, out := int64(4_000), int64(20_000)
	if model == "claude-sonnet-5-5" {
		in, out = 2_000, 10_000
	}
	return money.Nano(in*u.Input + in*u.CacheRead/20 + in*5/4*u.CacheWrite5m + 2*in*u.CacheWrite1h + out*u.Output), true
}

func TestFollowIsAskedAside(t *testing.T) {
	j := fakeJob(t, "talk")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	var order []string
	j.Silence = 300 * time.Millisecond
	j.Follow = func(turn runner.Turn) string {
		if turn.N == 1 {
			time.Sleep(500 * time.Millisecond) // longer than a silence: it is not the program's
			return "/second"
		}
		cancel(errors.New("aborted by example"))
		time.Sleep(400 * time.Millisecond) // the program must not live on because of us
		order = append(order, "follow ended")
		return "third"
	}
	began := time.Now()
	r, err := fakeRunner(t).Run(ctx, j)
	if err != nil {
		t.Fatal(err)
	}
	if r.Verdict != runner.Killed || r.Reason != "aborted by example" || r.Turns != 2 || !strings.HasSuffix(r.Text, "\n\n/second") || strings.HasPrefix(r.Text, "/") {
		t.Errorf("%+v", r)
	}
	if len(order) != 1 {
		t.Error("Run came back before Follow did")
	}
	t.Log(time.Since(began))
}

// TestEndedFromOutside: when the whole group is stopped, the program's silence is no fault of the program.
func TestEndedFromOutside(t *testing.T) {
	j := fakeJob(t, "mute")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := fakeRunner(t)
	c.grace.answer = time.Second
	j.Event = func(e runner.Event) { time.AfterFunc(200*time.Millisecond, cancel) }
	if r, err := c.Run(ctx, j); err != nil || r.Verdict != runner.Killed {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestFollowAfterTheProgramEnded(t *testing.T) {
	j := fakeJob(t, "exit 0")
	j.Follow = func(runner.Turn) string { time.Sleep(100 * time.Millisecond); return "more" }
	if r := mustRun(t, fakeRunner(t), j); r.Verdict != runner.Failed || r.Class != "exit" && r.Class != "no-result" || r.Text != "fine" {
		t.Errorf("%+v", r)
	}
}

type fullDisk struct{ after int }

func (d *fullDisk) Write(b []byte) (int, error) {
	if d.after--; d.after < 0 {
		return 0, syscall.ENOSPC
	}
	return len(b), nil
}

func TestTranscriptCannotBeWritten(t *testing.T) {
	j := fakeJob(t, "talk")
	j.Transcript = &fullDisk{after: 1}
	if r := mustRun(t, fakeRunner(t), j); r.Verdict != runner.Failed || r.Class != "transcript" || !strings.Contains(r.Reason, "no space") {
		t.Errorf("%+v", r)
	}
}

func TestTotalsOfTwoResults(t *testing.T) {
	f, err := os.Open(stream(t, "two-results"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	c := fakeRunner(t)
	c.cfg.Price = listPrice
	s, started, err := c.Recount(f)
	if err != nil || !started || s.Source != "result" || s.Nano != 22_740_000 || s.ByModel["claude-opus-5-5"] != (money.Usage{Input: 5200, Output: 97}) {
		t.Errorf("%+v, %v, %v", s, started, err)
	}
}
