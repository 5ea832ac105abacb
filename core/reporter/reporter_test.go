package reporter

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/journal"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/notify"
	"example.com/AutoAgentProject/core/store"
	"example.com/AutoAgentProject/core/tick"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// world is a mission's reporter and its clock.
type world struct {
	Reporter
	t   testing.TB
	now *time.Time
}

func begun(t testing.TB, root string) *world {
	t.Helper()
	st := store.Root(root).Mission("my-site")
	ok(t, st.Queue().Make("reporter"))
	now := noon
	m := mission.Mission{Version: mission.Version, ID: "my-site", CreatedAt: noon.Add(-time.Hour)}
	w := &world{t: t, now: &now}
	w.Reporter = Reporter{&tick.Tick{Store: st, Mission: m, Agent: mission.Agent{Name: "reporter", Role: mission.Reporter},
		Now: func() time.Time { return now }, Log: slog.New(slog.DiscardHandler)}}
	return w
}

func (w *world) box() notify.Outbox { return notify.Outbox{Dir: w.Store.Notify()} }

func (w *world) happened(level journal.Level, incident, text string) {
	w.t.Helper()
	ok(w.t, w.Store.Journal().Add(journal.Event{At: *w.now, Kind: journal.Repaired, Level: level, Incident: incident, Text: text}))
}

func (w *world) event(e journal.Event) {
	w.t.Helper()
	e.At = *w.now
	ok(w.t, w.Store.Journal().Add(e))
}

func (w *world) stepDone(text string) {
	w.t.Helper()
	w.event(journal.Event{Kind: journal.StepDone, Level: journal.Milestone, Text: text})
}

func (w *world) later(d time.Duration) { *w.now = w.now.Add(d) }

// tick is one tick; it returns what came into the outbox by it, title and text.
func (w *world) tick() []string {
	w.t.Helper()
	before := w.rows()
	_, err := w.Once(w.t.Context())
	ok(w.t, err)
	var said []string
	for _, r := range w.rows() {
		if !slices.ContainsFunc(before, func(b notify.Row) bool { return b.ID == r.ID }) {
			said = append(said, strings.TrimSpace(r.Title+"\n"+r.Text))
		}
	}
	return said
}

// rows are all messages in the order in which they were made.
func (w *world) rows() []notify.Row {
	w.t.Helper()
	rows, bad, err := w.box().Pending(*w.now)
	if err != nil || len(bad) > 0 {
		w.t.Fatal(err, bad)
	}
	slices.SortFunc(rows, func(x, y notify.Row) int { return strings.Compare(number(x), number(y)) })
	return rows
}

func number(r notify.Row) string {
	return fmt.Sprintf("%09s", r.Label[strings.LastIndexByte(r.Label, '-')+1:])
}

func (w *world) says(where string, want ...string) {
	w.t.Helper()
	got := w.tick()
	if len(got) != len(want) {
		w.t.Errorf("%s: said %q, want %q", where, got, want)
		return
	}
	for i := range want {
		if !strings.Contains(got[i], want[i]) {
			w.t.Errorf("%s: said %q, want %q", where, got[i], want[i])
		}
	}
}

// TestRoutineIsSilent: an event for the record, or of no level, is no message.
func TestRoutineIsSilent(t *testing.T) {
	w := begun(t, t.TempDir())
	for range 5 {
		w.happened(journal.Routine, "", "a tick")
		w.happened("", "x", "a tick")
		w.later(time.Hour)
		w.says("routine")
	}
	out, err := w.Once(t.Context())
	if out != tick.Idle || err != nil {
		t.Error(out, err)
	}
}

// TestMilestonesAreBundled: one message for a step and an interval, whichever comes later.
func TestMilestonesAreBundled(t *testing.T) {
	w := begun(t, t.TempDir())
	w.Mission.TellEvery = mission.Duration(30 * time.Minute)
	w.event(journal.Event{Kind: journal.PlanAccepted, Level: journal.Milestone, Text: "the plan has 3 steps"})
	w.says("no step has ended")
	w.later(2 * time.Hour)
	w.says("the interval alone is not enough")
	w.stepDone("step a is done: Make a")
	w.says("a step", "• the plan has 3 steps\n• step a is done: Make a")
	w.later(time.Minute)
	w.stepDone("step b is done")
	w.says("too soon")
	w.stepDone("step c is done")
	w.later(28 * time.Minute)
	w.says("still too soon")
	w.later(time.Minute)
	w.says("the interval is over", "• step b is done\n• step c is done")
	w.later(24 * time.Hour)
	w.says("nothing new")
}

