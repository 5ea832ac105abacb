package claude

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/money"
	"example.com/AutoAgentProject/core/runner"
)

const sonnet = "claude-sonnet-5-5"

func metered(t *testing.T, maxOutput int64, lines ...string) *meter {
	t.Helper()
	m := newMeter(price, maxOutput)
	for _, l := range lines {
		e, ok := decode([]byte(l))
		if !ok {
			t.Fatalf("not an event: %s", l)
		}
		m.add(&e, time.Unix(1_796_000_000, 0))
	}
	return m
}

func begin(id, usage string) string {
	return fmt.Sprintf(`{"type":"stream_event","event":{"type":"message_start","message":{"id":%q,"model":%q,"usage":%s}}}`, id, sonnet, usage)
}

func delta(id, kind, text string) string {
	return fmt.Sprintf(`{"type":"stream_event","event":{"type":"content_block_delta","delta":{%q:%q}},"api_message_id":%q}`, kind, text, id)
}

func end(id, stop, usage string) string {
	return fmt.Sprintf(`{"type":"stream_event","event":{"type":"message_delta","delta":{"stop_reason":%s},"usage":%s},"api_message_id":%q}`, stop, usage, id)
}

func copyOf(id, usage string) string {
	return fmt.Sprintf(`{"type":"assistant","message":{"id":%q,"model":%q,"usage":%s}}`, id, sonnet, usage)
}

func total(models string) string { return `{"type":"result","modelUsage":{` + models + `}}` }

