package testkit

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"example.com/AutoAgentProject/core/money"
	"example.com/AutoAgentProject/core/runner"
	"example.com/AutoAgentProject/core/scriptmodel"
)

func runnerCases() []runnerCase {
	return slices.Concat(runnerGoodCases(), runnerBadCases(), runnerLimitCases(), runnerTextCases())
}

func runnerGoodCases() []runnerCase {
	write := calls("Write", map[string]any{"file_path": "{{cwd}}/a.txt", "content": "written\n"})
	return []runnerCase{
		{"check tells a version", []scriptmodel.Step{says("x")}, func(s *runnerStage) {
			if v, err := s.runner.Check(s.t.Context()); err != nil || v == "" || s.runner.Name() == "" {
				s.t.Errorf("%s: version %q, %v", s.runner.Name(), v, err)
			}
		}},
		{"done", []scriptmodel.Step{says("all is well")}, func(s *runnerStage) {
			r := s.want(runner.Done, "")
			if r.Text != "all is well" || r.Turns != 1 || r.Exit != 0 || len(r.Denials) != 0 {
				s.t.Errorf("%+v", r)
			}
			u := money.Usage{Input: 100, Output: 10}
			if r.Spend.Tokens != 110 || r.Spend.ByModel[RunnerModel] != u || r.Spend.Nano <= 0 || r.Spend.Open || len(r.Spend.Unpriced) > 0 || r.Spend.Source == "none" {
				s.t.Errorf("spend %+v", r.Spend)
			}
			if !s.saw("start") || !s.saw("text") || !s.saw("result") {
				s.t.Errorf("events %v", s.events)
			}
			if got := s.seen[0]; got.Model != RunnerModel || !strings.Contains(got.System, s.job.SystemPrompt) || !strings.Contains(got.Text, s.job.Prompt) || got.Auth != "api-key" {
				s.t.Errorf("request %+v", got)
			}
		}},
		{"tool writes a file", []scriptmodel.Step{write, says("done")}, func(s *runnerStage) {
			s.want(runner.Done, "")
			if b, err := os.ReadFile(filepath.Join(s.job.Dir, "a.txt")); err != nil || string(b) != "written\n" {
				s.t.Errorf("a.txt: %q, %v", b, err)
			}
			if !s.saw("tool") {
				s.t.Error("no event told the tool")
			}
		}},
		{"a command runs where it was offered", []scriptmodel.Step{calls("Bash", map[string]any{"command": "echo $((6*7)) > n; cat n; echo $HOME"}), says("done")}, func(s *runnerStage) {
			s.job.Tools = append(s.job.Tools, "Bash")
			s.want(runner.Done, "")
			if b, err := os.ReadFile(filepath.Join(s.job.Dir, "n")); err != nil || string(b) != "42\n" {
				s.t.Errorf("n: %q, %v", b, err)
			}
			if !strings.Contains(s.request(2), "42\n") {
				s.t.Error("the command's output did not reach the model")
			}
		}},
		{"reads inputs, changes nothing outside", []scriptmodel.Step{
			calls("Read", map[string]any{"file_path": "{{match:folder (\\S+)}}/in.txt"}),
			calls("Read", map[string]any{"file_path": "{{match:file (\\S+)}}"}),
			calls("Write", map[string]any{"file_path": "{{match:folder (\\S+)}}/new.txt", "content": "x"}),
			says("done")}, func(s *runnerStage) {
			folder, file := filepath.Join(s.dir, "folder"), filepath.Join(s.dir, "single", "file.txt")
			for _, f := range []string{filepath.Join(folder, "in.txt"), file} {
				if err := os.MkdirAll(filepath.Dir(f), 0o755); err != nil {
					s.t.Fatal(err)
				}
				if err := os.WriteFile(f, []byte("content of "+filepath.Base(f)), 0o644); err != nil {
					s.t.Fatal(err)
				}
			}
			s.job.Inputs = []string{folder, file}
			s.job.Prompt = "folder " + folder + "\nfile " + file + "\n"
			r := s.want(runner.Done, "")
			if !strings.Contains(s.request(4), "content of in.txt") || !strings.Contains(s.request(4), "content of file.txt") {
				s.t.Errorf("the inputs did not reach the model: %s", s.request(4))
			}
			if _, err := os.Lstat(filepath.Join(folder, "new.txt")); !errors.Is(err, os.ErrNotExist) || !slices.Contains(r.Denials, "Write") {
				s.t.Errorf("new.txt: %v; denials %v", err, r.Denials)
			}
		}},
		{"structured answer", []scriptmodel.Step{{Structured: json.RawMessage(`{"ok":true,"n":3}`)}}, func(s *runnerStage) {
			s.job.Tools = nil
			s.job.Schema = json.RawMessage(`{"type":"object","properties":{"ok":{"type":"boolean"},"n":{"type":"integer"}},"required":["ok"]}`)
			r := s.want(runner.Done, "")
			var got map[string]any
			if err := json.Unmarshal(r.Structured, &got); err != nil || got["ok"] != true || got["n"] != 3.0 {
				s.t.Errorf("structured %s, %v", r.Structured, err)
			}
		}},
		{"follow-up in the same conversation", []scriptmodel.Step{says("first"), write, says("second"), says("third")}, func(s *runnerStage) {
			var turns []string
			s.job.Follow = func(turn runner.Turn) string {
				turns = append(turns, strconv.Itoa(turn.N)+turn.Text)
				return []string{"", "/go on", "-and on", ""}[turn.N]
			}
			r := s.want(runner.Done, "")
			if strings.Join(turns, " ") != "1first 2second 3third" || r.Turns != 3 || r.Text != "third" {
				s.t.Errorf("turns %v, %d, text %q", turns, r.Turns, r.Text)
			}
			if last := s.request(4); !strings.Contains(last, "first\n") || !strings.Contains(last, "/go on") || !strings.Contains(last, "-and on") {
				s.t.Errorf("the last request lacks the conversation: %s", last)
			}
			if st := s.model.Stats(); r.Spend.Tokens != st.Tokens() || st.Requests != 4 {
				s.t.Errorf("%d tokens, served %+v", r.Spend.Tokens, st)
			}
		}},
	}
}

