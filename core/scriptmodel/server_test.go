package scriptmodel

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// serve plays a script on a loopback port and returns its address.
func serve(t *testing.T, script string, o Options) (*Server, string) {
	t.Helper()
	sc, err := Parse([]byte(script))
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(sc, o)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	t.Cleanup(func() {
		if err := errors.Join(s.Close(), <-ended); err != nil {
			t.Error(err)
		}
	})
	return s, "http://" + l.Addr().String()
}

type ask struct {
	session, system, user string
	stream                bool
	tools                 string // JSON, default none
}

func post(t *testing.T, url string, a ask) (*http.Response, error) {
	t.Helper()
	if a.tools == "" {
		a.tools = "[]"
	}
	body, err := json.Marshal(map[string]any{"model": "claude-sonnet-5-5", "max_tokens": 100, "stream": a.stream,
		"system":   []any{map[string]any{"type": "text", "text": a.system}},
		"messages": []any{map[string]any{"role": "user", "content": a.user}}, "tools": json.RawMessage(a.tools)})
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/v1/messages?beta=true", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Api-Key", "example-secret")
	if a.session != "" {
		req.Header.Set("X-Claude-Code-Session-Id", a.session)
	}
	return http.DefaultClient.Do(req)
}

// say returns the status and the text of the answer's first block, or the error's message.
func say(t *testing.T, url string, a ask) (int, string) {
	t.Helper()
	resp, err := post(t, url, a)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var v struct {
		Content []struct{ Text string }
		Error   struct{ Message string }
	}
	if err := json.NewDecoder(resp.Body).Decode(&v); err != nil {
		t.Fatal(err)
	}
	if len(v.Content) > 0 {
		return resp.StatusCode, v.Content[0].Text
	}
	return resp.StatusCode, v.Error.Message
}

const lanes = `{"rules":[
 {"name":"builder","when":["role: builder"],"steps":[{"content":[{"type":"text","text":"b1"}]},{"content":[{"type":"text","text":"b2"}]}],"after":"fail"},
 {"name":"other","not":["nobody"],"steps":[{"content":[{"type":"text","text":"o1"}],"usage":{"input_tokens":7}},{"content":[{"type":"text","text":"o2"}]}]}]}`

func TestEachConversationHasItsLane(t *testing.T) {
	var log bytes.Buffer
	s, url := serve(t, lanes, Options{Log: &log})
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Go(func() {
			id := fmt.Sprint("session-", i)
			system, want := "role: builder", []string{"b1", "b2"}
			if i%2 == 1 {
				system, want = "role: \"tester\"", []string{"o1", "o2", "o2"}
			}
			for k, w := range want {
				if k > 0 {
					system = "role: builder" // the rule was chosen by the first request
				}
				if status, got := say(t, url, ask{session: id, system: system, user: "go"}); got != w || status != 200 {
					t.Errorf("%s, request %d: %d %q, want %q", id, k+1, status, got, w)
				}
			}
		})
	}
	wg.Wait()
	if status, got := say(t, url, ask{session: "session-0", system: "role: builder", user: "go"}); status != 418 || !strings.Contains(got, "no step for request 3") {
		t.Errorf("after the last step: %d %q", status, got)
	}
	if status, got := say(t, url, ask{system: "nobody", user: "go"}); status != 418 || !strings.Contains(got, "no rule") {
		t.Errorf("no rule: %d %q", status, got)
	}
	st := s.Stats()
	if st.Requests != 17 || st.Refused != 2 || st.ByRule["builder"] != 7 || st.ByRule["other"] != 9 {
		t.Errorf("stats %+v", st)
	}
	if u := st.ByModel["claude-sonnet-5-5"]; u != (Usage{Input: 12*100 + 3*7, Output: 150}) || st.Tokens() != 1371 {
		t.Errorf("sum %+v", u)
	}
	if n := strings.Count(log.String(), "\n"); n != 17 || strings.Contains(log.String(), "secret") || !strings.Contains(log.String(), `"auth":"api-key"`) {
		t.Errorf("log of %d lines: %s", n, log.String())
	}
}

