package telegram

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"

	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/notify"
	"example.com/AutoAgentProject/core/store"
	"example.com/AutoAgentProject/core/usererr"
)

func updateIn(chat, user int64) tgbotapi.Update {
	return tgbotapi.Update{UpdateID: 5, Message: &tgbotapi.Message{MessageID: 1, Text: "/status", From: &tgbotapi.User{ID: user}, Chat: &tgbotapi.Chat{ID: chat}}}
}

// TestStrangersAreIgnored: whoever is not the person in its chat, writing by itself, is ignored and counted.
func TestStrangersAreIgnored(t *testing.T) {
	w := newWorld(t, "my-site")
	msg := func(more map[string]any) map[string]any {
		m := map[string]any{"message_id": 1, "date": 1, "from": person(testUser), "chat": chatOf(testChat), "text": "/pause"}
		for k, v := range more {
			m[k] = v
		}
		return map[string]any{"message": m}
	}
	press := func(more map[string]any) map[string]any {
		m := map[string]any{"id": "q", "from": person(testUser), "data": "ab:my-site:0:y:x", "message": map[string]any{"message_id": 1, "date": 1, "from": person(testUser), "chat": chatOf(testChat)}}
		for k, v := range more {
			m[k] = v
		}
		return map[string]any{"callback_query": m}
	}
	bot := person(testUser)
	bot["is_bot"] = true
	strangers := []map[string]any{
		msg(map[string]any{"from": person(666)}), msg(map[string]any{"from": person(666), "chat": chatOf(666)}), msg(map[string]any{"chat": chatOf(-100)}),
		msg(map[string]any{"from": nil}), msg(map[string]any{"from": bot}), msg(map[string]any{"sender_chat": chatOf(-5)}),
		msg(map[string]any{"forward_date": 1}), msg(map[string]any{"forward_from": person(666)}), msg(map[string]any{"forward_sender_name": "x"}),
		msg(map[string]any{"via_bot": bot}), msg(map[string]any{"edit_date": 2}),
		{"edited_message": msg(nil)["message"]}, {"channel_post": msg(nil)["message"]},
		press(map[string]any{"from": person(666)}), press(map[string]any{"from": nil}), press(map[string]any{"message": nil}),
		press(map[string]any{"message": map[string]any{"message_id": 1, "date": 1, "chat": chatOf(-7)}}),
		{"message": "no object"}, {"inline_query": map[string]any{"id": "1", "from": person(testUser), "query": "/pause"}},
	}
	for _, s := range strangers {
		w.fake.update(s)
	}
	w.take()
	if did := w.hand.done(); len(did) != 0 || len(w.answers()) != 0 {
		t.Errorf("did %q, answered %d", did, len(w.answers()))
	}
	// Forwarded and edited messages of the person's own are ignored, but they are nobody else's.
	if w.state.Ignored < 10 || w.state.Last.User != 666 {
		t.Errorf("%+v", w.state)
	}
	w.fake.writes("/pause")
	w.take()
	if did := w.hand.done(); len(did) != 1 || did[0] != "pause my-site" {
		t.Errorf("%q", did)
	}
	if w.state.Offset != 1000+len(strangers)+1 {
		t.Errorf("offset %d", w.state.Offset)
	}
}

