package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/money"
)

const (
	testSecret = "sk-ant-example-credential-of-these-tests"
	testModel  = "claude-opus-5-5"
)

// stage is a gateway in front of a service made by hand.
type stage struct {
	*Gateway
	url     string
	mu      sync.Mutex
	records []Record
	marks   []Mark
}

func (s *stage) took() []Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Record(nil), s.records...)
}

// newStage starts a gateway; change may set what the test needs.
func newStage(t testing.TB, service http.Handler, change func(*Config)) *stage {
	t.Helper()
	up := httptest.NewServer(service)
	s := &stage{}
	c := Config{Kind: APIKey, Credential: Hide(testSecret), Upstream: up.URL, Models: []string{testModel, "claude-haiku-5-5"},
		Price: money.Default().Cost, Cap: money.Amount{Unit: money.NanoUSD, N: int64(money.USD)},
		OnRecord: func(r Record) { s.mu.Lock(); s.records = append(s.records, r); s.mu.Unlock() },
		OnUsage:  func(m Mark) error { s.mu.Lock(); s.marks = append(s.marks, m); s.mu.Unlock(); return nil },
	}
	if change != nil {
		change(&c)
	}
	g, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	l, err := Listen()
	if err != nil {
		t.Fatal(err)
	}
	s.Gateway = g
	s.url = "http://" + l.Addr().String()
	ended := make(chan error, 1)
	go func() { ended <- g.Serve(l) }()
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
		up.CloseClientConnections()
		up.Close()
	})
	return s
}

// post sends a body with the token.
func (s *stage) post(ctx context.Context, body string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+"/v1/messages?beta=true", strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("X-Api-Key", s.Token())
	req.Header.Set("Content-Type", "application/json")
	return http.DefaultClient.Do(req)
}

// say posts and reads to the end.
func (s *stage) say(t testing.TB, body string) (int, string, error) {
	t.Helper()
	resp, err := s.post(t.Context(), body)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), err
}

// simple is a small request.
func simple(maxTokens int) string {
	return fmt.Sprintf(`{"model":%q,"max_tokens":%d,"messages":[{"role":"user","content":"hello"}]}`, testModel, maxTokens)
}

// answer is a handler that always answers the same.
func answer(status int, contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

const (
	start = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"model\":\"claude-opus-5-5\",\"usage\":{\"input_tokens\":50,\"output_tokens\":1}}}\n\n"
	piece = "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"abc\"}}\n\n"
	delta = "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":20}}\n\n"
	stop  = "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
	whole = `{"type":"message","id":"msg_1","model":"claude-opus-5-5","content":[],"usage":{"input_tokens":50,"output_tokens":20}}`
	// what 50 tokens in and 20 out cost
	small = 50*4000 + 20*20_000
)

// shape is the type and text of an error in the service's form.
func shape(t *testing.T, body string) (kind, text string) {
	t.Helper()
	var e struct {
		Type  string
		Error struct{ Type, Message string }
	}
	if err := json.Unmarshal([]byte(body), &e); err != nil || e.Type != "error" {
		t.Errorf("no error in the service's form: %q", body)
	}
	return e.Error.Type, e.Error.Message
}

// until polls.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited too long for %s", what)
		}
	}
}

// noSecret fails if a text holds the credential.
func noSecret(t testing.TB, where, text string) {
	t.Helper()
	if strings.Contains(text, testSecret) {
		t.Errorf("the credential is in %s: %.300s", where, text)
	}
}
