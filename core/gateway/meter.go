package gateway

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"

	"example.com/AutoAgentProject/core/money"
)

// Meter counts one response while it passes. It never changes what passes.
type Meter interface {
	Event(data []byte) // the data of the next server-sent event of a stream; not kept
	Body(data []byte)  // the whole body of an answer that is no stream; nil: it was too large
	Lost()             // an event was too long to be read
	Count() Count      // what is known by now
}

// Count is what is known of a response.
type Count struct {
	Model    string      // that answered; empty: not told
	Usage    money.Usage //
	Fast     bool        // it was answered in fast mode
	Regional bool        // it was bound to one region, which costs more
	Begun    bool        // Usage holds the whole prompt
	Final    bool        // Usage holds everything: nothing of it is an estimate
	Failed   bool        // the service said that it failed
}

// counter is the Meter for the Messages API. What it does not understand makes it unsure, never sure of less.
type counter struct {
	hour    bool // cache writes without a lifetime may be the dear ones
	count   Count
	told    tokens
	id      string
	damaged bool // something that may have told a usage was not understood
	output  bool // the whole output was told
	ended   bool // by a reason to stop, or by the end event
}

// newCounter makes the built-in meter. hour: the request asks for cache entries that live for an hour.
func newCounter(hour bool) Meter { return &counter{hour: hour} }

// reply is a message of the API, as far as its cost goes.
type reply struct {
	ID    string          `json:"id"`
	Type  string          `json:"type"`
	Model string          `json:"model"`
	Usage json.RawMessage `json:"usage"`
}

func (c *counter) Event(data []byte) {
	// Most events are pieces of text. The few that count have such a name; a text that holds it is told apart below.
	if !bytes.Contains(data, []byte("message_")) && !bytes.Contains(data, []byte(`error`)) {
		return
	}
	var e struct {
		Type    string          `json:"type"`
		Message reply           `json:"message"`
		Usage   json.RawMessage `json:"usage"`
		Delta   struct {
			StopReason string `json:"stop_reason"`
		} `json:"delta"`
	}
	if err := json.Unmarshal(data, &e); err != nil {
		c.damaged = true
		return
	}
	switch e.Type {
	case "message_start":
		if c.count.Begun || c.id != "" {
			c.damaged = true // one response has one message
			return
		}
		c.id, c.count.Model = e.Message.ID, e.Message.Model
		if u, ok := c.usage(e.Message.Usage); ok && u.Input != nil {
			c.count.Begun = true
		}
	case "message_delta":
		u, ok := c.usage(e.Usage)
		c.output = c.output || ok && u.Output != nil
		c.ended = c.ended || e.Delta.StopReason != ""
	case "message_stop":
		c.ended = true
	case "error":
		c.count.Failed = true
	}
}

func (c *counter) Body(data []byte) {
	var r reply
	if data == nil || json.Unmarshal(data, &r) != nil || r.Type != "message" {
		c.damaged = true
		return
	}
	c.count.Model = r.Model
	u, ok := c.usage(r.Usage)
	c.count.Begun = ok && u.Input != nil
	c.output = ok && u.Output != nil
	c.ended = true
}

// Lost says that an event could not be read whole.
func (c *counter) Lost() { c.damaged = true }

func (c *counter) Count() Count {
	n := c.count
	n.Usage = c.told.usage(c.hour)
	n.Final = n.Begun && c.output && c.ended && !c.damaged && !n.Failed
	return n
}

// usage takes in what was told; a later word on a field counts if it is larger.
func (c *counter) usage(raw json.RawMessage) (u tokens, ok bool) {
	if len(raw) == 0 || bytes.Equal(raw, []byte("null")) {
		return u, false
	}
	if err := json.Unmarshal(raw, &u); err != nil {
		c.damaged = true
		return tokens{}, false
	}
	c.told = c.told.most(u)
	c.count.Fast = c.count.Fast || u.Speed == "fast"
	c.count.Regional = c.count.Regional || regionalGeo(u.Geo)
	return u, true
}

// regionalGeo says whether a place of inference is one that costs more. No place and "not_available" are no word on it.
func regionalGeo(geo string) bool { return geo != "" && geo != "global" && geo != "not_available" }

// tokens is a usage as the Messages API tells it; nil: not told.
type tokens struct {
	Input     *number `json:"input_tokens"`
	Output    *number `json:"output_tokens"`
	CacheRead *number `json:"cache_read_input_tokens"`
	Written   *number `json:"cache_creation_input_tokens"`
	Split     struct {
		For5m *number `json:"ephemeral_5m_input_tokens"`
		For1h *number `json:"ephemeral_1h_input_tokens"`
	} `json:"cache_creation"`
	Server struct {
		Searches *number `json:"web_search_requests"`
	} `json:"server_tool_use"`
	Speed string `json:"speed"`
	Geo   string `json:"inference_geo"`
}

func (t tokens) most(o tokens) tokens {
	t.Input, t.Output = larger(t.Input, o.Input), larger(t.Output, o.Output)
	t.CacheRead, t.Written = larger(t.CacheRead, o.CacheRead), larger(t.Written, o.Written)
	t.Split.For5m, t.Split.For1h = larger(t.Split.For5m, o.Split.For5m), larger(t.Split.For1h, o.Split.For1h)
	t.Server.Searches = larger(t.Server.Searches, o.Server.Searches)
	return t
}

func larger(a, b *number) *number {
	if a == nil || b != nil && *b > *a {
		return b
	}
	return a
}

func (t tokens) usage(hour bool) money.Usage {
	u := money.Usage{Input: t.Input.n(), Output: t.Output.n(), CacheRead: t.CacheRead.n(),
		CacheWrite5m: t.Split.For5m.n(), CacheWrite1h: t.Split.For1h.n(), WebSearches: t.Server.Searches.n()}
	rest := max(0, t.Written.n()-u.CacheWrite5m-u.CacheWrite1h)
	if hour {
		u.CacheWrite1h += rest
	} else {
		u.CacheWrite5m += rest
	}
	return u
}

// number is a count. What is not a whole number that can be one is an error: a price must not rest on it.
type number int64

const maxNumber = 1e12

func (n *number) UnmarshalJSON(b []byte) error {
	v, err := strconv.ParseInt(string(b), 10, 64)
	if err != nil || v < 0 || v > maxNumber {
		return fmt.Errorf("%.20q is no count", b)
	}
	*n = number(v)
	return nil
}

func (n *number) n() int64 {
	if n == nil {
		return 0
	}
	return int64(*n)
}
