package gateway

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/money"
)

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
