package gateway

import (
	"fmt"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	const rest = `"model":"m","messages":[{"role":"user","content":"hi"}]`
	for _, c := range []struct {
		name, body string
		wrong      string // part of the error; empty: it is taken
	}{
		{"plain", `{"max_tokens":5,` + rest + `}`, ""},
		{"spaces", "\n{ \"max_tokens\" :\t5 , " + rest + " }\n", ""},
		{"escaped name", `{"max_\u0074okens":5,` + rest + `}`, ""},
		{"own tools", `{"max_tokens":5,"tools":[{"name":"a"},{"type":"custom","name":"b"},{"type":null}],` + rest + `}`, ""},
		{"edits that leave out", `{"max_tokens":5,"context_management":{"edits":[{"type":"clear_thinking_20251015","keep":"all"}]},` + rest + `}`, ""},
		{"null fields", `{"max_tokens":5,"thinking":null,"context_management":null,"tools":null,"speed":null,"inference_geo":null,` + rest + `}`, ""},

		{"max_tokens twice", `{"max_tokens":5,` + rest + `,"max_tokens":5000}`, "twice"},
		{"max_tokens twice, one escaped", `{"max_tokens":5,` + rest + `,"max_\u0074okens":5000}`, "twice"},
		{"another case is another field", `{"max_tokens":5,"MAX_TOKENS":5000,` + rest + `}`, `"MAX_TOKENS"`},
		{"messages twice", `{"max_tokens":5,` + rest + `,"messages":[]}`, "twice"},
		{"no max_tokens", `{` + rest + `}`, "max_tokens"},
		{"max_tokens 0", `{"max_tokens":0,` + rest + `}`, "max_tokens"},
		{"max_tokens negative", `{"max_tokens":-5,` + rest + `}`, "max_tokens"},
		{"max_tokens as text", `{"max_tokens":"5",` + rest + `}`, "max_tokens"},
		{"max_tokens broken", `{"max_tokens":5.5,` + rest + `}`, "max_tokens"},
		{"max_tokens with exponent", `{"max_tokens":1e9,` + rest + `}`, "max_tokens"},
		{"max_tokens huge", `{"max_tokens":99999999999999999999,` + rest + `}`, "max_tokens"},
		{"no model", `{"max_tokens":5,"messages":[]}`, "model"},
		{"no messages", `{"max_tokens":5,"model":"m"}`, "messages"},
		{"unknown field", `{"max_tokens":5,"fallbacks":[{"model":"claude-fable-5"}],` + rest + `}`, `"fallbacks"`},
		{"compaction", `{"max_tokens":5,"compaction":{},` + rest + `}`, `"compaction"`},
		{"compaction as an edit", `{"max_tokens":5,"context_management":{"edits":[{"type":"compact_20260112"}]},` + rest + `}`, `"compact_20260112"`},
		{"more than edits", `{"max_tokens":5,"context_management":{"other":1},` + rest + `}`, `"other"`},
		{"other servers", `{"max_tokens":5,"mcp_servers":[],` + rest + `}`, `"mcp_servers"`},
		{"the service's search", `{"max_tokens":5,"tools":[{"type":"web_search_20250305","name":"web_search"}],` + rest + `}`, "web_search"},
		{"a tool of two types", `{"max_tokens":5,"tools":[{"type":"custom","type":"web_search_20250305"}],` + rest + `}`, "twice"},
		{"a type that is no text", `{"max_tokens":5,"tools":[{"type":["web_search_20250305"]}],` + rest + `}`, "web_search"},
		{"the service's search, added later", `{"max_tokens":5,"model":"m","messages":[{"role":"system","content":[{"type":"tool_addition","tool":{"type":"tool_definition","definition":{"type":"web_search_20250305"}}}]}]}`, "web_search"},
		{"thinking budget as text", `{"max_tokens":5,"thinking":{"budget_tokens":"1"},` + rest + `}`, "budget_tokens"},
		{"speed as number", `{"max_tokens":5,"speed":1,` + rest + `}`, "speed"},
		{"two bodies", `{"max_tokens":5,` + rest + `}{}`, "not JSON"},
		{"cut", `{"max_tokens":5,` + rest, "not JSON"},
		{"no object", `[]`, "not an object"},
		{"nothing", ``, "not JSON"},
		{"a message without content", `{"max_tokens":5,"model":"m","messages":[{"role":"user"}]}`, "content"},
		{"content of another kind", `{"max_tokens":5,"model":"m","messages":[{"role":"user","content":7}]}`, "array"},
		{"a block that is no object", `{"max_tokens":5,"model":"m","messages":[{"role":"user","content":["x"]}]}`, "object"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, err := parse([]byte(c.body))
			switch {
			case c.wrong == "" && err != nil:
				t.Fatal(err)
			case c.wrong != "":
				if err == nil || !strings.Contains(err.Error(), c.wrong) {
					t.Errorf("error %v, want %q", err, c.wrong)
				}
				return
			}
			if a.maxTokens != 5 || a.model != "m" || c.body[a.maxAt:a.maxEnd] != "5" {
				t.Errorf("%+v", a)
			}
			if got, want := string(a.lowered(3)), strings.Replace(c.body, "5", "3", 1); !strings.Contains(c.name, "edits") && !strings.Contains(c.name, "escaped") && got != want {
				t.Errorf("lowered to %q, want %q", got, want)
			}
			if got := string(a.lowered(5)); got != c.body {
				t.Errorf("not lowered, but changed: %q", got)
			}
		})
	}
}

