package usage

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// told is a record of a transcript: input tokens n of a response.
func told(id string, n int) string {
	return fmt.Sprintf(`{"parentUuid":null,"isSidechain":false,"cwd":"/srv/example","sessionId":"s","type":"assistant","uuid":"u-%s-%d","timestamp":"2026-11-20T09:00:00.000Z","message":{"model":"claude-opus-5-5","id":%q,"content":[{"type":"text","text":"a \"quoted\" {\"type\":\"assistant\"}"}],"usage":{"input_tokens":%d,"output_tokens":1}}}`, id, n, id, n)
}

// TestBrokenLines: of a broken line only what is broken is lost.
func TestBrokenLines(t *testing.T) {
	a, b := told("msg_a", 1), told("msg_b", 2)
	cut := func(s string, mark string) string { return s[:strings.Index(s, mark)+len(mark)] }
	nested := `{"type":"progress","uuid":"p","timestamp":"2026-11-20T09:00:00Z","data":{"message":` + told("msg_x", 64) + `}}`
	for name, c := range map[string]struct {
		text                   string
		input, malformed, tail int64
	}{
		"two records in one line":              {a + b + "\n", 3, 0, 0},
		"with blanks between":                  {a + " \t" + b + "\r\n", 3, 0, 0},
		"cut in a string":                      {cut(a, `"con`) + b + "\n", 2, 1, 0},
		"cut in a key":                         {cut(a, `"mess`) + b + "\n", 2, 1, 0},
		"cut behind an escape":                 {cut(a, `\`) + b + "\n", 2, 1, 0},
		"cut where a value may come":           {cut(a, `"message":`) + b + "\n", 2, 1, 0},
		"cut in a list":                        {cut(a, `"content":[`) + b + "\n", 2, 1, 0},
		"cut between two":                      {cut(a, `"s",`) + b + "\n", 2, 1, 0},
		"cut in a number":                      {a[:len(a)-5] + b + "\n", 2, 1, 0},
		"cut three times":                      {cut(a, `"con`) + cut(a, `"mess`) + cut(a, "null") + b + "\n" + a, 3, 1, 0},
		"cut and a line break":                 {cut(a, `"con`) + "\n" + b + "\n", 2, 1, 0},
		"cut with a part that looks whole":     {cut(nested, `"data":`) + a[:len(a)-3] + b + "\n", 2, 1, 0},
		"cut behind a part like a record":      {`{"type":"progress","data":{"type":"assistant","message":{"id":"msg_x","model":"claude-opus-5-5","usage":{"input_tokens":64}}},"mess` + b + "\n", 2, 1, 0},
		"NULs in front":                        {strings.Repeat("\x00", 5000) + a + "\n" + b, 3, 0, 0},
		"NULs in the middle":                   {cut(a, `"con`) + strings.Repeat("\x00", 50) + b + "\n", 2, 1, 0},
		"NULs at the end":                      {a + "\n" + strings.Repeat("\x00", 5000), 1, 0, 0},
		"no JSON":                              {"garbage\n" + a + "\n[1,2]\nnull\n", 1, 3, 0},
		"empty lines":                          {"\n\n" + a + "\n\r\n\n" + b + "\n\n", 3, 0, 0},
		"half a last line":                     {a + "\n" + cut(b, `"model"`), 1, 0, 1},
		"half a last line behind a record":     {a + cut(b, `"model"`), 1, 0, 1},
		"garbage for a last line":              {a + "\ngarbage", 1, 0, 1},
		"one character of a last line":         {a + "\n{", 1, 0, 1},
		"last line without its end":            {a + "\n" + b, 3, 0, 0},
		"nested in a whole record":             {nested + "\n" + a, 1, 0, 0},
		"nested in half a last record":         {cut(nested, `}}`), 0, 0, 1},
		"a byte order mark":                    {"\xEF\xBB\xBF" + a + "\n", 1, 0, 0},
		"bad UTF-8":                            {strings.Replace(a, "quoted", "\xff\xfe\xc3", 1) + "\n" + b, 3, 0, 0},
		"half a surrogate pair":                {strings.Replace(a, "quoted", `\ud83d`, 1) + "\n" + b, 3, 0, 0},
		"other than strings":                   {strings.Replace(a, `"s"`, `{"x":[]}`, 1) + "\n", 1, 0, 0},
		"a control character in a string":      {strings.Replace(a, "quoted", "\x01", 1) + "\n" + b, 2, 1, 0},
		"deep":                                 {`{"a":` + strings.Repeat("[", 9000) + strings.Repeat("]", 9000) + "}\n" + a, 1, 0, 0},
		"too deep":                             {`{"a":` + strings.Repeat("[", 30000) + strings.Repeat("]", 30000) + "}\n" + a, 1, 1, 0},
		"many beginnings":                      {strings.Repeat(`{"a":`, 200_000) + "\n" + a, 1, 1, 0},
		"many beginnings in front of a record": {strings.Repeat(`{"a`, 10_000) + b + "\n" + a, 3, 1, 0},
		"escaped names":                        {strings.Replace(a, `"type":"assistant","uuid"`, `"\u0074ype":"assist\u0061nt","uuid"`, 1) + "\n", 1, 0, 0},
		"nothing":                              {"", 0, 0, 0},
	} {
		dir := t.TempDir()
		put(t, filepath.Join(dir, "a.jsonl"), c.text)
		s := scanned(t, dir, "")
		sum := summary(s)
		if sum.Totals.Input != c.input || sum.Diagnostics.Malformed != c.malformed || sum.Diagnostics.Tails != c.tail {
			t.Errorf("%s: input %d, malformed %d, unfinished %d; want %d, %d, %d", name, sum.Totals.Input, sum.Diagnostics.Malformed, sum.Diagnostics.Tails, c.input, c.malformed, c.tail)
		}
		before, off := summary(s), s.files["a.jsonl"].Offset
		if update(t, s, dir); fmt.Sprint(summary(s)) != fmt.Sprint(before) || s.files["a.jsonl"].Offset != off {
			t.Errorf("%s: looking again changes it to %+v", name, summary(s))
		}
		if c.tail == 1 { // the offset stands in front of what is not finished
			put(t, filepath.Join(dir, "a.jsonl"), c.text[:off]+told("msg_z", 1000)+"\n")
			if update(t, s, dir); summary(s).Totals.Input != c.input+1000 || summary(s).Diagnostics.Tails != 0 {
				t.Errorf("%s: once it is finished, input %d", name, summary(s).Totals.Input)
			}
		}
	}
}

// TestLongLines: a line takes no memory for its length, in a record and in front of one.
func TestLongLines(t *testing.T) {
	const long = 48 << 20
	dir := t.TempDir()
	f, err := os.Create(filepath.Join(dir, "a.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	fill := bytes.Repeat([]byte("x"), long)
	for _, part := range [][]byte{[]byte(`{"type":"user","message":{"content":"`), fill, []byte("\"}}\n" + told("msg_a", 1)[:300]), fill, []byte("\n"),
		[]byte(strings.Replace(told("msg_b", 2), "quoted", string(fill), 1) + "\n" + told("msg_c", 4))} {
		if _, err := f.Write(part); err != nil {
			t.Fatal(err)
		}
	}
	f.Close()
	fill = nil
	runtime.GC()
	var was, is runtime.MemStats
	runtime.ReadMemStats(&was)
	s := scanned(t, dir, "")
	runtime.ReadMemStats(&is)
	if sum := summary(s); sum.Totals.Input != 6 || sum.Diagnostics.Malformed != 1 {
		t.Errorf("%+v", sum)
	}
	if took := is.TotalAlloc - was.TotalAlloc; took > 8<<20 {
		t.Errorf("it took %d bytes of memory", took)
	}
}

// TestFilesChange: what was counted stays counted, whatever becomes of the files; what is new adds.
func TestFilesChange(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a.jsonl"), filepath.Join(dir, "sub", "b.jsonl")
	put(t, a, told("msg_a", 1)+"\n"+told("own", 2)+"\n")
	s := scanned(t, dir, "")
	want := func(what string, input int64, vanished int) {
		t.Helper()
		update(t, s, dir)
		if sum := summary(s); sum.Totals.Input != input || sum.Diagnostics.Vanished != vanished {
			t.Errorf("%s: input %d, vanished %d; want %d, %d", what, sum.Totals.Input, sum.Diagnostics.Vanished, input, vanished)
		}
	}
	want("nothing new", 3, 0)
	put(t, a, told("msg_a", 1)+"\n"+told("own", 2)+"\n"+told("msg_b", 4)+"\n")
	want("it grew", 7, 0)
	put(t, a, told("msg_a", 1)+"\n"+told("own", 2)+"\n")
	want("it was cut", 7, 0)
	put(t, a, strings.Replace(told("msg_a", 1)+"\n"+told("own", 3)+"\n", "text", "TEXT", 1))
	want("written anew in place, the same size: an id of its own counts again", 10, 0)
	os.Remove(a)
	want("it is gone", 10, 1)
	put(t, b, told("msg_a", 1)+"\n"+told("msg_c", 8)+"\n")
	want("another one with an old response", 18, 1)
	put(t, a, told("own", 2)+"\n"+told("msg_d", 16)+"\n")
	want("it is there again: a known record counts once", 34, 0)
	if err := os.Rename(b, filepath.Join(dir, "c.jsonl")); err != nil {
		t.Fatal(err)
	}
	want("one has another name", 34, 1)
}

// TestStreams: the events of a stream tell the output of a response where its records do not, and count it no second time.
func TestStreams(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "stream.jsonl"), strings.Join([]string{
		`{"type":"system","subtype":"init","session_id":"s","model":"claude-opus-5-5"}`,
		`{"type":"stream_event","event":{"type":"message_start","message":{"id":"msg_a","model":"claude-opus-5-5","usage":{"input_tokens":50,"output_tokens":1}}},"session_id":"s"}`,
		`{"type":"stream_event","event":{"type":"content_block_delta","delta":{"text":"x"},"usage":{"input_tokens":900}},"api_message_id":"msg_a","session_id":"s"}`,
		`{"type":"assistant","message":{"id":"msg_a","model":"claude-opus-5-5","usage":{"input_tokens":50,"output_tokens":1}},"session_id":"s"}`,
		`{"api_message_id":"msg_a","type":"stream_event","event":{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":70}},"session_id":"s"}`,
		`{"type":"stream_event","event":{"type":"message_delta","usage":{"output_tokens":900}},"session_id":"s"}`, // of which one?
		`{"type":"result","usage":{"input_tokens":900},"modelUsage":{"claude-opus-5-5":{"inputTokens":900}},"session_id":"s"}`}, "\n"))
	put(t, filepath.Join(dir, "transcript.jsonl"), strings.Replace(told("msg_a", 50), `"output_tokens":1`, `"output_tokens":70`, 1)+"\n")
	sum := summary(scanned(t, dir, ""))
	if got := sum.Totals; got.Messages != 1 || got.Input != 50 || got.Output != 70 || sum.ByModel["claude-opus-5-5"].Tokens != 120 {
		t.Errorf("%+v", sum)
	}
}

// TestWhatIsNoFile: nothing but regular files is opened, links lead nowhere, and what cannot be read is told.
func TestWhatIsNoFile(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	put(t, filepath.Join(dir, "projects", "a.jsonl"), told("msg_a", 1))
	put(t, filepath.Join(dir, "b.jsonl"), told("msg_b", 2)) // not among the projects
	put(t, filepath.Join(other, "c.jsonl"), told("msg_c", 4))
	put(t, filepath.Join(dir, "projects", "d.json"), told("msg_d", 8))
	for _, err := range []error{os.Symlink(other, filepath.Join(dir, "projects", "linked")), os.Symlink(filepath.Join(other, "c.jsonl"), filepath.Join(dir, "projects", "c.jsonl")),
		unix.Mkfifo(filepath.Join(dir, "projects", "e.jsonl"), 0o644), os.Mkdir(filepath.Join(dir, "projects", "f.jsonl"), 0o755)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if got := summary(scanned(t, dir, "")).Totals.Input; got != 1 {
		t.Errorf("input %d", got)
	}
	s := NewScan("")
	if err := s.Update(t.Context(), filepath.Join(dir, "none")); !os.IsNotExist(err) {
		t.Errorf("a folder that is not there: %v", err)
	}
	if err := s.Update(t.Context(), filepath.Join(dir, "b.jsonl")); err == nil {
		t.Error("a file instead of a folder")
	}
	if os.Geteuid() != 0 {
		if err := os.Chmod(filepath.Join(dir, "projects", "a.jsonl"), 0); err != nil {
			t.Fatal(err)
		}
		if err := s.Update(t.Context(), dir); err != nil || len(s.Unreadable()) != 1 {
			t.Errorf("unreadable: %v, %v", s.Unreadable(), err)
		}
	}
}

// TestState: a state that is damaged or belongs to another scan is refused and left as it is.
func TestState(t *testing.T) {
	dir, path := t.TempDir(), filepath.Join(t.TempDir(), "state")
	put(t, filepath.Join(dir, "a.jsonl"), told("msg_a", 1)+"\n"+told("own", 2)+"\n"+strings.Replace(told("msg_b", 4), `"output_tokens":1`,
		`"output_tokens":1,"speed":"fast","iterations":[{"type":"advisor_message","model":"claude-opus-5","input_tokens":8,"speed":"fast"}]`, 1)+"\n")
	s := scanned(t, dir, "")
	if err := s.Save(path); err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	again, err := LoadScan(path, "")
	if err != nil || fmt.Sprint(summary(again)) != fmt.Sprint(summary(s)) {
		t.Fatalf("%v\n%+v\n%+v", err, summary(again), summary(s))
	}
	if bytes.Contains(good, []byte("quoted")) {
		t.Error("the state holds what was said")
	}
	update(t, again, dir)
	if info, _ := os.Stat(path); info != nil {
		_ = again.Save(path)
		if now, _ := os.Stat(path); !os.SameFile(info, now) {
			t.Error("it was written though nothing is new")
		}
	}
	if _, err := LoadScan(path, "/srv"); err == nil {
		t.Error("a state of all records was taken for one of a folder")
	}
	for cut := range len(good) {
		put(t, path, string(good[:cut]))
		if _, err := LoadScan(path, ""); err == nil {
			t.Fatalf("cut at %d: accepted", cut)
		}
	}
	for name, bad := range map[string]string{
		"version": strings.Replace(string(good), `"v":1`, `"v":2`, 1), "line twice": string(good) + "u 00 00\n",
		"negative": strings.Replace(string(good), " 0 1 0 ", " 0 1 -1 ", 1), "letters": strings.Replace(string(good), "\nr ", "\nr x", 1),
		"model": strings.Replace(string(good), `"models":["claude-opus-5-5"]`, `"models":[]`, 1),
	} {
		put(t, path, bad)
		if _, err := LoadScan(path, ""); err == nil && bad != string(good) {
			t.Errorf("%s: accepted", name)
		}
	}
	if s, err := LoadScan(filepath.Join(dir, "none"), ""); err != nil || summary(s).Totals.Messages != 0 {
		t.Error("no state is an empty one:", err)
	}
}

// FuzzTranscript: whatever stands in a file, a scan ends, counts nothing twice, and ends the same when it reads the file
// in two pieces.
func FuzzTranscript(f *testing.F) {
	for _, e := range examples(f) {
		for _, data := range e.files {
			f.Add([]byte(data), len(data)/2)
		}
	}
	f.Add([]byte(told("msg_a", 1)[:200]+told("own", 2)+"\x00\n{"), 300)
	f.Fuzz(func(t *testing.T, data []byte, cut int) {
		count := func(parts ...int) (*Count, found, int64) {
			c, from, malformed := NewCount(), int64(0), int64(0)
			var last found
			for _, end := range parts {
				tx := newText(bytes.NewReader(data), from, int64(end))
				last = tx.records(func(l *line) {
					if l.kind == "user" {
						c.Break("s", l.sidechain)
					} else if r, ok := l.record("s"); ok {
						c.Add(r)
					}
				})
				if last.offset < from || last.offset > int64(end) {
					t.Fatalf("offset %d, read from %d to %d", last.offset, from, end)
				}
				from = last.offset
				malformed += last.malformed
			}
			return c, last, malformed
		}
		whole, at, _ := count(len(data))
		sum := whole.Summary(list.Cost, time.UTC)
		if sum.Nano < 0 || sum.Totals.All < 0 {
			t.Fatalf("%+v", sum)
		}
		if cut = max(0, min(cut, len(data))); bytes.IndexByte(data[:cut], 0) >= 0 {
			return
		}
		for cut > 0 && data[cut-1] != '\n' { // a writer adds whole lines; what comes in the middle of one is the other test's
			cut--
		}
		pieces, end, _ := count(cut, len(data))
		if fmt.Sprint(pieces.Summary(list.Cost, time.UTC)) != fmt.Sprint(sum) || end.offset != at.offset {
			t.Fatalf("in two pieces %+v\nin one %+v", pieces.Summary(list.Cost, time.UTC), sum)
		}
	})
}
