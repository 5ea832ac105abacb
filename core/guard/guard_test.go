package guard

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"example.com/AutoAgentProject/core/ledger"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/money"
	"example.com/AutoAgentProject/core/proc"
	"example.com/AutoAgentProject/core/store"
	"example.com/AutoAgentProject/core/tick"
	"example.com/AutoAgentProject/core/usererr"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

const dollar = 1_000_000_000

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestDecide(t *testing.T) {
	for name, c := range map[string]struct {
		budget, used int64
		said         int
		left         time.Duration
		limited      bool
		want         Action
	}{
		"nothing used":                {100, 0, 0, 0, false, Action{}},
		"just below":                  {100, 69, 0, 0, false, Action{}},
		"70":                          {100, 70, 0, 0, false, Action{Say: 70, Said: 70}},
		"70 was said":                 {100, 79, 70, 0, false, Action{Said: 70}},
		"80":                          {100, 80, 70, 0, false, Action{Say: 80, Said: 80}},
		"85":                          {100, 85, 80, 0, false, Action{Say: 85, Said: 85}},
		"a jump says the highest":     {100, 86, 0, 0, false, Action{Say: 85, Said: 85}},
		"100":                         {100, 100, 85, 0, false, Action{Say: 100, Said: 100, Stop: mission.Budget}},
		"over 100 at once":            {100, 250, 0, 0, false, Action{Say: 100, Said: 100, Stop: mission.Budget}},
		"100 was said, and not done":  {100, 100, 100, 0, false, Action{Said: 100, Stop: mission.Budget}},
		"time left":                   {100, 0, 0, time.Second, true, Action{}},
		"time used up":                {100, 0, 0, 0, true, Action{Stop: mission.Time}},
		"time below zero":             {100, 0, 0, -1, true, Action{Stop: mission.Time}},
		"no time limit":               {100, 0, 0, 0, false, Action{}},
		"both: money counts":          {100, 100, 85, 0, true, Action{Say: 100, Said: 100, Stop: mission.Budget}},
		"both, the threshold is told": {100, 70, 0, 0, true, Action{Say: 70, Said: 70, Stop: mission.Time}},
		"no budget at all":            {0, 0, 0, 0, false, Action{Say: 100, Said: 100, Stop: mission.Budget}},
		"a negative budget":           {-5, 0, 0, 0, false, Action{Say: 100, Said: 100, Stop: mission.Budget}},
		"large numbers":               {1 << 62, 1<<62 - 1, 85, 0, false, Action{Said: 85}},
	} {
		got := Decide(money.Amount{Unit: money.NanoUSD, N: c.budget}, c.used, c.said, c.left, c.limited)
		if (got.Stop != "") != (got.Reason != "") {
			t.Errorf("%s: reason %q", name, got.Reason)
		}
		if got.Reason = ""; got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
		if again := Decide(money.Amount{Unit: money.NanoUSD, N: c.budget}, c.used, got.Said, c.left, c.limited); again.Say != 0 || again.Stop != got.Stop {
			t.Errorf("%s: a minute later %+v", name, again)
		}
	}
}

// begun is the guard of a mission with a budget of one dollar, its tick begun.
func begun(t *testing.T, root string, m mission.Mission) Guard {
	t.Helper()
	st := store.Root(root).Mission("my-site")
	ok(t, os.MkdirAll(st.Dir(), 0o700))
	m.Version, m.ID, m.Budget = mission.Version, "my-site", money.Amount{Unit: money.NanoUSD, N: dollar}
	quota := mission.Agent{Name: "quota", Role: mission.Quota}
	m.Roster = []mission.Agent{quota}
	ok(t, st.Queue().Make("quota"))
	ok(t, st.Ledger().Create(t.Context(), m.Budget, noon))
	ok(t, st.PrepareTombstone())
	ok(t, st.CreateMission(m))
	k := &tick.Tick{Store: st, Mission: m, Agent: quota, Now: func() time.Time { return noon }, Log: slog.New(slog.DiscardHandler)}
	out, end, err := k.Begin(t.Context())
	if out != tick.Idle || err != nil {
		t.Fatal(out, err)
	}
	t.Cleanup(end)
	return Guard{k}
}