func TestMeter(t *testing.T) {
	ten := strings.Repeat("x", 10)
	use := func(in, out int64) map[string]money.Usage {
		return map[string]money.Usage{sonnet: {Input: in, Output: out}}
	}
	for _, c := range []struct {
		name      string
		maxOutput int64
		lines     []string
		want      runner.Spend // Tokens and Requests are filled in
	}{
		{"nothing", 0, nil, runner.Spend{Source: "none", ByModel: map[string]money.Usage{}}},
		{"a request that is not answered yet", 0, []string{`{"type":"system","subtype":"status","status":"requesting"}`}, runner.Spend{Source: "none", ByModel: map[string]money.Usage{}, Open: true}},
		{"a request that failed", 0, []string{`{"type":"system","subtype":"status","status":"requesting"}`, `{"type":"assistant","is_api_error_message":true,"message":{"model":"<synthetic>"}}`}, runner.Spend{Source: "none", ByModel: map[string]money.Usage{}}},
		{"whole message", 0, []string{begin("msg_1", `{"input_tokens":100,"output_tokens":1}`), delta("msg_1", "text", ten), end("msg_1", `"end_turn"`, `{"output_tokens":7}`)},
			runner.Spend{Nano: 270_000, ByModel: use(100, 7), Source: "stream"}},
		{"copies of one message, growing", 0, []string{copyOf("msg_1", `{"input_tokens":3,"output_tokens":2}`), copyOf("msg_1", `{"input_tokens":3,"output_tokens":9}`), copyOf("msg_1", `{"input_tokens":3,"output_tokens":5}`)},
			runner.Spend{Nano: 96_000, ByModel: use(3, 9), Source: "stream"}},
		{"a message in flight", 0, []string{begin("msg_1", `{"input_tokens":100,"output_tokens":1}`), delta("msg_1", "text", ten), delta("msg_1", "partial_json", ten), delta("msg_1", "signature", ten)},
			runner.Spend{Nano: 400_000, ByModel: use(100, 20), Source: "stream", Open: true}},
		{"in flight, never above what the response may have", 15, []string{begin("msg_1", `{"input_tokens":100,"output_tokens":1}`), delta("msg_1", "text", ten+ten)},
			runner.Spend{Nano: 350_000, ByModel: use(100, 15), Source: "stream", Open: true}},
		{"thinking that is not shown", 0, []string{begin("msg_1", `{"input_tokens":100,"output_tokens":1}`), delta("msg_1", "thinking", ten), `{"type":"system","subtype":"thinking_tokens","estimated_tokens":50}`, delta("msg_1", "text", ten)},
			runner.Spend{Nano: 800_000, ByModel: use(100, 60), Source: "stream", Open: true}},
		{"interrupted: the end that the program makes up is none", 0, []string{begin("msg_1", `{"input_tokens":100,"output_tokens":1}`), delta("msg_1", "text", ten), end("msg_1", "null", `{"output_tokens":1}`), total(`"` + sonnet + `":{"inputTokens":100,"outputTokens":3}`)},
			runner.Spend{Nano: 300_000, ByModel: use(100, 10), Source: "stream", Open: true}},
		{"cache writes: split, and the rest at five minutes", 0, []string{begin("msg_1", `{"cache_creation_input_tokens":100,"cache_read_input_tokens":40}`), end("msg_1", `"end_turn"`, `{"cache_creation_input_tokens":100,"cache_creation":{"ephemeral_5m_input_tokens":10,"ephemeral_1h_input_tokens":60}}`)},
			runner.Spend{Nano: 344_000, ByModel: map[string]money.Usage{sonnet: {CacheWrite5m: 40, CacheWrite1h: 60, CacheRead: 40}}, Source: "stream"}},
		{"messages that the program makes up cost nothing", 0, []string{`{"type":"assistant","message":{"id":"x","model":"<synthetic>","usage":{"input_tokens":9}}}`}, runner.Spend{Source: "none", ByModel: map[string]money.Usage{}}},
		{"unknown model", 0, []string{`{"type":"assistant","message":{"id":"msg_1","model":"claude-future-9","usage":{"input_tokens":10}}}`},
			runner.Spend{Nano: 150_000, ByModel: map[string]money.Usage{"claude-future-9": {Input: 10}}, Source: "stream", Unpriced: []string{"claude-future-9"}}},
		{"subagents are in the result alone", 0, []string{copyOf("msg_1", `{"input_tokens":100,"output_tokens":1}`), total(`"` + sonnet + `":{"inputTokens":100,"outputTokens":9},"claude-opus-5-5":{"inputTokens":20}`)},
			runner.Spend{Nano: 290_000 + 300_000, ByModel: map[string]money.Usage{sonnet: {Input: 100, Output: 9}, "claude-opus-5-5": {Input: 20}}, Source: "result", Unpriced: []string{"claude-opus-5-5"}}},
		{"results are totals, the last one counts", 0, []string{total(`"` + sonnet + `":{"inputTokens":100}`), total(`"` + sonnet + `":{"inputTokens":150}`)}, runner.Spend{Nano: 300_000, ByModel: use(150, 0), Source: "result"}},
		{"the program's own price is higher", 0, []string{total(`"` + sonnet + `":{"inputTokens":100,"costUSD":0.007159999999999999,"costBasis":"list"}`)}, runner.Spend{Nano: 7_160_000, ByModel: use(100, 0), Source: "result"}},
		{"a guess of the program is no price", 0, []string{total(`"` + sonnet + `":{"inputTokens":100,"costUSD":5,"costBasis":"unknown"}`)}, runner.Spend{Nano: 200_000, ByModel: use(100, 0), Source: "result"}},
		{"nonsense instead of figures", 0, []string{total(`"` + sonnet + `":{"inputTokens":null,"outputTokens":"5","costUSD":"-1","costBasis":"list","cacheReadInputTokens":-7}`)}, runner.Spend{Source: "result", ByModel: map[string]money.Usage{}}},
		{"the service's name for the model", 0, []string{strings.ReplaceAll(copyOf("msg_1", `{"input_tokens":100}`), sonnet, sonnet+"-20261001"), total(`"` + sonnet + `":{"inputTokens":100}`)},
			runner.Spend{Nano: 200_000, ByModel: map[string]money.Usage{sonnet + "-20261001": {Input: 100}}, Source: "result"}},
		{"another name altogether is not counted twice", 0, []string{strings.ReplaceAll(copyOf("msg_1", `{"input_tokens":100}`), sonnet, "claude-future-9"), total(`"` + sonnet + `":{"inputTokens":100}`)},
			runner.Spend{Nano: 1_500_000, ByModel: map[string]money.Usage{"claude-future-9": {Input: 100}}, Source: "result", Unpriced: []string{"claude-future-9"}}},
		{"an id that is used again", 0, []string{begin("x", `{"input_tokens":100}`), end("x", `"end_turn"`, `{"output_tokens":1}`), begin("x", `{"input_tokens":200}`), end("x", `"end_turn"`, `{"output_tokens":1}`)},
			runner.Spend{Nano: 620_000, ByModel: use(300, 2), Source: "stream"}},
		{"an id that cannot be used again", 0, []string{begin("msg_x", `{"input_tokens":100}`), end("msg_x", `"end_turn"`, `{"output_tokens":1}`), begin("msg_x", `{"input_tokens":100}`), end("msg_x", `"end_turn"`, `{"output_tokens":1}`)},
			runner.Spend{Nano: 210_000, ByModel: use(100, 1), Source: "stream"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := metered(t, c.maxOutput, c.lines...)
			got := m.spend()
			c.want.Tokens, c.want.Requests = 0, int64(len(m.messages))
			for _, u := range c.want.ByModel {
				c.want.Tokens += u.Tokens()
			}
			if len(got.ByModel) == 0 {
				got.ByModel = map[string]money.Usage{}
			}
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("\n got %+v\nwant %+v", got, c.want)
			}
			if nano, tokens := m.running(); nano != got.Nano || tokens != got.Tokens {
				t.Errorf("running %d and %d, in the end %d and %d", nano, tokens, got.Nano, got.Tokens)
			}
		})
	}
}

