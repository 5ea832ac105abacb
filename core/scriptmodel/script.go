// Package scriptmodel is a model without a mind: it speaks the Anthropic Messages API and plays a script. Tests and
// the demo mission run the real agent program against it, several agents at once, without an account and without cost.
package scriptmodel

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Script says what is answered to whom.
type Script struct {
	Rules []Rule `json:"rules"` // the first rule that fits a conversation's first request answers the whole conversation
}

// Rule is one lane of the script.
type Rule struct {
	Name  string   `json:"name,omitempty"`  // for logs and counts; default "rule N", counted from 1
	When  []string `json:"when,omitempty"`  // texts that must all be in the system prompt or the messages; none: fits always
	Not   []string `json:"not,omitempty"`   // texts none of which may be in them
	Steps []Step   `json:"steps"`           // the k-th request of a conversation gets the k-th step; a retry is a request too
	After string   `json:"after,omitempty"` // when the steps are used up: "last" (default) repeats the last, "fail" refuses
}

// Step is one answer. Texts in Content, Structured, Raw, RawToolInput and ErrMsg may hold placeholders: {{cwd}}, the
// working folder that the request names; {{session}}, the conversation; {{match:RE}}, what the regular expression (its
// first group, if it has one) matched last in the request.
type Step struct {
	Content     []map[string]any `json:"content,omitempty"`      // blocks: text, thinking, tool_use
	Structured  json.RawMessage  `json:"structured,omitempty"`   // a structured answer, given the way the request offers
	StopReason  string           `json:"stop_reason,omitempty"`  // default "tool_use" or "end_turn"
	StopDetails map[string]any   `json:"stop_details,omitempty"` //
	Model       string           `json:"model,omitempty"`        // default: the one asked for
	Usage       map[string]any   `json:"usage,omitempty"`        // over 100 input and 10 output tokens; output is no more than what was asked for

	Status  int               `json:"status,omitempty"` // from 400 on: an error of the API
	ErrType string            `json:"err_type,omitempty"`
	ErrMsg  string            `json:"err_msg,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
	Raw     string            `json:"raw,omitempty"` // the whole body, sent as it is

	DelayMS     int  `json:"delay_ms,omitempty"`      // before anything is sent
	GapMS       int  `json:"gap_ms,omitempty"`        // between two events of a stream
	ChunkBytes  int  `json:"chunk_bytes,omitempty"`   // texts in pieces of so many bytes, never inside a character
	HangHeaders bool `json:"hang_headers,omitempty"`  // accept and never answer
	HangAfter   int  `json:"hang_after,omitempty"`    // fall silent after N events
	PingEveryMS int  `json:"ping_every_ms,omitempty"` // but ping meanwhile
	TruncAfter  int  `json:"trunc_after,omitempty"`   // reset the connection after N events
	EndAfter    int  `json:"end_after,omitempty"`     // end the body cleanly after N events
	ErrorAfter  int  `json:"error_after,omitempty"`   // send ErrType and ErrMsg as an event after N events
	DropConn    bool `json:"drop_conn,omitempty"`     // close the connection without a byte

	RawToolInput string `json:"raw_tool_input,omitempty"` // streamed as the input of every tool_use, whatever it is
}

// Parse reads a script and checks it. A key that does not exist is an error.
func Parse(b []byte) (Script, error) {
	var s Script
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return Script{}, fmt.Errorf("parse script: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return Script{}, errors.New("parse script: something follows it")
	}
	return s, s.check()
}

func (s Script) check() error {
	if len(s.Rules) == 0 {
		return errors.New("script: no rules")
	}
	for i, r := range s.Rules {
		if len(r.Steps) == 0 {
			return fmt.Errorf("script: %s has no steps", r.name(i))
		}
		if r.After != "" && r.After != "last" && r.After != "fail" {
			return fmt.Errorf("script: %s: after is %q, not last or fail", r.name(i), r.After)
		}
		for k, st := range r.Steps {
			if err := st.check(); err != nil {
				return fmt.Errorf("script: %s, step %d: %w", r.name(i), k+1, err)
			}
		}
	}
	return nil
}

func (s Step) check() error {
	if s.Status != 0 && (s.Status < 200 || s.Status > 599) {
		return fmt.Errorf("status %d", s.Status)
	}
	if s.Status != 0 && s.Status < 400 && s.Raw == "" {
		return fmt.Errorf("status %d needs a raw body", s.Status)
	}
	for _, b := range s.Content {
		if _, ok := b["type"].(string); !ok {
			return errors.New("a content block without a type")
		}
	}
	if s.Structured != nil && !json.Valid(s.Structured) {
		return errors.New("structured is not JSON")
	}
	return nil
}

func (r Rule) name(i int) string {
	if r.Name != "" {
		return r.Name
	}
	return fmt.Sprintf("rule %d", i+1)
}

// fits says whether the rule answers a conversation that begins with this text.
func (r Rule) fits(text string) bool {
	for _, w := range r.When {
		if !strings.Contains(text, w) {
			return false
		}
	}
	for _, w := range r.Not {
		if strings.Contains(text, w) {
			return false
		}
	}
	return true
}

// step is the answer to the k-th request, counted from 0; false when the steps are used up.
func (r Rule) step(k int) (Step, bool) {
	if k < len(r.Steps) {
		return r.Steps[k], true
	}
	return r.Steps[len(r.Steps)-1], r.After != "fail"
}
