package claude

import (
	"encoding/json"
	"fmt"
	"time"

	"example.com/AutoAgentProject/core/runner"
)

// watch tells a person what an event shows of the run's life.
func (r *run) watch(e *event, now time.Time) {
	if r.job.Event == nil {
		return
	}
	tell := func(kind, text string) { r.job.Event(runner.Event{At: now, Kind: kind, Text: oneLine(text)}) }
	switch {
	case e.Type == "system" && e.Subtype == "init":
		tell("start", e.Model)
	case e.Type == "system" && e.Subtype == "api_retry":
		tell("retry", fmt.Sprintf("attempt %d: %s (status %d)", e.Attempt, e.Error, e.HTTPStatus))
	case e.Type == "assistant" && e.Message != nil && e.Message.Model != synthetic:
		for _, b := range e.Message.blocks() {
			switch b.Type {
			case "tool_use":
				tell("tool", b.Name+" "+brief(b.Input))
			case "text":
				tell("text", b.Text)
			}
		}
	case e.Type == "stream_event" && e.Stream != nil && e.Stream.Type == "message_delta":
		tell("usage", r.spent())
	case e.Type == "rate_limit_event" && e.Limit != nil:
		tell("limit", e.Limit.Type+" "+e.Limit.Status)
	case e.Type == "result":
		tell("result", e.Subtype+" "+e.Result)
	}
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

// spent is what the stream shows so far.
func (r *run) spent() string {
	nano, tokens := r.meter.running()
	return fmt.Sprintf("%d tokens, $%s", tokens, dollars(nano))
}