func (g Guard) spend(t *testing.T, run string, nano int64) {
	t.Helper()
	ok(t, g.Store.Ledger().Spend(t.Context(), run, ledger.Spent{Nano: money.Nano(nano)}, noon))
}

// stop is the tombstone's cause, or "".
func (g Guard) stop(t *testing.T) mission.Cause {
	t.Helper()
	s, err := g.Store.Stopped()
	ok(t, err)
	if s == nil {
		return ""
	}
	return s.Cause
}

func (g Guard) events(t *testing.T) (said []string) {
	t.Helper()
	events, _, _, err := g.Store.Journal().Read(0)
	ok(t, err)
	for _, e := range events {
		said = append(said, string(e.Level)+" "+e.Incident)
	}
	return said
}

func TestMoney(t *testing.T) {
	g := begun(t, t.TempDir(), mission.Mission{})
	for _, c := range []struct {
		spend int64
		out   tick.Outcome
		told  string
		stop  mission.Cause
	}{
		{dollar / 2, tick.Idle, "", ""}, {dollar / 5, tick.Idle, "milestone budget-70-of-1000000000", ""}, {1, tick.Idle, "", ""},
		{dollar / 8, tick.Idle, "blocker budget-80-of-1000000000", ""}, {dollar / 4, tick.Over, "blocker budget-100-of-1000000000", mission.Budget}, {1, tick.Over, "", mission.Budget},
	} {
		before := len(g.events(t))
		g.spend(t, strings.Repeat("r", before+int(c.spend%97)+1), c.spend)
		for n := range 2 { // each threshold once
			out, err := g.Once(t.Context())
			if out != c.out || err != nil || g.stop(t) != c.stop {
				t.Errorf("%d, tick %d: %v, %v, %q", c.spend, n, out, err, g.stop(t))
			}
			if got := strings.Join(g.events(t)[before:], "|"); got != c.told {
				t.Errorf("%d, tick %d: told %q, want %q", c.spend, n, got, c.told)
			}
		}
	}
}

// TestRaisedBudget: thresholds count anew for a budget that was raised, and what is reached of it already is not told again.
func TestRaisedBudget(t *testing.T) {
	g := begun(t, t.TempDir(), mission.Mission{})
	told := func(want ...string) {
		t.Helper()
		before := len(g.events(t))
		_, err := g.Once(t.Context())
		ok(t, err)
		if got := g.events(t)[before:]; !slices.Equal(got, want) {
			t.Errorf("told %q, want %q", got, want)
		}
	}
	g.spend(t, "one", 86*dollar/100)
	told("blocker budget-85-of-1000000000")
	ok(t, g.Store.Ledger().SetBudget(t.Context(), money.Amount{Unit: money.NanoUSD, N: 115 * dollar / 100}, "", noon)) // 74 % of it
	told()
	g.spend(t, "two", 7*dollar/100) // 80 %
	told("blocker budget-80-of-1150000000")
	told()
}

// used sets the mission's clock: so much was used, and the last reading is one minute old.
func (g Guard) used(t *testing.T, d time.Duration, boot string) {
	t.Helper()
	_, err := g.Store.Clock(t.Context(), func(mission.Clock) mission.Clock {
		return mission.Clock{Version: mission.Version, Boot: boot, Mono: mission.Duration(proc.Mono() - time.Minute), Used: mission.Duration(d)}
	})
	ok(t, err)
}

