package tick

import (
	"context"
	"fmt"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/ledger"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/money"
	"example.com/AutoAgentProject/core/runner"
)

// TestClocksChangeNoSpend: whatever the wall clock does between two runs or in the middle of one, whichever zone it is in,
// what is reserved, charged and left is the same.
func TestClocksChangeNoSpend(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	ok(t, err)
	spring := time.Date(2026, 3, 29, 1, 59, 59, 0, berlin) // a second before 03:00 of summer
	autumn := time.Date(2026, 10, 25, 2, 59, 59, 0, berlin)
	want := ""
	for _, c := range []struct {
		name  string
		times []time.Time // of three runs: begin and end
	}{
		{"no jump", []time.Time{noon, noon, noon, noon, noon, noon}},
		{"six hours ahead", []time.Time{noon, noon.Add(6 * time.Hour), noon.Add(6 * time.Hour), noon.Add(6 * time.Hour), noon.Add(12 * time.Hour), noon.Add(12 * time.Hour)}},
		{"six hours back", []time.Time{noon, noon.Add(-6 * time.Hour), noon.Add(-6 * time.Hour), noon.Add(-12 * time.Hour), noon.Add(-12 * time.Hour), noon}},
		{"to and fro", []time.Time{noon, noon.Add(6 * time.Hour), noon.Add(-6 * time.Hour), noon.Add(48 * time.Hour), noon.Add(-time.Hour), noon}},
		{"suspended for a week", []time.Time{noon, noon.Add(7 * 24 * time.Hour), noon.Add(7 * 24 * time.Hour), noon.Add(7 * 24 * time.Hour), noon.Add(14 * 24 * time.Hour), noon.Add(14 * 24 * time.Hour)}},
		{"summer begins", []time.Time{spring, spring.Add(time.Second), spring.Add(time.Hour), spring.Add(time.Hour), spring.Add(24 * time.Hour), spring.Add(24 * time.Hour)}},
		{"summer ends", []time.Time{autumn, autumn.Add(time.Second), autumn.Add(-time.Hour), autumn.Add(time.Hour), autumn.Add(24 * time.Hour), autumn.Add(24 * time.Hour)}},
		{"another zone in the middle", []time.Time{noon, noon.In(berlin), noon.In(time.FixedZone("far", -12*3600)), noon.In(berlin), noon.In(time.FixedZone("east", 14*3600)), noon}},
		{"year 1970", []time.Time{time.Unix(0, 0), time.Unix(0, 0), noon, noon, time.Unix(0, 0), noon}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, money.NanoUSD)
			w.Mission.StepLimit = 0
			w.at = c.times[0]
			w.begin()
			got := ""
			for n := range 3 {
				w.at = c.times[2*n]
				w.fake.do = func(_ context.Context, j runner.Job) (runner.Result, error) {
					w.at = c.times[2*n+1]
					b := w.book()
					got += fmt.Sprintln(j.Cap, b.Used.N, b.Reserved.N)
					return runner.Result{Verdict: runner.Done, Text: "did it", Spend: runner.Spend{Nano: money.Nano(dollar), Tokens: 50, Source: "result"}}, nil
				}
				h := Hold{Version: mission.Version, Key: fmt.Sprint("k", n)}
				if _, out, err := w.Run(t.Context(), &h, w.ask()); out != Moved || err != nil {
					t.Fatal(out, err)
				}
				b := w.book()
				got += fmt.Sprintln(b.Used.N, b.Reserved.N, w.Pressure())
			}
			if want == "" {
				want = got
			}
			if got != want {
				t.Errorf("got:\n%swithout a jump:\n%s", got, want)
			}
		})
	}
}

// TestRecordOfTomorrow: records that are dated tomorrow, before 1970 or all in the same second count like any others, and the
// next run is settled behind them.
func TestRecordOfTomorrow(t *testing.T) {
	for _, at := range []time.Time{noon.Add(36 * time.Hour), noon.Add(-60 * 365 * 24 * time.Hour), noon} {
		w := newWorld(t, money.NanoUSD).begin()
		l := w.Store.Ledger()
		ok(t, l.Spend(t.Context(), "early", ledger.Spent{Nano: money.Nano(3 * dollar), Tokens: 1, Agent: "codebuilder-2"}, at))
		_, d, err := l.Reserve(t.Context(), ledger.ReserveRequest{Run: "open", Agent: "codebuilder-2", StepLimit: dollar, AgentsDue: 1, Now: at})
		if ok(t, err); d != money.Admit {
			t.Fatal(d)
		}
		w.answers(done())
		h := Hold{Version: mission.Version, Key: "k"}
		if _, out, err := w.Run(t.Context(), &h, w.ask()); out != Moved || err != nil {
			t.Fatal(out, err)
		}
		if b := w.book(); b.Used.N != 3*dollar+500 || b.Reserved.N != dollar || len(b.OpenRuns) != 1 {
			t.Errorf("%v: %+v", at, b)
		}
		costs, _, err := l.Entries()
		if err != nil || len(costs) != 2 {
			t.Errorf("%v: %+v, %v", at, costs, err)
		}
	}
}
