package gateway

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
)

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