// TestPromptBound: how many tokens a prompt can have, against 100,000 that the service counted for the first request.
func TestPromptBound(t *testing.T) {
	body := func(head, messages string) string {
		return `{"model":"m","max_tokens":9,"stream":true,` + head + `"messages":[` + messages + `]}`
	}
	const (
		system = `"system":[{"type":"text","text":"be good","cache_control":{"type":"ephemeral"}}],`
		tools  = `"tools":[{"name":"a","description":"does a"}],`
		first  = `{"role":"user","content":[{"type":"text","text":"hello","cache_control":{"type":"ephemeral"}}]}`
		plain  = `{"role":"user","content":"hello"}`
		said   = `{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"a","input":{}}]}`
		result = `{"role":"user","content":[{"tool_use_id":"1","type":"tool_result","content":"ok"}]}`
		image  = `{"role":"user","content":[{"type":"image","source":{"type":"base64","data":"AAAA"}}]}`
		pdf    = `{"role":"user","content":[{"tool_use_id":"1","type":"tool_result","content":[{"type":"document","source":{"type":"base64","data":"AAAA"}}]}]}`
	)
	head := system + tools
	for _, c := range []struct {
		name, body string
		want       int64 // beyond what is known; -1: all of its bytes
		extra      int64 // beyond the bytes
	}{
		{"the same again", body(head, first), 0, toolTokens},
		{"the mark has moved on", body(head, plain+","+said+","+result), int64(len(said) + len(result)), toolTokens},
		{"another max_tokens is the same conversation", strings.Replace(body(head, plain+","+said), `"max_tokens":9`, `"max_tokens":8`, 1), int64(len(said)), toolTokens},
		{"another model", strings.Replace(body(head, first), `"m"`, `"n"`, 1), -1, toolTokens},
		{"another system prompt", body(strings.Replace(head, "good", "bad", 1), first), -1, toolTokens},
		{"another tool", body(system+strings.Replace(tools, `"a"`, `"b"`, 1), first), -1, toolTokens},
		{"no tool", body(system, first), -1, 0},
		{"another beginning", body(head, strings.Replace(first, "hello", "help!", 1)), -1, toolTokens},
		{"another role", body(head, strings.Replace(plain, "user", "system", 1)), -1, toolTokens},
		{"an earlier message grew", body(head, `{"role":"user","content":[{"type":"text","text":"hello"},{"type":"text","text":"you"}]}`), int64(len(`{"type":"text","text":"you"}`)), toolTokens},
		{"an image", body(head, plain+","+image), int64(len(image)) + imageTokens, toolTokens + imageTokens},
		{"a tool that was kept back is shown", body(head, plain+`,{"role":"user","content":[{"type":"tool_reference","tool_name":"a"}]}`),
			int64(len(`{"role":"user","content":[{"type":"tool_reference","tool_name":"a"}]}`)) + int64(len(tools)-len(`"tools":,`)), toolTokens + int64(len(tools)-len(`"tools":,`))},
		{"a shape nobody knows, new", body(head, `{"role":"user","content":[{"type":"hologram"}]}`), -2, 0},
		{"pages in few bytes, new", body(system, pdf), -2, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			var k known
			began, err := parse([]byte(body(head, first)))
			if err != nil {
				t.Fatal(err)
			}
			k.learn(began.prompt, 100)
			a, err := parse([]byte(c.body))
			if err != nil {
				t.Fatal(err)
			}
			want := min(100+c.want, int64(len(c.body))+c.extra)
			switch c.want {
			case -1:
				want = int64(len(c.body)) + c.extra
			case -2:
				want = window
			}
			if got := k.bound(a.prompt); got != want {
				t.Errorf("bound %d, want %d of %d bytes", got, want, len(c.body))
			}
		})
	}
}

