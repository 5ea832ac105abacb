package telegram

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/journal"
	"example.com/AutoAgentProject/core/notify"
	"example.com/AutoAgentProject/core/usererr"
)

// TestLostOnExit: a message that could not be sent is sent by whoever starts next.
func TestLostOnExit(t *testing.T) {
	f := newFake(t)
	dir := t.TempDir()
	w := worldAt(t, dir, f, "my-site")
	w.put("1", "my-site e-1", "end of mission", journal.End)
	w.Client.endpoint = closedPort(t)
	if left := w.step(); left != 1 {
		t.Errorf("%d left", left)
	}
	w = worldAt(t, dir, f) // another process
	w.clock.add(time.Hour)
	if left := w.step(); left != 0 {
		t.Errorf("%d left", left)
	}
	w.said("after the restart", "[my-site e-1] end of mission")
	if f.count("send") != 1 {
		t.Errorf("%d requests", f.count("send"))
	}
}

// TestTimeoutButDelivered: it is repeated once, with the same id, marked; a second unknown outcome is the last.
func TestTimeoutButDelivered(t *testing.T) {
	w := newWorld(t, "my-site")
	w.put("1", "b-17", "...", journal.Blocker)
	w.fake.breaks(lost)
	w.step()
	w.clock.add(time.Minute)
	if left := w.step(); left != 0 {
		t.Errorf("%d left", left)
	}
	w.said("repeated", "[b-17] ...", "[b-17] ... (again)")

	w.put("2", "b-18", "x", journal.Blocker)
	w.fake.breaks(lost, lost)
	for range 5 {
		w.clock.add(time.Minute)
		w.step()
	}
	w.said("twice unknown", "[b-17] ...", "[b-17] ... (again)", "[b-18] x", "[b-18] x (again)")
	parked, err := w.box("my-site").Done(notify.Parked, "")
	if err != nil || len(parked) != 1 || parked[0].Label != "b-18" || parked[0].Error == "" {
		t.Errorf("%+v, %v", parked, err)
	}
}

// TestRefusedAfterUnknown: a try that surely failed does not use up the one repetition.
func TestRefusedAfterUnknown(t *testing.T) {
	w := newWorld(t, "my-site")
	w.put("1", "b-1", "x", journal.Blocker)
	w.fake.breaks(lost, html502, empty500, slow(3))
	for range 8 {
		w.clock.add(time.Minute)
		w.step()
	}
	w.said("after all that", "[b-1] x", "[b-1] x (again)")
}

// TestSpecialCharacters: what names and agents contain arrives as it is, without any markup.
func TestSpecialCharacters(t *testing.T) {
	const text = `job_name *x* [a](b) ` + "`c`" + ` <10% left & 5>3 - done. #1 ! {y} |z| ~ = + \ end`
	w := newWorld(t, "my-site")
	ok(t, w.box("my-site").Put(notify.Row{ID: "1", At: noon, Mission: "my-site", Level: journal.Milestone, Title: text, Text: text}))
	w.step()
	w.said("as it is", text+"\n"+text)
	if m := w.fake.shown()[0]; len(m.Bold) != 1 || m.Bold[0] != text {
		t.Errorf("%q", m.Bold)
	}
	// Telegram dislikes the ranges: the same text once more, plain.
	w.put("2", "", "same", journal.Milestone)
	w.fake.breaks(refused(400, "Bad Request: can't parse entities"))
	w.clock.add(time.Minute)
	w.step()
	w.said("plain", text+"\n"+text, "same")
	// It dislikes that too: it is never sent a third time.
	w.put("3", "m-3", "never", journal.Milestone)
	w.fake.breaks(refused(400, "Bad Request: no"), refused(400, "Bad Request: no"))
	for range 4 {
		w.clock.add(time.Minute)
		w.step()
	}
	if n := w.fake.count("send"); n != 5 {
		t.Errorf("%d requests", n)
	}
	if parked, _ := w.box("my-site").Done(notify.Parked, ""); len(parked) != 1 || !strings.Contains(parked[0].Error, "Bad Request: no") {
		t.Errorf("%+v", parked)
	}
}

