package gateway

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

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
	case <-time.After(2 * time.Minute):
		t.Fatal("the service still answers")
	}
	until(t, "the record", func() bool { return len(s.took()) == 1 })
	if r := s.took()[0]; !r.Cut || r.Amount != 50*4000+100*20_000 {
		t.Errorf("%+v", r)
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
