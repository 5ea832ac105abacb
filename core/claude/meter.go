package claude

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"example.com/AutoAgentProject/core/money"
	"example.com/AutoAgentProject/core/runner"
)

// tokens is a usage as the Messages API tells it.
type tokens struct {
	Input     number `json:"input_tokens"`
	Output    number `json:"output_tokens"`
	CacheRead number `json:"cache_read_input_tokens"`
	Written   number `json:"cache_creation_input_tokens"` // whatever its lifetime
	Split     struct {
		For5m number `json:"ephemeral_5m_input_tokens"`
		For1h number `json:"ephemeral_1h_input_tokens"`
	} `json:"cache_creation"`
	Server struct {
		Searches number `json:"web_search_requests"`
	} `json:"server_tool_use"`
}

// most is the larger of both, field by field: the program repeats a message, and early copies know less.
func (t tokens) most(o tokens) tokens {
	t.Input, t.Output = max(t.Input, o.Input), max(t.Output, o.Output)
	t.CacheRead, t.Written = max(t.CacheRead, o.CacheRead), max(t.Written, o.Written)
	t.Split.For5m, t.Split.For1h = max(t.Split.For5m, o.Split.For5m), max(t.Split.For1h, o.Split.For1h)
	t.Server.Searches = max(t.Server.Searches, o.Server.Searches)
	return t
}

// usage puts the part of the cache writes whose lifetime was not told at five minutes.
func (t tokens) usage() money.Usage {
	return money.Usage{Input: int64(t.Input), Output: int64(t.Output), CacheRead: int64(t.CacheRead),
		CacheWrite5m: int64(t.Split.For5m + max(0, t.Written-t.Split.For5m-t.Split.For1h)), CacheWrite1h: int64(t.Split.For1h),
		WebSearches: int64(t.Server.Searches)}
}

// modelUse is one entry of a result's modelUsage: all that the program's process spent on a model so far.
type modelUse struct {
	Input     number  `json:"inputTokens"`
	Output    number  `json:"outputTokens"`
	CacheRead number  `json:"cacheReadInputTokens"`
	Written   number  `json:"cacheCreationInputTokens"`
	For5m     number  `json:"cacheCreationEphemeral5mInputTokens"`
	For1h     number  `json:"cacheCreationEphemeral1hInputTokens"`
	Searches  number  `json:"webSearchRequests"`
	Cost      decimal `json:"costUSD"`
	Basis     string  `json:"costBasis"`
}

func (m modelUse) usage() money.Usage {
	return money.Usage{Input: int64(m.Input), Output: int64(m.Output), CacheRead: int64(m.CacheRead),
		CacheWrite5m: int64(m.For5m + max(0, m.Written-m.For5m-m.For1h)), CacheWrite1h: int64(m.For1h), WebSearches: int64(m.Searches)}
}

// decimal is an amount of US dollars that comes from outside: what is not a number from 0 to a million is 0.
type decimal money.Nano

func (d *decimal) UnmarshalJSON(b []byte) error {
	*d = 0
	f, err := strconv.ParseFloat(string(b), 64)
	if err == nil && f >= 0 && f <= 1e6 {
		*d = decimal(math.Round(f * float64(money.USD)))
	}
	return nil
}

type priceFunc = func(model string, u money.Usage, at time.Time) (money.Nano, bool)

// meter adds up what a stream of events says was spent. It looks at no clock and no file.
type meter struct {
	price     priceFunc
	maxOutput int64               // no response can have more tokens; 0: not known
	messages  map[string]*message // by id
	earlier   []*message          // whose id was used again
	current   *message            // the last one that began in the main conversation
	requests  int                 // messages that began in the main conversation
	models    map[string]modelUse // of the last result
	resultAt  time.Time
	nano      money.Nano   // of all messages
	tokens    int64        // of all messages
	more      runner.Spend // what the last result counted beyond the messages so far
}

// message is one response of the model.
type message struct {
	model        string
	at           time.Time
	told         tokens
	open         bool  // it has begun and its usage is not final
	written      int64 // bytes of text and tool input so far
	thoughtBytes int64
	thought      int64 // tokens of thinking by the program's estimate: thinking is not always shown
	nano         money.Nano
	tokens       int64
}

func newMeter(price priceFunc, maxOutput int64) *meter {
	return &meter{price: price, maxOutput: maxOutput, messages: map[string]*message{}}
}

// add takes in one event. now is its time, if it does not tell one.
func (m *meter) add(e *event, now time.Time) {
	switch {
	case e.Type == "stream_event" && e.Stream != nil:
		m.addStream(e, now)
	case e.Type == "system" && e.Subtype == "thinking_tokens" && m.current != nil:
		m.current.thought = max(m.current.thought, int64(e.Thought))
		m.update(m.current)
	case e.Type == "assistant" && e.Message != nil && e.Message.ID != "" && e.Message.Model != synthetic:
		msg := m.message(e.Message, e.at(now)) // a lower bound: this copy knows the output only roughly
		msg.told = msg.told.most(e.Message.Usage)
		m.update(msg)
	case e.Type == "result" && e.Models != nil:
		m.models, m.resultAt = e.Models, now // totals of the process: the last one counts
		s := m.spend()
		m.more.Nano, m.more.Tokens = s.Nano-m.nano, s.Tokens-m.tokens
	}
}

// synthetic is the model of messages that the program makes up to tell an error.
const synthetic = "<synthetic>"

