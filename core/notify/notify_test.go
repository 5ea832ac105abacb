package notify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/journal"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func nothing() error { return nil }

func TestQuietHours(t *testing.T) {
	at := func(s string) time.Time {
		v, err := time.Parse("2006-01-02 15:04", s)
		ok(t, err)
		return v
	}
	for _, c := range []struct {
		quiet, now string
		want       bool
	}{
		{"", "2026-01-01 03:00", false},
		{"22:00-07:00", "2026-01-01 21:59", false}, {"22:00-07:00", "2026-01-01 22:00", true}, {"22:00-07:00", "2026-01-01 06:59", true}, {"22:00-07:00", "2026-01-01 07:00", false},
		{"12:30-13:15", "2026-01-01 12:29", false}, {"12:30-13:15", "2026-01-01 12:30", true}, {"12:30-13:15", "2026-01-01 13:15", false},
		{"22:00-07:00 Europe/Berlin", "2026-01-01 20:59", false}, {"22:00-07:00 Europe/Berlin", "2026-01-01 21:00", true}, // winter
		{"01:30-02:30 Europe/Berlin", "2026-03-29 00:59", true}, {"01:30-02:30 Europe/Berlin", "2026-03-29 01:00", false}, // from 01:59 to 03:00
		{"02:30-07:00 Europe/Berlin", "2026-03-29 00:59", false}, {"02:30-07:00 Europe/Berlin", "2026-03-29 01:00", true},
		{"02:00-02:30 Europe/Berlin", "2026-10-25 00:15", true}, {"02:00-02:30 Europe/Berlin", "2026-10-25 00:45", false}, // 02:15 comes twice
		{"02:00-02:30 Europe/Berlin", "2026-10-25 01:15", true}, {"02:00-02:30 Europe/Berlin", "2026-10-25 01:30", false},
		{"22:00-07:00 Europe/Berlin", "2026-07-01 20:00", true}, {"22:00-07:00 Europe/Berlin", "2026-07-01 05:00", false}, // summer
	} {
		q, err := ParseQuiet(c.quiet)
		ok(t, err)
		if q.Holds(at(c.now)) != c.want {
			t.Errorf("%q at %s: %v", c.quiet, c.now, !c.want)
		}
	}
	for _, s := range []string{"22-7", "22:00", "22:00-22:00", "24:00-07:00", "22:00-07:60", "2:00-07:00", "22:00-07:00 Nowhere/X", "22:00-07:00 Local", "22:00-07:00 ../../etc/passwd", "x"} {
		if q, err := ParseQuiet(s); err == nil {
			t.Errorf("%q: %+v", s, q)
		}
	}
}

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"plain\n\ttext 😀": "plain\n\ttext 😀", "a\x1b[1;31mb\x1b[0mc": "abc", "a\x1b]0;t": "a0;t", "\x1b": "", "\x1b[": "", "a\x00b\rc\x7fd\u009be": "abcde",
		"\u202eabc\u2066d\u200f": "abcd", "\xff\xfe": "\ufffd", "\ud7ff": "\ud7ff", "cut \xf0\x9f\x98": "cut \ufffd",
	} {
		if got := Clean(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}

func FuzzClean(f *testing.F) {
	f.Add("a\x1b[1m\xf0\x9f")
	f.Fuzz(func(t *testing.T, s string) {
		c := Clean(s)
		if strings.ContainsAny(c, "\x00\x1b\r") || strings.ToValidUTF8(c, "") != c || Clean(c) != c {
			t.Errorf("%q became %q", s, c)
		}
	})
}

// TestChooseSaysAllOnce: whatever waits, and however a send ends, each message is given to the channel, in order of
// urgency, and is at most once marked as a repetition.
func TestChooseSaysAllOnce(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		now := noon
		var rows []Row
		for i := range 1 + r.IntN(12) {
			x := Row{ID: fmt.Sprintf("%03d", i), Mission: fmt.Sprint("m", r.IntN(3)), State: Queued, At: noon.Add(time.Duration(r.IntN(20)) * time.Minute), Level: journal.Milestone}
			if r.IntN(3) == 0 {
				x.Level = journal.Blocker
			}
			if r.IntN(5) == 0 {
				x.Level, x.Buttons = journal.Blocker, []Button{{"a", "b"}}
			}
			rows = append(rows, x)
		}
		given, again := map[string]int{}, map[string]int{}
		for range 200 {
			now = now.Add(time.Minute)
			n := Choose(rows, now)
			if len(n.Park) > 0 && len(n.Park)+len(n.Rows) > len(rows) {
				t.Fatal("more than there is")
			}
			for _, p := range n.Park {
				rows = slices.DeleteFunc(rows, func(x Row) bool { return x.ID == p.ID })
			}
			if len(n.Rows) == 0 {
				break
			}
			if i := slices.IndexFunc(n.Rows, func(x Row) bool { return len(x.Buttons) > 0 }); i >= 0 && len(n.Rows) > 1 {
				t.Fatalf("seed %d: buttons stand with others", seed)
			}
			if !n.Again && n.Rows[0].rank() > 0 && slices.ContainsFunc(rows, func(x Row) bool { return x.rank() == 0 }) {
				t.Fatalf("seed %d: a blocker waits behind %s", seed, n.Rows[0].ID)
			}
			outcome := r.IntN(3)
			for _, s := range n.Rows {
				given[s.ID]++
				if n.Again {
					again[s.ID]++
				}
				i := slices.IndexFunc(rows, func(x Row) bool { return x.ID == s.ID })
				switch outcome {
				case 0:
					rows = slices.Delete(rows, i, i+1)
				case 1:
					if n.Again { // as the courier does: it is as unknown as before
						rows[i].Repeated = false
					}
				case 2:
					rows[i].State, rows[i].Batch, rows[i].Repeated = Unknown, "b"+n.Rows[0].ID, rows[i].Repeated || n.Again
				}
			}
		}
		if len(rows) > 0 {
			t.Errorf("seed %d: %d are left", seed, len(rows))
		}
	}
}

