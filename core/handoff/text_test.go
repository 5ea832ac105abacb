package handoff

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestText: files are read and changed as SwarmForge's helpers do, whatever is in them.
func TestText(t *testing.T) {
	for in, want := range map[string]string{ // after Set("x", "1")
		"":                           "x: 1\n\n",
		"no header at all":           "no header at all\nx: 1\n",
		"a: b":                       "a: b\nx: 1\n",
		"a: b\n\nbody":               "a: b\nx: 1\n\nbody\n",
		"a: b\n\nbody\n\n\n":         "a: b\nx: 1\n\nbody\n",
		"a: b\r\n\r\nbody\r\n":       "a: b\nx: 1\n\nbody\n",
		"x: 0\na: b\n\nbody\n":       "x: 1\na: b\n\nbody\n",
		"x: 0\nx: 2\n\nx: 3\n":       "x: 1\nx: 1\n\nx: 3\n",
		"a: b\n \nx: 0\n":            "a: b\nx: 1\n \nx: 0\n",
		"\n\nbody\n":                 "x: 1\n\n\nbody\n",
		"x:0\n":                      "x:0\nx: 1\n",
		"a: b\n\nline\n\ntask: no\n": "a: b\nx: 1\n\nline\n\ntask: no\n",
	} {
		if got := string(Text(in).Set("x", "1")); got != want {
			t.Errorf("%q became\n%q, want\n%q", in, got, want)
		}
		if v, ok := Text(in).Set("x", "1").Field("x"); v != "1" || !ok {
			t.Errorf("%q: then x is %q, %v", in, v, ok)
		}
		if _, ok := Text(in).Set("x", "1").Without("x").Field("x"); ok {
			t.Errorf("%q: x did not go", in)
		}
	}
	if got := Text("x: 1\na: b\n\nx: 2\n").Without("x"); got != "a: b\n\nx: 2\n" {
		t.Errorf("%q", got)
	}
	for in, want := range map[string]string{"a: b": "", "a: b\n\n": "", "a: b\n\nx": "x", "a: b\n\nx\n\ny\n": "x\n\ny\n", "a: b\n \nx": "", "a\r\n\r\nx": ""} {
		if got := Text(in).Body(); got != want {
			t.Errorf("%q has the body %q, want %q", in, got, want)
		}
	}
	for in, want := range map[string]string{"p: 1": "1", "p: ": "", "q: 1\np: 2\n": "2", "\np: 1": "-", " \np: 1": "-", "p:1": "-", "P: 1": "-", "p: a: b": "a: b"} {
		if got := Text(in).Or("p", "-"); got != want {
			t.Errorf("%q: p is %q, want %q", in, got, want)
		}
	}
}

func TestInstant(t *testing.T) {
	for ns, want := range map[int]string{0: "", 100_000_000: ".100", 120_000: ".000120", 1: ".000000001", 999_999_999: ".999999999"} {
		if got := Instant(time.Date(2026, 3, 1, 13, 0, 0, ns, time.FixedZone("", 3600))); got != "2026-03-01T12:00:00"+want+"Z" {
			t.Error(got)
		}
	}
}

// TestFileName: names fit into any file system and tell lists of recipients apart.
func TestFileName(t *testing.T) {
	const id = "20260710T120001Z_000001_from_coder"
	if got := FileName("50", id, []string{"QA", "cleaner"}); got != "50_20260710T120001Z_000001_from_coder_to_QA_cleaner.handoff" || IDOf(got) != id {
		t.Error(got, IDOf(got))
	}
	var many []string
	for i := range 60 {
		many = append(many, fmt.Sprintf("specialist-%d", i))
	}
	other := append(many[:59:59], "another")
	a, b := FileName("50", id, many), FileName("50", id, other)
	if a == b || len(a) > MaxName || len(b) > MaxName || !strings.HasPrefix(a, "50_"+id+"_to_specialist-0_specialist-1_") || IDOf(a) != id {
		t.Error(a, b)
	}
	if got := FileName("50", id, []string{strings.Repeat("x", 300)}); len(got) > MaxName || !strings.HasSuffix(got, Suffix) {
		t.Error(got)
	}
	for _, name := range []string{"", "a.handoff", "50_a_to_b.handoff", "5x_a_from_b_to_c.handoff", "50_a_from_b_to_c.txt"} {
		if got := IDOf(name); got != "" {
			t.Errorf("%s has the id %q", name, got)
		}
	}
}

// TestTrace: waiting and working times, and what is still under way.
func TestTrace(t *testing.T) {
	at := func(s int) string { return Instant(noon.Add(time.Duration(s) * time.Second)) }
	work := func(id, from, to, more string) Text {
		return Text("id: " + id + "\nfrom: " + from + "\nto: " + to + "\npriority: 50\ntype: git_handoff\ntask: t\ncommit: 0123456789\n" + more + "\n\nx\n")
	}
	records := []Record{
		{Agent: "QA", Box: "new", Text: work("2", "coder", "QA,cleaner", "created_at: "+at(100)+"\nenqueued_at: "+at(101))},
		{Agent: "coder", Box: "outbox", Text: work("2", "coder", "QA,cleaner", "created_at: "+at(100))},
		{Agent: "coder", Box: "completed", Text: work("1", "specifier", "coder", "created_at: "+at(0)+"\nenqueued_at: "+at(1)+"\ndequeued_at: "+at(10)+"\ncompleted_at: "+at(99))},
		{Agent: "specifier", Box: "sent", Text: work("1", "specifier", "coder", "created_at: "+at(0))},
		{Agent: "coder", Box: "new", Text: "task: other\n\n"},
		{Agent: "cleaner", Box: "failed", Error: "why", Text: work("0", "specifier", "cleaner", "created_at: "+at(-5)+"\ndequeued_at: "+at(-9))},
	}
	w := Trace("t", records, noon.Add(200*time.Second))
	var got []string
	for _, l := range w.Legs {
		got = append(got, fmt.Sprintf("%s>%s %s %s %s", l.From, l.To, l.State, time.Duration(l.Waited), time.Duration(l.Worked)))
	}
	want := "specifier>cleaner failed 0s 0s; specifier>coder done 10s 1m29s; coder>cleaner undelivered 1m40s 0s; coder>QA waiting 1m40s 0s"
	if s := strings.Join(got, "; "); s != want {
		t.Errorf("%s, want\n%s", s, want)
	}
	const diagram = "sequenceDiagram\n    autonumber\n    participant p1 as specifier\n    participant p2 as cleaner\n    participant p3 as coder\n" +
		"    participant p4 as QA\n    p1->>p2: t `<0123456789>`<br/>failed\n    p1->>p3: t `<0123456789>`<br/>done, waited 10s, worked 1m29s\n" +
		"    p3->>p2: t `<0123456789>`<br/>undelivered, waited 1m40s\n    p3->>p4: t `<0123456789>`<br/>waiting, waited 1m40s\n"
	if got := w.Mermaid(); got != diagram {
		t.Errorf("%s, want\n%s", got, diagram)
	}
}

// TestMermaidText: nothing that a task is called ends a line, begins a statement or an entity.
func TestMermaidText(t *testing.T) {
	for in, want := range map[string]string{"cart-tax": "cart-tax", "a;b": "a#59;b", "#35;": "#35;35#59;", "<b>": "`<b>`", "a`<": "`a'<`",
		"a\nb": "a?b", "%%{init}": "#37;#37;{init}", "ä😀": "ä😀", "\u202e": "?"} {
		if got := mermaidText(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}