func TestConversationWithoutSession(t *testing.T) {
	_, url := serve(t, lanes, Options{})
	for _, c := range []struct{ user, want string }{{"one", "o1"}, {"two", "o1"}, {"one", "o2"}, {"two", "o2"}} {
		if _, got := say(t, url, ask{user: c.user}); got != c.want {
			t.Errorf("%q: %q, want %q", c.user, got, c.want)
		}
	}
}

// sse reads a stream to its end and returns the names of the events and their data.
func sse(t *testing.T, body io.Reader) (names []string, data []map[string]any, err error) {
	t.Helper()
	sc := bufio.NewScanner(body)
	for sc.Scan() {
		if n, ok := strings.CutPrefix(sc.Text(), "event: "); ok {
			names = append(names, n)
		}
		if d, ok := strings.CutPrefix(sc.Text(), "data: "); ok {
			var v map[string]any
			if err := json.Unmarshal([]byte(d), &v); err != nil {
				t.Fatal(err)
			}
			data = append(data, v)
		}
	}
	return names, data, sc.Err()
}

func TestStream(t *testing.T) {
	s, url := serve(t, `{"rules":[{"steps":[{"chunk_bytes":3,"usage":{"output_tokens":33},"content":[
		{"type":"thinking","thinking":"hm"},{"type":"text","text":"abcdefg"},{"type":"tool_use","name":"Read","input":{"file_path":"{{match:file (\\S+)}}"}}]}]}]}`, Options{})
	resp, err := post(t, url, ask{user: "file /a/b", stream: true})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	names, data, err := sse(t, resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	want := "message_start content_block_start content_block_delta content_block_delta content_block_stop " +
		"content_block_start content_block_delta content_block_delta content_block_delta content_block_stop content_block_start "
	if got := strings.Join(names, " "); !strings.HasPrefix(got, want) || !strings.HasSuffix(got, " content_block_stop message_delta message_stop") {
		t.Errorf("events %s", got)
	}
	var text, input, stop string
	for _, d := range data {
		if delta, ok := d["delta"].(map[string]any); ok {
			text += fmt.Sprint(delta["text"])
			if p, ok := delta["partial_json"].(string); ok {
				input += p
			}
			if v, ok := delta["stop_reason"].(string); ok {
				stop = v
			}
		}
	}
	if !strings.Contains(text, "abc") || input != `{"file_path":"/a/b"}` || stop != "tool_use" {
		t.Errorf("text %q, input %q, stop %q", text, input, stop)
	}
	if u := data[0]["message"].(map[string]any)["usage"].(map[string]any); u["output_tokens"] != 1.0 || u["input_tokens"] != 100.0 {
		t.Errorf("usage at the start %v", u)
	}
	waitServed(t, s, 1)
	if u := s.Stats().Served[0].Usage; u != (Usage{Input: 100, Output: 33}) {
		t.Errorf("served %+v", u)
	}
}

// waitServed waits until n answers have ended; the last bytes reach the reader a moment before.
func waitServed(t *testing.T, s *Server, n int) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); len(s.Stats().Served) < n; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d answers ended, want %d", len(s.Stats().Served), n)
		}
	}
}

func TestBrokenStreams(t *testing.T) {
	const text = `"content":[{"type":"text","text":"abc"}]`
	for _, c := range []struct {
		name, step string
		events     int  // before it ends
		broken     bool // the body does not end as it should
		last       string
	}{
		{"reset", `{"trunc_after":3,` + text + `}`, 3, true, "content_block_delta"},
		{"clean end", `{"end_after":2,` + text + `}`, 2, false, "content_block_start"},
		{"error event", `{"error_after":1,"err_type":"overloaded_error",` + text + `}`, 2, false, "error"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, url := serve(t, `{"rules":[{"steps":[`+c.step+`]}]}`, Options{})
			resp, err := post(t, url, ask{user: "x", stream: true})
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			names, _, err := sse(t, resp.Body)
			if len(names) != c.events || names[len(names)-1] != c.last || (err != nil) != c.broken {
				t.Errorf("%v, %v", names, err)
			}
			waitServed(t, s, 1)
			if u := s.Stats().Served[0].Usage; u != (Usage{Input: 100, Output: 1}) {
				t.Errorf("served %+v", u)
			}
		})
	}
}

