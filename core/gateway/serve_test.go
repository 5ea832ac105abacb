package gateway

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
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

func TestLargeBody(t *testing.T) {
	s := newStage(t, answer(200, "application/json", whole), func(c *Config) { c.MaxBody = 500 })
	status, got, err := s.say(t, strings.Replace(simple(9), "hello", strings.Repeat("h", 500), 1))
	if kind, _ := shape(t, got); err != nil || status != 413 || kind != "request_too_large" {
		t.Errorf("%d %s, %v", status, got, err)
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