// TestOldOnesAreParked: a week is long enough; what waited shorter is told.
// TestTwoOfOneName: rows of two missions with one id and one name are two messages.
func TestTwoOfOneName(t *testing.T) {
	rows := []Row{{ID: "1", Mission: "m", State: Unknown, At: noon, box: Outbox{Dir: "a"}}, {ID: "1", Mission: "m", State: Unknown, At: noon, box: Outbox{Dir: "b"}}}
	if n := Choose(rows, noon); len(n.Rows) != 1 || n.Rows[0].box.Dir != "a" {
		t.Errorf("%+v", n)
	}
}

func TestOldOnesAreParked(t *testing.T) {
	rows := []Row{{ID: "old", State: Queued, At: noon.Add(-TooOld - time.Second), Error: "no network"}, {ID: "new", State: Queued, At: noon.Add(-TooOld + time.Second)}}
	n := Choose(rows, noon)
	if len(n.Park) != 1 || n.Park[0].ID != "old" || !strings.Contains(n.Park[0].Error, "no network") || len(n.Rows) != 1 || n.Rows[0].ID != "new" {
		t.Errorf("%+v", n)
	}
}

// TestOutbox: a row is there once, in whatever state; what a sender left half put away is put away.
func TestOutbox(t *testing.T) {
	o := Outbox{Dir: filepath.Join(t.TempDir(), "notify")}
	for range 2 {
		ok(t, o.Put(Row{ID: "a", At: noon, Text: "x"}))
	}
	rows, _, err := o.Pending(noon)
	if ok(t, err); len(rows) != 1 || rows[0].State != Queued {
		t.Fatalf("%+v", rows)
	}
	r := rows[0]
	r.State = Sent
	b, _ := encode(r)
	ok(t, os.WriteFile(filepath.Join(o.Dir, "new", "a.json"), b, 0o600)) // died before the move
	rows, _, err = o.Pending(noon)
	ok(t, err)
	rows, err = o.Tidy(rows)
	if ok(t, err); len(rows) != 0 {
		t.Errorf("%+v", rows)
	}
	ok(t, o.Put(Row{ID: "a", At: noon, Text: "x"}))
	if rows, _, _ := o.Pending(noon); len(rows) != 0 {
		t.Error("it is there again")
	}
	ok(t, os.WriteFile(filepath.Join(o.Dir, "new", "bad.json"), []byte("{"), 0o600))
	ok(t, os.WriteFile(filepath.Join(o.Dir, "new", ".tmp-1"), []byte("{"), 0o600))
	ok(t, o.Put(Row{ID: "b", At: noon, Text: "x"}))
	rows, bad, err := o.Pending(noon)
	if ok(t, err); len(rows) != 1 || len(bad) != 1 || bad[0] != "bad.json" {
		t.Errorf("%+v, %q", rows, bad)
	}
	if kept, _ := filepath.Glob(filepath.Join(o.Dir, "new", "bad.json.bad-*")); len(kept) != 1 {
		t.Error("it is gone")
	}
	ok(t, o.Prune(noon))
}

func message() Message {
	return Message{Mission: "my-site", Level: journal.Blocker, Parts: []Part{{Label: "my-site b-1", Level: journal.Blocker, Title: "T <&>", Text: "x"}}}
}