// TestUnboundedAfterItWasCounted: what follows a document that was counted is bound by its bytes again.
func TestUnboundedAfterItWasCounted(t *testing.T) {
	const pdf = `{"role":"user","content":[{"type":"document","source":{"type":"url","url":"https://example.com/a.pdf"}}]}`
	one, err := parse([]byte(`{"model":"m","max_tokens":9,"messages":[` + pdf + `]}`))
	if err != nil {
		t.Fatal(err)
	}
	two, err := parse([]byte(`{"model":"m","max_tokens":9,"messages":[` + pdf + `,{"role":"assistant","content":"x"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	var k known
	if n := k.bound(two.prompt); n != window {
		t.Errorf("unknown: %d", n)
	}
	k.learn(one.prompt, 7000)
	if n := k.bound(two.prompt); n != 7000+int64(len(`{"role":"assistant","content":"x"}`)) {
		t.Errorf("known: %d", n)
	}
}

// TestNothingIsLearnedWhenAnswersAreLeftOut: what a prompt counts without some answers of tools says nothing about the next.
func TestNothingIsLearnedWhenAnswersAreLeftOut(t *testing.T) {
	var k known
	a, err := parse([]byte(`{"model":"m","max_tokens":9,"context_management":{"edits":[{"type":"clear_tool_uses_20250919"}]},"messages":[{"role":"user","content":"x"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	k.learn(a.prompt, 3)
	if n := k.bound(a.prompt); n != int64(len(a.body)) {
		t.Errorf("%d", n)
	}
}

func TestCacheClasses(t *testing.T) {
	for _, c := range []struct {
		name, fields string
		cached, hour bool
	}{
		{"none", `"messages":[{"role":"user","content":"cache_control"}]`, false, false},
		{"five minutes", `"messages":[{"role":"user","content":[{"type":"text","text":"x","cache_control":{"type":"ephemeral"}}]}]`, true, false},
		{"an hour", `"messages":[{"role":"user","content":[{"type":"text","text":"x","cache_control":{"type":"ephemeral","ttl":"1h"}}]}]`, true, true},
		{"an hour, hidden", `"messages":[{"role":"user","content":[{"type":"text","text":"x","cache\u005fcontrol":{"ttl":"1\u0068"}}]}]`, true, true},
		{"inside a tool's answer", `"messages":[{"role":"user","content":[{"type":"tool_result","content":[{"type":"text","text":"x","cache_control":{"ttl":"1h"}}]}]}]`, true, true},
		{"at a tool", `"tools":[{"name":"a","cache_control":{"type":"ephemeral","ttl":"1h"}}],"messages":[]`, true, true},
		{"in the system prompt", `"system":[{"type":"text","text":"x","cache_control":{"type":"ephemeral","ttl":"5m"}}],"messages":[]`, true, false},
		{"for all", `"cache_control":{"type":"ephemeral"},"messages":[]`, true, false},
		{"unknown lifetime", `"cache_control":{"ttl":"1d"},"messages":[]`, true, true},
		{"unknown block", `"messages":[{"role":"user","content":[{"type":"hologram"}]}]`, true, true},
	} {
		a, err := parse([]byte(`{"model":"m","max_tokens":9,` + c.fields + `}`))
		if err != nil || a.cached != c.cached || a.hour != c.hour {
			t.Errorf("%s: %+v, %v", c.name, a, err)
		}
	}
}

// FuzzParse: whatever is understood has its number where it is said to be, and another in its place makes nothing else of it.
func FuzzParse(f *testing.F) {
	for _, s := range []string{simple(9), `{"max_tokens":1,"model":"m","messages":[]}`, `{"a":1}`, `{"max_tokens":5,"tools":[{"type":"x"}],"messages":[]}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		a, err := parse(body)
		if err != nil {
			return
		}
		if got := string(body[a.maxAt:a.maxEnd]); got != fmt.Sprint(a.maxTokens) {
			t.Fatalf("max_tokens at %q of %q", got, body)
		}
		b, err := parse(a.lowered(1))
		if err != nil || b.maxTokens != 1 || b.model != a.model || len(b.prompt.marks) != len(a.prompt.marks) {
			t.Fatalf("lowered: %+v, %v", b, err)
		}
		for i := range a.prompt.marks {
			if a.prompt.marks[i] != b.prompt.marks[i] {
				t.Fatalf("lowering made another conversation of %q", body)
			}
		}
		if a.prompt.whole < int64(len(body)) {
			t.Fatalf("bound of %d for %d bytes", a.prompt.whole, len(body))
		}
	})
}
