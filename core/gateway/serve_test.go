package gateway

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/money"
)

func TestWhoIsServed(t *testing.T) {
	var reached atomic.Int32
	s := newStage(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reached.Add(1)
		answer(200, "application/json", whole)(w, r)
	}), nil)
	token := s.Token()
	for _, c := range []struct {
		name, method, path string
		header             http.Header
		body               string
		status             int
		kind               string
	}{
		{"as an API key", "POST", "/v1/messages", http.Header{"X-Api-Key": {token}}, simple(9), 200, ""},
		{"as a bearer", "POST", "/v1/messages?beta=true", http.Header{"Authorization": {"Bearer " + token}}, simple(9), 200, ""},
		{"no token", "POST", "/v1/messages", nil, simple(9), 401, "authentication_error"},
		{"another token", "POST", "/v1/messages", http.Header{"X-Api-Key": {token + "x"}}, simple(9), 401, "authentication_error"},
		{"the credential itself", "POST", "/v1/messages", http.Header{"X-Api-Key": {testSecret}}, simple(9), 401, "authentication_error"},
		{"empty", "POST", "/v1/messages", http.Header{"Authorization": {"Bearer "}}, simple(9), 401, "authentication_error"},
		{"token as a query", "POST", "/v1/messages?token=" + token, nil, simple(9), 401, "authentication_error"},
		{"another method", "GET", "/v1/messages", http.Header{"X-Api-Key": {token}}, "", 404, "not_found_error"},
		{"another path", "POST", "/v1/complete", http.Header{"X-Api-Key": {token}}, simple(9), 404, "not_found_error"},
		{"batches", "POST", "/v1/messages/batches", http.Header{"X-Api-Key": {token}}, simple(9), 404, "not_found_error"},
		{"below", "POST", "/v1/messages/../files", http.Header{"X-Api-Key": {token}}, simple(9), 404, "not_found_error"},
		{"another query", "POST", "/v1/messages?x=1", http.Header{"X-Api-Key": {token}}, simple(9), 404, "not_found_error"},
		{"another model", "POST", "/v1/messages", http.Header{"X-Api-Key": {token}}, strings.Replace(simple(9), testModel, "claude-fable-5", 1), 404, "not_found_error"},
		{"counting for another model", "POST", "/v1/messages/count_tokens", http.Header{"X-Api-Key": {token}}, strings.Replace(simple(9), testModel, "claude-fable-5", 1), 404, "not_found_error"},
		{"not JSON", "POST", "/v1/messages", http.Header{"X-Api-Key": {token}}, "{", 400, "invalid_request_error"},
	} {
		before := reached.Load()
		req, err := http.NewRequestWithContext(t.Context(), c.method, s.url+c.path, strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header = c.header.Clone()
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != c.status || (reached.Load() > before) != (c.status == 200) {
			t.Errorf("%s: %d %s", c.name, resp.StatusCode, b)
		}
		if c.status != 200 {
			if kind, _ := shape(t, string(b)); kind != c.kind || resp.Header.Get("X-Should-Retry") != "false" {
				t.Errorf("%s: %s", c.name, b)
			}
		}
	}
	if r := s.Report(); r.Strangers != 5 || r.Refused != 8 || r.Charged != 2*small || r.Reserved != 0 || r.ByModel[testModel].Requests != 2 {
		t.Errorf("%+v", r)
	}
}

func TestNotFromThisMachine(t *testing.T) {
	s := newStage(t, answer(200, "application/json", whole), nil)
	for _, from := range []string{"192.0.2.7:5000", "[2001:db8::1]:5000", "", "nonsense"} {
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/messages", strings.NewReader(simple(9)))
		r.RemoteAddr = from
		r.Header.Set("X-Api-Key", s.Token())
		w := &recorder{}
		if s.ServeHTTP(w, r); w.status != 401 {
			t.Errorf("%q: %d", from, w.status)
		}
	}
	l, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := s.Serve(l); err == nil || !strings.Contains(err.Error(), "loopback") {
		t.Errorf("every address: %v", err)
	}
}

type recorder struct {
	status int
	bytes.Buffer
	h http.Header
}

func (r *recorder) Header() http.Header {
	if r.h == nil {
		r.h = http.Header{}
	}
	return r.h
}
func (r *recorder) WriteHeader(n int) { r.status = n }

