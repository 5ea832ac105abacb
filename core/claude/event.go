package claude

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"example.com/AutoAgentProject/core/usage"
)

// event is one line of the program's output, of whatever type; only what is used is read.
type event struct {
	Type      string `json:"type"`
	Subtype   string `json:"subtype"`
	SessionID string `json:"session_id"`
	Parent    string `json:"parent_tool_use_id"` // not empty: from a subagent
	Timestamp string `json:"timestamp"`
	UUID      string `json:"uuid"`

	hello
	answer
	apiFailure

	Status     string       `json:"status"`               // system/status
	ToolName   string       `json:"tool_name"`            // system/permission_denied
	ToolUseID  string       `json:"tool_use_id"`          //
	Attempt    usage.Number `json:"attempt"`              // system/api_retry
	HTTPStatus usage.Number `json:"error_status"`         //
	Thought    usage.Number `json:"estimated_tokens"`     // system/thinking_tokens
	Message    *reply       `json:"message"`              // assistant
	Stream     *sse         `json:"event"`                // stream_event
	Limit      *limit       `json:"rate_limit_info"`      // rate_limit_event
	Params     *failure     `json:"api_error_params"`     // assistant that tells an API error
	Synthetic  bool         `json:"is_api_error_message"` //
	Denials    []denial     `json:"permission_denials"`   // result
	APIMessage string       `json:"api_message_id"`       // stream_event
}

// hello is what system/init says about the run that begins.
type hello struct {
	Cwd            string   `json:"cwd"`
	Tools          []string `json:"tools"`
	Servers        []server `json:"mcp_servers"`
	Model          string   `json:"model"`
	PermissionMode string   `json:"permissionMode"`
	KeySource      string   `json:"apiKeySource"`
	FastMode       string   `json:"fast_mode_state"`
}

type server struct {
	Name string `json:"name"`
}

// answer is what a result says. IsError is kept as it came: only a plain false is a good sign.
type answer struct {
	IsError    json.RawMessage             `json:"is_error"`
	Result     string                      `json:"result"`
	Errors     []string                    `json:"errors"`
	Terminal   string                      `json:"terminal_reason"`
	StopReason string                      `json:"stop_reason"`
	Structured json.RawMessage             `json:"structured_output"`
	Models     map[string]usage.ModelTotal `json:"modelUsage"`
}

// apiFailure are the fields by which a result, or the assistant event before it, tells a failed request.
type apiFailure struct {
	APIStatus usage.Number `json:"api_error_status"`
	APIError  string       `json:"api_error"`
	Error     string       `json:"error"`
}

type failure struct {
	Limit *limit `json:"rate_limit_info"`
}

type denial struct {
	ToolName  string `json:"tool_name"`
	ToolUseID string `json:"tool_use_id"`
}

// reply is a message of the model, or its beginning.
type reply struct {
	ID      string          `json:"id"`
	Model   string          `json:"model"`
	Usage   *usage.Tokens   `json:"usage"`
	Content json.RawMessage `json:"content"`
}

type block struct {
	Type  string          `json:"type"`
	Text  string          `json:"text"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`

	Content json.RawMessage `json:"content"` // tool_result
}

// sse is an event of the Messages API as the program received it.
type sse struct {
	Type    string       `json:"type"`
	Message *reply       `json:"message"`
	Usage   usage.Tokens `json:"usage"`
	Delta   struct {
		Text       string `json:"text"`
		Thinking   string `json:"thinking"`
		Input      string `json:"partial_json"`
		StopReason string `json:"stop_reason"`
	} `json:"delta"`
}

// limit is what the service says about an account's usage windows.
type limit struct {
	Status     string            `json:"status"`
	ResetsAt   usage.Number      `json:"resetsAt"`
	Type       string            `json:"rateLimitType"`
	Overage    bool              `json:"isUsingOverage"`
	OverageNow bool              `json:"overageInUse"`
	Windows    map[string]window `json:"unifiedWindows"`
}

type window struct {
	Status   string       `json:"status"`
	ResetsAt usage.Number `json:"resetsAt"`
}

// decode reads one line. It is false for what is not an event: broken JSON, no object, no type. A field of the wrong
// kind stays empty; the rest of its event counts.
func decode(line []byte) (event, bool) {
	line = bytes.TrimSpace(bytes.ToValidUTF8(line, []byte("\uFFFD")))
	if len(line) == 0 || line[0] != '{' {
		return event{}, false
	}
	var e event
	err := json.Unmarshal(line, &e)
	var kind *json.UnmarshalTypeError
	if err != nil && !errors.As(err, &kind) {
		return event{}, false
	}
	return e, e.Type != ""
}

// says reads IsError: good, bad, or, when both are false, neither.
func (a *answer) says() (good, bad bool) {
	return string(a.IsError) == "false", string(a.IsError) == "true"
}

// at is the time the event tells, or the other one.
func (e *event) at(other time.Time) time.Time {
	if t, err := time.Parse(time.RFC3339Nano, e.Timestamp); err == nil {
		return t
	}
	return other
}

// blocks are the content blocks of an assistant event.
func (r *reply) blocks() []block {
	var bs []block
	if json.Unmarshal(r.Content, &bs) != nil {
		return nil
	}
	return bs
}

// oneLine makes a text fit for a line of a log or a screen: no control characters, nothing that turns the direction of
// writing, white space as single blanks, at most 200 characters.
func oneLine(s string) string {
	const most = 200
	var b strings.Builder
	n, blank := 0, false
	for _, r := range s {
		switch {
		case r == ' ' || r == '\n' || r == '\t' || r == '\r':
			blank = b.Len() > 0
			continue
		case r < ' ' || r >= 0x7f && r < 0xa0, // C0, DEL, C1
			r >= 0x200e && r <= 0x200f || r >= 0x2028 && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r == 0x61c || r == 0xfeff:
			continue
		}
		if n += 1; blank {
			n++
		}
		if n > most-1 {
			b.WriteRune('…')
			break
		}
		if blank {
			b.WriteByte(' ')
		}
		blank = false
		b.WriteRune(r)
	}
	return b.String()
}