func runnerBadCases() []runnerCase {
	reset := time.Now().Add(3 * time.Hour).Truncate(time.Second)
	refusal := func(status int, kind, text string) []scriptmodel.Step {
		return []scriptmodel.Step{{Status: status, ErrType: kind, ErrMsg: text}}
	}
	return []runnerCase{
		{"failure", refusal(400, "invalid_request_error", "You've hit your limit · resets 1:53pm (UTC)"), func(s *runnerStage) {
			if r := s.want(runner.Failed, "request"); r.Spend.Tokens != 0 || r.Spend.Source != "none" || r.Exit == 0 {
				s.t.Errorf("%+v", r)
			}
		}},
		{"later: overloaded", refusal(529, "overloaded_error", "overloaded"), func(s *runnerStage) {
			if r := s.want(runner.Later, "server"); !r.ResetAt.IsZero() {
				s.t.Errorf("an end of the overload was invented: %v", r.ResetAt)
			}
		}},
		{"later: limit of the account", []scriptmodel.Step{{Status: 429, ErrType: "rate_limit_error", ErrMsg: "limit", Headers: map[string]string{
			"anthropic-ratelimit-unified-status": "rejected", "anthropic-ratelimit-unified-reset": strconv.FormatInt(reset.Unix(), 10),
			"anthropic-ratelimit-unified-representative-claim": "five_hour", "anthropic-ratelimit-unified-5h-status": "rejected",
			"anthropic-ratelimit-unified-5h-reset": strconv.FormatInt(reset.Unix(), 10), "anthropic-ratelimit-unified-5h-utilization": "1.0",
		}}}, func(s *runnerStage) {
			s.job.Credential.Kind = "plan-token"
			r := s.want(runner.Later, "usage-limit")
			if !r.ResetAt.Equal(reset) || !s.saw("limit") || len(s.seen) != 1 || s.seen[0].Auth != "bearer" {
				s.t.Errorf("reset at %v, want %v; %d requests", r.ResetAt, reset, len(s.seen))
			}
		}},
		{"login lost", refusal(401, "authentication_error", "invalid"), func(s *runnerStage) { s.want(runner.LoginLost, "auth") }},
		{"budget refused by a gateway", refusal(402, "api_error", "spent"), func(s *runnerStage) { s.want(runner.Failed, "budget") }},
		{"no credit", refusal(400, "invalid_request_error", "Your credit balance is too low to access the API."), func(s *runnerStage) { s.want(runner.Failed, "credit") }},
		{"empty answer", []scriptmodel.Step{{Content: []map[string]any{}}}, func(s *runnerStage) {
			if r := s.want(runner.Failed, "empty"); r.Spend.Tokens != s.model.Stats().Tokens() {
				s.t.Errorf("%d tokens", r.Spend.Tokens)
			}
		}},
		{"structured answer missing", []scriptmodel.Step{says("I would rather talk")}, func(s *runnerStage) {
			s.job.Schema = json.RawMessage(`{"type":"object","properties":{"ok":{"type":"boolean"}},"required":["ok"]}`)
			s.want(runner.Failed, "bad-output")
		}},
		{"refused jobs start nothing", []scriptmodel.Step{says("x")}, func(s *runnerStage) {
			for name, spoil := range map[string]func(j *runner.Job){
				"no turns": func(j *runner.Job) { j.MaxTurns = 0 }, "no wall time": func(j *runner.Job) { j.Wall = 0 },
				"no silence": func(j *runner.Job) { j.Silence = 0 }, "NUL in the prompt": func(j *runner.Job) { j.Prompt = "a\x00b" },
				"blank prompt": func(j *runner.Job) { j.Prompt = " \n" }, "no model": func(j *runner.Job) { j.Model = "" },
				"option as a model": func(j *runner.Job) { j.Model = "--verbose" }, "cap below 0": func(j *runner.Job) { j.Cap = -1 },
				"no credential": func(j *runner.Job) { j.Credential.Secret = "" }, "relative folder": func(j *runner.Job) { j.Dir = "work" },
				"not to be launched": func(j *runner.Job) { j.Launched = func() error { return errors.New("no") } },
			} {
				j := s.job
				spoil(&j)
				if r, err := s.runner.Run(s.t.Context(), j); err == nil {
					s.t.Errorf("%s: %+v", name, r)
				}
			}
			ctx, cancel := context.WithCancel(s.t.Context())
			cancel()
			if _, err := s.runner.Run(ctx, s.job); err == nil {
				s.t.Error("a run was started in an ended context")
			}
			if s.launched != 0 || len(s.seen) != 0 {
				s.t.Errorf("launched %d times, %d requests", s.launched, len(s.seen))
			}
		}},
	}
}

