package gateway

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// ask is a request for an answer, as far as its cost goes.
type ask struct {
	body      []byte
	model     string
	maxTokens int64 // output that it asks for at most
	maxAt     int   // where that number stands in the body
	maxEnd    int
	thinking  int64 // tokens of it that are set aside for thinking; the service wants maxTokens to be larger
	fast      bool
	regional  bool
	cached    bool // it may write to a cache
	hour      bool // it may write to the cache that lives for an hour
	prompt    prompt
}

// mayHold are the fields of a request that change nothing about its cost, or whose cost is bounded here. A field that
// is not known could make the service do more than answer once, so it is refused.
var mayHold = []string{"model", "messages", "system", "tools", "tool_choice", "max_tokens", "metadata", "stream", "thinking",
	"temperature", "top_p", "top_k", "stop_sequences", "service_tier", "context_management", "output_config", "output_format",
	"speed", "inference_geo", "cache_control"}

// unlike are the fields that may differ between two requests of one conversation without changing what its prompt counts.
var unlike = []string{"messages", "max_tokens", "metadata", "stream", "temperature", "top_p", "top_k", "stop_sequences", "service_tier", "inference_geo"}

// parse understands the body of a request. An error is a sentence for whoever sent it.
func parse(body []byte) (*ask, error) {
	fields, at, err := object(body)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if !slices.Contains(mayHold, name) {
			return nil, fmt.Errorf("the field %.40q is not forwarded: what it costs is not known", name)
		}
	}
	a := &ask{body: body}
	if err := json.Unmarshal(fields["model"], &a.model); err != nil || a.model == "" {
		return nil, errors.New("model: a text is required")
	}
	if a.maxTokens, err = strconv.ParseInt(string(fields["max_tokens"]), 10, 64); err != nil || a.maxTokens < 1 || a.maxTokens > maxNumber {
		return nil, errors.New("max_tokens: a whole number, 1 or more, is required")
	}
	a.maxAt = at["max_tokens"]
	a.maxEnd = a.maxAt + len(fields["max_tokens"])
	if a.fast, a.regional, err = dearer(fields); err != nil {
		return nil, err
	}
	if err := a.think(fields["thinking"]); err != nil {
		return nil, err
	}
	keep, err := contextEdits(fields["context_management"])
	if err != nil {
		return nil, err
	}
	w := walker{ask: a, tools: int64(len(fields["tools"]))}
	if cache, ok := fields["cache_control"]; ok {
		w.cache(cache)
	}
	if err := w.head(fields); err != nil {
		return nil, err
	}
	if err := w.messages(fields["messages"]); err != nil {
		return nil, err
	}
	if a.prompt.learn = keep; w.unbounded {
		a.prompt.whole = max(window, a.prompt.whole)
	}
	return a, nil
}

// dearer reads the fields that raise the price of every token.
func dearer(fields map[string]json.RawMessage) (fast, regional bool, err error) {
	var speed, geo *string
	if raw, ok := fields["speed"]; ok && json.Unmarshal(raw, &speed) != nil {
		return false, false, errors.New("speed: a text is required")
	}
	if raw, ok := fields["inference_geo"]; ok && json.Unmarshal(raw, &geo) != nil {
		return false, false, errors.New("inference_geo: a text is required")
	}
	return speed != nil && *speed != "standard", geo != nil && regionalGeo(*geo), nil
}

// think reads how many tokens are set aside for thinking.
func (a *ask) think(raw json.RawMessage) error {
	if raw == nil || string(raw) == "null" {
		return nil
	}
	fields, _, err := members(raw)
	if err != nil {
		return fmt.Errorf("thinking: %w", err)
	}
	if n, ok := fields["budget_tokens"]; ok {
		if a.thinking, err = strconv.ParseInt(string(n), 10, 64); err != nil || a.thinking < 0 || a.thinking > maxNumber {
			return errors.New("thinking: budget_tokens is no count")
		}
	}
	return nil
}

// contextEdits allows the edits of the context that only leave something out. keep is false if what they leave out can
// be tools' answers: then the count of one prompt says nothing about the next.
func contextEdits(raw json.RawMessage) (keep bool, err error) {
	if raw == nil || string(raw) == "null" {
		return true, nil
	}
	fields, _, err := members(raw)
	if err != nil {
		return false, fmt.Errorf("context_management: %w", err)
	}
	keep = true
	for name, value := range fields {
		if name != "edits" {
			return false, fmt.Errorf("context_management: the field %.40q is not forwarded: what it costs is not known", name)
		}
		edits, err := elements(value)
		if err != nil {
			return false, fmt.Errorf("context_management: %w", err)
		}
		for _, e := range edits {
			kind, err := typeOf(e)
			switch {
			case err != nil:
				return false, fmt.Errorf("context_management: %w", err)
			case kind == "clear_tool_uses_20250919":
				keep = false
			case kind != "clear_thinking_20251015":
				return false, fmt.Errorf("context_management: the edit %.40q is not forwarded: what it costs is not known", kind)
			}
		}
	}
	return keep, nil
}

// lowered is the body with another max_tokens; everything else is as it came.
func (a *ask) lowered(output int64) []byte {
	if output == a.maxTokens {
		return a.body
	}
	b := make([]byte, 0, len(a.body)+8)
	b = append(b, a.body[:a.maxAt]...)
	b = strconv.AppendInt(b, output, 10)
	return append(b, a.body[a.maxEnd:]...)
}

// digest is the sum of texts, each told apart from the next.
func digest(before [sha256.Size]byte, parts ...[]byte) (sum [sha256.Size]byte) {
	h := sha256.New()
	h.Write(before[:])
	for _, p := range parts {
		fmt.Fprintf(h, "%d:", len(p))
		h.Write(p)
	}
	return [sha256.Size]byte(h.Sum(nil))
}