func TestUnixSocket(t *testing.T) {
	s := newStage(t, answer(200, "application/json", whole), nil)
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = s.Serve(l) }() // ends with the stage
	client := http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return net.Dial("unix", path) }}}
	defer client.CloseIdleConnections()
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://gateway/v1/messages", strings.NewReader(simple(9)))
	req.Header.Set("Authorization", "Bearer "+s.Token())
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != 200 {
		t.Errorf("%d", resp.StatusCode)
	}
}

// TestWhatTheServiceSees: the credential of its kind, the program's own headers, nothing of the run's.
func TestWhatTheServiceSees(t *testing.T) {
	for _, kind := range []string{APIKey, PlanToken} {
		var saw http.Header
		var path, body string
		s := newStage(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			b, _ := io.ReadAll(r.Body)
			saw, path, body = r.Header.Clone(), r.URL.String(), string(b)
			w.Header().Set("Set-Cookie", "a=b")
			w.Header().Set("X-Echo", "you sent "+testSecret)
			w.Header().Set("Anthropic-Ratelimit-Unified-Status", "allowed")
			answer(200, "application/json", whole)(w, r)
		}), func(c *Config) { c.Kind, c.Upstream = kind, c.Upstream+"/base/" })
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/v1/messages?beta=true", strings.NewReader(simple(9)))
		req.Header = http.Header{"X-Api-Key": {s.Token()}, "Authorization": {"Bearer something"}, "Cookie": {"c=d"}, "Proxy-Authorization": {"x"}, "X-Forwarded-For": {"1.2.3.4"},
			"Anthropic-Beta": {"one,context-1m-2025-08-07", "two"}, "Anthropic-Version": {"2023-06-01"}, "User-Agent": {"claude-cli/x"}, "X-App": {"cli"}, "X-Claude-Code-Session-Id": {"s"},
			"Accept-Encoding": {"gzip, br"}, "Connection": {"upgrade"}, "Upgrade": {"websocket"}, "Idempotency-Key": {"k"}}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if path != "/base/v1/messages?beta=true" || body != simple(9) {
			t.Errorf("%s %s", path, body)
		}
		want := http.Header{"X-Api-Key": {testSecret}, "Anthropic-Beta": {"one,two"}}
		if kind == PlanToken {
			want = http.Header{"Authorization": {"Bearer " + testSecret}, "Anthropic-Beta": {"one,two,oauth-2025-04-20"}}
		}
		for name, v := range map[string]string{"Anthropic-Version": "2023-06-01", "User-Agent": "claude-cli/x", "X-App": "cli", "X-Claude-Code-Session-Id": "s", "Accept-Encoding": "identity", "Content-Length": fmt.Sprint(len(body))} {
			want.Set(name, v)
		}
		if fmt.Sprint(saw) != fmt.Sprint(want) {
			t.Errorf("%s: the service saw\n%v, want\n%v", kind, saw, want)
		}
		if resp.Header.Get("Set-Cookie") != "" || resp.Header.Get("X-Echo") != "" || resp.Header.Get("Anthropic-Ratelimit-Unified-Status") != "allowed" {
			t.Errorf("%s: the run saw %v", kind, resp.Header)
		}
	}
}

func packed(s string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = io.WriteString(z, s)
	_ = z.Close()
	return b.String()
}

