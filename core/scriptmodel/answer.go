package scriptmodel

import (
	"encoding/json"
	"fmt"
	"slices"
)

// The tool by which the claude program asks for a structured answer.
const structuredTool = "StructuredOutput"

// Usage counts the tokens of an answer, or of several.
type Usage struct {
	Input        int64 `json:"input"`
	Output       int64 `json:"output"`
	CacheWrite5m int64 `json:"cache_write_5m"`
	CacheWrite1h int64 `json:"cache_write_1h"`
	CacheRead    int64 `json:"cache_read"`
}

// Tokens is the sum of all classes.
func (u Usage) Tokens() int64 {
	return u.Input + u.Output + u.CacheWrite5m + u.CacheWrite1h + u.CacheRead
}

func (u Usage) add(v Usage) Usage {
	return Usage{u.Input + v.Input, u.Output + v.Output, u.CacheWrite5m + v.CacheWrite5m,
		u.CacheWrite1h + v.CacheWrite1h, u.CacheRead + v.CacheRead}
}

// message is a step made ready for one request.
type message struct {
	id      string
	model   string
	content []map[string]any
	stop    string
	details map[string]any
	usage   map[string]any // as the API tells it
}

// compose makes the answer; id names it and, numbered, its tool calls.
func compose(st Step, r Request, id string) (message, error) {
	m := message{id: "msg_" + id, model: st.Model, stop: st.StopReason, details: st.StopDetails}
	if m.model == "" {
		m.model = r.Model
	}
	for _, b := range st.Content {
		filled, err := r.fill(b)
		if err != nil {
			return message{}, err
		}
		m.content = append(m.content, filled.(map[string]any))
	}
	if st.Structured != nil {
		b, err := structured(st.Structured, r)
		if err != nil {
			return message{}, err
		}
		m.content = append(m.content, b)
	}
	calls := false
	for i, b := range m.content {
		if b["type"] == "tool_use" {
			calls = true
			if b["id"] == nil {
				b["id"] = fmt.Sprintf("toolu_%s_%d", id, i)
			}
			if b["input"] == nil {
				b["input"] = map[string]any{}
			}
		}
	}
	if m.stop == "" && calls {
		m.stop = "tool_use"
	} else if m.stop == "" {
		m.stop = "end_turn"
	}
	m.usage = map[string]any{"input_tokens": 100, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 10}
	for k, v := range st.Usage {
		m.usage[k] = v
	}
	if r.MaxTokens > 0 && integer(m.usage["output_tokens"]) > r.MaxTokens { // as the service does
		m.usage["output_tokens"] = r.MaxTokens
	}
	return m, nil
}

// structured gives the value by the tool that the request offers for it, else as text.
func structured(v json.RawMessage, r Request) (map[string]any, error) {
	var value any
	if err := json.Unmarshal(v, &value); err != nil {
		return nil, fmt.Errorf("structured: %w", err)
	}
	value, err := r.fill(value)
	if err != nil {
		return nil, err
	}
	if slices.Contains(r.Tools, structuredTool) {
		return map[string]any{"type": "tool_use", "name": structuredTool, "input": value}, nil
	}
	b, err := json.Marshal(value)
	return map[string]any{"type": "text", "text": string(b)}, err
}

// whole is the message as one JSON value.
func (m message) whole() map[string]any {
	content := m.content
	if content == nil {
		content = []map[string]any{}
	}
	return map[string]any{"id": m.id, "type": "message", "role": "assistant", "model": m.model, "content": content,
		"stop_reason": m.stop, "stop_sequence": nil, "usage": m.usage}
}

// opening is the usage that message_start tells: all that went in, one token out.
func (m message) opening() map[string]any {
	u := make(map[string]any, len(m.usage))
	for k, v := range m.usage {
		u[k] = v
	}
	u["output_tokens"] = 1
	return u
}

// counted reads a usage as the API tells it. A cache write without a lifetime counts for five minutes.
func counted(u map[string]any) Usage {
	split, _ := u["cache_creation"].(map[string]any)
	c := Usage{
		Input: integer(u["input_tokens"]), Output: integer(u["output_tokens"]), CacheRead: integer(u["cache_read_input_tokens"]),
		CacheWrite5m: integer(split["ephemeral_5m_input_tokens"]), CacheWrite1h: integer(split["ephemeral_1h_input_tokens"]),
	}
	if rest := integer(u["cache_creation_input_tokens"]) - c.CacheWrite5m - c.CacheWrite1h; rest > 0 {
		c.CacheWrite5m += rest
	}
	return c
}

func integer(v any) int64 {
	switch v := v.(type) {
	case int:
		return int64(v)
	case int64:
		return v
	case float64:
		return int64(v)
	}
	return 0
}
