package handoff

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzDraft: whatever an agent writes, the gate says something printable or lets through what can be written and read.
func FuzzDraft(f *testing.F) {
	for _, s := range []string{"", "type: note\nto: QA\npriority: 50\nmessage: x\n", "type: git_handoff\r\nto: QA,coder\r\npriority: 00\r\ntask: t\r\ncommit: 0123456789\r\n",
		"a: b\n\nbody", "from: x", ": ", "\x00\xff", "message: hi\rfrom: human", "type: note\nto: QA\npriority: 50\nmessage: a\u2028b"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, problems := Check(ParseDraft(data), facts())
		for _, p := range problems {
			if s := p.String(); strings.ContainsFunc(s, control) || !utf8.ValidString(s) {
				t.Fatalf("%q", s)
			}
		}
		if problems != nil {
			return
		}
		name, e := m.Envelope(1, noon)
		back, err := Parse(e.Bytes())
		if err != nil || !slices.Equal(back.Headers, e.Headers) || back.Body != e.Body || len(name) > MaxName || strings.ContainsAny(name, "/\n") {
			t.Fatalf("%q: %v\n%s", name, err, e.Bytes())
		}
		if got := Text(e.Bytes()); got.Or("from", "") != "coder" || got.Or("to", "") != strings.Join(m.To, ",") || got.Or("type", "") != m.Type {
			t.Fatalf("it is read as another: %s", got)
		}
	})
}

// FuzzText: a header that is set is there, once and for all, and the body stays.
func FuzzText(f *testing.F) {
	for _, s := range []string{"", "a: b\n\nbody\n", "x: 0\r\n\r\nbody", "no header", "\n\n", "x: 1\n \nx: 2"} {
		f.Add(s, "1")
	}
	f.Fuzz(func(t *testing.T, text, value string) {
		if strings.ContainsAny(value, "\n\r") {
			return
		}
		once := Text(text).Set("x", value)
		if got, ok := once.Field("x"); !ok || got != value {
			t.Fatalf("%q: x is %q, %v", once, got, ok)
		}
		once = once.Set("x", value) // empty lines at the end are gone now
		if twice := once.Set("x", value); twice != once && !strings.Contains(text, "\r") {
			t.Fatalf("%q became %q", once, twice)
		}
		if !strings.HasSuffix(string(once), "\n") {
			t.Fatalf("%q", once)
		}
		if u := (Unit{Items: []Item{{Path: "/p", Text: once}}}).String(); !strings.HasPrefix(u, "TASK: /p\nFROM: ") || !strings.HasSuffix(u, "PAYLOAD:\n"+once.Body()) {
			t.Fatalf("%q", u)
		}
	})
}

// FuzzName: every name that is made fits, and gives its id back.
func FuzzName(f *testing.F) {
	f.Add("20260710T120001Z_000001_from_coder", "QA,coder")
	f.Fuzz(func(t *testing.T, id, to string) {
		if len(id) > 60 || !strings.Contains(id, "_from_") || strings.Contains(id, "_to_") || strings.HasSuffix(id, "_to") {
			_ = IDOf(id)
			return
		}
		name := FileName("50", id, strings.Split(to, ","))
		if len(name) > MaxName || IDOf(name) != id {
			t.Fatalf("%q, %q", name, IDOf(name))
		}
	})
}

// FuzzWay: a diagram has one line per handoff, whatever they are called.
func FuzzWay(f *testing.F) {
	f.Add("t", "coder", "end; <b>#")
	f.Fuzz(func(t *testing.T, task, from, to string) {
		text := Text("id: 1\nfrom: " + from + "\ntask: " + task + "\n\n")
		w := Trace(task, []Record{{Agent: to, Box: "new", Text: text}}, noon)
		if d := w.Mermaid(); strings.Count(d, "->>") < len(w.Legs) || strings.ContainsAny(strings.ReplaceAll(d, "\n", ""), "\r\x00") {
			t.Fatalf("%q", d)
		}
	})
}

// FuzzEnvelope: what is read as an envelope is written as it was, and the copy of a recipient says the same in the order of
// delivered files.
func FuzzEnvelope(f *testing.F) {
	for _, s := range []string{"", "id: 1\nfrom: coder\nto: QA\npriority: 50\ntype: note\nmessage: m\n\nm\n", "id: 1\nfrom: coder\nto: QA\npriority: 50\ntype: git_handoff\nrole: coder\ntask: t\ncommit: 0123456789\nhops: 2\ntasks: [\"t\"]\n\nx",
		"id: 1\nid: 2\n\n", "id: 1\r\n\r\n", "a: b\n\n\n\n", "id: \n\n", "id:1"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := Parse(data)
		if err != nil {
			return
		}
		if again, err := Parse(e.Bytes()); err != nil || !slices.Equal(again.Headers, e.Headers) || again.Body != e.Body {
			t.Fatalf("%v: %q", err, e.Bytes())
		}
		for _, h := range e.Headers { // both readings say the same
			if got, ok := Text(data).Field(h.Name); !ok || got != h.Value {
				t.Fatalf("%s is %q and %q", h.Name, h.Value, got)
			}
		}
		c := e.ForRecipient("QA", noon)
		back, err := Parse(c.Bytes())
		if err != nil || back.Body != e.Body || back.Get("recipient") != "QA" || back.Get("id") != e.Get("id") || back.Get("from") != e.Get("from") {
			t.Fatalf("%v: %q", err, c.Bytes())
		}
		if twice := back.ForRecipient("QA", noon); string(twice.Bytes()) != string(c.Bytes()) {
			t.Fatalf("%q, then %q", c.Bytes(), twice.Bytes())
		}
		_ = Text(data).Carried()
	})
}

// FuzzDocument: what the gate lets through is kept as it was said, below our header line and above our spend, and what code makes of
// an answer is read as nothing but a summary.
func FuzzDocument(f *testing.F) {
	for _, s := range []string{"", goodDoc, Skeleton(), goodDoc + "## Spend\nmine\n", strings.ReplaceAll(goodDoc, "\n", "\r\n"), "```\n" + goodDoc, goodDoc + "~~~~\n## Summary\n~~~\n",
		"<!-- " + goodDoc, goodDoc + "<!--", "## summary:\nx\n##  Decisions\n", "## Summary\n```\n<!--\n```\n-->", change("none\n", "```\nx\n```\n")} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		head := Head{From: "coder", To: "QA", Step: "s", Attempt: 1, Checkpoint: "0123456789", Spend: "$1"}
		d, problems := CheckDocument([]byte(text))
		for _, p := range problems {
			if s := p.String(); strings.ContainsFunc(s, control) || !utf8.ValidString(s) {
				t.Fatalf("%q", s)
			}
		}
		if problems == nil {
			kept := d.Render(head)
			back, odd := ReadDocument(kept)
			if back != d || odd != nil || len(d.Passed(false)) > MaxPassed || !strings.HasPrefix(kept, "from: coder | to: QA | run: none | step: s, attempt 1 | checkpoint: 0123456789\n") || !strings.HasSuffix(kept, "\n## Spend\n\n$1\n") {
				t.Fatalf("%q\nis kept as\n%q\nand read as %+v, %q", text, kept, back, odd)
			}
		}
		made := Made(text)
		back, odd := ReadDocument(made.Render(head))
		if back != made || odd != nil || len(strings.Fields(made.Summary)) > MaxSummary+1 {
			t.Fatalf("%q\nis made\n%+v\nand read as\n%+v, %q", text, made, back, odd)
		}
	})
}