// TestResponses: what each kind of response is charged, and what the run gets to see. A reservation is given back or kept.
func TestResponses(t *testing.T) {
	body := simple(1000)
	worst := int64(len(body))*4000 + 1000*20_000
	begun := int64(50*4000 + 1000*20_000) // the prompt was told; of the output only the most is known
	with := func(h http.HandlerFunc, name, value string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) { w.Header().Set(name, value); h(w, r) }
	}
	drop := func(first string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			if first != "" {
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = io.WriteString(w, first)
				_ = http.NewResponseController(w).Flush()
			}
			conn, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				conn.Close()
			}
		}
	}
	const overloaded = `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`
	const sse = "text/event-stream; charset=utf-8"
	for _, c := range []struct {
		name   string
		h      http.HandlerFunc
		status int
		got    string // that the run reads; empty: not looked at
		broken bool   // it does not end well
		amount int64
		cut    bool
	}{
		{"answer", answer(200, "application/json", whole), 200, whole, false, small, false},
		{"stream", answer(200, sse, start+piece+delta+stop), 200, start + piece + delta + stop, false, small, false},
		{"answer, packed against our wish", with(answer(200, "application/json", packed(whole)), "Content-Encoding", "gzip"), 200, whole, false, small, false},
		{"stream, packed against our wish", with(answer(200, sse, packed(start+piece+delta+stop)), "Content-Encoding", "gzip"), 200, start + piece + delta + stop, false, small, false},
		{"packed in a way we do not know", with(answer(200, sse, "???"), "Content-Encoding", "br"), 502, "", false, worst, true},
		{"said to be packed", with(answer(200, sse, start), "Content-Encoding", "gzip"), 200, "", true, worst, true},
		{"stream that ends too early", answer(200, sse, start+piece), 200, start + piece, false, begun, true},
		{"stream that is reset", drop(start + piece), 200, "", true, begun, true},
		{"stream that fails at once", answer(200, sse, "event: error\ndata: "+overloaded+"\n\n"), 200, "", false, 0, false},
		{"stream that fails in the middle", answer(200, sse, start+piece+"event: error\ndata: "+overloaded+"\n\n"), 200, "", false, begun, true},
		{"answer without usage", answer(200, "application/json", `{"type":"message"}`), 200, "", false, worst, true},
		{"a page", answer(200, "text/html", "<html>"), 200, "<html>", false, worst, true},
		{"nothing", answer(200, "application/json", ""), 200, "", false, worst, true},
		{"dropped without a byte", drop(""), 502, "", false, worst, true},
		{"overloaded", with(answer(529, "application/json", overloaded), "Retry-After", "3"), 529, overloaded, false, 0, false},
		{"rate limit", answer(429, "application/json", overloaded), 429, overloaded, false, 0, false},
		{"server error", answer(500, "application/json", overloaded), 500, overloaded, false, 0, false},
		{"bad request", answer(400, "application/json", overloaded), 400, overloaded, false, 0, false},
		{"forbidden by something in between", answer(403, "text/html", "<html>no"), 403, "<html>no", false, 0, false},
		{"lost by something in between", answer(502, "text/html", "<html>oh"), 502, "<html>oh", false, worst, true},
		{"timed out in between", answer(408, "text/html", "<html>oh"), 408, "<html>oh", false, worst, true},
		{"an error that tells the credential", answer(401, "application/json", `{"type":"error","error":{"type":"x","message":"bad key `+testSecret+`"}}`), 401, `{"type":"error","error":{"type":"x","message":"bad key [credential]"}}`, false, 0, false},
		{"redirect", with(answer(307, "text/plain", ""), "Location", "https://example.com/v1/messages"), 502, "", false, 0, false},
		{"another model answers", answer(200, "application/json", strings.Replace(whole, testModel, "claude-opus-4-1", 1)), 200, "", false, 50*15_000 + 20*75_000, false},
		{"a model without a price answers", answer(200, "application/json", strings.Replace(whole, testModel, "opus-of-a-friend", 1)), 200, "", false, small, false},
		{"fast", answer(200, "application/json", strings.Replace(whole, `"usage":{`, `"usage":{"speed":"fast",`, 1)), 200, "", false, 2 * small, false},
		{"in one region", answer(200, "application/json", strings.Replace(whole, `"usage":{`, `"usage":{"inference_geo":"us",`, 1)), 200, "", false, small * 11 / 10, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStage(t, c.h, nil)
			status, got, err := s.say(t, body)
			if c.broken && status == 0 {
				status = c.status // it broke before its head had passed
			}
			if status != c.status || (err != nil) != c.broken || c.got != "" && got != c.got {
				t.Errorf("%d %q, %v", status, got, err)
			}
			noSecret(t, "the answer", got)
			until(t, "the record", func() bool { return len(s.took()) == 1 })
			r := s.took()[0]
			if r.Amount != c.amount || r.Cut != c.cut || r.Worst != worst || r.MaxTokens != 1000 || r.Model != testModel || r.Beyond {
				t.Errorf("%+v, want %d", r, c.amount)
			}
			if m := s.Report().Mark; m != (Mark{Charged: c.amount}) {
				t.Errorf("mark %+v", m)
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			if len(s.marks) != 2 || s.marks[0] != (Mark{Reserved: worst}) || s.marks[1] != (Mark{Charged: c.amount}) {
				t.Errorf("told %+v", s.marks)
			}
		})
	}
}

