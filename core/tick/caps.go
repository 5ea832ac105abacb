package tick

import (
	"context"
	"errors"
	"fmt"

	"example.com/AutoAgentProject/core/caps"
	"example.com/AutoAgentProject/core/journal"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/money"
)

func (t *Tick) host() caps.Host { return caps.Host{Dir: t.Store.Root().Caps()} }

// underCaps sets aside for a run, under what all missions may spend together, what its mission granted. Where it gets less,
// the answer has the reason. Where a cap is used up the mission waits for the next day or month.
func (t *Tick) underCaps(ctx context.Context, run string, limit money.Amount, due int) (money.Amount, caps.Answer, Outcome, error) {
	if t.Caps == nil {
		return limit, caps.Answer{}, Moved, nil
	}
	l, err := t.Caps()
	if err != nil || l == (caps.Limits{}) {
		return limit, caps.Answer{}, Moved, err
	}
	n, least := limit.N, t.leastRun()
	if limit.Unit == money.Tokens {
		n = t.worth(limit.N)
	}
	a, err := t.host().Reserve(ctx, l, caps.Request{Run: run, Mission: t.Mission.ID, N: n, Least: least, Due: due}, t.Now())
	if err != nil {
		return limit, a, Idle, err
	}
	switch a.Decision {
	case money.Admit:
		if limit.Unit != money.Tokens {
			limit.N = a.Limit
		} else if a.Limit < n {
			limit.N = max(limit.N*a.Limit/n, 1)
		}
		return limit, a, Moved, nil
	case money.Wait:
		t.Line(ctx, "waiting", "", "", "waits until other runs have ended: %s", a.Reason)
		return limit, a, Later, nil
	}
	return limit, a, Later, t.pauseForCaps(ctx, a, least)
}

// pauseForCaps lets the mission wait until the caps have so much for a run, or the period ends.
func (t *Tick) pauseForCaps(ctx context.Context, a caps.Answer, need int64) error {
	fresh, err := t.Store.Pause(ctx, mission.Pause{Cause: capCause, Reason: a.Reason, Until: a.Until, Need: need}, t.Now())
	if fresh {
		t.Event(journal.Event{Kind: journal.Paused, Level: journal.Blocker, Incident: incident("cap", a.Until),
			Text: fmt.Sprintf("paused until %s, or until the cap is raised: %s", a.Until.Format("2006-01-02 15:04 MST"), a.Reason)})
	}
	return err
}

// cutByCaps is what follows when a run ended for its money because the caps had given it less than its mission had: neither
// its step nor the mission's budget is to blame. All that is free is tried once, then it waits for more.
func (t *Tick) cutByCaps(ctx context.Context, h *Hold, a caps.Answer) (Outcome, error) {
	alone := h.Alone
	h.Alone = true
	if err := t.uncount(h); err != nil {
		return Idle, err
	}
	if !alone {
		t.Wake(t.Agent.Name)
		return Later, nil
	}
	return Later, t.pauseForCaps(ctx, a, a.Limit+1)
}

// otherMissions counts the live missions beside this one: they may want something of the caps too.
func (t *Tick) otherMissions() int {
	root, n := t.Store.Root(), 0
	ids, _ := root.IDs()
	for _, id := range ids {
		if stop, err := root.Mission(id).Stopped(); id != t.Mission.ID && err == nil && stop == nil {
			n++
		}
	}
	return n
}

// capCause is the pause of a mission for which the caps have nothing left. It is another one than an account's limit, so
// that lifting this one lifts only this one.
const capCause = "cap"

// leastRun is what the caps must have for the smallest run.
func (t *Tick) leastRun() int64 {
	if t.Mission.Budget.Unit == money.Tokens {
		return t.worth(t.Mission.MinRun)
	}
	return t.Mission.MinRun
}

// capsAllow says whether the caps, as they are now, have so much for a run. What cannot be read allows nothing.
func (t *Tick) capsAllow(need int64) bool {
	if t.Caps == nil {
		return true
	}
	l, err := t.Caps()
	if err != nil {
		return false
	}
	free, err := t.host().Free(l, max(need, t.leastRun()), t.Now())
	return free && err == nil
}

// worth is the most that so many tokens can cost.
func (t *Tick) worth(tokens int64) int64 {
	if t.Price == nil {
		return 0
	}
	n, _ := t.Price(t.Mission.Model, money.Usage{Output: tokens}, t.Now(), false)
	return int64(n)
}

// release gives back what a run that cost nothing had reserved. The caps come first: what is open in the mission's ledger
// is settled again by whoever comes after a crash.
func (t *Tick) release(ctx context.Context, run, note string) error {
	return errors.Join(t.host().Release(ctx, run, t.Now()), t.ledger.Release(ctx, run, note, t.Now()))
}