// TestTruncationKeepsMarkup: cut text, not markup; ranges are clipped at the cut.
func TestTruncationKeepsMarkup(t *testing.T) {
	text := strings.Repeat("A", 4089) + "abcdefghij"
	span := []notify.Span{{Offset: 4089, Length: 10}}
	var covers []string
	parts := 0
	for done := 0; done < notify.Units(text); parts++ {
		piece := Piece(After(text, done), MaxText)
		if notify.Units(piece) > 4096 {
			t.Errorf("%d units", notify.Units(piece))
		}
		for _, e := range Clip(span, done, notify.Units(piece)) {
			covers = append(covers, piece[e.Offset:e.Offset+e.Length])
		}
		done += notify.Units(piece)
	}
	if parts != 2 || strings.Join(covers, "|") != "abcdefg|hij" {
		t.Errorf("%d parts, bold %q", parts, covers)
	}
	// The same through the wire, with a title that lies over the cut.
	w := newWorld(t, "my-site")
	ok(t, w.box("my-site").Put(notify.Row{ID: "1", At: noon, Mission: "my-site", Level: journal.Milestone, Text: strings.Repeat("A", 4087)}))
	ok(t, w.box("my-site").Put(notify.Row{ID: "2", At: noon, Mission: "my-site", Level: journal.Milestone, Title: strings.Repeat("😀", 20), Text: "end"}))
	for w.step() > 0 {
		w.clock.add(time.Minute)
	}
	all, boldly := "", ""
	for _, m := range w.fake.shown() {
		all += m.Text
		boldly += strings.Join(m.Bold, "")
	}
	if want := strings.Repeat("A", 4087) + "\n\n" + strings.Repeat("😀", 20) + "\nend"; all != want || boldly != strings.Repeat("😀", 20) || len(w.fake.shown()) != 2 {
		t.Errorf("%d messages, %d bytes, bold %q", len(w.fake.shown()), len(all), boldly)
	}
}

// TestKilledBetweenPieces: what arrived of a long message is not sent again.
func TestKilledBetweenPieces(t *testing.T) {
	w := newWorld(t, "my-site")
	text := strings.Repeat(strings.Repeat("x", 99)+"\n", 90)
	w.put("1", "", text, journal.Milestone)
	w.step()
	w.fake.breaks(lost)
	for w.clock.add(time.Minute); w.step() > 0; w.clock.add(time.Minute) {
	}
	got := w.texts()
	if len(got) != 4 || strings.Count(strings.Join(got, ""), notify.AgainMark) != 1 || !strings.HasSuffix(got[2], notify.AgainMark) {
		t.Fatalf("%d pieces; %s", len(got), w.log)
	}
	if all := got[0] + strings.TrimSuffix(got[2], notify.AgainMark) + got[3]; all != text {
		t.Errorf("%d bytes of %d", len(all), len(text))
	}
}

// TestLongGoesAsAFile: nothing of it is lost.
func TestLongGoesAsAFile(t *testing.T) {
	w := newWorld(t, "my-site")
	text := strings.Repeat("a line of text 😀\n", 2000)
	w.put("1", "m-1", text, journal.Milestone)
	if left := w.step(); left != 0 {
		t.Errorf("%d left", left)
	}
	if m := w.fake.shown(); len(m) != 1 || m[0].Document != "[m-1] "+text || !strings.HasPrefix(m[0].Text, "[m-1] a line") || units(m[0].Text) > MaxCaption {
		t.Errorf("%d messages", len(m))
	}
	// A file that must wait is told by the parameters alone.
	w.put("2", "m-2", text, journal.Milestone)
	w.fake.breaks(slow(40))
	w.clock.add(time.Minute)
	w.step()
	w.clock.add(40 * time.Second)
	w.step()
	if n := w.fake.count("send"); n != 2 {
		t.Errorf("%d requests, too early", n)
	}
	w.clock.add(time.Second)
	if w.step(); len(w.fake.shown()) != 2 {
		t.Error("not sent")
	}
}

// TestTooManyRequests: the time is waited for, and a second more; what piled up is one message.
func TestTooManyRequests(t *testing.T) {
	w := newWorld(t, "my-site")
	w.put("1", "m-1", "m1", journal.Milestone)
	w.fake.breaks(slow(34))
	w.step()
	w.put("2", "m-2", "m2", journal.Milestone)
	w.put("3", "m-3", "m3", journal.Milestone)
	w.clock.add(34 * time.Second)
	if w.step(); w.fake.count("send") != 1 {
		t.Error("too early")
	}
	w.clock.add(time.Second)
	if left := w.step(); left != 0 {
		t.Errorf("%d left", left)
	}
	w.said("bundled", "[m-1] m1\n\n[m-2] m2\n\n[m-3] m3")
	if n := w.fake.count("send"); n != 2 {
		t.Errorf("%d calls", n)
	}
}

// TestBlockersFirst: they overtake what waits.
func TestBlockersFirst(t *testing.T) {
	w := newWorld(t, "my-site")
	w.put("1", "m-1", "m1", journal.Milestone)
	w.fake.breaks(slow(34))
	w.step()
	w.put("2", "b-2", "b2", journal.Blocker)
	w.clock.add(40 * time.Second)
	w.step()
	w.clock.add(2 * time.Second)
	w.step()
	w.said("in order", "[b-2] b2", "[m-1] m1")
}