func TestRequestsOfTheMainConversation(t *testing.T) {
	sub := strings.Replace(begin("msg_2", `{"input_tokens":5}`), `{"type":"stream_event"`, `{"type":"stream_event","parent_tool_use_id":"t1"`, 1)
	m := metered(t, 0, begin("msg_1", `{}`), sub, begin("msg_3", `{}`))
	if m.requests != 2 || len(m.messages) != 3 {
		t.Errorf("%d requests, %d messages", m.requests, len(m.messages))
	}
}

// FuzzStream: whatever a program prints, the meter goes on, never wraps, and tells the same at once and in the end.
func FuzzStream(f *testing.F) {
	list := money.Default()
	paths, err := filepath.Glob("testdata/streams/*.jsonl")
	if err != nil || len(paths) < 10 {
		f.Fatal(len(paths), err)
	}
	for _, p := range paths {
		data, err := os.ReadFile(p)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(strings.Join([]string{begin("x", `{"input_tokens":100}`), `{"type":"user"}`, end("x", `"end_turn"`, `{"output_tokens":1}`), begin("x", `{}`), copyOf("x", `{}`), total(`"m":{"inputTokens":1e15}`)}, "\n")))
	f.Fuzz(func(t *testing.T, data []byte) {
		m := newMeter(list.Cost, 16_000)
		for line := range bytes.Lines(data) {
			e, ok := decode(line)
			if !ok {
				continue
			}
			m.add(&e, time.Unix(1_796_000_000, 0))
			s := m.spend()
			nano, tokens := m.running()
			if nano < 0 || tokens < 0 || s.Nano < 0 || s.Tokens < 0 {
				t.Fatalf("%d nano-dollars, %d tokens, in the end %+v", nano, tokens, s)
			}
			if e.Type == "result" && e.Models != nil && (nano != s.Nano || tokens != s.Tokens) {
				t.Fatalf("at a result: %d and %d, in the end %+v", nano, tokens, s)
			}
		}
	})
}

// TestMeterWithoutPartialMessages: responses whose ids are used again are told apart by what the user sends between them.
func TestMeterWithoutPartialMessages(t *testing.T) {
	const user = `{"type":"user","message":{"content":[{"type":"tool_result"}]}}`
	m := metered(t, 0, copyOf("chatcmpl-1", `{"input_tokens":10}`), copyOf("chatcmpl-1", `{"input_tokens":10}`), user, copyOf("chatcmpl-1", `{"input_tokens":10}`), user,
		copyOf("msg_1", `{"input_tokens":100}`), user, copyOf("msg_1", `{"input_tokens":100}`))
	if s := m.spend(); s.Tokens != 120 || s.Requests != 3 {
		t.Errorf("%+v", s)
	}
	// Tools may answer while a message goes on: it is still the same one.
	m = metered(t, 0, begin("chatcmpl-1", `{"input_tokens":10}`), user, copyOf("chatcmpl-1", `{"input_tokens":10}`), end("chatcmpl-1", `"tool_use"`, `{"output_tokens":5}`), copyOf("chatcmpl-1", `{"input_tokens":10}`))
	if s := m.spend(); s.Tokens != 15 || s.Requests != 1 {
		t.Errorf("%+v", s)
	}
	// An advisor costs what its own model costs; a fast answer is priced as one.
	adviser := `{"input_tokens":10,"speed":"fast","iterations":[{"type":"advisor_message","model":"claude-opus-5-5","input_tokens":100}]}`
	var fasts []string
	m = newMeter(func(model string, u money.Usage, at time.Time, fast bool) (money.Nano, bool) {
		if fast {
			fasts = append(fasts, model)
		}
		return price(model, u, at, fast)
	}, 0)
	for range 2 {
		e, _ := decode([]byte(copyOf("msg_1", adviser)))
		m.add(&e, time.Unix(1_796_000_000, 0))
	}
	if s := m.spend(); s.ByModel["claude-opus-5-5"].Input != 100 || s.ByModel[sonnet].Input != 10 || s.Nano != 10*2000+100*15_000 || len(fasts) == 0 || fasts[0] != sonnet {
		t.Errorf("%+v, fast %v", s, fasts)
	}
}

// TestMeterDoesNotWrap: more than can be counted is the most that can be, not a little.
func TestMeterDoesNotWrap(t *testing.T) {
	m := newMeter(money.Default().Cost, 0)
	for _, l := range []string{copyOf("msg_1", `{"input_tokens":1e15,"output_tokens":1e15}`), copyOf("msg_2", `{"output_tokens":1e15}`), total(`"claude-future-9":{"inputTokens":1e15,"outputTokens":1e15}`)} {
		e, _ := decode([]byte(l))
		m.add(&e, time.Unix(1_796_000_000, 0))
		if nano, _ := m.running(); nano != math.MaxInt64 || m.spend().Nano != math.MaxInt64 {
			t.Errorf("after %s: %d, in the end %d", l, nano, m.spend().Nano)
		}
	}
}
