package claude

import (
	"maps"
	"slices"
	"strings"
	"time"

	"example.com/AutoAgentProject/core/money"
	"example.com/AutoAgentProject/core/runner"
	"example.com/AutoAgentProject/core/usage"
)

// meter adds up what a stream of events says was spent. Which events tell of the same response is the business of
// core/usage; what a stream knows besides, answers that are being written and the totals of results, is the meter's own.
// It looks at no clock and no file.
type meter struct {
	price     usage.Price
	maxOutput int64 // no response can have more tokens; 0: not known
	count     *usage.Count
	messages  map[*usage.Response]*message
	byID      map[string]*message // the last one with that id
	latest    map[string]*message // the last one that began in each conversation; the main one has no name
	requests  int                 // messages that began in the main conversation
	waiting   bool                // a request was sent and no message began
	models    map[string]usage.ModelTotal
	resultAt  time.Time
	nano      money.Nano   // of all messages
	tokens    int64        // of all messages
	more      runner.Spend // what the last result counted beyond the messages so far
}

// message is one response of the model.
type message struct {
	*usage.Response
	open         bool  // it has begun and its usage is not final
	written      int64 // bytes of text and tool input so far
	thoughtBytes int64
	thought      int64 // tokens of thinking by the program's estimate: thinking is not always shown
	nano         money.Nano
	tokens       int64
}

func newMeter(price usage.Price, maxOutput int64) *meter {
	return &meter{price: price, maxOutput: maxOutput, count: usage.NewCount(), messages: map[*usage.Response]*message{},
		byID: map[string]*message{}, latest: map[string]*message{}}
}

// add takes in one event. now is its time, if it does not tell one.
func (m *meter) add(e *event, now time.Time) {
	switch {
	case e.Type == "stream_event" && e.Stream != nil:
		m.addStream(e, now)
	case e.Type == "system" && e.Subtype == "status" && e.Status == "requesting":
		m.waiting = true
	case e.Type == "assistant" && e.Synthetic:
		m.waiting = false // it tells that the request failed
	case e.Type == "system" && e.Subtype == "thinking_tokens" && m.latest[""] != nil:
		g := m.latest[""]
		g.thought = max(g.thought, int64(e.Thought))
		m.update(g)
	case e.Type == "user":
		if g := m.latest[e.Parent]; g == nil || !g.open { // tools can answer while the message goes on
			m.count.Break(e.Parent, e.Parent != "")
		}
	case e.Type == "assistant" && e.Message != nil && (e.Message.ID != "" || e.Message.Usage != nil):
		if g := m.tell(e, e.Message, e.UUID, now); g != nil { // a lower bound: this copy knows the output only roughly
			m.update(g)
		}
	case e.Type == "result" && e.Models != nil:
		m.models, m.resultAt = e.Models, now // totals of the process: the last one counts
		s := m.spend()
		m.more.Nano, m.more.Tokens = s.Nano-m.nano, s.Tokens-m.tokens
	}
}

func (m *meter) addStream(e *event, now time.Time) {
	s := e.Stream
	if s.Type == "message_start" && s.Message != nil && s.Message.ID != "" {
		if old := m.byID[s.Message.ID]; old != nil && !old.open {
			m.count.Break(e.Parent, e.Parent != "")
		}
		g := m.tell(e, s.Message, "", now)
		if g == nil {
			return
		}
		g.open, m.latest[e.Parent] = true, g
		if e.Parent == "" {
			m.waiting = false
			m.requests++
		}
		m.update(g)
		return
	}
	g := m.byID[e.APIMessage]
	if g == nil && e.Parent == "" {
		g = m.latest[""]
	}
	if g == nil {
		return
	}
	switch s.Type {
	case "content_block_delta":
		g.written += int64(len(s.Delta.Text) + len(s.Delta.Input))
		g.thoughtBytes += int64(len(s.Delta.Thinking))
	case "message_delta":
		g.Tokens = g.Tokens.Most(s.Usage)
		// An interrupted message is ended by one that the program makes up; it has no stop reason and no true count.
		if s.Delta.StopReason != "" {
			g.open = false
		}
	}
	m.update(g)
}

