package claude

import (
	"net"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/runner"
	"example.com/AutoAgentProject/core/scriptmodel"
	"example.com/AutoAgentProject/core/usage"
)

// TestTranscriptOfTheRealProgram: what the program writes down comes to the same as what the meter of the run saw and what
// the model sent, by class and in money.
func TestTranscriptOfTheRealProgram(t *testing.T) {
	c := New(Config{Program: realProgram(t), Launcher: plain{}, Price: listPrice})
	use := func(in, out, read, for5m, for1h int) map[string]any {
		return map[string]any{"input_tokens": in, "output_tokens": out, "cache_read_input_tokens": read, "cache_creation_input_tokens": for5m + for1h,
			"cache_creation": map[string]any{"ephemeral_5m_input_tokens": for5m, "ephemeral_1h_input_tokens": for1h}}
	}
	write := map[string]any{"type": "tool_use", "name": "Write", "input": map[string]any{"file_path": "{{cwd}}/a", "content": "a"}}
	model, err := scriptmodel.New(scriptmodel.Script{Rules: []scriptmodel.Rule{{After: "fail", Steps: []scriptmodel.Step{
		{Content: []map[string]any{{"type": "text", "text": "First."}, write}, Usage: use(40, 300, 0, 500, 7000)}, // one response, two records
		{Content: []map[string]any{{"type": "text", "text": "Done."}}, Usage: use(3, 90, 7500, 60, 0)},
	}}}}, scriptmodel.Options{})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = model.Serve(l) }() // its end is ours
	defer model.Close()
	j := fakeJob(t, "")
	j.SystemPrompt, j.Prompt, j.BaseURL, j.Wall, j.Silence = "You are an example.", "Write a.", "http://"+l.Addr().String(), 2*time.Minute, time.Minute
	r, err := c.Run(t.Context(), j)
	if err != nil || r.Verdict != runner.Done {
		t.Fatalf("%+v, %v", r, err)
	}
	s := usage.NewScan("")
	if err := s.Update(t.Context(), j.Scratch); err != nil || len(s.Unreadable()) > 0 {
		t.Fatal(err, s.Unreadable())
	}
	sum := s.Summary(listPrice, time.UTC)
	want := usage.Totals{Messages: 2, Input: 43, Output: 390, CacheRead: 7500, CacheWrite5m: 560, CacheWrite1h: 7000, All: 15_493, NoCacheRead: 7993}
	if sum.Totals != want || sum.Nano != r.Spend.Nano || sum.Totals.All != r.Spend.Tokens || sum.Diagnostics.Repeats == 0 || sum.Diagnostics.Malformed > 0 {
		t.Errorf("the transcript has %+v,\nthe run %+v", sum, r.Spend)
	}
	under := usage.NewScan(j.Dir)
	if err := under.Update(t.Context(), j.Scratch); err != nil || under.Summary(listPrice, time.UTC).Totals != want {
		t.Errorf("in its working folder: %+v, %v", under.Summary(listPrice, time.UTC), err)
	}
}
