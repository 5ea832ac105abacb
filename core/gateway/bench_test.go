package gateway

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/money"
)

// fetch reads a response to its end, with the time until its first byte.
func fetch(b *testing.B, client *http.Client, url, token string) (first, whole time.Duration) {
	b.Helper()
	req, err := http.NewRequestWithContext(b.Context(), http.MethodPost, url+"/v1/messages", strings.NewReader(simple(100)))
	if err != nil {
		b.Fatal(err)
	}
	req.Header.Set("X-Api-Key", token)
	began := time.Now()
	resp, err := client.Do(req)
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.ReadFull(resp.Body, make([]byte, 1)); err != nil || resp.StatusCode != 200 {
		b.Fatal(resp.Status, err)
	}
	first = time.Since(began)
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		b.Fatal(err)
	}
	return first, time.Since(began)
}

// events is a service that streams n small events, each flushed.
func events(n int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		flush := http.NewResponseController(w).Flush
		_, _ = io.WriteString(w, start)
		for range n {
			_, _ = io.WriteString(w, piece)
			_ = flush()
		}
		_, _ = io.WriteString(w, delta+stop)
	}
}

func compare(b *testing.B, n int) {
	service := events(n)
	direct := httptest.NewServer(service)
	defer direct.Close()
	s := newStage(b, service, func(c *Config) { c.Cap.N = 1 << 60; c.Price = money.Default().Cost; c.OnRecord = nil; c.OnUsage = nil })
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	var firstDirect, wholeDirect, first, whole time.Duration
	for b.Loop() {
		f, w := fetch(b, client, direct.URL, "x")
		firstDirect, wholeDirect = firstDirect+f, wholeDirect+w
		f, w = fetch(b, client, s.url, s.Token())
		first, whole = first+f, whole+w
	}
	b.ReportMetric(float64(first)/float64(firstDirect), "first-byte/direct")
	b.ReportMetric(float64(whole)/float64(wholeDirect), "whole/direct")
	b.ReportMetric(float64(whole-wholeDirect)/float64(b.N)/float64(n+3), "ns-added/event")
}

// BenchmarkSmallResponse: what the gateway adds to a response of a few events, against the service itself.
func BenchmarkSmallResponse(b *testing.B) { compare(b, 5) }

// BenchmarkLongStream: the same for a stream of 10,000 small events.
func BenchmarkLongStream(b *testing.B) { compare(b, 10_000) }

// BenchmarkMeter: the meter alone, against looking at every byte once.
func BenchmarkMeter(b *testing.B) {
	stream := []byte(start + strings.Repeat(piece, 10_000) + delta + stop)
	b.SetBytes(int64(len(stream)))
	var base, own time.Duration
	for b.Loop() {
		began := time.Now()
		if strings.Count(string(stream), "\n") == 0 {
			b.Fatal("no lines")
		}
		base += time.Since(began)
		began = time.Now()
		if c := counted(stream, 4096, false); !c.Final {
			b.Fatal("not counted")
		}
		own += time.Since(began)
	}
	b.ReportMetric(float64(own)/float64(base), "meter/scan")
}

// BenchmarkParse: a request of a megabyte in a long conversation.
func BenchmarkParse(b *testing.B) {
	body := []byte(`{"model":"m","max_tokens":9,"messages":[` + strings.TrimSuffix(strings.Repeat(`{"role":"user","content":[{"type":"text","text":"`+strings.Repeat("x", 1000)+`"}]},`, 1000), ",") + `]}`)
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		if _, err := parse(body); err != nil {
			b.Fatal(err)
		}
	}
}