func TestManyMilestonesAreCut(t *testing.T) {
	w := begun(t, t.TempDir())
	for i := range 100 {
		w.stepDone(fmt.Sprintf("step %d is done: %s", i, strings.Repeat("long ", 200)))
	}
	w.says("many", "and 89 more")
	if r := w.rows()[0]; len(r.Text) > 12*400 || len(r.Events) != 100 {
		t.Errorf("%d bytes, %d events", len(r.Text), len(r.Events))
	}
}

// TestBlockers: at once, once for each incident, repeated by the schedule until acknowledged.
func TestBlockers(t *testing.T) {
	w := begun(t, t.TempDir())
	w.happened(journal.Blocker, "ticks-1", "five ticks went wrong\nthe last: no space")
	w.says("at once", "five ticks went wrong\nthe last: no space")
	w.happened(journal.Blocker, "ticks-1", "five ticks went wrong")
	w.happened(journal.Blocker, "", "without an incident")
	w.says("the same is not told", "without an incident")
	w.later(time.Hour - time.Second)
	w.says("not yet")
	w.later(time.Second)
	w.says("after an hour", "Still: five ticks went wrong\nthe last: no space")
	w.says("once")
	w.later(3 * time.Hour)
	w.says("after three more", "Still: five")
	w.later(8 * time.Hour)
	w.says("after eight more", "Still: five")
	for range 3 {
		w.later(24 * time.Hour)
		w.says("each day", "Still: five")
	}
	ok(t, w.box().Set(func(s *notify.Setting) { s.AckedAt = *w.now }))
	w.later(100 * time.Hour)
	w.says("acknowledged")
	w.happened(journal.Blocker, "ticks-2", "another one")
	w.says("a new one is told", "another one")
	w.later(time.Hour)
	w.says("and repeated", "Still: another one")
}

// TestWhatPassedIsNotRepeated: a pause that was lifted, a threshold of the budget.
func TestWhatPassedIsNotRepeated(t *testing.T) {
	w := begun(t, t.TempDir())
	_, err := w.Store.Pause(t.Context(), mission.Pause{Cause: "login"}, *w.now)
	ok(t, err)
	w.event(journal.Event{Kind: journal.Paused, Level: journal.Blocker, Incident: "login-1", Text: "the login was refused"})
	w.event(journal.Event{Kind: journal.BudgetCrossed, Level: journal.Blocker, Incident: "budget-80", Text: "80% of the budget is used"})
	w.says("both", "the login", "80%")
	w.later(time.Hour)
	w.says("the login only", "Still: the login")
	ok(t, w.Store.Unpause(t.Context(), "login", *w.now))
	w.later(100 * time.Hour)
	w.says("nothing any more")
	_, err = w.Store.Pause(t.Context(), mission.Pause{Cause: "login"}, *w.now)
	ok(t, err)
	w.event(journal.Event{Kind: journal.Paused, Level: journal.Blocker, Incident: "login-2", Text: "the login was refused again"})
	w.says("the next time", "refused again")
	w.event(journal.Event{Kind: journal.BudgetCrossed, Level: journal.Blocker, Incident: "budget-80", Text: "80% of the budget is used"})
	w.says("a threshold is told once")
}

// TestRestart is case n01: a condition that stands is told once, whoever starts anew; one that came meanwhile is told.
func TestRestart(t *testing.T) {
	w := begun(t, t.TempDir())
	w.happened(journal.Blocker, "ci-red", "ci-red on")
	w.says("on", "ci-red on")
	w.happened(journal.Blocker, "ci-red", "ci-red on")
	w.says("restarted")
	w.happened(journal.Blocker, "disk", "disk on") // while nobody ticks
	w.happened(journal.Blocker, "ci-red", "ci-red on")
	w.says("started", "disk on")
	// A change is told: over, and on again.
	w.event(journal.Event{Kind: journal.Repaired, Level: journal.Milestone, Incident: "ci-red", Over: true, Text: "ci-red off"})
	w.happened(journal.Blocker, "ci-red", "ci-red on again")
	w.says("again", "ci-red on again")
}

