package claude

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"example.com/AutoAgentProject/core/runner"
	"example.com/AutoAgentProject/core/usage"
)

// watch tells a person what an event shows of the run's life.
func (r *run) watch(e *event, now time.Time) {
	if r.job.Event == nil {
		return
	}
	for _, t := range describe(e) {
		if t.Kind != "output" {
			r.tell(runner.Event{At: now, Kind: t.Kind, Text: oneLine(t.Text), Tool: t.Tool, Input: t.Input})
		}
	}
	if now.Sub(r.told) >= time.Second {
		r.tell(runner.Event{At: now, Kind: "alive"})
	}
	if e.Type == "stream_event" && e.Stream != nil && e.Stream.Type == "message_delta" {
		r.tell(runner.Event{At: now, Kind: "usage", Text: oneLine(r.spent())})
	}
}

func (r *run) tell(e runner.Event) {
	r.told = e.At
	r.job.Event(e)
}

// describe says in words what an event shows, in full length.
func describe(e *event) []runner.Event {
	one := func(kind, text string) []runner.Event { return []runner.Event{{Kind: kind, Text: text}} }
	switch {
	case e.Type == "system" && e.Subtype == "init":
		return one("start", e.Model)
	case e.Type == "system" && e.Subtype == "api_retry":
		return one("retry", fmt.Sprintf("attempt %d: %s (status %d)", e.Attempt, e.Error, e.HTTPStatus))
	case e.Type == "assistant" && e.Message != nil && e.Message.Model != usage.Synthetic, e.Type == "user" && e.Message != nil:
		var out []runner.Event
		for _, b := range e.Message.blocks() {
			switch b.Type {
			case "tool_use":
				out = append(out, runner.Event{Kind: "tool", Text: b.Name + " " + brief(b.Input), Tool: oneLine(b.Name), Input: digest(b.Input)})
			case "text":
				out = append(out, runner.Event{Kind: "text", Text: b.Text})
			case "tool_result":
				out = append(out, runner.Event{Kind: "output", Text: b.output()})
			}
		}
		return out
	case e.Type == "rate_limit_event" && e.Limit != nil:
		return one("limit", e.Limit.Type+" "+e.Limit.Status)
	case e.Type == "result":
		return one("result", e.Subtype+" "+e.Result)
	}
	return nil
}

// Describe reads a transcript and tells each what happened, in order and in full length.
func (c *Claude) Describe(transcript io.Reader, each func(runner.Event)) error {
	at := time.Time{}
	return readLines(transcript, func(line []byte) bool {
		if e, ok := decode(line); ok {
			at = e.at(at)
			for _, t := range describe(&e) {
				t.At = at
				each(t)
			}
		}
		return true
	})
}

// brief is what of a tool's input tells the most.
func brief(input json.RawMessage) string {
	var in map[string]any
	if json.Unmarshal(input, &in) != nil {
		return ""
	}
	for _, k := range []string{"file_path", "notebook_path", "command", "pattern", "url", "query", "description", "path"} {
		if s, ok := in[k].(string); ok {
			return s
		}
	}
	return ""
}

// digest names the input of a tool, however its keys are ordered.
func digest(input json.RawMessage) string {
	var v any
	if json.Unmarshal(input, &v) == nil {
		if b, err := json.Marshal(v); err == nil {
			input = b
		}
	}
	sum := sha256.Sum256(input)
	return hex.EncodeToString(sum[:12])
}

// spent is what the stream shows so far.
func (r *run) spent() string {
	nano, tokens := r.meter.running()
	return fmt.Sprintf("%d tokens, $%s", tokens, dollars(nano))
}

// output is what a tool answered: its text, or the texts of its blocks.
func (b block) output() string {
	var text string
	if json.Unmarshal(b.Content, &text) == nil {
		return text
	}
	var blocks []block
	if json.Unmarshal(b.Content, &blocks) != nil {
		return ""
	}
	var out []string
	for _, x := range blocks {
		out = append(out, x.Text)
	}
	return strings.Join(out, "\n")
}