func TestExec(t *testing.T) {
	dir := t.TempDir()
	program := func(script string) Exec {
		path := filepath.Join(t.TempDir(), "tell")
		ok(t, os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o700))
		return Exec{Program: path, Env: []string{"OUT=" + dir + "/out", "PATH=/usr/bin:/bin"}, Timeout: 5 * time.Second}
	}
	if _, err := program(`cat >"$OUT"; env | grep -c .`).Send(t.Context(), message(), nothing); err != nil {
		t.Error(err)
	}
	b, err := os.ReadFile(dir + "/out")
	ok(t, err)
	var p Payload
	if err := json.Unmarshal(b, &p); err != nil || p.Text != "[my-site b-1] T <&>\nx" || p.Mission != "my-site" || p.Level != "blocker" || len(p.Parts) != 1 || p.Again {
		t.Errorf("%s", b)
	}
	var refused *Refused
	var uncertain *Uncertain
	if _, err := program("echo busy >&2; exit 75").Send(t.Context(), message(), nothing); !errors.As(err, &refused) || !strings.Contains(err.Error(), "busy") {
		t.Error(err)
	}
	if _, err := program("echo wrong >&2; exit 3").Send(t.Context(), message(), nothing); err == nil || errors.As(err, new(*Refused)) || errors.As(err, &uncertain) || !strings.Contains(err.Error(), "wrong") {
		t.Error(err)
	}
	if _, err := program("kill -9 $$").Send(t.Context(), message(), nothing); !errors.As(err, &uncertain) {
		t.Error(err)
	}
	hanging := program("sleep 100 & wait")
	hanging.Timeout = 200 * time.Millisecond
	if _, err := hanging.Send(t.Context(), message(), nothing); !errors.As(err, &uncertain) {
		t.Error(err)
	}
	if _, err := (Exec{Program: dir + "/none"}).Send(t.Context(), message(), nothing); !errors.As(err, &refused) {
		t.Error(err)
	}
	full := errors.New("disk full")
	if _, err := program("touch $OUT.ran").Send(t.Context(), message(), func() error { return full }); !errors.Is(err, full) || exists(dir+"/out.ran") {
		t.Error("it ran without a record", err)
	}
}

func exists(path string) bool { _, err := os.Stat(path); return err == nil }

func TestWebhook(t *testing.T) {
	status, got, calls := 204, "", 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls++
		b, _ := io.ReadAll(r.Body)
		got = r.Method + " " + r.Header.Get("Content-Type") + " " + string(b)
		if status == 0 {
			c, _, _ := w.(http.Hijacker).Hijack()
			c.(*net.TCPConn).SetLinger(0)
			c.Close()
			return
		}
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(status)
	}))
	defer s.Close()
	w := Webhook{URL: s.URL + "/secret-path?key=secret", Timeout: 5 * time.Second}
	m := message()
	m.Again = true
	if _, err := w.Send(t.Context(), m, nothing); err != nil || !strings.HasPrefix(got, "POST application/json {") || !strings.Contains(got, `x (again)"`) {
		t.Error(err, got)
	}
	var refused *Refused
	var uncertain *Uncertain
	for _, code := range []int{429, 500, 503, 408} {
		status = code
		if _, err := w.Send(t.Context(), m, nothing); !errors.As(err, &refused) || refused.After != 7*time.Second {
			t.Error(code, err)
		}
	}
	for _, code := range []int{400, 404, 301, 410} {
		status = code
		if _, err := w.Send(t.Context(), m, nothing); err == nil || errors.As(err, new(*Refused)) || errors.As(err, new(*Uncertain)) {
			t.Error(code, err)
		}
	}
	status = 0
	_, err := w.Send(t.Context(), m, nothing)
	if !errors.As(err, &uncertain) {
		t.Error(err)
	}
	said := fmt.Sprint(err, w.Name())
	calls, status = 0, 204
	full := errors.New("disk full")
	if _, err := w.Send(t.Context(), m, func() error { return full }); !errors.Is(err, full) || strings.Contains(got, "disk") {
		t.Error(err)
	}
	s.Close()
	_, err = w.Send(t.Context(), m, nothing)
	if !errors.As(err, &refused) {
		t.Error(err)
	}
	if said += err.Error(); strings.Contains(said, "secret") {
		t.Errorf("the address is told: %s", said)
	}
}

// TestCourierKeepsARecord: where the record that it leaves cannot be written, nothing leaves.
func TestCourierKeepsARecord(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Log("root can write anywhere: only the other half is tested")
	}
	sent := 0
	dir := t.TempDir()
	o := Outbox{Dir: filepath.Join(dir, "notify")}
	ok(t, o.Put(Row{ID: "a", Mission: "m", At: noon, Text: "x"}))
	c := Courier{Channel: channel(func(before func() error) (Receipt, error) {
		ok(t, os.Rename(filepath.Join(o.Dir, "new"), filepath.Join(o.Dir, "away")))
		if err := before(); err != nil {
			return Receipt{}, &Refused{Err: err}
		}
		sent++
		return Receipt{}, nil
	}), Outboxes: func() ([]Outbox, error) { return []Outbox{o}, nil }, Dir: dir, Now: func() time.Time { return noon }, Log: slog.New(slog.DiscardHandler)}
	_, _, _, err := c.Step(t.Context())
	if err == nil || sent != 0 {
		t.Error("it was sent", err)
	}
}

type channel func(before func() error) (Receipt, error)

func (c channel) Name() string       { return "test" }
func (c channel) Gap() time.Duration { return 0 }
func (c channel) Send(_ context.Context, _ Message, before func() error) (Receipt, error) {
	return c(before)
}