func TestQuietHours(t *testing.T) {
	w := begun(t, t.TempDir())
	w.Mission.QuietHours = "22:00-07:00 Europe/Berlin"
	*w.now = time.Date(2026, 7, 1, 20, 30, 0, 0, time.UTC) // 22:30 there
	w.happened(journal.Blocker, "b", "blocked")
	w.stepDone("one")
	w.says("the blocker passes", "blocked")
	for range 3 {
		w.later(2 * time.Hour) // until 04:30 there
		w.stepDone("more")
		w.says("at night, no repetition either")
	}
	w.later(2*time.Hour + 29*time.Minute)
	w.says("a minute before seven")
	w.later(time.Minute)
	w.says("in the morning", "Still: blocked", "• one\n• more\n• more\n• more")
}

func TestMute(t *testing.T) {
	w := begun(t, t.TempDir())
	ok(t, w.box().Set(func(s *notify.Setting) { s.Muted = true }))
	w.stepDone("one")
	w.happened(journal.Blocker, "b", "blocked")
	w.says("blockers pass", "blocked")
	w.later(24 * time.Hour)
	w.stepDone("two")
	w.says("muted")
	ok(t, w.box().Set(func(s *notify.Setting) { s.Muted = false }))
	w.says("together", "Still: blocked", "• one\n• two")
	ok(t, w.box().Set(func(s *notify.Setting) { s.Muted = true }))
	w.stop(mission.Aborted, "enough")
	w.says("the end passes", "Mission my-site aborted\nenough")
}

func (w *world) stop(c mission.Cause, reason string) {
	w.t.Helper()
	ok(w.t, w.Store.PrepareTombstone())
	_, err := w.Store.Stop(mission.Stop{Cause: c, Reason: reason, At: *w.now})
	ok(w.t, err)
	w.event(journal.Event{Kind: journal.MissionStopped, Level: journal.End, Text: "mission my-site " + c.Phase()})
}

// TestTheEndIsAlwaysTold: with what waited, after the tombstone, and nothing is repeated afterwards.
func TestTheEndIsAlwaysTold(t *testing.T) {
	w := begun(t, t.TempDir())
	w.happened(journal.Blocker, "b", "blocked")
	w.says("blocked", "blocked")
	w.stepDone("the last step")
	w.stop(mission.Completed, "all steps are done")
	w.says("the end", "Since the last message:\n• the last step")
	w.later(100 * time.Hour)
	w.says("nothing after it")
	if n := len(w.rows()); n != 2 {
		t.Errorf("%d messages", n)
	}
}

// TestApproval: the message goes by the request itself, has the buttons of exactly that request, and is repeated until
// it is answered.
func TestApproval(t *testing.T) {
	w := begun(t, t.TempDir())
	asked, _, err := w.Store.Ask(t.Context(), mission.Approval{Kind: mission.Deviation, Title: "the plan wants to leave the goal", Text: "It drops the footer.", Subject: "s", By: "manager"}, *w.now)
	ok(t, err)
	w.says("asked", "Approval 1: the plan wants to leave the goal\nIt drops the footer.")
	r := w.rows()[0]
	if r.Approval != 1 || !slices.Equal(r.Buttons, notify.ApprovalButtons("my-site", asked.Approval)) || r.Label != "my-site a-1" {
		t.Errorf("%+v", r)
	}
	w.later(time.Hour)
	w.says("again", "Still: Approval 1")
	if r := w.rows()[1]; len(r.Buttons) != 2 || r.Approval != 1 {
		t.Errorf("%+v", r)
	}
	_, _, err = w.Store.Decide(1, mission.Decision{Verdict: mission.Rejected, Key: "k"}, *w.now)
	ok(t, err)
	w.later(20 * time.Hour)
	w.says("answered")
	_, _, err = w.Store.Ask(t.Context(), mission.Approval{Kind: mission.Deviation, Title: "t", Subject: "s2", By: "manager"}, *w.now)
	ok(t, err)
	w.says("another", "Approval 2")
	w.later(mission.ApprovalWait + time.Hour)
	w.says("nobody answered")
	if a, err := w.Store.Approval(2); err != nil || a.Decision == nil || a.Decision.Verdict != mission.Expired {
		t.Errorf("%+v, %v", a, err)
	}
}