// TestThreeHoursWithoutNetwork: then one digest, in which nothing is missing.
func TestThreeHoursWithoutNetwork(t *testing.T) {
	t.Parallel()
	n := 45 // each is some writes that are synced
	if os.Getenv("AUTOAGENT_FULL") != "" {
		n = 180
	}
	w := newWorld(t, "my-site", "shop", "docs")
	home := w.Client.endpoint
	w.Client.endpoint = closedPort(t)
	for i := range n {
		id := []string{"my-site", "shop", "docs"}[i%3]
		level := journal.Milestone
		if i%15 == 14 {
			level = journal.Blocker
		}
		ok(t, w.box(id).Put(notify.Row{ID: fmt.Sprintf("%06d", i), Label: fmt.Sprintf("%s m-%d", id, i), Mission: id, At: w.clock.Now(), Level: level, Text: fmt.Sprintf("message %d.", i)}))
		w.step()
		w.clock.add(3 * time.Hour / time.Duration(n))
	}
	w.Client.endpoint = home
	for w.step() > 0 {
		w.clock.add(time.Minute)
	}
	m := w.fake.shown()
	if len(m) > 3 || w.fake.count("send") != len(m) {
		t.Fatalf("%d messages in %d requests", len(m), w.fake.count("send"))
	}
	all := ""
	for _, x := range m {
		all += x.Text + x.Document
	}
	for i := range n {
		if times := strings.Count(all, fmt.Sprintf("message %d.", i)); times != 1 {
			t.Errorf("message %d stands there %d times", i, times)
		}
	}
	if want := fmt.Sprintf("%d messages that waited, of 2026-03-01 12:00 to 2026-03-01 14:", n); !strings.HasPrefix(all, want) || !strings.HasPrefix(all[len(want)+6:], "\n\n[docs m-14]") {
		t.Errorf("it begins with %q", all[:100])
	}
}