func TestNobodyListens(t *testing.T) {
	l, err := Listen()
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	s := newStage(t, http.NotFoundHandler(), func(c *Config) { c.Upstream = "http://" + l.Addr().String() })
	status, got, err := s.say(t, simple(9))
	if err != nil || status != 502 {
		t.Errorf("%d %s %v", status, got, err)
	}
	if r := s.took(); len(r) != 1 || r[0].Amount != 0 {
		t.Errorf("%+v", r)
	}
}

func TestCountTokens(t *testing.T) {
	s := newStage(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/messages/count_tokens" || r.Header.Get("X-Api-Key") != testSecret {
			t.Errorf("%s %v", r.URL, r.Header)
		}
		answer(200, "application/json", `{"input_tokens":7}`)(w, r)
	}), nil)
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/v1/messages/count_tokens?beta=true", strings.NewReader(`{"model":"`+testModel+`","messages":[]}`))
	req.Header.Set("X-Api-Key", s.Token())
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	b, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	if r := s.Report(); string(b) != `{"input_tokens":7}` || r.Sum() != 0 || len(r.ByModel) != 0 || len(s.took()) != 0 {
		t.Errorf("%s %+v", b, r)
	}
}

// TestByteForByte: every event arrives before the next one is sent, and nothing of it is changed.
func TestByteForByte(t *testing.T) {
	for _, kind := range []string{"text/event-stream", "application/x-pieces"} {
		t.Run(kind, func(t *testing.T) { byteForByte(t, kind) })
	}
}

func byteForByte(t *testing.T, kind string) {
	events := []string{start, ": a comment\r\n\r\n", piece, "event: ping\ndata: {\"type\": \"ping\"}\n\n", "data: \xff\xfe\x00 not even UTF-8\n\n", piece[:20], piece[20:], delta, stop}
	next := make(chan string)
	s := newStage(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", kind)
		if kind != "text/event-stream" { // the proxy knows by itself what to do with a stream, and with a body of unknown length
			w.Header().Set("Content-Length", strconv.Itoa(len(strings.Join(events, ""))))
		}
		w.Header().Set("Request-Id", "req_1")
		flush := http.NewResponseController(w).Flush
		_ = flush()
		for e := range next {
			_, _ = io.WriteString(w, e)
			_ = flush()
		}
	}), nil)
	resp, err := s.post(t.Context(), simple(100)) // comes back although no event was sent
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.Header.Get("Request-Id") != "req_1" || resp.StatusCode != 200 {
		t.Errorf("%v", resp.Header)
	}
	for i, e := range events {
		next <- e
		got := make([]byte, len(e))
		if _, err := io.ReadFull(resp.Body, got); err != nil || string(got) != e {
			t.Fatalf("event %d: %q, %v", i, got, err)
		}
		if e == delta && kind == "text/event-stream" && s.Report().Mark != (Mark{Charged: small}) {
			t.Errorf("the counts are told, but not settled: %+v", s.Report().Mark)
		}
	}
	close(next)
	if rest, err := io.ReadAll(resp.Body); len(rest) > 0 || err != nil {
		t.Errorf("%q, %v", rest, err)
	}
}

