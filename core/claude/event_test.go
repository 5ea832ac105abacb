package claude

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"
	"unicode"
	"unicode/utf8"
)

func TestOneLine(t *testing.T) {
	for in, want := range map[string]string{
		"  a\n\tb  c \n":           "a b c",
		"a\x00b\x1b[31m\x7f\u0085": "ab[31m",
		"\u202eevil\u2066\u200f":   "evil",
		"":                         "",
		strings.Repeat("😀", 200):   strings.Repeat("😀", 199) + "…",
		strings.Repeat("ab ", 90):  strings.Repeat("ab ", 66) + "a…",
	} {
		if got := oneLine(in); got != want || utf8.RuneCountInString(got) > 200 {
			t.Errorf("oneLine(%q) = %q (%d)", in, got, utf8.RuneCountInString(got))
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, s := range []string{begin("msg_1", `{"input_tokens":1}`), end("msg_1", "null", "{}"), copyOf("x", "{}"), total(`"m":{}`), "{\"type\":\"result\",\"is_error\":1}", "\xff{", `{"type":"system","subtype":"init","tools":"x"}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		e, ok := decode(line)
		if !ok {
			return
		}
		m := newMeter(price, 0)
		m.add(&e, time.Time{})
		if s := m.spend(); s.Nano < 0 || s.Tokens < 0 {
			t.Errorf("%s: %+v", line, s)
		}
		if o := judge(&e, facts{}, time.Time{}); o.good() {
			t.Errorf("%s: good, and nobody greeted", line)
		}
		if s := oneLine(e.Result); !utf8.ValidString(s) || strings.ContainsFunc(s, unicode.IsControl) {
			t.Errorf("oneLine: %q", s)
		}
	})
}

func TestReadLines(t *testing.T) {
	long := strings.Repeat("0123456789", 300_000)
	for _, c := range []struct {
		in   string
		want []string
	}{
		{"", nil},
		{"a\n\nb", []string{"a", "", "b"}},
		{"a\r\n" + long + "\n", []string{"a\r", long}},
		{long, []string{long}},
		{"\n", []string{""}},
	} {
		for name, r := range map[string]io.Reader{"at once": strings.NewReader(c.in), "in halves": iotest.HalfReader(strings.NewReader(c.in))} {
			var got []string
			if err := readLines(r, func(l []byte) bool { got = append(got, string(l)); return true }); err != nil || !slices.Equal(got, c.want) {
				t.Errorf("%.20q %s: %d lines, %v", c.in, name, len(got), err)
			}
		}
	}
	broken := errors.New("broken")
	var got []string
	err := readLines(io.MultiReader(strings.NewReader("a\nb"), iotest.ErrReader(broken)), func(l []byte) bool { got = append(got, string(l)); return true })
	if !errors.Is(err, broken) || !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("%q, %v", got, err)
	}
	got = nil
	if err := readLines(strings.NewReader("a\nb\nc\n"), func(l []byte) bool { got = append(got, string(l)); return len(got) < 2 }); err != nil || len(got) != 2 {
		t.Errorf("%q, %v", got, err)
	}
}

func TestTailAndRedact(t *testing.T) {
	tl := &tail{kept: []byte("one\ntwo \xff example-secret-0123456789\n\n")}
	if got := tl.last("example-secret-0123456789"); got != "two \uFFFD [credential]" {
		t.Errorf("last %q", got)
	}
	if got := (&tail{}).last("x"); got != "" {
		t.Errorf("last of nothing %q", got)
	}
	if got := redact([]byte("latest"), "test"); !bytes.Equal(got, []byte("latest")) {
		t.Errorf("redact %q", got)
	}
}
