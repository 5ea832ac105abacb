package gateway

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/money"
)

// biller is a service that bills every request by list price, also what it wrote and nobody read. It counts a text at
// between a fifth of a token and one token a byte, always the same for the same text.
type biller struct {
	t      *testing.T
	unit   money.Unit
	unruly int // percent of the requests that go wrong
	output func(r *rand.Rand, maxTokens int64) int64

	mu     sync.Mutex
	rand   *rand.Rand
	billed int64
	served int
}

func (b *biller) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var in struct {
		Model     string          `json:"model"`
		MaxTokens int64           `json:"max_tokens"`
		Stream    bool            `json:"stream"`
		System    json.RawMessage `json:"system"`
		Tools     json.RawMessage `json:"tools"`
		Messages  []struct {
			Content any `json:"content"`
		} `json:"messages"`
	}
	if err != nil || json.Unmarshal(body, &in) != nil {
		b.t.Errorf("the service cannot read %q", body)
		return
	}
	prompt := tokensOf(string(in.System)) + tokensOf(string(in.Tools))
	for _, m := range in.Messages {
		if s, ok := m.Content.(string); ok {
			prompt += tokensOf(s)
			continue
		}
		for _, x := range m.Content.([]any) {
			prompt += tokensOf(x.(map[string]any)["text"].(string))
		}
	}
	b.mu.Lock()
	u := money.Usage{Output: b.output(b.rand, in.MaxTokens)}
	part := b.rand.Int64N(prompt + 1)
	switch b.rand.IntN(4) {
	case 0:
		u.Input = prompt
	case 1:
		u.CacheRead, u.Input = part, prompt-part
	case 2:
		u.CacheWrite5m, u.Input = part, prompt-part
	case 3:
		u.CacheWrite1h, u.CacheRead = part, prompt-part
	}
	if !strings.Contains(string(body), `"ttl":"1h"`) {
		u.CacheWrite5m, u.CacheWrite1h = u.CacheWrite5m+u.CacheWrite1h, 0
	}
	if !strings.Contains(string(body), "cache_control") {
		u.Input, u.CacheWrite5m = u.Input+u.CacheWrite5m, 0
	}
	fate := b.rand.IntN(100)
	seen := u.Output
	if fate < b.unruly {
		seen = b.rand.Int64N(u.Output + 1)
	}
	cost := u.Tokens()
	if b.unit == money.NanoUSD {
		nano, _ := money.Default().Cost(in.Model, u, time.Now(), false)
		cost = int64(nano)
	}
	how := ""
	if fate < b.unruly {
		how = []string{"error", "drop", "cut", "clean end", "in between"}[b.rand.IntN(5)]
	}
	if how != "error" {
		b.billed += cost
		b.served++
	}
	b.mu.Unlock()

	usage := func(output int64) string {
		return fmt.Sprintf(`{"input_tokens":%d,"cache_read_input_tokens":%d,"cache_creation_input_tokens":%d,"cache_creation":{"ephemeral_5m_input_tokens":%d,"ephemeral_1h_input_tokens":%d},"output_tokens":%d}`,
			u.Input, u.CacheRead, u.CacheWrite5m+u.CacheWrite1h, u.CacheWrite5m, u.CacheWrite1h, output)
	}
	switch {
	case how == "error":
		answer(529, "application/json", `{"type":"error","error":{"type":"overloaded_error","message":"x"}}`)(w, r)
	case how == "in between":
		answer(504, "text/html", "<html>")(w, r)
	case how == "drop" || how == "cut" && !in.Stream:
		if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
			conn.Close()
		}
	case !in.Stream:
		answer(200, "application/json", fmt.Sprintf(`{"type":"message","model":%q,"usage":%s}`, in.Model, usage(u.Output)))(w, r)
	default:
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"model\":%q,\"usage\":%s}}\n\n", in.Model, usage(1))
		for i := int64(0); i < min(seen, 5); i++ {
			_, _ = io.WriteString(w, piece)
		}
		_ = http.NewResponseController(w).Flush()
		if how == "cut" {
			if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
				conn.Close()
			}
			return
		}
		if how == "" {
			fmt.Fprintf(w, "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":%d}}\n\n", u.Output)
			_, _ = io.WriteString(w, stop)
		}
	}
}

func tokensOf(s string) int64 {
	h := fnv.New32a()
	_, _ = io.WriteString(h, s)
	per := int64(h.Sum32()%5) + 1
	return (int64(len(s)) + per - 1) / per
}

// talk is a conversation as the program holds it: each request has what was said before, and the mark for the cache
// stands at the end.
type talk struct {
	r     *rand.Rand
	said  []string
	ttl   string // of its marks; "none": no marks
	model string
}

func (c *talk) body(maxTokens int64) string {
	if len(c.said) == 0 || c.r.IntN(4) > 0 {
		c.said = append(c.said, words(c.r, c.r.IntN(400)))
	} else {
		c.said = []string{words(c.r, c.r.IntN(2000))} // begins anew
	}
	var messages []string
	for i, s := range c.said {
		role := []string{"user", "assistant"}[i%2]
		text, _ := json.Marshal(s)
		switch {
		case i < len(c.said)-1 || c.ttl == "none":
			messages = append(messages, fmt.Sprintf(`{"role":%q,"content":%s}`, role, text))
		case c.ttl == "":
			messages = append(messages, fmt.Sprintf(`{"role":%q,"content":[{"type":"text","text":%s,"cache_control":{"type":"ephemeral"}}]}`, role, text))
		default:
			messages = append(messages, fmt.Sprintf(`{"role":%q,"content":[{"type":"text","text":%s,"cache_control":{"type":"ephemeral","ttl":%q}}]}`, role, text, c.ttl))
		}
	}
	return fmt.Sprintf(`{"model":%q,"max_tokens":%d,"stream":%v,"messages":[%s]}`, c.model, maxTokens, c.r.IntN(3) > 0, strings.Join(messages, ","))
}

