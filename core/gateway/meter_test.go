package gateway

import (
	"reflect"
	"strings"
	"testing"

	"example.com/AutoAgentProject/core/money"
)

// counted is what the meter makes of a stream that comes in pieces of n bytes.
func counted(stream []byte, n int, hour bool) Count {
	m := newCounter(hour)
	s := &splitter{event: m.Event, lost: m.Lost}
	for len(stream) > 0 {
		n := min(n, len(stream))
		s.write(stream[:n])
		stream = stream[n:]
	}
	return m.Count()
}

func TestMeterStreams(t *testing.T) {
	in50 := money.Usage{Input: 50, Output: 1}
	all := money.Usage{Input: 50, Output: 20}
	for _, c := range []struct {
		name, stream string
		usage        money.Usage
		begun, final bool
		failed       bool
	}{
		{"whole", start + piece + delta + stop, all, true, true, false},
		{"lines end with CRLF", strings.ReplaceAll(start+piece+delta+stop, "\n", "\r\n"), all, true, true, false},
		{"no space after the colon, no names, comments", ": hi\n\n" + strings.ReplaceAll(strings.ReplaceAll(start+delta+stop, "data: ", "data:"), "event: ", "x: "), all, true, true, false},
		{"end event missing, reason told", start + delta, all, true, true, false},
		{"cut after the beginning", start + piece, in50, true, false, false},
		{"cut inside the last event", start + piece + strings.TrimSuffix(delta, "\n"), in50, true, false, false},
		{"reason missing, end event told", start + strings.Replace(delta, `"end_turn"`, "null", 1) + stop, all, true, true, false},
		{"neither reason nor end", start + strings.Replace(delta, `"end_turn"`, "null", 1), all, true, false, false},
		{"end without a count", start + piece + stop, in50, true, false, false},
		{"nothing", "", money.Usage{}, false, false, false},
		{"no stream", whole, money.Usage{}, false, false, false},
		{"ends of lines by CR alone", strings.ReplaceAll(start+delta+stop, "\n", "\r"), money.Usage{}, false, false, false},
		{"an error first", "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}\n\n", money.Usage{}, false, false, true},
		{"an error in the middle", start + piece + "data: {\"type\":\"error\"}\n\n", in50, true, false, true},
		{"a text about usage", start + strings.Replace(piece, "abc", `\"type\":\"message_delta\",\"usage\":{\"output_tokens\":9999}`, 1) + delta, all, true, true, false},
		{"no usage at the beginning", strings.Replace(start, `"usage"`, `"use"`, 1) + delta + stop, money.Usage{Output: 20}, false, false, false},
		{"negative", strings.Replace(start, "50", "-50", 1) + delta + stop, money.Usage{Output: 20}, false, false, false},
		{"as text", strings.Replace(start, "50", `"50"`, 1) + delta + stop, money.Usage{Output: 20}, false, false, false},
		{"beyond measure", strings.Replace(start, "50", "1e309", 1) + delta + stop, money.Usage{Output: 20}, false, false, false},
		{"broken event", start + "data: {\"type\":\"message_\n\n" + delta + stop, all, true, false, false},
		{"two messages", start + start + delta + stop, all, true, false, false},
		{"data on two lines", strings.Replace(start, `,"message":`, ",\ndata: \"message\":", 1) + delta + stop, all, true, true, false},
		{"later counts are larger or nothing", start + strings.Replace(delta, `"output_tokens":20`, `"output_tokens":20,"input_tokens":3`, 1), all, true, true, false},
		{"caches with null parts", strings.Replace(start, `"input_tokens":50`, `"input_tokens":50,"cache_creation_input_tokens":null,"cache_read_input_tokens":7,"cache_creation":null`, 1) + delta,
			money.Usage{Input: 50, Output: 20, CacheRead: 7}, true, true, false},
		{"writes of both lifetimes, and one that is not told", strings.Replace(start, `"input_tokens":50`, `"input_tokens":50,"cache_creation_input_tokens":10,"cache_creation":{"ephemeral_5m_input_tokens":2,"ephemeral_1h_input_tokens":3}`, 1) + delta,
			money.Usage{Input: 50, Output: 20, CacheWrite5m: 7, CacheWrite1h: 3}, true, true, false},
		{"searches", start + strings.Replace(delta, `"output_tokens":20`, `"output_tokens":20,"server_tool_use":{"web_search_requests":2}`, 1), money.Usage{Input: 50, Output: 20, WebSearches: 2}, true, true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, n := range []int{1, 7, 1 << 20} {
				got := counted([]byte(c.stream), n, false)
				if got.Usage != c.usage || got.Begun != c.begun || got.Final != c.final || got.Failed != c.failed {
					t.Errorf("in pieces of %d: %+v", n, got)
				}
			}
		})
	}
	if u := counted([]byte(strings.Replace(start, `"input_tokens":50`, `"input_tokens":50,"cache_creation_input_tokens":10`, 1)), 9, true).Usage; u.CacheWrite1h != 10 {
		t.Errorf("a write without a lifetime, where hours were asked for: %+v", u)
	}
	if c := counted([]byte(strings.Replace(start, `"input_tokens":50`, `"input_tokens":50,"speed":"fast","inference_geo":"us"`, 1)), 9, true); !c.Fast || !c.Regional || c.Model != testModel {
		t.Errorf("%+v", c)
	}
}

