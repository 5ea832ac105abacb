package scriptmodel

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"
	"unicode/utf8"
)

type event struct {
	name string
	data map[string]any
}

// events are the message as the API streams it.
func (m message) events(st Step) []event {
	head := m.whole()
	head["content"], head["stop_reason"], head["usage"] = []any{}, nil, m.opening()
	out := []event{{"message_start", map[string]any{"message": head}}}
	for i, b := range m.content {
		start, deltas := pieces(b, st)
		out = append(out, event{"content_block_start", map[string]any{"index": i, "content_block": start}})
		for _, d := range deltas {
			out = append(out, event{"content_block_delta", map[string]any{"index": i, "delta": d}})
		}
		out = append(out, event{"content_block_stop", map[string]any{"index": i}})
	}
	delta := map[string]any{"stop_reason": m.stop, "stop_sequence": nil}
	if m.details != nil {
		delta["stop_details"] = m.details
	}
	return append(out,
		event{"message_delta", map[string]any{"delta": delta, "usage": m.usage}},
		event{"message_stop", map[string]any{}})
}

// pieces splits a block into its beginning and what follows bit by bit.
func pieces(b map[string]any, st Step) (start map[string]any, deltas []map[string]any) {
	switch b["type"] {
	case "text":
		text, _ := b["text"].(string)
		for _, c := range chunks(text, st.ChunkBytes) {
			deltas = append(deltas, map[string]any{"type": "text_delta", "text": c})
		}
		return map[string]any{"type": "text", "text": ""}, deltas
	case "thinking":
		text, _ := b["thinking"].(string)
		for _, c := range chunks(text, st.ChunkBytes) {
			deltas = append(deltas, map[string]any{"type": "thinking_delta", "thinking": c})
		}
		deltas = append(deltas, map[string]any{"type": "signature_delta", "signature": "c2NyaXB0"})
		return map[string]any{"type": "thinking", "thinking": "", "signature": ""}, deltas
	case "tool_use":
		in, _ := json.Marshal(b["input"]) // it came from JSON
		if st.RawToolInput != "" {
			in = []byte(st.RawToolInput)
		}
		for _, c := range chunks(string(in), st.ChunkBytes) {
			deltas = append(deltas, map[string]any{"type": "input_json_delta", "partial_json": c})
		}
		return map[string]any{"type": "tool_use", "id": b["id"], "name": b["name"], "input": map[string]any{}}, deltas
	}
	return b, nil
}

// chunks cuts s into pieces of at most n bytes, but never inside a character.
func chunks(s string, n int) []string {
	if n <= 0 {
		return []string{s}
	}
	var out []string
	for len(s) > n {
		cut := n
		for cut > 0 && !utf8.RuneStart(s[cut]) {
			cut--
		}
		if cut == 0 {
			_, cut = utf8.DecodeRuneInString(s)
		}
		out, s = append(out, s[:cut]), s[cut:]
	}
	if s != "" || out == nil {
		out = append(out, s)
	}
	return out
}

// stream sends the events in the manner of the step and returns what the reader could count by then.
func stream(w http.ResponseWriter, r *http.Request, st Step, m message) Usage {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	w.Header().Set("Cache-Control", "no-cache")
	w.WriteHeader(http.StatusOK)
	flush := http.NewResponseController(w).Flush
	_ = flush() // a reader that is gone is noticed by the request's context
	var told Usage
	for n, e := range m.events(st) {
		switch {
		case st.ErrorAfter > 0 && n == st.ErrorAfter:
			b, _ := json.Marshal(apiError(st.ErrType, st.ErrMsg))
			fmt.Fprintf(w, "event: error\ndata: %s\n\n", b)
			return told
		case st.EndAfter > 0 && n == st.EndAfter:
			return told
		case st.TruncAfter > 0 && n == st.TruncAfter:
			drop(w)
			return told
		case st.HangAfter > 0 && n == st.HangAfter:
			hang(w, r, st.PingEveryMS)
			return told
		}
		e.data["type"] = e.name
		b, _ := json.Marshal(e.data)
		if _, err := fmt.Fprintf(w, "event: %s\ndata: %s\n\n", e.name, b); err != nil || flush() != nil {
			return told
		}
		switch e.name {
		case "message_start":
			told = counted(m.opening())
		case "message_delta":
			told = counted(m.usage)
		}
		if !pause(r, st.GapMS) {
			return told
		}
	}
	return told
}

// hang stays connected until the reader goes away.
func hang(w http.ResponseWriter, r *http.Request, pingMS int) {
	if pingMS <= 0 {
		<-r.Context().Done()
		return
	}
	for pause(r, pingMS) {
		fmt.Fprint(w, "event: ping\ndata: {\"type\":\"ping\"}\n\n")
		if http.NewResponseController(w).Flush() != nil {
			return
		}
	}
}

// drop closes the connection in the middle of whatever was said.
func drop(w http.ResponseWriter) {
	if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
		_ = conn.Close()
	}
}

// pause waits and says whether the reader is still there.
func pause(r *http.Request, ms int) bool {
	if ms <= 0 {
		return r.Context().Err() == nil
	}
	t := time.NewTimer(time.Duration(ms) * time.Millisecond)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-r.Context().Done():
		return false
	}
}
