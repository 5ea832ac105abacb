package gateway

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"example.com/AutoAgentProject/core/cell"
	"example.com/AutoAgentProject/core/claude"
	"example.com/AutoAgentProject/core/money"
	"example.com/AutoAgentProject/core/runner"
	"example.com/AutoAgentProject/core/scriptmodel"
	"example.com/AutoAgentProject/core/testkit"
)

func TestMain(m *testing.M) {
	cell.ShimMain() // this binary is also the shim inside the cells
	os.Exit(m.Run())
}

const realModel = "claude-sonnet-5-5"

// run is the real program in a cell, behind a gateway, in front of a scripted model.
type run struct {
	*stage
	job        runner.Job
	result     runner.Result
	model      *scriptmodel.Server
	mu         sync.Mutex
	seen       []scriptmodel.Request
	transcript bytes.Buffer
}

// play runs the program through the steps. before may change what the test needs.
func play(t *testing.T, steps []scriptmodel.Step, before func(*Config, *runner.Job, *run)) *run {
	t.Helper()
	program, err := claude.Find(os.Getenv)
	testkit.Need(t, err == nil, "the claude program, version "+claude.PinnedVersion)
	testkit.Need(t, testkit.OnPath("bwrap"), "bwrap, for the program behind its walls")
	r := &run{}
	r.model, err = scriptmodel.New(scriptmodel.Script{Rules: []scriptmodel.Rule{{Steps: steps, After: "fail"}}}, scriptmodel.Options{Seen: func(q scriptmodel.Request) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.seen = append(r.seen, q)
	}})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	r.job = runner.Job{Run: uuid.NewString(), Dir: filepath.Join(dir, "work"), Scratch: filepath.Join(dir, "run"),
		SystemPrompt: "You are a tester.", Prompt: "Do what the script says.", Model: realModel, Tools: []string{"Read", "Write", "Edit", "Glob", "Grep"},
		MaxTurns: 8, Cap: 10 * money.USD, Wall: 2 * time.Minute, Silence: time.Minute, Transcript: &r.transcript}
	for _, d := range []string{r.job.Dir, r.job.Scratch} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	r.stage = newStage(t, r.model, func(c *Config) {
		c.Models = []string{realModel}
		if before != nil {
			before(c, &r.job, r)
		}
		r.job.Credential.Kind = c.Kind
	})
	defer r.model.Close()
	r.job.Credential.Secret, r.job.BaseURL = r.Token(), r.url
	r.result, err = claude.New(claude.Config{Program: program, Launcher: cell.Launcher{}, Price: money.Default().Cost}).Run(ctx, r.job)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s %q %q, exit %d; %+v; %+v", r.result.Verdict, r.result.Class, r.result.Reason, r.result.Exit, r.Report(), r.took())
	for _, text := range []string{r.transcript.String(), r.result.Text, r.result.Reason} {
		noSecret(t, "what the run said", text)
	}
	return r
}

func say(s string) map[string]any { return map[string]any{"type": "text", "text": s} }

func use(tool string, input map[string]any) map[string]any {
	return map[string]any{"type": "tool_use", "name": tool, "input": input}
}

func TestRealRun(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{APIKey, PlanToken} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			auths := sync.Map{}
			r := play(t, []scriptmodel.Step{
				{Content: []map[string]any{{"type": "thinking", "thinking": "hm"}, use("Write", map[string]any{"file_path": "{{cwd}}/a", "content": "hello"})},
					Usage: map[string]any{"input_tokens": 10, "cache_creation_input_tokens": 2000, "cache_creation": map[string]any{"ephemeral_1h_input_tokens": 2000}, "output_tokens": 300}},
				{Content: []map[string]any{say("done")}, ChunkBytes: 1, Usage: map[string]any{"input_tokens": 50, "cache_read_input_tokens": 2010, "output_tokens": 20},
					Headers: map[string]string{"anthropic-ratelimit-unified-status": "allowed_warning", "anthropic-ratelimit-unified-5h-utilization": "0.93",
						"anthropic-ratelimit-unified-5h-status": "allowed_warning", "anthropic-ratelimit-unified-representative-claim": "five_hour"}},
			}, func(c *Config, j *runner.Job, r *run) { c.Kind = kind })
			for _, q := range r.seen {
				auths.Store(q.Auth, true)
			}
			if r.result.Verdict != runner.Done || r.result.Text != "done" {
				t.Errorf("%+v", r.result)
			}
			want := money.Usage{Input: 60, CacheWrite1h: 2000, CacheRead: 2010, Output: 320}
			cost, _ := money.Default().Cost(realModel, want, time.Now(), false)
			if got := r.Report(); got.Charged != int64(cost) || got.ByModel[realModel] != (Total{2, want, int64(cost)}) || got.Refused+got.Spent+got.Strangers+got.Lowered+got.Cut != 0 {
				t.Errorf("the gateway counted %+v, want %d", got, cost)
			}
			if r.result.Spend.Nano != cost {
				t.Errorf("the stream says %+v", r.result.Spend)
			}
			if wantAuth := map[string]string{APIKey: "api-key", PlanToken: "bearer"}[kind]; len(r.seen) != 2 || r.seen[0].Auth != wantAuth || r.seen[1].Auth != wantAuth {
				t.Errorf("the model saw %+v", r.seen)
			}
			if events := strings.Contains(r.transcript.String(), `"rate_limit_event"`); events != (kind == PlanToken) {
				t.Errorf("rate limit events: %v", events)
			}
			// The prompt of the second request is what the first was counted with and what came since.
			rates, _ := money.Default().Rates(realModel, 0, time.Now())
			worst := rates.CacheWrite5m
			if kind == PlanToken {
				worst = rates.CacheWrite1h
			}
			first, second := r.took()[0], r.took()[1]
			if n := (first.Worst - 16_000*int64(rates.Output)) / int64(worst); n < int64(r.seen[0].Bytes) || n > int64(r.seen[0].Bytes)+toolTokens {
				t.Errorf("first worst case: a prompt of %d for %d bytes", n, r.seen[0].Bytes)
			}
			if n := (second.Worst - 16_000*int64(rates.Output)) / int64(worst); n < 2010 || n > 2010+1500 {
				t.Errorf("second worst case: a prompt of %d", n)
			}
		})
	}
}

