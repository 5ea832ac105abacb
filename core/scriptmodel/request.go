package scriptmodel

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// Request is one request for an answer, as the script sees it.
type Request struct {
	Seq          int      // 1 for the first of this server
	Conversation string   // the session the program names, else a hash of the first user message
	Model        string   //
	System       string   // the system prompt
	Text         string   // system prompt and all messages, tool inputs and results too
	Tools        []string // names of the tools offered
	MaxTokens    int64    //
	Stream       bool     //
	Auth         string   // how it authenticated: "api-key", "bearer" or "none"; never the secret itself
	Bytes        int      // size of the body
	Messages     int      // how many there are
}

// read understands the body of POST /v1/messages.
func read(h http.Header, body []byte) (Request, error) {
	var in struct {
		Model     string `json:"model"`
		MaxTokens int64  `json:"max_tokens"`
		Stream    bool   `json:"stream"`
		System    any    `json:"system"`
		Messages  []struct {
			Role    string `json:"role"`
			Content any    `json:"content"`
		} `json:"messages"`
		Tools []struct {
			Name string `json:"name"`
		} `json:"tools"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return Request{}, fmt.Errorf("body: %w", err)
	}
	if in.Model == "" || len(in.Messages) == 0 {
		return Request{}, errors.New("model and messages are required")
	}
	r := Request{Model: in.Model, MaxTokens: in.MaxTokens, Stream: in.Stream, Bytes: len(body), Messages: len(in.Messages)}
	var system, all strings.Builder
	texts(&system, in.System)
	r.System = system.String()
	all.WriteString(r.System)
	first := ""
	for _, m := range in.Messages {
		at := all.Len()
		texts(&all, m.Content)
		if first == "" && m.Role == "user" {
			first = all.String()[at:]
		}
	}
	r.Text = all.String()
	for _, t := range in.Tools {
		r.Tools = append(r.Tools, t.Name)
	}
	switch {
	case h.Get("X-Api-Key") != "":
		r.Auth = "api-key"
	case strings.HasPrefix(h.Get("Authorization"), "Bearer "):
		r.Auth = "bearer"
	default:
		r.Auth = "none"
	}
	if r.Conversation = h.Get("X-Claude-Code-Session-Id"); r.Conversation == "" {
		r.Conversation = fmt.Sprintf("%x", sha256.Sum256([]byte(first)))[:32]
	}
	return r, nil
}

// texts writes every text inside v, one a line.
func texts(to *strings.Builder, v any) {
	switch v := v.(type) {
	case string:
		to.WriteString(v)
		to.WriteByte('\n')
	case []any:
		for _, x := range v {
			texts(to, x)
		}
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			if k != "type" && k != "signature" && k != "cache_control" && k != "tool_use_id" {
				texts(to, v[k])
			}
		}
	}
}

// fill puts values in the place of placeholders, in every text inside v.
func (r Request) fill(v any) (any, error) {
	switch v := v.(type) {
	case string:
		return r.fillText(v)
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			y, err := r.fill(x)
			if err != nil {
				return nil, err
			}
			out[i] = y
		}
		return out, nil
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, x := range v {
			y, err := r.fill(x)
			if err != nil {
				return nil, err
			}
			out[k] = y
		}
		return out, nil
	}
	return v, nil
}

func (r Request) fillText(s string) (string, error) {
	var out strings.Builder
	for {
		before, rest, ok := strings.Cut(s, "{{")
		name, after, closed := strings.Cut(rest, "}}")
		if !ok || !closed {
			out.WriteString(s)
			return out.String(), nil
		}
		out.WriteString(before)
		switch pattern, isMatch := strings.CutPrefix(name, "match:"); {
		case name == "session":
			out.WriteString(r.Conversation)
		case name == "cwd":
			pattern, isMatch = `(?m)^ *-? *Primary working directory: (.+)$`, true
			fallthrough
		case isMatch:
			found, err := r.match(pattern)
			if err != nil {
				return "", fmt.Errorf("placeholder {{%s}}: %w", name, err)
			}
			out.WriteString(found)
		default: // not ours
			out.WriteString("{{" + name + "}}")
		}
		s = after
	}
}

func (r Request) match(pattern string) (string, error) {
	re, err := regexp.Compile(pattern)
	if err != nil {
		return "", err
	}
	all := re.FindAllStringSubmatch(r.Text, -1)
	if len(all) == 0 {
		return "", errors.New("nothing in the request matches")
	}
	m := all[len(all)-1]
	return m[min(1, len(m)-1)], nil
}