func runnerLimitCases() []runnerCase {
	long := scriptmodel.Step{Content: says(strings.Repeat("on and on ", 5000)).Content, ChunkBytes: 10, GapMS: 50, Usage: map[string]any{"input_tokens": 500}}
	hang := scriptmodel.Step{Content: long.Content, ChunkBytes: 10, HangAfter: 5, Usage: map[string]any{"input_tokens": 500}}
	read := calls("Read", map[string]any{"file_path": "{{cwd}}/nothing"})
	costly := func(s scriptmodel.Step) scriptmodel.Step {
		s.Usage = map[string]any{"input_tokens": 100_000}
		return s
	}
	inFlight := func(s *runnerStage, r runner.Result) {
		s.t.Helper()
		u := r.Spend.ByModel[RunnerModel]
		if len(s.seen) > 0 && (u.Input != 500 || u.Output < 1 || !r.Spend.Open || r.Spend.Nano <= 0) {
			s.t.Errorf("a request was in flight, spend %+v", r.Spend)
		}
	}
	return []runnerCase{
		{"wall limit", []scriptmodel.Step{long}, func(s *runnerStage) {
			s.job.Wall = 12 * time.Second // the program needs some of it to start, on a busy machine most
			inFlight(s, s.want(runner.Failed, "wall"))
		}},
		{"silence", []scriptmodel.Step{hang}, func(s *runnerStage) {
			s.job.Silence = 3 * time.Second
			inFlight(s, s.want(runner.Failed, "silence"))
		}},
		{"cancelled", []scriptmodel.Step{long}, func(s *runnerStage) {
			ctx, cancel := context.WithCancel(s.t.Context())
			defer cancel()
			tell := s.job.Event
			s.job.Event = func(e runner.Event) { tell(e); cancel() }
			r := s.run(ctx)
			if r.Verdict != runner.Killed {
				s.t.Errorf("%+v", r)
			}
		}},
		{"cap reached in the middle of an answer", []scriptmodel.Step{{Content: long.Content, ChunkBytes: 10, GapMS: 50, Usage: map[string]any{"input_tokens": 2_000_000}}}, func(s *runnerStage) {
			r := s.want(runner.Failed, "budget")
			if r.Spend.ByModel[RunnerModel].Input != 2_000_000 || r.Spend.Nano <= s.job.Cap || len(s.seen) != 1 {
				s.t.Errorf("%d requests, spend %+v", len(s.seen), r.Spend)
			}
		}},
		{"tokens reached", []scriptmodel.Step{costly(read), costly(read), costly(read), costly(says("never"))}, func(s *runnerStage) {
			s.job.Cap, s.job.CapTokens = 0, 150_000
			r := s.want(runner.Failed, "budget")
			if n := r.Spend.Tokens; n <= s.job.CapTokens || n > 310_000 {
				s.t.Errorf("spend %+v", r.Spend)
			}
		}},
		{"turns used up", []scriptmodel.Step{read}, func(s *runnerStage) {
			s.job.MaxTurns = 2
			s.want(runner.Failed, "max-turns")
			if len(s.seen) != 2 {
				s.t.Errorf("%d requests", len(s.seen))
			}
		}},
		{"turns count over the whole conversation", []scriptmodel.Step{says("one"), read, read, read, read, read, says("never")}, func(s *runnerStage) {
			s.job.MaxTurns = 3
			s.job.Follow = func(runner.Turn) string { return "more" }
			s.want(runner.Failed, "max-turns")
			if len(s.seen) > 4 { // one can be on its way when it is stopped
				s.t.Errorf("%d requests", len(s.seen))
			}
		}},
	}
}