func TestStopped(t *testing.T) {
	var stopped atomic.Bool
	hang := make(chan struct{})
	defer close(hang)
	s := newStage(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, start)
		_ = http.NewResponseController(w).Flush()
		select {
		case <-r.Context().Done():
		case <-hang:
		}
	}), func(c *Config) { c.Stopped = stopped.Load })
	resp, err := s.post(t.Context(), simple(100))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.ReadFull(resp.Body, make([]byte, len(start))); err != nil {
		t.Fatal(err)
	}
	stopped.Store(true)
	status, got, err := s.say(t, simple(100))
	if kind, text := shape(t, got); err != nil || status != 402 || kind != "billing_error" || text != "the run was stopped" {
		t.Errorf("after the tombstone: %d %s, %v", status, got, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(resp.Body); err == nil {
		t.Errorf("the running stream ended well: %q", rest)
	}
	if r := s.Report(); r.Mark != (Mark{Charged: 50*4000 + 100*20_000}) || r.Cut != 1 {
		t.Errorf("%+v", r)
	}
	if _, _, err := s.say(t, simple(100)); err == nil {
		t.Error("served after Close")
	}
	w := &recorder{}
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/messages", strings.NewReader(simple(9)))
	r.RemoteAddr, r.Header = "127.0.0.1:9", http.Header{"X-Api-Key": {s.Token()}}
	if s.ServeHTTP(w, r); w.status != 402 {
		t.Errorf("after Close: %d", w.status)
	}
}

func TestSilence(t *testing.T) {
	s := newStage(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, start)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}), func(c *Config) { c.Idle = 50 * time.Millisecond })
	if _, got, err := s.say(t, simple(100)); err == nil || got != start {
		t.Errorf("%q, %v", got, err)
	}
	until(t, "the end", func() bool { return len(s.took()) == 1 })
}

// TestRunGoesAway: when the program hangs up, the service is hung up on too.
func TestRunGoesAway(t *testing.T) {
	gone := make(chan struct{})
	s := newStage(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, start)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		close(gone)
	}), nil)
	ctx, cancel := context.WithCancel(t.Context())
	resp, err := s.post(ctx, simple(100))
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.ReadFull(resp.Body, make([]byte, len(start)))
	cancel()
	resp.Body.Close()
	select {
	case <-gone:
	case <-time.After(20 * time.Second):
		t.Fatal("the service still answers")
	}
	until(t, "the record", func() bool { return len(s.took()) == 1 })
	if r := s.took()[0]; !r.Cut || r.Amount != 50*4000+100*20_000 {
		t.Errorf("%+v", r)
	}
}

func TestLargeBody(t *testing.T) {
	s := newStage(t, answer(200, "application/json", whole), func(c *Config) { c.MaxBody = 500 })
	status, got, err := s.say(t, strings.Replace(simple(9), "hello", strings.Repeat("h", 500), 1))
	if kind, _ := shape(t, got); err != nil || status != 413 || kind != "request_too_large" {
		t.Errorf("%d %s, %v", status, got, err)
	}
}

// TestAccountCannotBeKept: what cannot be written down is not spent.
func TestAccountCannotBeKept(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"not written": func(c *Config) { c.OnUsage = func(Mark) error { return errors.New("disk full") } },
		"not read":    func(c *Config) { c.Budget = func() (int64, error) { return 0, errors.New("damaged") } },
	} {
		var reached atomic.Bool
		s := newStage(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Store(true) }), change)
		status, got, err := s.say(t, simple(9))
		if kind, _ := shape(t, got); err != nil || status != 503 || kind != "api_error" || reached.Load() || s.Report().Sum() != 0 {
			t.Errorf("%s: %d %s, %v", name, status, got, err)
		}
	}
}

// TestRegionIsRemembered: once an answer said that it was bound to a region, worst cases have its surcharge.
func TestRegionIsRemembered(t *testing.T) {
	s := newStage(t, answer(200, "application/json", strings.Replace(whole, `"usage":{`, `"usage":{"inference_geo":"us",`, 1)), nil)
	for range 2 {
		if _, _, err := s.say(t, strings.Replace(simple(100), "hello", fmt.Sprint(time.Now().UnixNano()), 1)); err != nil {
			t.Fatal(err)
		}
	}
	if r := s.took(); r[1].Worst != r[0].Worst*11/10 {
		t.Errorf("%+v", r)
	}
}

