package handoff

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"
)

// TestQueuedFile: name, id, headers and body, byte for byte as the format has them.
func TestQueuedFile(t *testing.T) {
	at := time.Date(2026, 7, 10, 14, 0, 1, 123, time.FixedZone("x", 2*3600))
	name, id, e := NewWork(Work{From: "specifier", To: "coder", Priority: 7, Task: "cart-tax", Commit: "0123456789", Seq: 1, At: at})
	if name != "07_20260710T120001Z_000001_from_specifier_to_coder.handoff" || id != "20260710T120001Z_000001_from_specifier" {
		t.Error(name, id)
	}
	const want = `id: 20260710T120001Z_000001_from_specifier
from: specifier
to: coder
priority: 07
type: git_handoff
role: specifier
task: cart-tax
commit: 0123456789
created_at: 2026-07-10T12:00:01.000000123Z

Re-read your role and constitution.

merge_and_process specifier 0123456789
`
	if got := string(e.Bytes()); got != want {
		t.Errorf("%s", got)
	}
}

// TestDeliveredFile: the order of headers in a copy; those the format does not know follow by name.
func TestDeliveredFile(t *testing.T) {
	_, _, e := NewWork(Work{From: "specifier", To: "coder", Priority: 50, Task: "cart-tax", Commit: "0123456789", Seq: 12, At: noon})
	e.Set("zeta", "z")
	e.Set("alpha", "a: b")
	const want = `id: 20260301T120000Z_000012_from_specifier
from: specifier
to: coder
recipient: coder
priority: 50
type: git_handoff
role: specifier
commit: 0123456789
created_at: 2026-03-01T12:00:00Z
enqueued_at: 2026-03-01T12:00:01Z
alpha: a: b
task: cart-tax
zeta: z

Re-read your role and constitution.

merge_and_process specifier 0123456789
`
	before := string(e.Bytes())
	if got := string(e.ForRecipient("coder", noon.Add(time.Second)).Bytes()); got != want {
		t.Errorf("%s", got)
	}
	if string(e.Bytes()) != before {
		t.Error("making the copy changed the original")
	}
	_, n := note("coder", "specifier,reviewer", "n1")
	const wantNote = `id: n1
from: coder
to: specifier,reviewer
recipient: reviewer
priority: 50
type: note
message: about n1
created_at: 2026-03-01T12:00:00Z
enqueued_at: 2026-03-01T12:00:00Z

about n1
`
	if got := string(n.ForRecipient("reviewer", noon).Bytes()); got != wantNote {
		t.Errorf("%s", got)
	}
}

func TestRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	pick := func(from []string) string { return from[r.IntN(len(from))] }
	for range 500 {
		_, e := note("coder", pick([]string{"a", "a,b", "a,b,c"}), pick([]string{"x", "ü: y", "😀", " leading", "trailing "}))
		for i := range r.IntN(5) {
			e.Set(fmt.Sprint("h", strings.Repeat("_", i)), pick([]string{"v", ": ", "a: b: c", "\tx", "a\u2028b"}))
		}
		e.Body = strings.Repeat(pick([]string{"", "\n", "line\n", "\n\ntask: no-header\n", "no newline at the end"}), 1+r.IntN(3))
		back, err := Parse(e.Bytes())
		if err != nil || !reflect.DeepEqual(back, e) || string(back.Bytes()) != string(e.Bytes()) {
			t.Fatalf("%q: %v, %+v", e.Bytes(), err, back)
		}
	}
}

func TestParse(t *testing.T) {
	const head = "id: x\nfrom: a\nto: b,c\npriority: 50\n"
	const good = head + "type: note\nmessage: m: n\n"
	for name, text := range map[string]string{
		"no body": good, "no newline at the end": strings.TrimSuffix(good, "\n"), "empty body": good + "\n", "body": good + "\nid: no-header\n\n\nx",
		"any order": "message: m\ntype: note\npriority: 50\nto: b\nfrom: a\nid: x\n", "work": head + "type: git_handoff\ntask: t\ncommit: 0123456789\n\nbody\n",
	} {
		e, err := Parse([]byte(text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if e.Get("id") != "x" || e.Get("nosuch") != "" {
			t.Errorf("%s: %+v", name, e)
		}
	}
	e, _ := Parse([]byte(good + "\nbody\n\nmore\n"))
	if e.Body != "body\n\nmore\n" || e.Get("message") != "m: n" || !reflect.DeepEqual(e.Recipients(), []string{"b", "c"}) {
		t.Errorf("%+v", e)
	}
	for name, c := range map[string]struct{ text, say string }{
		"empty":             {"", "empty"},
		"NULs":              {strings.Repeat("\x00", 100), "no UTF-8 text"},
		"one NUL":           {good + "\nbo\x00dy", "no UTF-8 text"},
		"not UTF-8":         {good + "\n\xff", "no UTF-8 text"},
		"too big":           {good + "\n" + strings.Repeat("x", MaxSize), "bytes, at most"},
		"a brace":           {"{", "line 1"},
		"a newline":         {"\n", "line 1"},
		"body only":         {"\n\nbody", "line 1"},
		"no space":          {head + "type:note\nmessage: m\n", "line 5"},
		"blank value":       {head + "type: note\nmessage:  \n", "line 6"},
		"upper case header": {"Id: x\n" + good, "line 1"},
		"header twice":      {good + "from: human\n", "from stands twice"},
		"no id":             {strings.TrimPrefix(good, "id: x\n"), "id is missing"},
		"no sender":         {strings.Replace(good, "from: a\n", "", 1), "from is missing"},
		"no recipient":      {strings.Replace(good, "to: b,c\n", "", 1), "to is missing"},
		"no priority":       {strings.Replace(good, "priority: 50\n", "", 1), "priority is missing"},
		"no type":           {strings.Replace(good, "type: note\n", "", 1), "type is missing"},
		"another type":      {head + "type: awake\nmessage: m\n", `"awake"`},
		"note, no message":  {head + "type: note\n", "message"},
		"work, no commit":   {head + "type: git_handoff\ntask: t\n", "commit"},
		"work, no task":     {head + "type: git_handoff\ncommit: 0123456789\n", "task"},
		"CRLF":              {strings.ReplaceAll(good, "\n", "\r\n"), "line 1"},
		"a line of 60 kB":   {strings.Repeat("x", 60<<10) + ": y\n" + good, "line 1"},
	} {
		if _, err := Parse([]byte(c.text)); err == nil || !strings.Contains(err.Error(), c.say) || len(err.Error()) > 200 {
			t.Errorf("%s: %v, want %q", name, err, c.say)
		}
	}
}

func FuzzParse(f *testing.F) {
	_, _, e := NewWork(Work{From: "a", To: "b", Task: "t", Commit: "0123456789", At: noon})
	f.Add(e.Bytes())
	_, n := note("a", "b,c", "x")
	f.Add(n.Bytes())
	f.Add([]byte("id: x\nfrom: a\n\n\n: \n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := Parse(data)
		if err != nil {
			return
		}
		back, err := Parse(e.Bytes())
		if len(e.Bytes()) <= MaxSize && (err != nil || !reflect.DeepEqual(back, e)) {
			t.Errorf("%q: %v, %+v, %+v", data, err, e, back)
		}
	})
}
