package app

import (
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/journal"
	"example.com/AutoAgentProject/core/ledger"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/money"
	"example.com/AutoAgentProject/core/plan"
	"example.com/AutoAgentProject/core/reporter"
	"example.com/AutoAgentProject/core/store"
	"example.com/AutoAgentProject/core/telegram"
	"example.com/AutoAgentProject/core/tick"
)

var updateTranscript = flag.Bool("update-transcript", false, "write testdata/transcript.txt")

// chat is a Telegram that writes down what its one chat shows.
type chat struct {
	mu      sync.Mutex
	script  strings.Builder
	clock   func() string
	queue   []map[string]any
	next    int
	buttons [][2]string // word and data of the last message
	busy    time.Time   // of the last call that changed something
}

func (c *chat) shows(who, text string) {
	fmt.Fprintf(&c.script, "── %s  %s\n%s\n", c.clock(), who, text)
}

func (c *chat) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	c.mu.Lock()
	defer c.mu.Unlock()
	var result any = true
	method := filepath.Base(r.URL.Path)
	if method != "getUpdates" {
		c.busy = time.Now()
	}
	switch method {
	case "sendMessage":
		c.shows("bot", r.Form.Get("text"))
		var k struct {
			Keyboard [][]map[string]string `json:"inline_keyboard"`
		}
		_ = json.Unmarshal([]byte(r.Form.Get("reply_markup")), &k)
		c.buttons = nil
		for _, row := range k.Keyboard {
			for _, b := range row {
				fmt.Fprintf(&c.script, "  ( %s )", b["text"])
				c.buttons = append(c.buttons, [2]string{b["text"], b["callback_data"]})
			}
			c.script.WriteString("\n")
		}
		c.script.WriteString("\n")
		result = map[string]any{"message_id": 1, "date": 1, "chat": map[string]any{"id": 7, "type": "private"}}
	case "editMessageText":
		c.shows("the question becomes", r.Form.Get("text")+"\n")
	case "answerCallbackQuery":
		c.shows("shown for a moment", r.Form.Get("text")+"\n")
	case "getUpdates":
		offset, _ := strconv.Atoi(r.Form.Get("offset"))
		if c.queue = slices.DeleteFunc(c.queue, func(u map[string]any) bool { return u["update_id"].(int) < offset }); len(c.queue) > 0 {
			c.busy = time.Now()
		}
		result = append([]map[string]any{}, c.queue...)
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"ok": true, "result": result})
}

// says lets the person write, or press the button of that word.
func (c *chat) says(text, button string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next++
	u := map[string]any{"update_id": c.next}
	from, in := map[string]any{"id": 7}, map[string]any{"id": 7}
	if button != "" {
		i := slices.IndexFunc(c.buttons, func(b [2]string) bool { return b[0] == button })
		text = "( " + button + " )"
		u["callback_query"] = map[string]any{"id": "q", "data": c.buttons[i][1], "from": from, "message": map[string]any{"message_id": 1, "date": 1, "chat": in}}
	} else {
		u["message"] = map[string]any{"message_id": 1, "date": 1, "text": text, "from": from, "chat": in}
	}
	c.queue = append(c.queue, u)
	c.shows("person", text+"\n")
}