func runnerTextCases() []runnerCase {
	const big = 3 << 20
	sse := func(text string) string { // a stream by hand: bytes that no JSON encoder would let pass
		var b strings.Builder
		for _, e := range []string{
			`{"type":"message_start","message":{"id":"msg_raw","type":"message","role":"assistant","model":"` + RunnerModel + `","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":100,"output_tokens":1}}}`,
			`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"` + text + `"}}`,
			`{"type":"content_block_stop","index":0}`,
			`{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"input_tokens":100,"output_tokens":10}}`,
			`{"type":"message_stop"}`,
		} {
			kind, _, _ := strings.Cut(strings.TrimPrefix(e, `{"type":"`), `"`)
			b.WriteString("event: " + kind + "\ndata: " + e + "\n\n")
		}
		return b.String()
	}
	cases := []runnerCase{
		{"answer of three megabytes", []scriptmodel.Step{says(strings.Repeat("0123456789abcde\n", big/16))}, func(s *runnerStage) {
			if r := s.want(runner.Done, ""); len(r.Text) < big-1 || strings.Trim(r.Text, "0123456789abcde\n") != "" {
				s.t.Errorf("%d bytes", len(r.Text))
			}
		}},
		{"answer that is not UTF-8", []scriptmodel.Step{{Raw: sse("a\xffb \\ud83d \\u0000 \\u001b[31m \\u202e z"), Headers: map[string]string{"Content-Type": "text/event-stream"}}}, func(s *runnerStage) {
			if r := s.want(runner.Done, ""); !strings.HasPrefix(r.Text, "a\uFFFDb ") || !strings.HasSuffix(r.Text, " z") {
				s.t.Errorf("text %q", r.Text)
			}
		}},
		{"transcript kept", []scriptmodel.Step{calls("Read", map[string]any{"file_path": "{{cwd}}/nothing"}), says("done")}, func(s *runnerStage) {
			r := s.want(runner.Done, "")
			whole := s.transcript.String()
			spend, started, err := s.runner.Recount(strings.NewReader(whole))
			if err != nil || !started || spend.Tokens != r.Spend.Tokens || spend.Nano != r.Spend.Nano || spend.Tokens != s.model.Stats().Tokens() {
				s.t.Errorf("recount %+v, %v, %v; the run said %+v", spend, started, err, r.Spend)
			}
			for cut := 0; cut <= len(whole); cut += 97 { // wherever a crash tears it, it can be read
				spend, started, err := s.runner.Recount(strings.NewReader(whole[:cut]))
				if err != nil || started != (spend.Tokens > 0) {
					s.t.Fatalf("cut after %d bytes: %+v, %v, %v", cut, spend, started, err)
				}
			}
			if _, started, err := s.runner.Recount(strings.NewReader("")); started || err != nil {
				s.t.Errorf("an empty transcript: %v, %v", started, err)
			}
			var kinds []string
			if err := s.runner.Describe(strings.NewReader(whole), func(e runner.Event) { kinds = append(kinds, e.Kind) }); err != nil {
				s.t.Error(err)
			}
			if want := []string{"start", "tool", "output", "text", "result"}; !slices.Equal(kinds, want) {
				s.t.Errorf("described as %v, want %v", kinds, want)
			}
		}},
	}
	for _, start := range []string{"/cost", "/clear\nand more", "-h", "--help", "!ls", "#note", "@/etc/passwd", " \n/x \u202e😀\x1b[0m"} {
		cases = append(cases, runnerCase{"prompt " + strconv.Quote(start), []scriptmodel.Step{says("done")}, func(s *runnerStage) {
			s.job.Prompt = start
			s.want(runner.Done, "")
			if got := s.request(1); !strings.Contains(got, start) || strings.Contains(got, "root:x:0:") {
				s.t.Errorf("the model was asked %q", got)
			}
		}})
	}
	return cases
}
