// Package caps holds all missions below one root to what may be spent in a day and in a month together. Each period has a
// ledger of its own, in which every run of every mission reserves and is settled as it is in its mission's. Periods are
// calendar days and months in UTC. Amounts are list prices in nano-USD.
package caps

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"example.com/AutoAgentProject/core/ledger"
	"example.com/AutoAgentProject/core/money"
	"example.com/AutoAgentProject/core/usererr"
)

// Limits are the caps in force; 0 is none.
type Limits struct {
	Day   money.Nano
	Month money.Nano
}

// Host is the caps' ledgers of one root.
type Host struct{ Dir string }

// period is one day or month.
type period struct {
	name  string // "2026-12-01", "2026-12"
	cap   money.Nano
	ends  time.Time
	words string // "day", "month"
}

// periods are the day and the month of a moment.
func periods(l Limits, now time.Time) []period {
	now = now.UTC()
	day := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, time.UTC)
	month := time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC)
	return []period{
		{day.Format("2006-01-02"), l.Day, day.AddDate(0, 0, 1), "day"},
		{month.Format("2006-01"), l.Month, month.AddDate(0, 1, 0), "month"},
	}
}

func (h Host) open(name string) *ledger.Ledger {
	return ledger.Open(filepath.Join(h.Dir, name+".jsonl"))
}

// ready opens the ledger of a period, makes it if need be, and brings it to the cap that is in force.
func (h Host) ready(ctx context.Context, p period, now time.Time) (*ledger.Ledger, error) {
	if err := os.MkdirAll(h.Dir, 0o700); err != nil {
		return nil, err
	}
	l := h.open(p.name)
	budget := money.Amount{Unit: money.NanoUSD, N: int64(p.cap)}
	if err := l.Create(ctx, budget, now); err != nil && usererr.CodeOf(err) != usererr.Conflict {
		return nil, err
	}
	return l, l.SetBudget(ctx, budget, "the configuration says so", now)
}

// Answer is what came of a request.
type Answer struct {
	Decision money.Decision // Admit, Wait, or Exhausted
	Limit    int64          // what was granted, no more than was asked for
	Until    time.Time      // of the period that gave less or nothing: when it ends
	Reason   string         // of the same, in words
}

// Request is one run's wish.
type Request struct {
	Run, Mission string
	N, Least     int64 // what it wants, and the least that is worth a run
	Due          int   // runs that may want something now, this one included: what is free is shared among them
}

// Reserve sets aside for a run, in every period that has a cap, what it wants, or less, but at least the least. Nothing is set
// aside unless the answer is Admit.
func (h Host) Reserve(ctx context.Context, l Limits, q Request, now time.Time) (Answer, error) {
	a := Answer{Decision: money.Admit, Limit: q.N}
	for _, p := range periods(l, now) {
		if p.cap <= 0 {
			continue
		}
		led, err := h.ready(ctx, p, now)
		if err != nil {
			return a, errors.Join(fmt.Errorf("the cap of the %s: %w", p.words, err), h.Release(ctx, q.Run, now))
		}
		got, d, err := led.Reserve(ctx, ledger.ReserveRequest{Run: q.Run, Agent: q.Mission, StepLimit: a.Limit, MinRun: min(q.Least, a.Limit), AgentsDue: q.Due, Now: now})
		if err != nil {
			return a, errors.Join(fmt.Errorf("the cap of the %s: %w", p.words, err), h.Release(ctx, q.Run, now))
		}
		if d != money.Admit {
			a = Answer{Decision: d, Until: p.ends, Reason: fmt.Sprintf("the cap of all missions for the %s, %s, is used up", p.words, money.FormatUSD(p.cap))}
			return a, h.Release(ctx, q.Run, now)
		}
		if got < a.Limit {
			a.Limit, a.Until = got, p.ends
			a.Reason = fmt.Sprintf("what the cap of all missions for the %s, %s, leaves for a run, %s, is not enough", p.words, money.FormatUSD(p.cap), money.FormatUSD(money.Nano(got)))
		}
	}
	return a, nil
}

// Settle counts what a run cost in the periods in which it has something set aside. It is repeatable.
func (h Host) Settle(ctx context.Context, run, mission string, spent money.Nano, now time.Time) error {
	var errs []error
	for _, led := range h.recent(now) {
		open, err := holds(led, run)
		if err == nil && open {
			err = led.Spend(ctx, run, ledger.Spent{Nano: spent, Agent: mission}, now)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// Release gives back what a run that cost nothing had set aside.
func (h Host) Release(ctx context.Context, run string, now time.Time) error {
	var errs []error
	for _, led := range h.recent(now) {
		open, err := holds(led, run)
		if err == nil && open {
			err = led.Release(ctx, run, "", now)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// recent are the ledgers in which a run of today can be open: a run takes no longer than a day.
func (h Host) recent(now time.Time) []*ledger.Ledger {
	var out []*ledger.Ledger
	seen := map[string]bool{}
	for _, at := range []time.Time{now, now.Add(-24 * time.Hour)} {
		for _, p := range periods(Limits{}, at) {
			if _, err := os.Stat(filepath.Join(h.Dir, p.name+".jsonl")); errors.Is(err, fs.ErrNotExist) || seen[p.name] {
				continue
			}
			seen[p.name] = true
			out = append(out, h.open(p.name))
		}
	}
	return out
}

func holds(l *ledger.Ledger, run string) (bool, error) {
	book, err := l.Read()
	for _, r := range book.OpenRuns {
		if r.ID == run {
			return true, err
		}
	}
	return false, err
}

// Free says whether at least so much is left in every period of now that has a cap, beside what is reserved.
func (h Host) Free(l Limits, least int64, now time.Time) (bool, error) {
	all, err := h.Standings(l, now)
	for _, s := range all {
		if int64(s.Cap-s.Used-s.Reserved) < max(least, 1) {
			return false, err
		}
	}
	return err == nil, err
}

// Standing is where one period stands.
type Standing struct {
	Period   string     `json:"period"` // "2026-12-01" or "2026-12", UTC
	Cap      money.Nano `json:"cap_nano_usd"`
	Used     money.Nano `json:"used_nano_usd"`
	Reserved money.Nano `json:"reserved_nano_usd"`
}

// Standings says where the periods of now stand that have a cap.
func (h Host) Standings(l Limits, now time.Time) ([]Standing, error) {
	var out []Standing
	for _, p := range periods(l, now) {
		if p.cap <= 0 {
			continue
		}
		s := Standing{Period: p.name, Cap: p.cap}
		if _, err := os.Stat(filepath.Join(h.Dir, p.name+".jsonl")); err == nil {
			book, err := h.open(p.name).Read()
			if err != nil {
				return out, err
			}
			s.Used, s.Reserved = money.Nano(book.Used.N), money.Nano(book.Reserved.N)
		}
		out = append(out, s)
	}
	return out, nil
}