// TestTokenStaysSecret: no error, log or file holds it, whatever goes wrong.
func TestTokenStaysSecret(t *testing.T) {
	w := newWorld(t, "my-site")
	_, secret, _ := strings.Cut(testToken, ":")
	var said strings.Builder
	try := func(err error) {
		t.Helper()
		if err == nil {
			t.Error("no error")
			return
		}
		for e := err; e != nil; e = errors.Unwrap(e) {
			fmt.Fprintf(&said, "%v %+v %#v\n", e, e, e)
		}
	}
	for _, endpoint := range []string{closedPort(t), "http://127.0.0.1:1", "http://host.invalid", "http://[::1", "http://127.0.0.1:0/%zz"} {
		c, err := New(testToken, endpoint)
		ok(t, err)
		_, err = c.Me(t.Context())
		try(err)
		_, err = c.Updates(t.Context(), 0, 0)
		try(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := w.Client.Me(ctx)
	try(err)
	// A peer that says the token back.
	w.fake.breaks(refused(400, "Bad Request: bot"+testToken+" "+secret), refused(400, "Bad Request: bot"+testToken+" "+secret))
	w.put("1", "m-1", "x", journal.Milestone)
	w.step()
	w.Client.endpoint = closedPort(t)
	w.put("2", "m-2", "x", journal.Milestone)
	w.clock.add(time.Minute)
	w.step()
	for _, wrong := range []string{"", "x", "123:" + secret + " x", testToken + "\n" + testToken} {
		_, err := New(wrong, "")
		try(err)
		path := filepath.Join(t.TempDir(), "token")
		ok(t, os.WriteFile(path, []byte(wrong+"?"), 0o600))
		_, err = ReadToken(path)
		try(err)
	}
	said.WriteString(w.log.String())
	ok(t, filepath.WalkDir(string(w.root), func(path string, d os.DirEntry, err error) error {
		said.WriteString(path)
		if b, err := os.ReadFile(path); err == nil {
			said.Write(b)
		}
		return err
	}))
	if i := strings.Index(said.String(), secret); i >= 0 {
		t.Errorf("it stands in: …%s", said.String()[max(0, i-200):i+20])
	}
	if !strings.Contains(said.String(), "Bad Request: bot[token]") {
		t.Error("the errors are not told")
	}
}

// TestTokenFile: one that others can read is refused.
func TestTokenFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	ok(t, os.WriteFile(path, []byte(testToken+"\n"), 0o600))
	if got, err := ReadToken(path); got != testToken || err != nil {
		t.Error(got, err)
	}
	for _, mode := range []os.FileMode{0o640, 0o604, 0o666} {
		ok(t, os.Chmod(path, mode))
		if _, err := ReadToken(path); usererr.CodeOf(err) != usererr.Environment {
			t.Errorf("%o: %v", mode, err)
		}
	}
	if _, err := ReadToken(path + ".none"); usererr.CodeOf(err) != usererr.Environment {
		t.Error(err)
	}
}

// TestGroupUpgraded: the new id is kept, the message sent again once, also by the next process.
func TestGroupUpgraded(t *testing.T) {
	const new = int64(-1001234567890)
	f := newFake(t)
	dir := t.TempDir()
	w := worldAt(t, dir, f, "my-site")
	f.chat = new
	f.breaks(moved(new))
	w.put("1", "m-1", "x", journal.Milestone)
	if left := w.step(); left != 0 || f.count("send") != 2 {
		t.Errorf("%d left, %d requests", left, f.count("send"))
	}
	w = worldAt(t, dir, f)
	w.put("2", "m-2", "y", journal.Milestone)
	w.clock.add(time.Minute)
	w.step()
	if m := f.shown(); len(m) != 2 || m[0].Chat != new || m[1].Chat != new || f.count("send") != 3 {
		t.Errorf("%+v", m)
	}
	if _, _, yes := Read(updateIn(new, testUser), w.Who, func(string) bool { return true }, noon); !yes {
		t.Error("the person is not listened to in the new group")
	}
}

// TestGroupSaysThatItIsUpgraded: Telegram tells it in the group as well, and then nothing is refused first. Of another group it
// means nothing.
func TestGroupSaysThatItIsUpgraded(t *testing.T) {
	const new = int64(-1001234567890)
	f := newFake(t)
	w := worldAt(t, t.TempDir(), f, "my-site")
	f.chat = new
	f.update(map[string]any{"message": map[string]any{"message_id": 1, "date": 1, "from": map[string]any{"id": 99}, "chat": map[string]any{"id": 99}, "migrate_to_chat_id": -100999}})
	w.take()
	if w.Who.Chat != testChat {
		t.Fatal("another group moved this chat")
	}
	f.update(map[string]any{"message": map[string]any{"message_id": 1, "date": 1, "from": map[string]any{"id": 99}, "chat": map[string]any{"id": testChat}, "migrate_to_chat_id": new}})
	w.take()
	w.put("1", "m-1", "x", journal.Milestone)
	if left := w.step(); left != 0 || f.count("send") != 1 || f.shown()[0].Chat != new {
		t.Errorf("%d left, %d requests: %+v", left, f.count("send"), f.shown())
	}
	if s, err := ReadState(w.Dir); err != nil || s.Chat != new || s.From != testChat {
		t.Errorf("%+v, %v", s, err)
	}
}

// TestNobodyTakesIt: a bot that was blocked or a token that was withdrawn keep the messages.
func TestNobodyTakesIt(t *testing.T) {
	for _, f := range []fault{refused(403, "Forbidden: bot was blocked by the user"), refused(401, "Unauthorized"), refused(400, "Bad Request: chat not found"), {code: 404, body: `{"ok":false,"error_code":404,"description":"Not Found"}`}, {code: 403, body: "<html>proxy"}} {
		w := newWorld(t, "my-site")
		w.put("1", "m-1", "x", journal.Milestone)
		w.fake.breaks(f, f)
		for range 2 {
			w.step()
			w.clock.add(time.Minute)
		}
		if left := w.step(); left != 0 || w.fake.count("send") != 3 {
			t.Errorf("%v: %d left, %d requests", f, left, w.fake.count("send"))
		}
		if h := notify.ReadHealth(w.Dir); h.Failures != 0 || h.LastSent.IsZero() {
			t.Errorf("%+v", h)
		}
	}
}

// TestPace: no more than one message in a second, in a group one in three, across all missions.
func TestPace(t *testing.T) {
	w := newWorld(t, "my-site", "shop")
	w.put("1", "b-1", "x", journal.Blocker)
	w.step()
	ok(t, w.box("shop").Put(notify.Row{ID: "1", Mission: "shop", At: w.clock.Now(), Level: journal.Blocker, Text: "y"}))
	if w.step(); w.fake.count("send") != 1 {
		t.Error("at once")
	}
	w.clock.add(time.Second)
	if w.step(); w.fake.count("send") != 2 {
		t.Error("not after a second")
	}
	if (Sender{Chat: func() int64 { return -1 }}).Gap() != 3*time.Second {
		t.Error("a group")
	}
}