func words(r *rand.Rand, n int) string {
	b := make([]byte, n+1)
	for i := range b {
		b[i] = byte(' ' + r.IntN(95))
	}
	return string(b)
}

// TestBudgetIsABound: many requests at once, of random sizes, to a service that does everything wrong now and then.
// What it bills never exceeds the budget, and neither does what is charged.
func TestBudgetIsABound(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 7))
			unit := []money.Unit{money.NanoUSD, money.Tokens}[seed%2]
			limit := int64(money.USD) / 4
			if unit == money.Tokens {
				limit = 60_000
			}
			b := &biller{t: t, unit: unit, unruly: 20, rand: rand.New(rand.NewPCG(seed, 8)), output: func(r *rand.Rand, most int64) int64 {
				if r.IntN(2) == 0 {
					return most
				}
				return 1 + r.Int64N(most)
			}}
			var low error // a mark that is less than what was billed, or more than there is
			s := newStage(t, b, func(c *Config) {
				c.Cap, c.Patience, c.MinOutput = money.Amount{Unit: unit, N: limit}, time.Duration(r.IntN(3))*time.Millisecond, 1+r.Int64N(500)
				c.OnUsage = func(m Mark) error {
					b.mu.Lock()
					defer b.mu.Unlock()
					if m.Sum() > limit || m.Charged < 0 || m.Reserved < 0 || m.Sum() < b.billed {
						low = errors.Join(low, fmt.Errorf("mark %+v, billed %d of %d", m, b.billed, limit))
					}
					return nil
				}
			})
			var all sync.WaitGroup
			for i := range 6 {
				c := &talk{r: rand.New(rand.NewPCG(seed, uint64(i)+100)), ttl: []string{"", "1h", "none"}[i%3], model: []string{testModel, "claude-haiku-5-5"}[i%2]}
				all.Go(func() {
					for range 60 {
						resp, err := s.post(t.Context(), c.body(1+c.r.Int64N(4000)))
						if err != nil {
							continue // broken on purpose
						}
						_, _ = io.Copy(io.Discard, resp.Body)
						resp.Body.Close()
						if resp.StatusCode == 402 {
							return
						}
					}
				})
			}
			all.Wait()
			until(t, "the last to settle", func() bool { return s.Report().Reserved == 0 })
			got := s.Report()
			t.Logf("billed %d, charged %d of %d; %d served, %d lowered, %d cut", b.billed, got.Charged, limit, b.served, got.Lowered, got.Cut)
			if b.billed > limit || got.Charged > limit || got.Charged < b.billed || got.Beyond > 0 || low != nil {
				t.Errorf("billed %d, charged %d of %d, %d beyond, %v", b.billed, got.Charged, limit, got.Beyond, low)
			}
			if got.Spent == 0 || got.Cut == 0 {
				t.Errorf("the test did not get to the end of the budget: %+v", got)
			}
		})
	}
}

// TestBudgetIsUsed: small requests, several at once, until none is forwarded any more: at least 95 % is used.
func TestBudgetIsUsed(t *testing.T) {
	for _, unit := range []money.Unit{money.NanoUSD, money.Tokens} {
		t.Run(string(unit), func(t *testing.T) {
			t.Parallel()
			limit := int64(money.USD) / 2
			if unit == money.Tokens {
				limit = 40_000
			}
			b := &biller{t: t, unit: unit, rand: rand.New(rand.NewPCG(1, 2)), output: func(r *rand.Rand, most int64) int64 { return min(most, 50+r.Int64N(150)) }}
			s := newStage(t, b, func(c *Config) { c.Cap, c.Patience = money.Amount{Unit: unit, N: limit}, time.Millisecond })
			var all sync.WaitGroup
			for i := range 4 {
				r := rand.New(rand.NewPCG(3, uint64(i)))
				all.Go(func() {
					for {
						c := &talk{r: r, ttl: "1h", model: testModel} // a conversation of its own: nothing is known of it
						resp, err := s.post(t.Context(), c.body(16_000))
						if err != nil {
							t.Error(err)
							return
						}
						_, _ = io.Copy(io.Discard, resp.Body)
						resp.Body.Close()
						if resp.StatusCode == 402 {
							return
						}
						if resp.StatusCode != 200 {
							t.Errorf("status %d", resp.StatusCode)
							return
						}
					}
				})
			}
			all.Wait()
			got := s.Report()
			t.Logf("used %d of %d (%.1f %%), %d requests, %d lowered", b.billed, limit, 100*float64(b.billed)/float64(limit), b.served, got.Lowered)
			if b.billed > limit || b.billed*100 < limit*95 || got.Charged != b.billed || got.Lowered == 0 {
				t.Errorf("billed %d, charged %d of %d, %d lowered", b.billed, got.Charged, limit, got.Lowered)
			}
		})
	}
}
