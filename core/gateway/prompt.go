package gateway

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

const (
	// window is the largest prompt that a model takes. It bounds a prompt whose tokens its bytes do not bound.
	window = 1_000_000
	// imageTokens is more than one picture counts, which is made smaller to 4,784 at most.
	imageTokens = 5_000
	// toolTokens is more than what the service writes into a prompt by itself to explain tools or a form of answers.
	toolTokens = 1_000
)

// walker goes through the content of a request.
type walker struct {
	ask       *ask
	tools     int64 // bytes of the tools
	unbounded bool  // there is something whose tokens its bytes do not bound
	last      mark
}

// head looks at everything that stands before the messages and sums up what must be the same in the next request.
func (w *walker) head(fields map[string]json.RawMessage) error {
	w.ask.prompt.whole = int64(len(w.ask.body))
	if raw := fields["tools"]; raw != nil && string(raw) != "null" {
		tools, err := elements(raw)
		if err != nil {
			return fmt.Errorf("tools: %w", err)
		}
		for _, t := range tools {
			if err := w.tool(t); err != nil {
				return err
			}
		}
		if len(tools) > 0 {
			w.ask.prompt.whole += toolTokens
		}
	} else if fields["output_config"] != nil || fields["output_format"] != nil {
		w.ask.prompt.whole += toolTokens
	}
	if raw := fields["system"]; len(raw) > 0 && raw[0] == '[' {
		blocks, err := elements(raw)
		if err != nil {
			return fmt.Errorf("system: %w", err)
		}
		for _, b := range blocks {
			_, extra, err := w.block(b)
			if err != nil {
				return fmt.Errorf("system: %w", err)
			}
			w.ask.prompt.whole += extra
		}
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if !slices.Contains(unlike, name) {
			w.last = digest(w.last, []byte(name), fields[name])
		}
	}
	return nil
}

// tool allows the tools that the program runs itself. One that the service runs can answer itself many times over, and
// what that costs is known only afterwards.
func (w *walker) tool(raw json.RawMessage) error {
	fields, _, err := members(raw)
	if err != nil {
		return fmt.Errorf("tools: %w", err)
	}
	if kind, ok := fields["type"]; ok && string(kind) != "null" && text(kind) != "custom" {
		return fmt.Errorf("the tool %.60s is not forwarded: the service runs it, and what that costs cannot be bounded before", kind)
	}
	if cache, ok := fields["cache_control"]; ok {
		w.cache(cache)
	}
	return nil
}

// cache notes which cache is written to.
func (w *walker) cache(raw json.RawMessage) {
	if string(raw) == "null" {
		return
	}
	w.ask.cached = true
	fields, _, err := members(raw)
	if ttl, ok := fields["ttl"]; err != nil || ok && text(ttl) != "5m" {
		w.ask.hour = true
	}
}

func (w *walker) messages(raw json.RawMessage) error {
	all, err := elements(raw)
	if err != nil {
		return fmt.Errorf("messages: %w", err)
	}
	for _, m := range all {
		if err := w.message(m); err != nil {
			return fmt.Errorf("messages: %w", err)
		}
	}
	return nil
}

// message adds the blocks of a message. A text in the place of blocks is one block of that text: the program writes it
// either way, depending on where it puts its cache marks.
func (w *walker) message(raw json.RawMessage) error {
	fields, _, err := members(raw)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		switch name {
		case "content":
			continue
		case "role", "output_config":
		default:
			w.unbounded = true
		}
		w.last = digest(w.last, []byte(name), fields[name])
	}
	content := fields["content"]
	if len(content) == 0 {
		return errors.New("a message without content")
	}
	if content[0] == '"' {
		w.add(digest(w.last, []byte("text"), content, []byte("type"), []byte(`"text"`)), int64(len(raw)))
		return nil
	}
	blocks, err := elements(content)
	if err != nil {
		return err
	}
	frame := int64(len(raw))
	for _, b := range blocks {
		frame -= int64(len(b))
	}
	for _, b := range blocks {
		parts, extra, err := w.block(b)
		if err != nil {
			return err
		}
		w.ask.prompt.whole += extra
		w.add(digest(w.last, parts...), int64(len(b))+extra+frame)
		frame = 0
	}
	if len(blocks) == 0 {
		w.add(digest(w.last, content), frame)
	}
	return nil
}

func (w *walker) add(m mark, size int64) {
	w.last = m
	w.ask.prompt.marks = append(w.ask.prompt.marks, m)
	w.ask.prompt.sizes = append(w.ask.prompt.sizes, size)
}

// block looks at a block of content. parts are what it says, without the mark for the cache, which moves on with each
// request; extra is how many tokens it can have beyond its bytes.
func (w *walker) block(raw json.RawMessage) (parts [][]byte, extra int64, err error) {
	fields, _, err := members(raw)
	if err != nil {
		return nil, 0, err
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if name == "cache_control" {
			w.cache(fields[name])
			continue
		}
		parts = append(parts, []byte(name), fields[name])
	}
	switch text(fields["type"]) {
	case "text", "thinking", "redacted_thinking", "tool_use":
		return parts, 0, nil
	case "image":
		return parts, imageTokens, nil
	case "tool_result":
		extra, err = w.inner(fields["content"])
		return parts, extra, err
	case "document":
		source, err := typeOf(fields["source"])
		if err != nil {
			return nil, 0, err
		}
		if source != "text" {
			w.unbounded = true // few bytes can hold many pages
		}
		return parts, 0, nil
	case "tool_reference": // shows a tool that was kept back until now
		return parts, w.tools, nil
	case "tool_addition":
		return parts, w.tools, w.addition(fields["tool"])
	case "tool_removal":
		return parts, 0, nil
	}
	w.unbounded, w.ask.cached, w.ask.hour = true, true, true
	return parts, 0, nil
}

// inner is the extra of what a tool answered.
func (w *walker) inner(content json.RawMessage) (extra int64, err error) {
	if len(content) == 0 || content[0] != '[' {
		return 0, nil
	}
	blocks, err := elements(content)
	if err != nil {
		return 0, err
	}
	for _, b := range blocks {
		kind, err := typeOf(b)
		if err != nil {
			return 0, err
		}
		if strings.HasPrefix(kind, "tool_result") {
			return 0, errors.New("an answer of a tool inside another")
		}
		_, more, err := w.block(b)
		if err != nil {
			return 0, err
		}
		extra += more
	}
	return extra, nil
}

// addition is a tool that is added in the middle of a conversation.
func (w *walker) addition(raw json.RawMessage) error {
	fields, _, err := members(raw)
	if err != nil {
		return err
	}
	if definition, ok := fields["definition"]; ok {
		return w.tool(definition)
	}
	return nil
}