// TestDamagedCursor: it is kept, everything is looked at again, and nothing is told twice or left out.
func TestDamagedCursor(t *testing.T) {
	for _, damage := range []string{"", "{", "\x00\x00\x00\x00", `{"version":2,"offset":5}`, "gone"} {
		w := begun(t, t.TempDir())
		w.happened(journal.Blocker, "one", "one")
		w.says("one", "one")
		w.stepDone("two")
		w.says("two", "• two")
		w.stepDone("three") // waits for its interval
		w.says("three waits")
		cursor := filepath.Join(w.Store.Notify(), "cursor.json")
		if damage == "gone" {
			ok(t, os.Remove(cursor))
		} else {
			ok(t, os.WriteFile(cursor, []byte(damage), 0o600))
		}
		w.happened(journal.Blocker, "one", "one once more")
		w.happened(journal.Blocker, "four", "four")
		w.says(fmt.Sprintf("%q", damage), "four")
		w.later(time.Hour / 2)
		w.says(fmt.Sprintf("%q, later", damage), "• three")
		if rows := w.rows(); rows[2].Label != "my-site b-3" {
			t.Errorf("%q: the numbers begin anew: %s", damage, rows[2].Label)
		}
		kept, _ := filepath.Glob(cursor + ".bad-*")
		if damage == "gone" {
			continue
		}
		if len(kept) != 1 {
			t.Errorf("%q: kept %q", damage, kept)
		} else if b, err := os.ReadFile(kept[0]); err != nil || string(b) != damage {
			t.Errorf("%q: kept %q, %v", damage, b, err)
		}
	}
}

// TestHalfAnEvent is told when it is whole; a broken line costs only itself.
func TestHalfAnEvent(t *testing.T) {
	w := begun(t, t.TempDir())
	w.happened(journal.Blocker, "", "one")
	w.says("one", "one")
	f, err := os.OpenFile(w.Store.Journal().Path, os.O_APPEND|os.O_WRONLY, 0)
	ok(t, err)
	defer f.Close()
	_, err = f.WriteString(`{"version":1,"at":"2026-03-01T12:00:00Z","kind":"x","level":"blocker","text":"tw`)
	ok(t, err)
	w.says("half")
	_, err = f.WriteString("o\"}\ngarbage\n")
	ok(t, err)
	w.happened(journal.Blocker, "", "three")
	w.says("whole", "two", "three")
}

// TestWordsAreClean: what an agent wrote cannot bring control characters, and a blocker is no dump.
func TestWordsAreClean(t *testing.T) {
	w := begun(t, t.TempDir())
	w.happened(journal.Blocker, "", "a\x1b[31mred\x1b[0m\x00 \u202eabc \xff 😀\n"+strings.Repeat("log line\n", 10_000))
	w.tick()
	r := w.rows()[0]
	if strings.ContainsAny(r.Title+r.Text, "\x1b\x00\u202e") || !strings.Contains(r.Title, "ared abc \ufffd 😀") || len(r.Text) > 1400 {
		t.Errorf("%q, %d bytes", r.Title, len(r.Text))
	}
}

// TestSummary: milestones wait for their sentence, not for long, and nothing else waits for it.
func TestSummary(t *testing.T) {
	for name, c := range map[string]struct {
		answer *store.Summary
		want   string
	}{
		"a sentence":     {&store.Summary{Done: true, Sentence: "The page stands."}, "The page stands.\n• a step"},
		"none":           {&store.Summary{Done: true}, "• a step"},
		"nobody answers": {nil, "• a step"},
	} {
		w := begun(t, t.TempDir())
		w.Mission.Summaries = true
		w.later(time.Hour)
		w.stepDone("a step")
		w.happened(journal.Blocker, "", "blocked")
		w.says(name+": only the blocker", "blocked")
		s, err := w.Store.Summary()
		ok(t, err)
		if s.Key == "" || !strings.Contains(s.Text, "• a step") || s.Done {
			t.Fatalf("%+v", s)
		}
		w.later(time.Second)
		w.stepDone("another step")
		w.says(name + ": it waits")
		if again, _ := w.Store.Summary(); again != s {
			t.Errorf("%+v", again)
		}
		if c.answer != nil {
			c.answer.Key, c.answer.At = s.Key, s.At
			ok(t, w.Store.SetSummary(*c.answer))
		} else {
			w.later(store.SummaryWait)
		}
		w.says(name, c.want)
	}
}