func TestHangs(t *testing.T) {
	_, url := serve(t, `{"rules":[{"steps":[{"hang_after":1,"ping_every_ms":1,"content":[{"type":"text","text":"abc"}]},{"hang_headers":true},{"drop_conn":true}]}]}`, Options{})
	resp, err := post(t, url, ask{session: "s", user: "x", stream: true})
	if err != nil {
		t.Fatal(err)
	}
	pings := 0
	for sc := bufio.NewScanner(resp.Body); pings < 2 && sc.Scan(); {
		if sc.Text() == "event: ping" {
			pings++
		}
	}
	resp.Body.Close()
	if pings != 2 {
		t.Error("no pings")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/messages", strings.NewReader(`{"model":"m","messages":[{"role":"user","content":"x"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Claude-Code-Session-Id", "s")
	if _, err := http.DefaultClient.Do(req); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("hanging headers: %v", err)
	}
	if _, err := post(t, url, ask{session: "s", user: "x"}); err == nil {
		t.Error("a dropped connection answered")
	}
}

func TestErrorsAndBodies(t *testing.T) {
	_, url := serve(t, `{"rules":[{"steps":[{"status":429,"err_type":"rate_limit_error","err_msg":"slow down {{session}}","headers":{"retry-after":"600"}},
		{"raw":"<html>"},{"structured":{"ok":true}},{"structured":{"ok":true}}]}]}`, Options{})
	resp, err := post(t, url, ask{session: "s", user: "x"})
	if err != nil {
		t.Fatal(err)
	}
	b, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	if resp.StatusCode != 429 || resp.Header.Get("retry-after") != "600" || !strings.Contains(string(b), `"message":"slow down s","type":"rate_limit_error"`) {
		t.Errorf("%d %s", resp.StatusCode, b)
	}
	resp, err = post(t, url, ask{session: "s", user: "x"})
	if err != nil {
		t.Fatal(err)
	}
	b, _ = io.ReadAll(resp.Body)
	resp.Body.Close()
	if string(b) != "<html>" || resp.StatusCode != 200 {
		t.Errorf("%d %s", resp.StatusCode, b)
	}
	if _, got := say(t, url, ask{session: "s", user: "x"}); got != `{"ok":true}` {
		t.Errorf("structured without the tool: %q", got)
	}
	resp, err = post(t, url, ask{session: "s", user: "x", tools: `[{"name":"StructuredOutput"}]`})
	if err != nil {
		t.Fatal(err)
	}
	b, _ = io.ReadAll(resp.Body)
	resp.Body.Close()
	if !strings.Contains(string(b), `"input":{"ok":true},"name":"StructuredOutput","type":"tool_use"`) || !strings.Contains(string(b), `"stop_reason":"tool_use"`) {
		t.Errorf("structured with the tool: %s", b)
	}
}

func TestSeenAndOtherPaths(t *testing.T) {
	var seen []Request
	s, url := serve(t, lanes, Options{Seen: func(r Request) { seen = append(seen, r) }})
	say(t, url, ask{session: "s", system: "be \"quoted\"", user: "line\ntwo", tools: `[{"name":"Read"},{"name":"Edit"}]`})
	if len(seen) != 1 || seen[0].Text != "be \"quoted\"\nline\ntwo\n" || strings.Join(seen[0].Tools, " ") != "Read Edit" || seen[0].MaxTokens != 100 || seen[0].Seq != 1 {
		t.Errorf("seen %+v", seen)
	}
	for _, c := range []struct {
		method, path, body string
		want               int
	}{
		{"POST", "/v1/messages", "{", 400},
		{"POST", "/v1/messages", `{"model":"m"}`, 400},
		{"POST", "/v1/messages/count_tokens", "12345678", 200},
		{"HEAD", "/api/hello", "", 200},
		{"GET", "/v1/models", "", 404},
	} {
		req, err := http.NewRequestWithContext(t.Context(), c.method, url+c.path, strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != c.want {
			t.Errorf("%s %s: %d, want %d", c.method, c.path, resp.StatusCode, c.want)
		}
	}
	if st := s.Stats(); st.Requests != 3 || st.Refused != 2 {
		t.Errorf("stats %+v", st)
	}
	l, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := s.Serve(l); err == nil || !strings.Contains(err.Error(), "loopback") {
		t.Errorf("Serve on every address: %v", err)
	}
}