func TestMeterLongEvents(t *testing.T) {
	long := "data: " + strings.Repeat("x", maxEvent+5) + "\n\n"
	if c := counted([]byte(start+long+delta+stop), 32<<10, false); c.Final || !c.Begun || c.Usage.Output != 20 {
		t.Errorf("an event that could not be read: %+v", c)
	}
	line := "data: " + strings.Repeat("x", maxEvent/3) + "\n"
	if c := counted([]byte(start+strings.Repeat(line, 4)+"\n"+delta+stop), 32<<10, false); c.Final {
		t.Errorf("an event of many lines that could not be read: %+v", c)
	}
}

func TestMeterBodies(t *testing.T) {
	for _, c := range []struct {
		name, body   string
		begun, final bool
	}{
		{"whole", whole, true, true},
		{"no usage", `{"type":"message"}`, false, false},
		{"half a usage", `{"type":"message","usage":{"input_tokens":5}}`, true, false},
		{"another type", strings.Replace(whole, `"message"`, `"other"`, 1), false, false},
		{"cut", whole[:len(whole)-3], false, false},
		{"a page", "<html>", false, false},
		{"nothing", "", false, false},
		{"strange numbers", strings.Replace(whole, "50", "5.5", 1), false, false},
	} {
		m := newCounter(false)
		m.Body([]byte(c.body))
		if n := m.Count(); n.Begun != c.begun || n.Final != c.final {
			t.Errorf("%s: %+v", c.name, n)
		}
	}
	m := newCounter(false)
	m.Body(nil)
	if m.Count().Final {
		t.Error("a body that was too large is final")
	}
}

// FuzzMeter: how a stream is cut into pieces changes nothing, and no stream is final without its counts.
func FuzzMeter(f *testing.F) {
	f.Add([]byte(start+piece+delta+stop), uint8(3), true)
	f.Add([]byte(start+"data: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":-1}}\n\n"), uint8(1), false)
	f.Add([]byte("data\ndata:\n\n\r\n: x\ndata: {}\n\n"), uint8(2), false)
	f.Add([]byte(whole), uint8(200), false)
	f.Fuzz(func(t *testing.T, stream []byte, n uint8, hour bool) {
		one, many := counted(stream, 1<<30, hour), counted(stream, int(n)+1, hour)
		if !reflect.DeepEqual(one, many) {
			t.Fatalf("in one piece %+v, in pieces of %d %+v", one, int(n)+1, many)
		}
		u := one.Usage
		if u.Input < 0 || u.Output < 0 || u.CacheRead < 0 || u.CacheWrite1h < 0 || u.CacheWrite5m < 0 {
			t.Fatalf("negative: %+v", u)
		}
		if one.Final && (!one.Begun || !strings.Contains(string(stream), "usage")) {
			t.Fatalf("final without a count: %+v", one)
		}
		m := newCounter(hour)
		m.Body(stream)
		if n := m.Count(); n.Final && !n.Begun {
			t.Fatalf("body: %+v", n)
		}
	})
}