func TestTime(t *testing.T) {
	boot, err := proc.Boot()
	ok(t, err)
	if proc.Mono() < 2*time.Minute {
		t.Skip("SKIPPED LOUDLY: this machine booted less than two minutes ago")
	}
	for name, c := range map[string]struct {
		m    mission.Mission
		used time.Duration
		boot string
		now  time.Time
		stop mission.Cause
	}{
		"used up with this minute":   {mission.Mission{MaxRun: mission.Duration(time.Hour)}, 59 * time.Minute, boot, noon, mission.Time},
		"not yet":                    {mission.Mission{MaxRun: mission.Duration(time.Hour)}, 58 * time.Minute, boot, noon, ""},
		"the machine booted":         {mission.Mission{MaxRun: mission.Duration(time.Hour)}, 59 * time.Minute, "other", noon, ""},
		"wall clock six hours ahead": {mission.Mission{MaxRun: mission.Duration(time.Hour)}, 0, boot, noon.Add(6 * time.Hour), ""},
		"wall clock six hours back":  {mission.Mission{MaxRun: mission.Duration(time.Hour)}, 59 * time.Minute, boot, noon.Add(-6 * time.Hour), mission.Time},
		"until":                      {mission.Mission{Until: noon}, 0, boot, noon, mission.Time},
		"until later":                {mission.Mission{Until: noon.Add(1)}, 0, boot, noon, ""},
		"no limit":                   {mission.Mission{}, 1000 * time.Hour, boot, noon, ""},
	} {
		g := begun(t, t.TempDir(), c.m)
		g.used(t, c.used, c.boot)
		g.Now = func() time.Time { return c.now }
		out, err := g.Once(t.Context())
		if err != nil || g.stop(t) != c.stop || (out == tick.Over) != (c.stop != "") {
			t.Errorf("%s: %v, %v, %q", name, out, err, g.stop(t))
		}
	}
	// A paused mission does not use its time, whichever cause is left.
	g := begun(t, t.TempDir(), mission.Mission{MaxRun: mission.Duration(time.Hour)})
	for _, cause := range []string{"human", "limit"} {
		_, err := g.Store.Pause(t.Context(), mission.Pause{Cause: cause}, noon)
		ok(t, err)
	}
	for _, cause := range []string{"", "human", "limit"} {
		ok(t, g.Store.Unpause(t.Context(), cause, noon))
		g.used(t, 59*time.Minute, boot)
		if _, err := g.Once(t.Context()); err != nil || (g.stop(t) != "") != (cause == "limit") {
			t.Errorf("%q lifted: %v, %q", cause, err, g.stop(t))
		}
	}
}

// TestNothingDelaysAStop: whatever else is damaged, the money is counted and the mission stops.
func TestNothingDelaysAStop(t *testing.T) {
	for _, name := range []string{"clock.json", "quota.json", "pauses.json", "state.json"} {
		for _, damage := range []string{"", "\x00\x00\x00\x00", `{"a":`} {
			g := begun(t, t.TempDir(), mission.Mission{MaxRun: mission.Duration(time.Hour)})
			path := filepath.Join(g.Store.Dir(), name)
			ok(t, os.WriteFile(path, []byte(damage), 0o600))
			if out, _ := g.Once(t.Context()); out != tick.Idle || g.stop(t) != "" {
				t.Errorf("%s: %v, %q with nothing used", name, out, g.stop(t))
			}
			g.spend(t, "r", dollar)
			if out, _ := g.Once(t.Context()); out != tick.Over || g.stop(t) != mission.Budget {
				t.Errorf("%s: %v, %q", name, out, g.stop(t))
			}
			kept, _ := filepath.Glob(path + "*")
			found := false
			for _, k := range kept {
				b, err := os.ReadFile(k)
				found = found || err == nil && string(b) == damage
			}
			if !found {
				t.Errorf("%s: the evidence is gone, there is %q", name, kept)
			}
		}
	}
	// Without the clock the absolute end still holds, and the error is told.
	g := begun(t, t.TempDir(), mission.Mission{MaxRun: mission.Duration(time.Hour), Until: noon})
	ok(t, os.WriteFile(filepath.Join(g.Store.Dir(), "clock.json"), []byte("{"), 0o600))
	if out, err := g.Once(t.Context()); out != tick.Over || err == nil || !strings.Contains(err.Error(), "clock.json") || g.stop(t) != mission.Time {
		t.Errorf("%v, %v, %q", out, err, g.stop(t))
	}
}