// tell counts one telling of a response and returns what is known of it; nil: no model wrote it.
func (m *meter) tell(e *event, r *reply, uuid string, now time.Time) *message {
	record := usage.Record{Source: e.Parent, ID: r.ID, UUID: uuid, Sidechain: e.Parent != "", Model: r.Model, At: e.at(now)}
	if r.Usage != nil {
		record.Tokens = *r.Usage
	}
	response := m.count.Add(record)
	if response == nil {
		return nil
	}
	g := m.messages[response]
	if g == nil {
		g = &message{Response: response}
		m.messages[response] = g
	}
	m.byID[r.ID] = g
	return g
}

// running is what was spent so far, quickly told.
func (m *meter) running() (money.Nano, int64) {
	return money.Sum(m.nano, m.more.Nano), money.Sum(m.tokens, m.more.Tokens)
}

// calls counts an open message at one token a byte, or at all that the response may have.
func (g *message) calls(maxOutput int64) []usage.Call {
	calls := g.Tokens.Calls(g.Model)
	if g.open {
		bound := g.written + max(g.thoughtBytes, g.thought)
		if maxOutput > 0 {
			bound = min(bound, maxOutput)
		}
		calls[0].Usage.Output = max(calls[0].Usage.Output, bound)
	}
	return calls
}

// update prices a message anew.
func (m *meter) update(g *message) {
	var nano money.Nano
	var tokens int64
	for _, c := range g.calls(m.maxOutput) {
		n, _ := c.Cost(m.price, g.At())
		nano, tokens = money.Sum(nano, n), money.Sum(tokens, c.Usage.Tokens())
	}
	m.nano, m.tokens = money.Sum(m.nano-g.nano, nano), money.Sum(m.tokens-g.tokens, tokens) // what does not fit stays at the most
	g.nano, g.tokens = nano, tokens
}

// spend is what was spent so far: the messages, and what the last result counted beyond them, such as subagents, whose
// messages are not shown. The result names a model as it was asked for, a message as the service calls it.
func (m *meter) spend() runner.Spend {
	s := runner.Spend{Source: "none", ByModel: map[string]money.Usage{}, Requests: int64(len(m.messages)), Open: m.waiting}
	var seen, told money.Usage
	for _, g := range m.messages {
		for _, c := range g.calls(m.maxOutput) {
			if _, known := c.Cost(m.price, g.At()); !known {
				s.Unpriced = append(s.Unpriced, c.Model)
			}
			s.ByModel[c.Model], seen = s.ByModel[c.Model].Add(c.Usage), seen.Add(c.Usage)
		}
		s.Open, s.Source = s.Open || g.open, "stream"
	}
	s.Nano = m.nano
	for _, use := range m.models {
		told = told.Add(use.Usage())
	}
	if len(m.models) > 0 && less(seen, told) == (money.Usage{}) {
		s.Source = "result"
	}
	rest, listed := less(told, seen), money.Nano(0)
	for _, model := range slices.Sorted(maps.Keys(m.models)) {
		use := m.models[model]
		more := least(less(use.Usage(), seenOf(s.ByModel, model)), rest)
		rest = less(rest, more)
		listed = money.Sum(listed, use.Listed())
		if more == (money.Usage{}) {
			continue
		}
		nano, known := m.price(model, more, m.resultAt, false) // like one response, which it need not have been
		if !known {
			s.Unpriced = append(s.Unpriced, model)
		}
		s.Nano = money.Sum(s.Nano, nano)
		s.ByModel[model] = s.ByModel[model].Add(more)
	}
	s.Nano = max(s.Nano, listed)
	for _, u := range s.ByModel {
		s.Tokens = money.Sum(s.Tokens, u.Tokens())
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