func TestRealSubagent(t *testing.T) {
	t.Parallel()
	r := play(t, []scriptmodel.Step{
		{Content: []map[string]any{use("Agent", map[string]any{"description": "d", "prompt": "Say something.", "subagent_type": "general-purpose"})}},
		{Content: []map[string]any{say("from below")}, Usage: map[string]any{"input_tokens": 5000}},
		{Content: []map[string]any{say("done")}},
	}, func(c *Config, j *runner.Job, r *run) { j.Tools = []string{"Agent", "Read"} })
	if got := r.Report(); r.result.Verdict != runner.Done || got.ByModel[realModel].Requests != 3 || got.ByModel[realModel].Usage != (money.Usage{Input: 5200, Output: 30}) {
		t.Errorf("%+v", got)
	}
}

func TestRealOverload(t *testing.T) {
	t.Parallel()
	r := play(t, []scriptmodel.Step{
		{Status: 529, ErrType: "overloaded_error", ErrMsg: "Overloaded"},
		{Content: []map[string]any{say("done")}},
	}, nil)
	got := r.took()
	if r.result.Verdict != runner.Done || len(got) != 2 || got[0].Status != 529 || got[0].Amount != 0 || got[1].Amount != 100*2000+10*10_000 {
		t.Errorf("%+v", got)
	}
}

