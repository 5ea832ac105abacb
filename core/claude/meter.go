package claude

import (
	"maps"
	"slices"
	"strings"
	"time"

	"example.com/AutoAgentProject/core/money"
	"example.com/AutoAgentProject/core/runner"
)

type priceFunc = func(model string, u money.Usage, at time.Time) (money.Nano, bool)

// meter adds up what a stream of events says was spent. It looks at no clock and no file.
type meter struct {
	price     priceFunc
	maxOutput int64               // no response can have more tokens; 0: not known
	messages  map[string]*message // by id
	earlier   []*message          // whose id was used again
	current   *message            // the last one that began in the main conversation
	requests  int                 // messages that began in the main conversation
	waiting   bool                // a request was sent and no message began
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
	case e.Type == "system" && e.Subtype == "status" && e.Status == "requesting":
		m.waiting = true
	case e.Type == "assistant" && e.Synthetic:
		m.waiting = false // it tells that the request failed
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
			m.current, m.waiting = msg, false
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
	s := runner.Spend{Source: "none", ByModel: map[string]money.Usage{}, Open: m.waiting}
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