func TestConfigIsChecked(t *testing.T) {
	good := Config{Kind: APIKey, Credential: Hide("x"), Models: []string{"m"}, Price: money.Default().Cost, Cap: money.Amount{Unit: money.NanoUSD, N: 1}}
	if _, err := New(good); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Config){
		"no kind":               func(c *Config) { c.Kind = "" },
		"no credential":         func(c *Config) { c.Credential = Secret{} },
		"a line end in it":      func(c *Config) { c.Credential = Hide("a\nb") },
		"no models":             func(c *Config) { c.Models = nil },
		"a nameless model":      func(c *Config) { c.Models = []string{""} },
		"cap 0":                 func(c *Config) { c.Cap.N = 0 },
		"negative cap":          func(c *Config) { c.Cap.N = -1 },
		"no unit":               func(c *Config) { c.Cap.Unit = "" },
		"no prices":             func(c *Config) { c.Price = nil },
		"http elsewhere":        func(c *Config) { c.Upstream = "http://example.com" },
		"http, looks like here": func(c *Config) { c.Upstream = "http://127.0.0.1.example.com" },
		"user in the address":   func(c *Config) { c.Upstream = "https://a:b@example.com" },
		"query in the address":  func(c *Config) { c.Upstream = "https://example.com?x" },
		"no address":            func(c *Config) { c.Upstream = "example.com" },
		"a file":                func(c *Config) { c.Upstream = "file:///x" },
	} {
		c := good
		change(&c)
		if _, err := New(c); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

// TestNoPrintTellsTheSecret: not of the configuration, the gateway, its parts or a log.
func TestNoPrintTellsTheSecret(t *testing.T) {
	secret := Hide(testSecret)
	c := Config{Kind: APIKey, Credential: secret, Models: []string{"m"}, Price: money.Default().Cost, Cap: money.Amount{Unit: money.NanoUSD, N: 1}}
	g, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	for _, h := range []slog.Handler{slog.NewTextHandler(&log, nil), slog.NewJSONHandler(&log, nil)} {
		slog.New(h).Info("x", "secret", secret, "config", c.Credential, "struct", struct{ S Secret }{secret})
	}
	inner := struct{ s Secret }{secret}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		for _, v := range []any{secret, &secret, c, &c, g, &g.account, inner, &inner, []Secret{secret}, map[string]Secret{"a": secret}} {
			fmt.Fprintf(&log, verb, v)
		}
	}
	b, err := json.Marshal([]any{secret, struct{ S Secret }{secret}})
	if err != nil {
		t.Fatal(err)
	}
	log.Write(b)
	noSecret(t, "a print", log.String())
	if strings.Contains(log.String(), fmt.Sprintf("%x", testSecret)) || strings.Contains(log.String(), g.Token()) {
		t.Error("the credential or the token is in a print")
	}
	if secret.reveal() != testSecret || secret.strike("a "+testSecret+" b") != "a [credential] b" {
		t.Error("the secret is lost")
	}
}

