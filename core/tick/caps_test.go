package tick

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/caps"
	"example.com/AutoAgentProject/core/journal"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/money"
	"example.com/AutoAgentProject/core/runner"
)

// TestRaisedCapEndsThePause: a used up cap pauses until the period ends, until it is raised or until there is none any more;
// not while it cannot be read or has too little, and no other pause ends with it.
func TestRaisedCapEndsThePause(t *testing.T) {
	for _, unit := range []money.Unit{money.NanoUSD, money.Tokens} {
		for name, c := range map[string]struct {
			now    caps.Limits
			err    error
			after  time.Duration
			causes string
		}{
			"nothing changed":     {caps.Limits{Day: money.Nano(dollar)}, nil, 0, "cap human limit"},
			"lowered":             {caps.Limits{Day: 1}, nil, 0, "cap human limit"},
			"raised, not enough":  {caps.Limits{Day: money.Nano(dollar + dollar/10 - 1)}, nil, 0, "cap human limit"},
			"raised":              {caps.Limits{Day: money.Nano(dollar + dollar/10)}, nil, 0, "human limit"},
			"the month has none":  {caps.Limits{Day: money.Nano(5 * dollar), Month: money.Nano(dollar)}, nil, 0, "cap human limit"},
			"none any more":       {caps.Limits{}, nil, 0, "human limit"},
			"cannot be read":      {caps.Limits{}, errors.New("torn"), 0, "cap human limit"},
			"the day ended":       {caps.Limits{Day: money.Nano(dollar)}, nil, 12 * time.Hour, "human limit"},
			"raised the next day": {caps.Limits{Day: money.Nano(5 * dollar)}, nil, 12 * time.Hour, "human limit"},
		} {
			w := newWorld(t, unit)
			w.Price = func(_ string, u money.Usage, _ time.Time, _ bool) (money.Nano, bool) {
				return money.Nano(u.Tokens()), true
			}
			l, lerr := caps.Limits{Day: money.Nano(dollar), Month: money.Nano(100 * dollar)}, error(nil)
			w.Caps = func() (caps.Limits, error) { return l, lerr }
			w.begin()
			a, err := w.host().Reserve(t.Context(), l, caps.Request{Run: "other", Mission: "other-site", N: dollar, Least: dollar}, noon)
			if ok(t, err); a.Decision != money.Admit {
				t.Fatal(a)
			}
			ok(t, w.host().Settle(t.Context(), "other", "other-site", money.Nano(dollar), noon))
			_, err = w.Store.Pause(t.Context(), mission.Pause{Cause: "human", Reason: "lunch"}, noon)
			ok(t, err)
			_, err = w.Store.Pause(t.Context(), mission.Pause{Cause: "limit", Reason: "the account's", Until: noon.Add(24 * time.Hour)}, noon)
			ok(t, err)
			h := Hold{Version: mission.Version, Key: "k"}
			for range 2 {
				if _, out, err := w.Run(t.Context(), &h, w.ask()); out != Later || err != nil || len(w.fake.jobs) != 0 {
					t.Fatal(name, out, err)
				}
			}
			if p := w.causes(); p["cap"].Until != noon.Add(12*time.Hour) || p["limit"].Until != noon.Add(24*time.Hour) || !p["human"].Until.IsZero() {
				t.Errorf("%s: %+v", name, p)
			}
			if told := w.said(journal.Paused); len(told) != 1 || told[0].Level != journal.Blocker || !strings.Contains(told[0].Text, "raised") {
				t.Errorf("%s: told %+v", name, told)
			}

			l, lerr, w.at = c.now, c.err, w.at.Add(c.after)
			var left []string
			for range 2 {
				pauses, err := w.Paused(t.Context())
				ok(t, err)
				left = nil
				for _, cause := range []string{"cap", "human", "limit"} {
					for _, p := range pauses {
						if p.Cause == cause {
							left = append(left, cause)
						}
					}
				}
			}
			if got := strings.Join(left, " "); got != c.causes {
				t.Errorf("%s, %s: paused by %q, want %q", unit, name, got, c.causes)
			}
			want := 0
			if !strings.Contains(c.causes, "cap") && c.after == 0 {
				want = 1
			}
			if told := w.said(journal.Unpaused); len(told) != want {
				t.Errorf("%s: told %+v", name, told)
			}
			if strings.Contains(c.causes, "cap") || c.now == (caps.Limits{}) {
				continue
			}
			w.answers(done()) // where the pause is lifted, there is a run: it does not come back at once
			if _, out, err := w.Run(t.Context(), &h, w.ask()); out != Moved || err != nil || len(w.fake.jobs) != 1 {
				t.Errorf("%s, %s: %v, %v, %d runs", unit, name, out, err, len(w.fake.jobs))
			}
		}
	}
}

// TestRunCutByCaps: a run that ends for its money where the caps gave it less than the mission had is no attempt, and no
// reason to halt. It is tried again when there is more than it had, and not before.
func TestRunCutByCaps(t *testing.T) {
	for _, spent := range []int64{0, dollar / 20} {
		w, keys := behindGateway(t, 10)
		w.Price = func(_ string, u money.Usage, _ time.Time, _ bool) (money.Nano, bool) {
			return money.Nano(4 * dollar), true
		}
		day := dollar / 5
		w.Caps = func() (caps.Limits, error) { return caps.Limits{Day: money.Nano(day)}, nil }
		h, err := w.Hold("handoff-1")
		ok(t, err)
		w.fake.do = func(_ context.Context, j runner.Job) (runner.Result, error) {
			if got := request(t, j, "model-x"); got != http.StatusPaymentRequired {
				t.Errorf("status %d", got)
			}
			return runner.Result{Verdict: runner.Failed, Class: "budget", Spend: runner.Spend{Nano: money.Nano(spent), Tokens: spent / 1000, Source: "stream"}}, nil
		}
		for n := range 3 {
			if _, out, err := w.Run(t.Context(), &h, w.ask()); out != Later || err != nil || h.Runs != 0 || h.Run != "" || !h.Alone {
				t.Errorf("%v, %v, %+v", out, err, h)
			}
			if n == 0 { // its share did not do: all that is free is tried
				if p, err := w.Paused(t.Context()); err != nil || len(p) != 0 {
					t.Errorf("%+v, %v", p, err)
				}
				day += spent
				continue
			}
			for _, n := range []int64{day, day + spent} { // as much as it had, at most
				day = n
				if p, err := w.Paused(t.Context()); err != nil || len(p) != 1 || p[0].Cause != "cap" {
					t.Errorf("cap %d: %+v, %v", n, p, err)
				}
			}
			day += 5
			if p, err := w.Paused(t.Context()); err != nil || len(p) != 0 {
				t.Errorf("cap %d: %+v, %v", day, p, err)
			}
		}
		if stop, err := w.Store.Stopped(); err != nil || stop != nil || len(*keys) != 0 {
			t.Errorf("%+v, %v, %d requests", stop, err, len(*keys))
		}
		day = 100 * dollar
		w.answers(done())
		if _, out, err := w.Run(t.Context(), &h, w.ask()); out != Moved || err != nil || h.Runs != 1 {
			t.Errorf("%v, %v, %+v", out, err, h)
		}
	}
}
