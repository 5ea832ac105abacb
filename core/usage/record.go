package usage

import (
	"encoding/json"
	"time"
)

// line is what a record of a transcript says that matters here.
type line struct {
	kind      string
	uuid      string
	session   string
	request   string
	timestamp string
	cwd       string
	sidechain bool
	id        string
	model     string
	usage     []byte // as it stands there; nil: none
	event     string // of a stream, as the service sent it
	version   string // of the program; in the first event of a stream
	total     []byte // of a result, as it stands there; nil: none
}

// whole says whether an object found inside of a broken line is a record and no part of one.
func (l *line) whole() bool {
	return l.kind != "" && (l.uuid != "" || l.session != "" || l.timestamp != "")
}

// record reads the object at the position. The position is behind it afterwards, or where it is wrong.
func (t *text) record() (*line, error) {
	l := &line{}
	err := t.object(0, nil, func(name string) error {
		switch name {
		case "type":
			return t.string(&l.kind)
		case "uuid":
			return t.string(&l.uuid)
		case "sessionId", "session_id":
			return t.string(&l.session)
		case "requestId", "request_id":
			return t.string(&l.request)
		case "timestamp":
			return t.string(&l.timestamp)
		case "cwd":
			return t.string(&l.cwd)
		case "claude_code_version":
			return t.string(&l.version)
		case "total_cost_usd":
			k := keep{max: maxString}
			err := t.value(1, &k)
			l.total = k.b
			return err
		case "isSidechain":
			k := keep{max: maxString}
			b, _ := t.peek()
			if b != 't' && b != 'f' {
				return t.value(1, nil)
			}
			err := t.plain(&k)
			l.sidechain = string(k.b) == "true"
			return err
		case "message":
			return t.message(l, 1)
		case "event":
			return t.event(l)
		case "api_message_id":
			if l.id != "" {
				return t.value(1, nil)
			}
			return t.string(&l.id)
		}
		return t.value(1, nil)
	})
	return l, err
}

// event reads what a stream passes on from the service: the beginning of a message, or its usage at its end.
func (t *text) event(l *line) error {
	if b, ok := t.peek(); !ok || b != '{' {
		return t.value(1, nil)
	}
	return t.object(1, nil, func(name string) error {
		switch name {
		case "type":
			return t.string(&l.event)
		case "message":
			return t.message(l, 2)
		case "usage":
			return t.usage(l, 2)
		}
		return t.value(2, nil)
	})
}

func (t *text) message(l *line, depth int) error {
	if b, ok := t.peek(); !ok || b != '{' {
		return t.value(depth, nil)
	}
	return t.object(depth, nil, func(name string) error {
		switch name {
		case "id":
			return t.string(&l.id)
		case "model":
			return t.string(&l.model)
		case "usage":
			return t.usage(l, depth+1)
		}
		return t.value(depth+1, nil)
	})
}

func (t *text) usage(l *line, depth int) error {
	l.usage = nil
	if b, ok := t.peek(); !ok || b != '{' {
		return t.value(depth, nil)
	}
	k := keep{max: maxUsage}
	err := t.value(depth, &k)
	l.usage = k.b
	return err
}

// string reads a string; what is none counts as empty.
func (t *text) string(to *string) error {
	*to = ""
	if b, ok := t.peek(); !ok || b != '"' {
		return t.value(1, nil)
	}
	s, err := t.word()
	*to = s
	return err
}

// record is the line as the count wants it. ok is false for a line that tells no response.
func (l *line) record(source string) (r Record, ok bool) {
	stream := l.kind == "stream_event" && l.id != "" && (l.event == "message_start" || l.event == "message_delta")
	if l.kind != "assistant" && !stream || l.usage == nil {
		return Record{}, false
	}
	r = Record{Source: source, ID: l.id, Request: l.request, UUID: l.uuid, Sidechain: l.sidechain, Model: l.model}
	_ = json.Unmarshal(l.usage, &r.Tokens) // a field of the wrong kind stays empty, the others count
	if at, err := time.Parse(time.RFC3339Nano, l.timestamp); err == nil {
		r.At = at
	}
	return r, true
}
