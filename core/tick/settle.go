package tick

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"example.com/AutoAgentProject/core/files"
	"example.com/AutoAgentProject/core/journal"
	"example.com/AutoAgentProject/core/ledger"
	"example.com/AutoAgentProject/core/money"
	"example.com/AutoAgentProject/core/runner"
)

// Result reads the result of a run; ok is false if it has none (yet), or one that says nothing about the work: it was cut
// off, ended at a limit, or is the whole mission's affair.
func (t *Tick) Result(run string) (res runner.Result, ok bool, err error) {
	if run == "" {
		return res, false, nil
	}
	path := filepath.Join(t.Store.Run(t.Agent.Name, run), "result.json")
	b, err := files.Read(path, 64<<20)
	if errors.Is(err, fs.ErrNotExist) {
		return res, false, nil
	}
	if err != nil && !errors.Is(err, files.ErrNotRegular) && !errors.Is(err, files.ErrTooBig) {
		return res, false, err
	}
	if err == nil {
		err = json.Unmarshal(b, &res)
	}
	if err != nil { // its spend is in the ledger or in the transcript; the work is done again
		aside, aerr := files.SetAside(path, t.Now())
		t.Log.Warn("the result of a run cannot be read", "run", run, "err", err, "kept", aside)
		return runner.Result{}, false, aerr
	}
	return res, res.Verdict == runner.Done || res.Verdict == runner.Failed && !ofMission(res.Class), nil
}

func (t *Tick) saveResult(run string, res runner.Result) error {
	b, err := json.MarshalIndent(res, "", "  ")
	if err != nil {
		return err
	}
	return files.Replace(filepath.Join(t.Store.Run(t.Agent.Name, run), "result.json"), append(b, '\n'), 0o600)
}

// settle closes a run's reservation with what it cost: the most of what the gateway, the result and its transcript say;
// the whole reservation if it was launched without a gateway and nothing shows what it did.
func (t *Tick) settle(ctx context.Context, run string, res runner.Result) error {
	s := res.Spend
	claims := []money.Claim{}
	if res.Verdict != "" {
		claims = append(claims, money.Claim{Meter: s.Source, Nano: s.Nano, Tokens: s.Tokens, Requests: s.Requests, ByModel: s.ByModel, Unpriced: s.Unpriced})
	}
	if f, err := os.Open(filepath.Join(t.Store.Run(t.Agent.Name, run), "stream.jsonl")); err == nil {
		s, _, err := t.Runner.Recount(f)
		f.Close()
		if err == nil && s.Tokens > 0 {
			claims = append(claims, money.Claim{Meter: s.Source, Nano: s.Nano, Tokens: s.Tokens, Requests: s.Requests, ByModel: s.ByModel, Unpriced: s.Unpriced})
		}
	}
	claim, ok, err := t.gatewayClaim(run)
	switch {
	case ok:
		claims = append([]money.Claim{claim}, claims...)
	case err != nil:
		t.Log.Warn("what the gateway of a run counted cannot be read", "run", run, "err", err)
	}
	book, berr := t.ledger.Read()
	if berr != nil {
		return berr
	}
	c, known := money.Spend(claims...)
	spent := ledger.Spent{Nano: c.Nano, Tokens: c.Tokens, Requests: c.Requests, ByModel: c.ByModel, Source: c.Meter, Unpriced: c.Unpriced}
	for _, r := range book.OpenRuns {
		switch {
		case r.ID != run:
			continue
		case !r.Launched:
			return t.release(ctx, run, "it was never started")
		case !known || err != nil && res.Verdict == "": // killed, and nothing shows what it did: all of it counts
			spent.Source, spent.Note = "reservation", "its tick died and nothing shows what it cost"
			if book.Budget.Unit == money.Tokens {
				spent.Tokens = max(spent.Tokens, r.Cap)
			} else {
				spent.Nano = max(spent.Nano, money.Nano(r.Cap))
			}
		}
	}
	if err := t.host().Settle(ctx, run, t.Mission.ID, spent.Nano, t.Now()); err != nil {
		return err
	}
	return t.ledger.Spend(ctx, run, spent, t.Now())
}

// cleanUp ends what an earlier, dead tick of this agent left: the cells of its open runs are proven gone, the runs
// counted, its scratch folders swept. The caller holds the agent's lock, so nobody else can be at it.
func (t *Tick) cleanUp(ctx context.Context) error {
	book, err := t.ledger.Read()
	if err != nil {
		return err
	}
	for _, r := range book.OpenRuns {
		if r.Agent != t.Agent.Name {
			continue
		}
		res, _, err := t.Result(r.ID)
		if err != nil {
			t.Log.Warn("the result of a run whose tick had died cannot be read", "run", r.ID, "err", err)
		}
		if err := t.endCell(r.ID); err != nil {
			return err
		}
		if err := t.settle(ctx, r.ID, res); err != nil {
			return err
		}
		t.Event(journal.Event{Kind: journal.Repaired, Step: r.Step, Run: r.ID, Text: "counted a run whose tick had died"})
	}
	entries, err := os.ReadDir(t.Store.Cells(t.Agent.Name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		Sweep(filepath.Join(t.Store.Cells(t.Agent.Name), e.Name()))
	}
	t.sweepKept()
	return nil
}

// mostKept is how many clones of an agent that were set aside are kept.
const mostKept = 2

// sweepKept removes the oldest clones of this agent that were set aside, beyond mostKept.
func (t *Tick) sweepKept() {
	dirs, _ := filepath.Glob(filepath.Join(t.Store.Work(), ".kept-"+t.Agent.Name+"-[0-9]*"))
	age := map[string]time.Time{}
	for _, d := range dirs {
		if fi, err := os.Lstat(d); err == nil {
			age[d] = fi.ModTime()
		}
	}
	slices.SortFunc(dirs, func(a, b string) int { return age[a].Compare(age[b]) })
	for _, d := range dirs[:max(0, len(dirs)-mostKept)] {
		Sweep(d)
		t.Event(journal.Event{Kind: journal.Repaired, Text: fmt.Sprintf("removed %s, an old clone of %s that was set aside", filepath.Base(d), t.Agent.Name)})
	}
}
