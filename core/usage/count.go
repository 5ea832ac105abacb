// Package usage counts what responses of the model used, by one rule for all sources: events of a stream, results, and
// the transcripts that the agent program writes.
package usage

import (
	"crypto/sha256"
	"encoding/binary"
	"strings"
	"time"
)

// Record is one telling of a response. A response is told many times: once for each block of its content, again while it
// grows, again in the copy of its history that a resumed conversation begins with.
type Record struct {
	Source    string // what it was read from; only for ids that are not unique by themselves
	ID        string // of the response
	Request   string // of the request, where it is known
	UUID      string // of the record
	Sidechain bool   // told by a subagent, or a copy that one was started with
	Model     string
	At        time.Time // zero: not known
	Tokens    Tokens
}

// Response is one response of the model, as all its records together tell it.
type Response struct {
	Model  string
	Tokens Tokens
	at     int64 // unix seconds of its first record; 0: not known
	main   bool  // told outside of subagents: then only such records count
}

// At is when it was first told, UTC, or the zero time.
func (r *Response) At() time.Time {
	if r.at == 0 {
		return time.Time{}
	}
	return time.Unix(r.at, 0).UTC()
}

// key is the identity of a response or a record: a hash, so that millions of them fit into memory and into a file.
type key [16]byte

func keyOf(parts ...string) key {
	h := sha256.New()
	var n [8]byte
	for _, p := range parts {
		binary.LittleEndian.PutUint64(n[:], uint64(len(p)))
		h.Write(n[:])
		h.Write([]byte(p))
	}
	var k key
	copy(k[:], h.Sum(nil))
	return k
}

// Count is a set of responses, each counted once however often it is told.
type Count struct {
	responses map[key]*Response
	records   map[key]key // of responses whose ids are not unique: records by their uuid, and copies
	runs      map[string]*turn
	models    map[string]string // one copy of each name
	repeats   int64             // records that told a response again

	dirty bool
}

// turn tells apart responses with the same id in one source.
type turn struct{ Main, Side int64 }

// NewCount is empty.
func NewCount() *Count {
	return &Count{responses: map[key]*Response{}, records: map[key]key{}, runs: map[string]*turn{}, models: map[string]string{}}
}

// Synthetic is the model of messages that the program makes up, for example to tell an error. No model answered.
const Synthetic = "<synthetic>"

// Add takes in a record and returns its response. It is nil for a message that no model wrote.
//
// An id that begins with msg_ is one response, wherever it is found. Other ids (gateways give them) may be used again:
// they are one response between two messages of the user in one source, and one request where that is told; a record
// whose uuid was seen belongs to the response it belonged to then. Of all records of a response the largest number of
// each class counts. Where some are told outside of subagents, those alone count.
func (c *Count) Add(r Record) *Response {
	if r.Model == Synthetic {
		return nil
	}
	c.dirty = true
	k := c.identify(r)
	g := c.responses[k]
	if g == nil {
		g = &Response{main: !r.Sidechain}
		c.responses[k] = g
	} else {
		c.repeats++
	}
	switch {
	case g.main && r.Sidechain:
		return g
	case !g.main && !r.Sidechain:
		*g = Response{main: true}
	}
	if g.Model == "" && r.Model != "" {
		g.Model = c.name(r.Model)
	}
	if at := r.At.Unix(); at > 0 && (g.at == 0 || at < g.at) { // the first second of the epoch is a missing time
		g.at = at
	}
	g.Tokens = g.Tokens.Most(r.Tokens)
	return g
}

// Break says that a message of the user came: an id that is not unique begins a new response after it.
func (c *Count) Break(source string, sidechain bool) {
	t := c.turn(source)
	c.dirty = true
	if sidechain {
		t.Side++
	} else {
		t.Main++
	}
}

// Repeats is how many records told a response again.
func (c *Count) Repeats() int64 { return c.repeats }

func (c *Count) turn(source string) *turn {
	t := c.runs[source]
	if t == nil {
		t = &turn{}
		c.runs[source] = t
	}
	return t
}

func (c *Count) identify(r Record) key {
	if unique(r.ID) {
		return keyOf("id", r.ID)
	}
	t := c.turn(r.Source)
	n, side := t.Main, "main"
	if r.Sidechain {
		n, side = t.Side, "side"
	}
	k := keyOf("run", r.Source, side, string(binary.LittleEndian.AppendUint64(nil, uint64(n))), r.ID, r.Request)
	if known, ok := c.records[k]; ok {
		k = known
	}
	if r.UUID == "" {
		return k
	}
	record := keyOf("uuid", r.UUID)
	if known, ok := c.records[record]; ok {
		if known != k && c.responses[k] == nil {
			c.records[k] = known // the others of this response are copies too
		}
		return known
	}
	c.records[record] = k
	return k
}

// unique says whether an id of a response is used once in the world.
func unique(id string) bool { return strings.HasPrefix(id, "msg_") }

func (c *Count) name(model string) string {
	model = strings.Clone(model)
	if known, ok := c.models[model]; ok {
		return known
	}
	c.models[model] = model
	return model
}