func (m *meter) addStream(e *event, now time.Time) {
	s := e.Stream
	if s.Type == "message_start" && s.Message != nil && s.Message.ID != "" {
		if old := m.messages[s.Message.ID]; old != nil && !old.open && !strings.HasPrefix(s.Message.ID, "msg_") {
			m.earlier = append(m.earlier, old) // only ids of this form are used once
			delete(m.messages, s.Message.ID)
		}
		msg := m.message(s.Message, e.at(now))
		msg.told, msg.open = msg.told.most(s.Message.Usage), true
		if e.Parent == "" {
			m.current = msg
			m.requests++
		}
		m.update(msg)
		return
	}
	msg := m.messages[e.APIMessage]
	if msg == nil && e.Parent == "" {
		msg = m.current
	}
	if msg == nil {
		return
	}
	switch s.Type {
	case "content_block_delta":
		msg.written += int64(len(s.Delta.Text) + len(s.Delta.Input))
		msg.thoughtBytes += int64(len(s.Delta.Thinking))
	case "message_delta":
		msg.told = msg.told.most(s.Usage)
		// An interrupted message is ended by one that the program makes up; it has no stop reason and no true count.
		if s.Delta.StopReason != "" {
			msg.open = false
		}
	}
	m.update(msg)
}

// message finds a message by its id, or notes a new one.
func (m *meter) message(r *reply, at time.Time) *message {
	msg := m.messages[r.ID]
	if msg == nil {
		msg = &message{at: at}
		m.messages[r.ID] = msg
	}
	if msg.model == "" {
		msg.model = r.Model
	}
	return msg
}

// running is what was spent so far, quickly told.
func (m *meter) running() (money.Nano, int64) { return m.nano + m.more.Nano, m.tokens + m.more.Tokens }

// all are all messages, in no order.
func (m *meter) all() []*message {
	return slices.AppendSeq(slices.Clone(m.earlier), maps.Values(m.messages))
}

// usage counts an open message at one token a byte, or at all that the response may have.
func (g *message) usage(maxOutput int64) money.Usage {
	u := g.told.usage()
	if g.open {
		bound := g.written + max(g.thoughtBytes, g.thought)
		if maxOutput > 0 {
			bound = min(bound, maxOutput)
		}
		u.Output = max(u.Output, bound)
	}
	return u
}

// update prices a message anew.
func (m *meter) update(g *message) {
	u := g.usage(m.maxOutput)
	nano, _ := m.price(g.model, u, g.at)
	m.nano += nano - g.nano
	m.tokens += u.Tokens() - g.tokens
	g.nano, g.tokens = nano, u.Tokens()
}

// spend is what was spent so far: the messages, and what the last result counted beyond them, such as subagents, whose
// messages are not shown. The result names a model as it was asked for, a message as the service calls it.
func (m *meter) spend() runner.Spend {
	s := runner.Spend{Source: "none", ByModel: map[string]money.Usage{}}
	var seen, told money.Usage
	for _, g := range m.all() {
		u := g.usage(m.maxOutput)
		if _, known := m.price(g.model, u, g.at); !known {
			s.Unpriced = append(s.Unpriced, g.model)
		}
		s.ByModel[g.model], seen = s.ByModel[g.model].Add(u), seen.Add(u)
		s.Open, s.Source = s.Open || g.open, "stream"
	}
	s.Nano = m.nano
	for _, use := range m.models {
		told = told.Add(use.usage())
	}
	if len(m.models) > 0 && less(seen, told) == (money.Usage{}) {
		s.Source = "result"
	}
	rest, listed := less(told, seen), money.Nano(0)
	for _, model := range slices.Sorted(maps.Keys(m.models)) {
		use := m.models[model]
		more := least(less(use.usage(), seenOf(s.ByModel, model)), rest)
		rest = less(rest, more)
		listed += use.listed()
		if more == (money.Usage{}) {
			continue
		}
		nano, known := m.price(model, more, m.resultAt) // like one response, which it need not have been
		if !known {
			s.Unpriced = append(s.Unpriced, model)
		}
		s.Nano += nano
		s.ByModel[model] = s.ByModel[model].Add(more)
	}
	s.Nano = max(s.Nano, listed)
	for _, u := range s.ByModel {
		s.Tokens += u.Tokens()
	}
	slices.Sort(s.Unpriced)
	s.Unpriced = slices.Compact(s.Unpriced)
	return s
}

// seenOf sums up what messages of a model show: a service may add a date to the name that was asked for.
func seenOf(by map[string]money.Usage, model string) (sum money.Usage) {
	for name, u := range by {
		if name == model || strings.HasPrefix(name, model+"-20") {
			sum = sum.Add(u)
		}
	}
	return sum
}

// started says whether the stream shows any request.
func (m *meter) started() bool { return len(m.messages) > 0 || len(m.models) > 0 }

// listed is the program's own figure, if it comes from a price list.
func (m modelUse) listed() money.Nano {
	if m.Basis == "list" {
		return money.Nano(m.Cost)
	}
	return 0
}

// least is the smaller of both, class by class.
func least(u, v money.Usage) money.Usage {
	return money.Usage{Input: min(u.Input, v.Input), Output: min(u.Output, v.Output),
		CacheWrite5m: min(u.CacheWrite5m, v.CacheWrite5m), CacheWrite1h: min(u.CacheWrite1h, v.CacheWrite1h),
		CacheRead: min(u.CacheRead, v.CacheRead), WebSearches: min(u.WebSearches, v.WebSearches)}
}

// less is u without v, no class below 0.
func less(u, v money.Usage) money.Usage {
	return money.Usage{Input: max(0, u.Input-v.Input), Output: max(0, u.Output-v.Output),
		CacheWrite5m: max(0, u.CacheWrite5m-v.CacheWrite5m), CacheWrite1h: max(0, u.CacheWrite1h-v.CacheWrite1h),
		CacheRead: max(0, u.CacheRead-v.CacheRead), WebSearches: max(0, u.WebSearches-v.WebSearches)}
}
