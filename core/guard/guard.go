// Package guard is the tick of quota: every few moments it adds up money and time, tells the thresholds once each, and sets
// the tombstone when either is used up. It never calls a model and opens nothing that a cell can write.
package guard

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"example.com/AutoAgentProject/core/files"
	"example.com/AutoAgentProject/core/journal"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/money"
	"example.com/AutoAgentProject/core/proc"
	"example.com/AutoAgentProject/core/tick"
)

// Said is quota.json: which threshold was told already. It never goes down.
type Said struct {
	Version   int   `json:"version"`
	Threshold int   `json:"threshold"`        // percent
	Budget    int64 `json:"budget,omitempty"` // of this, in the ledger's unit
	Mark      int64 `json:"mark,omitempty"`   // the most that the ledger ever showed as used
}

// For is what counts as told for a budget. Where it was changed since, that is no more than what is reached of the new one.
func (s Said) For(budget money.Amount, used int64) Said {
	if s.Budget != 0 && s.Budget != budget.N {
		_, reached := money.Thresholds(budget.N, used, 0)
		s.Threshold = min(s.Threshold, reached)
	}
	s.Version, s.Budget = mission.Version, budget.N
	return s
}

// Guard is one tick of quota.
type Guard struct{ *tick.Tick }

// Action is what the facts ask for.
type Action struct {
	Say    int           // threshold to tell, 0 for none
	Said   int           // what is told then
	Stop   mission.Cause // "" for none
	Reason string
}

// Decide is the guard's whole mind: used of budget in its unit, what was told, and the time left.
func Decide(budget money.Amount, used int64, said int, left time.Duration, limited bool) Action {
	a := Action{}
	a.Say, a.Said = money.Thresholds(budget.N, used, said)
	switch {
	case a.Said >= 100:
		a.Stop, a.Reason = mission.Budget, fmt.Sprintf("%s of %s is used", money.Amount{Unit: budget.Unit, N: used}, budget)
	case limited && left <= 0:
		a.Stop, a.Reason = mission.Time, "the time is used up"
	}
	return a
}

// Once adds up and acts. The caller has begun the tick.
func (g Guard) Once(ctx context.Context) (tick.Outcome, error) {
	book, err := g.Store.Ledger().Read()
	if err != nil {
		return tick.Idle, err
	}
	if _, err := g.Store.Plan(); err != nil {
		return tick.Idle, err
	}
	var errs []error // what cannot be read or written delays no stop
	left, limited, err := g.time(ctx)
	errs = append(errs, err)
	said, err := g.said()
	errs = append(errs, err)
	budget, used := book.Budget, book.Used.N
	before := said
	said = said.For(budget, used)
	_, seen := money.Watch{Marks: map[string]int64{"ledger": said.Mark}}.Look(budget.N, money.Reading{Used: map[string]int64{"ledger": used}})
	if seen.Alert == money.AlertDown {
		g.Event(journal.Event{Kind: journal.BudgetCrossed, Level: journal.Blocker, Incident: fmt.Sprintf("ledger-down-%d", said.Mark),
			Text: fmt.Sprintf("the ledger shows less than before, %s; %s counts", book.Used, money.Amount{Unit: budget.Unit, N: seen.Used})})
	}
	a := Decide(budget, seen.Used, said.Threshold, left, limited)
	if a.Stop != "" {
		errs = append(errs, g.Stop(a.Stop, a.Reason))
	}
	if a.Say > 0 {
		level := journal.Milestone
		if a.Say >= 80 {
			level = journal.Blocker
		}
		g.Event(journal.Event{Kind: journal.BudgetCrossed, Level: level, Incident: fmt.Sprintf("budget-%d-of-%d", a.Say, budget.N),
			Text: fmt.Sprintf("%d%% of the budget is used: %s of %s", a.Say, book.Used, budget)})
	}
	if now := (Said{mission.Version, a.Said, budget.N, seen.Used}); now != before {
		errs = append(errs, g.Store.Save("quota.json", now))
	}
	line := fmt.Sprintf("%s of %s used", book.Used, budget)
	if limited {
		line += fmt.Sprintf(", %s left", left.Round(min(time.Minute, max(left/20, time.Second)).Truncate(time.Second)))
	}
	g.Line(ctx, "idle", "", "", "%s", line)
	if a.Stop != "" {
		return tick.Over, errors.Join(errs...)
	}
	return tick.Idle, errors.Join(errs...)
}

// said reads what was told. A file that cannot be read is set aside: at worst a threshold is told again.
func (g Guard) said() (Said, error) {
	var said Said
	err := g.Store.Load("quota.json", &said)
	if errors.Is(err, fs.ErrNotExist) {
		return said, nil
	}
	if err != nil {
		g.Log.Warn("quota.json cannot be read and is set aside", "err", err)
		_, err := files.SetAside(filepath.Join(g.Store.Dir(), "quota.json"), g.Now())
		return Said{}, err
	}
	return said, nil
}

// time advances the mission's clock and says how long it may still run. Where the clock cannot be read, only the
// absolute end limits; where it cannot be written, it is right all the same.
func (g Guard) time(ctx context.Context) (left time.Duration, limited bool, err error) {
	boot, err := proc.Boot()
	if err != nil {
		return 0, false, err
	}
	pauses, perr := g.Store.AllPauses(g.Now())
	m := g.Mission
	c, err := g.Store.Clock(ctx, func(c mission.Clock) mission.Clock {
		return c.Advance(boot, proc.Mono(), g.Now(), rests(m.Roster, pauses))
	})
	if c.Version == 0 {
		m.MaxRun = 0
	}
	left, limited = mission.TimeLeft(m, c, g.Now())
	return left, limited, errors.Join(perr, err)
}

// rests says whether pauses keep everybody from working: a mission that cannot run uses no time.
func rests(roster []mission.Agent, pauses []mission.Pause) bool {
	paused := map[string]bool{}
	for _, p := range pauses {
		if p.Agent == "" {
			return true
		}
		paused[p.Agent] = true
	}
	for _, a := range mission.Specialists(roster) {
		if !paused[a.Name] {
			return false
		}
	}
	return len(paused) > 0
}