// TestDamage: without the ledger or the plan nothing is decided; whoever ticks is told that a file is damaged, and
// halts the mission. Nothing is changed.
func TestDamage(t *testing.T) {
	for _, name := range []string{"ledger.jsonl", "plan.json"} {
		g := begun(t, t.TempDir(), mission.Mission{})
		g.spend(t, "r", dollar)
		path := filepath.Join(g.Store.Dir(), name)
		ok(t, os.WriteFile(path, []byte("garbage\n"), 0o600))
		if out, err := g.Once(t.Context()); out != tick.Idle || usererr.CodeOf(err) != usererr.Unreadable {
			t.Errorf("%s: %v, %v", name, out, err)
		}
		if b, _ := os.ReadFile(path); string(b) != "garbage\n" {
			t.Errorf("%s became %q", name, b)
		}
	}
}

// TestFullDisk: money and time stop a mission also where nothing can be written any more.
func TestFullDisk(t *testing.T) {
	boot, err := proc.Boot()
	ok(t, err)
	for _, cause := range []mission.Cause{mission.Budget, mission.Time} {
		dir := t.TempDir()
		if err := unix.Mount("autoagent-test", dir, "tmpfs", 0, "size=1m"); err != nil {
			if os.Getenv("CI") == "true" && os.Getuid() == 0 {
				t.Fatalf("no full disk can be made here: %v", err)
			}
			t.Skipf("SKIPPED LOUDLY: no full disk can be made here, mounting needs root: %v", err)
		}
		t.Cleanup(func() { ok(t, unix.Unmount(dir, unix.MNT_DETACH)) })
		g := begun(t, dir, mission.Mission{MaxRun: mission.Duration(time.Hour)})
		if cause == mission.Budget {
			g.spend(t, "r", dollar)
		} else {
			g.used(t, 59*time.Minute, boot)
		}
		f, err := os.Create(filepath.Join(dir, "filler"))
		ok(t, err)
		for n := 1 << 16; n > 0; {
			if _, err := f.Write(bytes.Repeat([]byte{1}, n)); err != nil {
				n /= 2
			}
		}
		f.Close()
		out, err := g.Once(t.Context())
		if out != tick.Over || !errors.Is(err, unix.ENOSPC) || g.stop(t) != cause {
			t.Errorf("%s: %v, %v, %q", cause, out, err, g.stop(t))
		}
	}
}

// TestLedgerGoesDown: a ledger that shows less than before is told once, and the most that was seen counts.
func TestLedgerGoesDown(t *testing.T) {
	root := t.TempDir()
	g := begun(t, root, mission.Mission{})
	before, err := os.ReadFile(filepath.Join(g.Store.Dir(), "ledger.jsonl"))
	ok(t, err)
	g.spend(t, "one", 60*dollar/100)
	_, err = g.Once(t.Context())
	ok(t, err)
	ok(t, os.WriteFile(filepath.Join(g.Store.Dir(), "ledger.jsonl"), before, 0o600)) // somebody put an old copy back
	ok(t, os.RemoveAll(filepath.Join(g.Store.Dir(), "ledger.jsonl.sums")))
	for range 2 {
		fresh := Guard{Tick: &tick.Tick{}}
		*fresh.Tick = *g.Tick
		fresh.Store = store.Root(root).Mission("my-site")
		_, err = fresh.Once(t.Context())
		ok(t, err)
	}
	n := 0
	for _, e := range g.events(t) {
		if strings.HasPrefix(e, "blocker ledger-down") {
			n++
		}
	}
	if n == 0 {
		t.Errorf("nobody was told: %q", g.events(t))
	}
	var said Said
	if err := g.Store.Load("quota.json", &said); err != nil || said.Mark != 60*dollar/100 {
		t.Errorf("%+v, %v", said, err)
	}
}