// TestRealLargeFile: the program asks how many tokens a large file has before it shows it.
func TestRealLargeFile(t *testing.T) {
	t.Parallel()
	var lines strings.Builder
	for range 1500 {
		lines.WriteString("a line of words that are read from this file\n")
	}
	r := play(t, []scriptmodel.Step{
		{Content: []map[string]any{use("Read", map[string]any{"file_path": "{{cwd}}/large"})}},
		{Content: []map[string]any{say("done")}},
	}, func(c *Config, j *runner.Job, r *run) {
		if err := os.WriteFile(filepath.Join(j.Dir, "large"), []byte(lines.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	})
	if got := r.Report(); r.result.Verdict != runner.Done || got.Refused != 0 || !strings.Contains(r.seen[1].Text, "1500\ta line of words") {
		t.Errorf("%+v", got)
	}
}

// TestRealExhaustion: what the program does when nothing is forwarded any more.
func TestRealExhaustion(t *testing.T) {
	t.Parallel()
	r := play(t, []scriptmodel.Step{
		{Content: []map[string]any{use("Glob", map[string]any{"pattern": "*"})}, Usage: map[string]any{"input_tokens": 9000, "output_tokens": 12_000}},
		{Content: []map[string]any{say("never")}},
	}, func(c *Config, j *runner.Job, r *run) { c.Cap.N = int64(money.USD) / 8 })
	got := r.Report()
	if r.result.Verdict != runner.Failed || r.result.Class != "budget" || r.result.Exit != 1 || !strings.Contains(r.result.Reason, "the budget of this run is used up: of $0.125 there are $0.00") {
		t.Errorf("%+v", r.result)
	}
	if len(r.seen) != 1 || got.Spent != 1 || got.Lowered != 1 || got.Charged != 9000*2000+r.seen[0].MaxTokens*10_000 || r.seen[0].MaxTokens >= 16_000 || r.seen[0].MaxTokens < 512 {
		t.Errorf("%d requests, %+v", len(r.seen), got)
	}
	if !strings.Contains(r.transcript.String(), `"api_error_status":402`) || !strings.Contains(r.transcript.String(), `"subtype":"success"`) {
		t.Error("the result has changed")
	}
}

// TestRealCutShort: what the program does when a response ends at the max_tokens that was left for it.
func TestRealCutShort(t *testing.T) {
	t.Parallel()
	step := scriptmodel.Step{Content: []map[string]any{say("as far as it")}, StopReason: "max_tokens", Usage: map[string]any{"output_tokens": 2000}}
	r := play(t, []scriptmodel.Step{step, step, step, step, step, step}, func(c *Config, j *runner.Job, r *run) { c.Cap.N = int64(money.USD) / 10 })
	got := r.Report()
	if r.result.Verdict != runner.Failed || len(r.seen) != 4 || got.Lowered != 4 || got.Spent != 0 || got.Charged > int64(money.USD)/10 {
		t.Errorf("%d requests, %+v", len(r.seen), got)
	}
}

// TestRealCutStream: what the program does when the model's stream breaks off.
func TestRealCutStream(t *testing.T) {
	t.Parallel()
	r := play(t, []scriptmodel.Step{
		{Content: []map[string]any{say("half a sentence")}, ChunkBytes: 3, TruncAfter: 4},
		{Content: []map[string]any{say("done")}},
		{Content: []map[string]any{say("done")}},
	}, nil)
	got := r.took()
	if len(got) == 0 || !got[0].Cut || got[0].Amount != 100*2000+16_000*10_000 {
		t.Errorf("%+v", got)
	}
	if r.result.Verdict != runner.Done || len(got) != 2 || got[1].Cut {
		t.Errorf("%+v", r.result)
	}
}

// TestRealTombstone: after the tombstone the next request is refused, and the program ends by itself.
func TestRealTombstone(t *testing.T) {
	t.Parallel()
	var stopped atomic.Bool
	r := play(t, []scriptmodel.Step{
		{Content: []map[string]any{use("Glob", map[string]any{"pattern": "*"})}},
		{Content: []map[string]any{say("never")}},
	}, func(c *Config, j *runner.Job, r *run) {
		keep := c.OnRecord
		c.OnRecord = func(rec Record) { keep(rec); stopped.Store(true) }
		c.Stopped = stopped.Load
	})
	if r.result.Verdict != runner.Failed || r.result.Exit != 1 || !strings.Contains(r.result.Reason, "the run was stopped") || len(r.seen) != 1 {
		t.Errorf("%+v", r.result)
	}
}

// TestRealCloseMidStream: Close cuts a running stream, and what the program tries then reaches nobody.
func TestRealCloseMidStream(t *testing.T) {
	t.Parallel()
	r := play(t, []scriptmodel.Step{{Content: []map[string]any{say("half a sentence")}, HangAfter: 3, PingEveryMS: 20}}, func(c *Config, j *runner.Job, r *run) {
		c.Meter = func(hour bool) Meter {
			return &told{Meter: newCounter(hour), began: func() { go r.Close() }} // by somebody else: it waits for the stream
		}
	})
	if got := r.Report(); r.result.Verdict == runner.Done || len(r.seen) != 1 || got.Charged != 100*2000+16_000*10_000 || got.Cut != 1 {
		t.Errorf("%+v %+v", r.result, got)
	}
}

// told tells that a response began.
type told struct {
	Meter
	began func()
}

func (m *told) Event(data []byte) {
	if m.Meter.Event(data); m.began != nil && m.Count().Begun {
		m.began()
		m.began = nil
	}
}

// TestRealSecrets: the credential is in no process, argument, environment or file of the run. The token is, which shows
// that the test looks where it has to.
func TestRealSecrets(t *testing.T) {
	t.Parallel()
	var outside strings.Builder
	r := play(t, []scriptmodel.Step{
		{Content: []map[string]any{use("Bash", map[string]any{"command": "cat /proc/*/environ /proc/*/cmdline /proc/self/mountinfo 2>/dev/null | tr '\\0' '\\n'; env; grep -rs sk-ant-example-cred $HOME /tmp /etc . | head -5; true"})}},
		{Content: []map[string]any{say("done")}},
	}, func(c *Config, j *runner.Job, r *run) {
		j.Tools = []string{"Bash"}
		c.OnUsage = func(Mark) error { // while the program lives
			for _, pattern := range []string{"/proc/[0-9]*/environ", "/proc/[0-9]*/cmdline"} {
				files, _ := filepath.Glob(pattern)
				for _, f := range files {
					b, _ := os.ReadFile(f) // a process may be gone, or another user's
					outside.Write(b)
				}
			}
			return nil
		}
	})
	if len(r.seen) != 2 || r.result.Verdict != runner.Done {
		t.Fatalf("%+v", r.result)
	}
	noSecret(t, "the cell", r.seen[1].Text)
	noSecret(t, "a process", outside.String())
	if !strings.Contains(r.seen[1].Text, r.Token()) || !strings.Contains(outside.String(), r.Token()) {
		t.Error("the token is nowhere: this test does not look where it should")
	}
	for _, dir := range []string{r.job.Dir, r.job.Scratch} {
		_ = filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				b, _ := os.ReadFile(p)
				noSecret(t, p, string(b))
			}
			return nil
		})
	}
}