// TestLoweredAndWaiting: a request that does not fit beside another one waits for it; one that does not fit at all gets
// less output; one that does not fit even so is refused.
func TestLoweredAndWaiting(t *testing.T) {
	var mu sync.Mutex
	var outputs []int64
	release := make(chan struct{}, 9)
	s := newStage(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			Max int64 `json:"max_tokens"`
		}
		_ = json.NewDecoder(r.Body).Decode(&in)
		mu.Lock()
		outputs = append(outputs, in.Max)
		mu.Unlock()
		<-release
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"type":"message","model":%q,"usage":{"input_tokens":10,"output_tokens":600}}`, testModel)
	}), func(c *Config) { c.Cap.N, c.Patience, c.MinOutput = 30_000_000, time.Hour, 400 }) // 1,500 tokens of output
	reached := func() int { mu.Lock(); defer mu.Unlock(); return len(outputs) }
	status := make(chan int, 9)
	send := func() {
		go func() {
			n, _, err := s.say(t, simple(1000))
			if err != nil {
				t.Error(err)
			}
			status <- n
		}()
	}
	send()
	until(t, "the first", func() bool { return reached() == 1 })
	send() // 1,000 are reserved: 480 fit, and are not taken as long as more may be given back
	until(t, "the second to wait", func() bool {
		s.account.mu.Lock()
		defer s.account.mu.Unlock()
		return s.account.changed != nil
	})
	release <- struct{}{}
	until(t, "the second", func() bool { return reached() == 2 })
	if got := outputs[1]; got <= 850 || got >= 900 { // 1,500 less 600 less two prompts
		t.Errorf("the second has %d", got)
	}
	release <- struct{}{}
	send() // 300 are left: less than the least
	if n := []int{<-status, <-status, <-status}; n[0]+n[1]+n[2] != 200+200+402 {
		t.Errorf("%v", n)
	}
	if r := s.Report(); r.Spent != 1 || r.Lowered != 1 || r.Charged != 2*(10*4000+600*20_000) {
		t.Errorf("%+v", r)
	}
}

// TestImpatience: whoever waited long enough takes what there is.
func TestImpatience(t *testing.T) {
	release := make(chan struct{})
	s := newStage(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-release
		answer(200, "application/json", whole)(w, r)
	}), func(c *Config) { c.Cap.N, c.Patience, c.MinOutput = 30_000_000, time.Millisecond, 400 })
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			if n, got, err := s.say(t, simple(1000)); n != 200 || err != nil {
				t.Errorf("%d %s %v", n, got, err)
			}
		})
	}
	until(t, "both to be under way", func() bool {
		s.account.mu.Lock()
		defer s.account.mu.Unlock()
		return s.account.inFlight == 2
	})
	close(release)
	all.Wait()
	if r := s.Report(); r.Lowered != 1 {
		t.Errorf("%+v", r)
	}
}

// TestBudgetBesideTheCap: the whole budget can have less than the run's cap, and that can change from request to request.
func TestBudgetBesideTheCap(t *testing.T) {
	var free atomic.Int64
	free.Store(30_000_000)
	s := newStage(t, answer(200, "application/json", whole), func(c *Config) { c.Budget = func() (int64, error) { return free.Load(), nil } })
	if n, _, _ := s.say(t, simple(8000)); n != 200 || s.took()[0].MaxTokens >= 1500 {
		t.Errorf("%d %+v", n, s.took())
	}
	free.Store(1_000_000)
	n, got, _ := s.say(t, simple(8000))
	if _, text := shape(t, got); n != 402 || !strings.Contains(text, "of $0.001 there are $0.0004 left") {
		t.Errorf("%d %s", n, got)
	}
}

// TestCloseReachesEveryCall: also one that came by no server of ours.
func TestCloseReachesEveryCall(t *testing.T) {
	s := newStage(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}), nil)
	r, _ := http.NewRequestWithContext(context.Background(), http.MethodPost, "/v1/messages", strings.NewReader(simple(9)))
	r.RemoteAddr, r.Header = "127.0.0.1:9", http.Header{"X-Api-Key": {s.Token()}}
	w, ended := &recorder{}, make(chan struct{})
	go func() { s.ServeHTTP(w, r); close(ended) }()
	until(t, "it to be under way", func() bool { return s.Report().Reserved > 0 })
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	<-ended
	if w.status != 402 {
		t.Errorf("%d %s", w.status, w.String())
	}
}

// TestThinkingIsNotLoweredAway: the service refuses a max_tokens that is not more than the budget for thinking.
func TestThinkingIsNotLoweredAway(t *testing.T) {
	s := newStage(t, answer(200, "application/json", whole), func(c *Config) { c.Cap.N = 30_000_000 })
	with := func(budget int) string {
		return strings.Replace(simple(8000), `"messages"`, fmt.Sprintf(`"thinking":{"type":"enabled","budget_tokens":%d},"messages"`, budget), 1)
	}
	if n, _, _ := s.say(t, with(1100)); n != 402 {
		t.Errorf("1,100 for thinking and 512 besides: %d", n)
	}
	if n, _, _ := s.say(t, with(900)); n != 200 {
		t.Errorf("900 for thinking: %d", n)
	}
	if r := s.took()[0]; r.MaxTokens < 900+512 || r.MaxTokens >= 1500 {
		t.Errorf("%+v", r)
	}
}

func TestTokenBudget(t *testing.T) {
	s := newStage(t, answer(200, "application/json", whole), func(c *Config) { c.Price, c.Cap = nil, money.Amount{Unit: money.Tokens, N: 2000} })
	if n, got, err := s.say(t, simple(1000)); n != 200 || err != nil {
		t.Errorf("%d %s %v", n, got, err)
	}
	n, got, _ := s.say(t, simple(3000)) // 1,930 are left; the prompt is known to have 50
	if r := s.took(); n != 200 || r[0].Amount != 70 || r[0].Worst != int64(len(simple(1000)))+1000 || r[1].MaxTokens != 1930-50 || r[1].Worst != 1930 {
		t.Errorf("%d %s %+v", n, got, r)
	}
}