func TestCommands(t *testing.T) {
	known := func(id string) bool { return id == "my-site" || id == "shop" }
	for text, want := range map[string]string{
		"/status":                       "status",
		"/status my-site":               "status my-site",
		"/STATUS@example_bot my-site":   "status my-site",
		"/costs shop":                   "costs shop",
		"/pause":                        "pause",
		"/resume my-site":               "resume my-site",
		"/abort my-site":                "abort my-site",
		"/abort my-site now":            "wrong",
		"/abort my_site":                "wrong",
		"/mute":                         "mute",
		"/unmute shop":                  "unmute shop",
		"/ack":                          "ack",
		"/approve 3":                    "approve 3",
		"/approve my-site 3":            "approve my-site 3",
		"/approve my-site 3 do it\nso":  "approve my-site 3 do it\nso",
		"/reject 2 no":                  "reject 2 no",
		"/approve":                      "wrong",
		"/approve my-site":              "wrong",
		"/approve 0":                    "wrong",
		"/approve -1":                   "wrong",
		"/approve 99999999999999999999": "wrong",
		"/tell shop hello there":        "tell shop hello there",
		"/tell hello there":             "tell hello there",
		"/tell":                         "wrong",
		"/help":                         "help",
		"/start":                        "help",
		"/":                             "wrong",
		"/rm -rf":                       "wrong",
		"use the old colours":           "tell use the old colours",
		"shop: use the old colours":     "tell shop use the old colours",
		"note: not a mission":           "tell note: not a mission",
		"shop:":                         "tell shop:",
		"approve 3":                     "tell approve 3",
		"yes":                           "tell yes",
		"  /status\u00a0shop  ":         "status shop",
	} {
		a := command(Action{}, text, known)
		got := a.Verb
		if a.Verb != Wrong {
			if a.Mission != "" {
				got += " " + a.Mission
			}
			if a.N > 0 {
				got += fmt.Sprint(" ", a.N)
			}
			if a.Note != "" {
				got += " " + a.Note
			}
		} else if a.Note == "" {
			t.Errorf("%q: nothing says what is wrong", text)
		}
		if got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// TestButtonData: what a button carries is read back; the longest fits.
func TestButtonData(t *testing.T) {
	id := strings.Repeat("a", 40)
	for _, b := range notify.ApprovalButtons(id, mission.Approval{N: 9999, Nonce: "n", Subject: "s"}) {
		if p, ok := notify.ParsePress(b.Data); len(b.Data) > 64 || !ok || p.Mission != id || p.N != 9999 {
			t.Errorf("%d bytes, %+v", len(b.Data), p)
		}
	}
	for _, data := range []string{"", "ap", "ap:my-site:1:y", "ap:my-site:0:y:t", "ap:my-site:01:y:t", "ap:my-site:-1:y:t", "ap:My:1:y:t", "ap:my-site:1:x:t", "ap:my-site:1:y:", "ab:my-site:1:y:t", "xx:my-site:1:y:t", "ap:my-site:1:y:" + strings.Repeat("t", 60), "ap:my-site:1:y:t:u"} {
		if p, ok := notify.ParsePress(data); ok {
			t.Errorf("%q: %+v", data, p)
		}
	}
}

// TestWhichMission: the mission may be left out while exactly one is live.
func TestWhichMission(t *testing.T) {
	w := newWorld(t)
	w.fake.writes("/pause")
	w.take()
	if !strings.Contains(w.lastAnswer(), "no mission is live") {
		t.Errorf("%q", w.lastAnswer())
	}
	w = newWorld(t, "my-site", "shop")
	for _, text := range []string{"/pause", "/abort", "/approve 1", "a note", "/mute"} {
		w.fake.writes(text)
		w.take()
		if !strings.Contains(w.lastAnswer(), "my-site, shop") {
			t.Errorf("%q: %q", text, w.lastAnswer())
		}
	}
	w.fake.writes("/pause shop")
	w.fake.writes("/pause nosuch")
	w.take()
	if did := w.hand.done(); len(did) != 1 || did[0] != "pause shop" || w.lastAnswer() != "there is no mission nosuch" {
		t.Errorf("%q, %q", did, w.lastAnswer())
	}
	ok(t, stopIt(w.root.Mission("shop")))
	w.fake.writes("/ack")
	w.take()
	if did := w.hand.done(); did[1] != "ack my-site" {
		t.Errorf("%q", did)
	}
}

func stopIt(st *store.Store) error {
	_, err := st.Stop(mission.Stop{Cause: mission.Aborted, At: noon})
	return err
}

// TestAbortAsks: nothing is aborted before the second word, which counts once, for this mission, for a few minutes.
func TestAbortAsks(t *testing.T) {
	w := newWorld(t, "my-site")
	w.fake.writes("/abort")
	w.take()
	rows := w.answers()
	if len(w.hand.done()) != 0 || len(rows) != 1 || len(rows[0].Buttons) != 2 {
		t.Fatalf("%q, %+v", w.hand.done(), rows)
	}
	yes, no := rows[0].Buttons[0].Data, rows[0].Buttons[1].Data
	w.fake.presses(666, yes)
	w.take()
	if len(w.hand.done()) != 0 {
		t.Fatal("a stranger aborted it")
	}
	w.fake.presses(testUser, no)
	w.take()
	w.fake.presses(testUser, yes)
	w.take()
	if len(w.hand.done()) != 0 || !strings.Contains(w.lastAnswer(), "closed") {
		t.Fatal("it was kept, and aborted by the old button", w.hand.done())
	}
	w.fake.writes("/abort")
	w.take()
	rows = w.answers()
	yes = rows[len(rows)-1].Buttons[0].Data
	w.clock.add(abortAsk)
	w.fake.presses(testUser, yes)
	w.take()
	if len(w.hand.done()) != 0 {
		t.Fatal("the question was too old")
	}
	w.fake.writes("/abort my-site")
	w.take()
	rows = w.answers()
	w.fake.presses(testUser, rows[len(rows)-1].Buttons[0].Data)
	w.take()
	if did := w.hand.done(); len(did) != 1 || did[0] != "do-abort my-site" {
		t.Errorf("%q", did)
	}
}

// ask opens an approval and returns the data of its buttons.
func (w *world) ask(subject string) (store.Asked, string, string) {
	w.t.Helper()
	a, _, err := w.root.Mission("my-site").Ask(w.t.Context(), mission.Approval{Kind: mission.Deviation, Title: "t", Text: "x", Subject: subject, By: "manager"}, w.clock.Now())
	ok(w.t, err)
	b := notify.ApprovalButtons("my-site", a.Approval)
	return a, b[0].Data, b[1].Data
}

func (w *world) decision(n int) *mission.Decision {
	w.t.Helper()
	a, err := w.root.Mission("my-site").Approval(n)
	ok(w.t, err)
	return a.Decision
}

// TestDecisions: the first one counts; an old button says what became of it; another content is not approved.
func TestDecisions(t *testing.T) {
	w := newWorld(t, "my-site")
	a, yes, no := w.ask("s1")
	w.fake.presses(666, yes)
	w.fake.writes("human: approved")
	w.take()
	if d := w.decision(a.N); d != nil {
		t.Fatalf("%+v", d)
	}
	w.fake.presses(testUser, yes)
	w.fake.presses(testUser, no)
	w.fake.presses(testUser, yes)
	w.take()
	if d := w.decision(a.N); d.Verdict != mission.Approved || !d.Allows("s1") || d.Allows("s2") {
		t.Fatalf("%+v", d)
	}
	if got := w.fake.answered; len(got) != 3 || !strings.Contains(got[0], "1 is approved") || !strings.Contains(got[1], "decided before: approved") || !strings.Contains(got[2], "decided before: approved") || len(w.answers()) != 1 {
		t.Errorf("%q, %d messages", got, len(w.answers()))
	}
	// A second request: the button of the first is not for it.
	b, _, _ := w.ask("s2")
	w.fake.presses(testUser, strings.Replace(yes, fmt.Sprintf(":%d:", a.N), fmt.Sprintf(":%d:", b.N), 1))
	w.take()
	if got := w.fake.answered; w.decision(b.N) != nil || !strings.Contains(got[len(got)-1], "nothing was decided") {
		t.Errorf("%+v, %q", w.decision(b.N), got)
	}
	w.fake.writes(fmt.Sprintf("/reject my-site %d keep the footer", b.N))
	w.take()
	if d := w.decision(b.N); d == nil || d.Verdict != mission.Rejected || d.Note != "keep the footer" {
		t.Errorf("%+v", d)
	}
	// Too late.
	c, yes, _ := w.ask("s3")
	w.clock.add(mission.ApprovalWait)
	w.fake.presses(testUser, yes)
	w.take()
	if d := w.decision(c.N); d == nil || d.Verdict != mission.Expired {
		t.Errorf("%+v", d)
	}
	w.fake.writes("/approve my-site 77")
	w.take()
	if !strings.Contains(w.lastAnswer(), "not done: mission my-site has no approval 77") {
		t.Errorf("%q", w.lastAnswer())
	}
}

// TestTakenOnce: an update that Telegram gives again is known.
func TestTakenOnce(t *testing.T) {
	w := newWorld(t, "my-site")
	w.fake.writes("first")
	list, err := w.Client.Updates(t.Context(), 0, 0)
	ok(t, err)
	for range 3 {
		ok(t, w.Take(list))
		w.Work(t.Context())
	}
	again, err := ReadState(w.Dir)
	ok(t, err)
	w.state = again
	next := list[0]
	next.UpdateID++
	ok(t, w.Take(append(list, next))) // the same once more, and another one
	w.Work(t.Context())
	if notes, _ := w.root.Mission("my-site").Notes(); len(notes) != 2 || len(w.hand.done()) != 2 {
		t.Errorf("%v, %q", notes, w.hand.done())
	}
}

// TestHandsThatFail: what may pass is tried again and not forgotten; what is wrong is answered.
func TestHandsThatFail(t *testing.T) {
	w := newWorld(t, "my-site")
	w.hand.fail = errors.New("no space left on device")
	w.fake.writes("keep this")
	w.take()
	for range 3 {
		w.Work(t.Context())
	}
	s, err := ReadState(w.Dir)
	if ok(t, err); len(s.Actions) != 1 || len(w.answers()) != 0 {
		t.Fatalf("%+v, %d answers", s.Actions, len(w.answers()))
	}
	w.hand.fail = nil
	w.Work(t.Context())
	if notes, _ := w.root.Mission("my-site").Notes(); len(notes) != 1 || notes[0].Text != "keep this" {
		t.Errorf("%v", notes)
	}
	w.hand.fail = usererr.New(usererr.Conflict, "a hint", "it ended")
	w.fake.writes("more")
	w.take()
	if w.lastAnswer() != "not done: it ended (a hint)" || len(w.state.Actions) != 0 {
		t.Errorf("%q", w.lastAnswer())
	}
	w.hand.fail = errors.New("broken for ever")
	w.fake.writes("more")
	w.take()
	for range maxTries {
		w.Work(t.Context())
	}
	if w.lastAnswer() != "not done: broken for ever" || len(w.state.Actions) != 0 {
		t.Errorf("%q, %+v", w.lastAnswer(), w.state.Actions)
	}
}

// TestDamagedState is an error: guessing could do things twice.
func TestDamagedState(t *testing.T) {
	w := newWorld(t, "my-site")
	w.fake.writes("x")
	w.take()
	for _, damage := range []string{"{", "", `{"version":9}`} {
		ok(t, writeFile(w.Dir+"/poller.json", damage))
		if err := w.Open(); usererr.CodeOf(err) != usererr.Unreadable {
			t.Errorf("%q: %v", damage, err)
		}
	}
}

// FuzzRead: no update makes the poller panic, and nobody but the person gets anything done.
func FuzzRead(f *testing.F) {
	for _, text := range []string{"/approve my-site 1", "x", "/abort", "\x00", "shop: y"} {
		b, _ := json.Marshal(updateIn(testChat, testUser))
		f.Add(b, text)
	}
	f.Add([]byte(`{"update_id":1,"callback_query":{"id":"1","from":{"id":4000000001},"data":"ap:my-site:1:y:t","message":{"chat":{"id":4000000001}}}}`), "ab:my-site:0:y:t")
	f.Add([]byte(`{"update_id":1,"message":{"chat":null,"from":{},"entities":[{"offset":-1,"length":9}]}}`), "")
	who := Who{User: testUser, Chat: testChat}
	f.Fuzz(func(t *testing.T, b []byte, text string) {
		list, err := updates(append(append([]byte("["), b...), ']'))
		if err != nil {
			return
		}
		for _, u := range list {
			for i := range 2 {
				if i == 1 {
					if u.Message != nil {
						u.Message.Text = text
					}
					if u.CallbackQuery != nil {
						u.CallbackQuery.Data = text
					}
				}
				a, from, yes := Read(u, who, func(id string) bool { return id == "my-site" }, time.Unix(0, 0))
				if !yes {
					continue
				}
				if from != testUser || a.Verb == "" || a.Update != u.UpdateID || len(a.Note) > maxNote || a.N < 0 || a.Mission != "" && mission.CheckID(a.Mission) != nil {
					t.Errorf("%+v of %d", a, from)
				}
				if strings.ContainsRune(a.Note, 0) && u.CallbackQuery == nil {
					t.Errorf("%q", a.Note)
				}
			}
		}
	})
}

// FuzzPiece: no piece is too long, each is valid, nothing is lost, and no range leaves its piece.
func FuzzPiece(f *testing.F) {
	f.Add("a b\nc 😀😀", 4, 2, 5)
	f.Add(strings.Repeat("😀", 50), 7, 0, 100)
	f.Fuzz(func(t *testing.T, s string, max, offset, length int) {
		if max < 2 || max > 5000 || offset < 0 || length < 1 || offset > 1<<30 || length > 1<<30 {
			return
		}
		s = notify.Clean(s)
		all, covered, total := "", 0, notify.Units(s)
		for done := 0; done < total; {
			p := Piece(After(s, done), max)
			n := notify.Units(p)
			if n == 0 || n > max {
				t.Fatalf("a piece of %d units, %d are possible", n, max)
			}
			for _, e := range Clip([]notify.Span{{Offset: offset, Length: length}}, done, n) {
				if e.Offset < 0 || e.Length < 1 || e.Offset+e.Length > n {
					t.Fatalf("%+v of %d", e, n)
				}
				covered += e.Length
			}
			all += p
			done += n
		}
		if all != s {
			t.Errorf("%q became %q", s, all)
		}
		if want := min(offset+length, total) - min(offset, total); covered != want {
			t.Errorf("%d units are bold, not %d", covered, want)
		}
	})
}