// TestTranscript is what a person sees of a whole mission: two milestones, a blocker, a note, an approval by a button, and the
// halt when the budget is used up. The answers are the real ones.
func TestTranscript(t *testing.T) {
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	root := store.Root(filepath.Join(t.TempDir(), "autoagent"))
	st := root.Mission("my-site")
	begin, real, gone := time.Now().Add(-3*time.Hour), time.Now(), time.Duration(0)
	now := func() time.Time { return begin.Add(gone + time.Since(real)) }
	for _, a := range []string{"manager", "codebuilder-1", "designer-1", "reporter"} {
		ok(st.Queue().Make(a))
	}
	ok(st.PrepareTombstone())
	budget := money.Amount{Unit: money.NanoUSD, N: 1_200_000_000}
	ok(st.Ledger().Create(t.Context(), budget, begin))
	m := mission.Mission{Version: 1, ID: "my-site", CreatedAt: begin, Budget: budget, MaxRun: mission.Duration(4 * time.Hour), From: &mission.Source{Kind: "git"}}
	ok(st.CreateMission(m))
	r := reporter.Reporter{Tick: &tick.Tick{Store: st, Mission: m, Agent: mission.Agent{Name: "reporter", Role: mission.Reporter}, Now: now, Log: discard()}}

	c := &chat{clock: func() string { return fmt.Sprintf("%d:%02d", int(gone.Hours()), int(gone.Minutes())%60) }}
	server := httptest.NewServer(c)
	defer server.Close()
	client, err := telegram.New("123456:EXAMPLE-TOKEN", server.URL)
	ok(err)
	ticks := func() {
		t.Helper()
		for {
			out, err := r.Once(t.Context())
			if ok(err); out != tick.Moved {
				break
			}
		}
		c.mu.Lock()
		c.busy = time.Now()
		c.mu.Unlock()
		p := &telegram.Poller{Client: client, Who: telegram.Who{User: 7, Chat: 7}, Roots: func() ([]store.Root, error) { return []store.Root{root}, nil }, Dir: t.TempDir(), Bot: "b",
			Hands: hands{&cli{env: Env{Getenv: os.Getenv}}}, Now: now, Log: slog.New(slog.DiscardHandler), PollTime: 5 * time.Millisecond, Pause: time.Millisecond, Every: time.Microsecond}
		p.Dir = filepath.Join(string(root), "channel")
		ok(p.Run(t.Context(), func() bool {
			c.mu.Lock()
			defer c.mu.Unlock()
			return len(c.queue) == 0 && time.Since(c.busy) > 100*time.Millisecond
		}))
	}
	at := func(minutes int) {
		gone = time.Duration(minutes) * time.Minute
		_, err := st.Clock(t.Context(), func(k mission.Clock) mission.Clock { k.Version, k.Used = 1, mission.Duration(gone); return k })
		ok(err)
	}
	event := func(e journal.Event) { e.At = now(); ok(st.Journal().Add(e)) }
	spend := func(agent, step string, cent int64) {
		ok(st.Ledger().Spend(t.Context(), agent+step+fmt.Sprint(gone), ledger.Spent{Nano: money.Nano(cent * 10_000_000), Tokens: cent * 1000, Source: "stream", Agent: agent, Step: step}, now()))
	}
	change := func(f func(*plan.Plan)) {
		ok(st.ChangePlan(t.Context(), func(p *plan.Plan) (bool, error) { f(p); return true, nil }))
	}
	done := func(id string) {
		change(func(p *plan.Plan) { p.Step(id).State = plan.Done })
		event(journal.Event{Kind: journal.StepDone, Level: journal.Milestone, Step: id, Text: "step " + id + " is done"})
	}

	change(func(p *plan.Plan) {
		p.Accept(plan.Proposal{Steps: []plan.ProposedStep{{ID: "page", Title: "Build the page"}, {ID: "colours", Title: "Choose the colours"}, {ID: "form", Title: "Build the contact form"}}}, begin)
	})
	spend("manager", "", 6)
	event(journal.Event{Kind: journal.PlanAccepted, Level: journal.Milestone, Text: "the plan has 3 steps"})
	ticks()
	at(21)
	spend("codebuilder-1", "page", 21)
	done("page")
	ticks()
	at(24)
	spend("designer-1", "colours", 9)
	done("colours")
	ticks()
	at(30)
	c.says("use the words of the old page", "")
	ticks()
	at(40)
	ticks()
	at(52)
	_, err = st.Pause(t.Context(), mission.Pause{Cause: "login", Reason: "the login was refused"}, now())
	ok(err)
	event(journal.Event{Kind: journal.Paused, Level: journal.Blocker, Incident: "login-1", Text: "the login was refused: 401 Unauthorized; AutoAgentProject login takes a new one"})
	ticks()
	at(112)
	ticks()
	at(113)
	c.says("/ack", "")
	ticks()
	at(120)
	ok(st.Unpause(t.Context(), "login", now()))
	_, _, err = st.Ask(t.Context(), mission.Approval{Kind: mission.Deviation, Title: "the plan wants to leave the goal", Subject: "s", By: "manager",
		Text: "The new plan leaves the goal as the first plan read it:\n- the acceptance \"the form sends mail\" of the first plan is dropped\n\nIts steps:\n- Build a form that stores messages (codebuilder)"}, now())
	ok(err)
	ticks()
	at(131)
	c.says("", "Approve")
	ticks()
	if a, err := st.Approval(1); err != nil || a.Decision == nil || a.Decision.Verdict != mission.Approved {
		t.Fatalf("%+v, %v", a.Decision, err)
	}
	at(150)
	spend("codebuilder-1", "form", 84)
	_, err = st.Stop(mission.Stop{Cause: mission.Budget, Reason: "$1.20 of $1.20 is used", By: "quota", At: now()})
	ok(err)
	event(journal.Event{Kind: journal.BudgetCrossed, Level: journal.Blocker, Incident: "budget-100", Text: "100% of the budget is used: $1.20 of $1.20"})
	ok(os.MkdirAll(st.Result(), 0o700))
	event(journal.Event{Kind: journal.MissionStopped, Level: journal.End, Text: "mission my-site halted: budget"})
	ticks()
	at(170)
	ticks()

	got := regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d UTC`).ReplaceAllString(c.script.String(), "2026-03-02 14:00 UTC")
	got = strings.ReplaceAll(got, string(root), "/srv/example")
	path := filepath.Join("testdata", "transcript.txt")
	if *updateTranscript {
		ok(os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	ok(err)
	if got != string(want) {
		t.Errorf("the chat shows\n%s", got)
	}
}
