package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"example.com/AutoAgentProject/core/journal"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/money"
	"example.com/AutoAgentProject/core/plan"
	"example.com/AutoAgentProject/core/reporter"
	"example.com/AutoAgentProject/core/store"
	"example.com/AutoAgentProject/core/tick"
	"example.com/AutoAgentProject/core/usererr"
)

// finish is the last part of a stop, when everything of the mission is proven dead: count what is open, write the end
// down, turn it into the last message. It is repeatable.
func finish(ctx context.Context, st *store.Store, m mission.Mission, stop mission.Stop, log *slog.Logger) error {
	var errs []error
	for _, a := range m.Roster {
		t, err := newTick(st, m, a, log)
		if err != nil {
			return err
		}
		// Begin counts what a dead tick left open; with the tombstone there it goes no further.
		if out, end, err := t.Begin(ctx); err != nil {
			if usererr.CodeOf(err) != usererr.Unreadable { // a damaged file is told, and holds the end up no longer
				errs = append(errs, fmt.Errorf("%s: %w", a.Name, err))
			}
		} else if out == tick.Idle {
			end()
		}
		line := "stopped"
		if s, err := st.State(); err == nil && s.Agents[a.Name].Doing == "working" {
			line = "stopped while it worked on " + s.Agents[a.Name].Step
		}
		t.Line(ctx, "stopped", "", "", "%s", line)
	}
	now := time.Now()
	if err := st.SetPhase(ctx, stop.Cause.Phase(), now); err != nil {
		errs = append(errs, err)
	}
	if told, err := endTold(st, stop); err != nil {
		errs = append(errs, err)
	} else if !told {
		errs = append(errs, st.Journal().Add(journal.Event{At: now, Kind: journal.MissionStopped, Level: journal.End, Text: endText(st, m, stop, now)}))
	}
	if err := writeReport(ctx, st); err != nil { // the end does not wait for it
		log.Warn("the report could not be written", "err", err)
	}
	if rep, ok := m.Agent("reporter"); ok {
		t, err := newTick(st, m, rep, log)
		if err == nil {
			_, err = (reporter.Reporter{Tick: t}).Once(ctx)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// endTold says whether this stop was told; there can have been halts before it.
func endTold(st *store.Store, stop mission.Stop) (bool, error) {
	events, _, _, err := st.Journal().Read(0)
	for _, e := range events {
		if e.Kind == journal.MissionStopped && !e.At.Before(stop.At) {
			return true, err
		}
	}
	return false, err
}

// endText is the last message: result, how to take it, cost, time, what is unfinished.
func endText(st *store.Store, m mission.Mission, stop mission.Stop, now time.Time) string {
	var b strings.Builder
	fmt.Fprintf(&b, "mission %s %s: %s", m.ID, stop.Cause.Phase(), stop.Reason)
	if p, err := st.Plan(); err == nil && len(p.Steps) > 0 {
		fmt.Fprintf(&b, "; %d of %d steps done", p.Count(plan.Done), len(p.Steps))
		var open []string
		for _, s := range p.Steps {
			if s.State != plan.Done {
				open = append(open, s.ID)
			}
		}
		if len(open) > 0 {
			fmt.Fprintf(&b, ", unfinished: %s", strings.Join(open, ", "))
		}
		if n := len(p.Skipped); n > 0 {
			fmt.Fprintf(&b, ", %d left out by a person", n)
		}
	}
	fmt.Fprintf(&b, "; %s, after %s", costText(st, m), shortDuration(now.Sub(m.CreatedAt)))
	if _, err := os.Stat(st.Result()); err == nil {
		fmt.Fprintf(&b, "; result in %s", st.Result())
		if m.From != nil && m.From.Kind == "git" {
			fmt.Fprintf(&b, ", AutoAgentProject deliver %s takes it", m.ID)
		}
	}
	return b.String()
}

func costText(st *store.Store, m mission.Mission) string {
	book, err := st.Ledger().Read()
	if err != nil {
		return "cost unknown: " + err.Error()
	}
	verb := "cost"
	if m.Scripted {
		verb = "would have cost"
	}
	return fmt.Sprintf("%s %s of %s (list price %s, %s tokens)", verb, book.Used, book.Budget, money.FormatUSD(book.Nano), money.FormatTokens(book.Tokens))
}

// tellEnd says how a mission ended and where its result is, and returns the exit status as an error.
func (c *cli) tellEnd(ctx context.Context, root store.Root, m mission.Mission, stop mission.Stop) error {
	st := root.Mission(m.ID)
	code := endCode(stop.Cause)
	if !st.Exists() {
		return usererr.New(code, "its work, if it is still there, is in "+st.Work(), "mission %s ended because its folder is gone; nothing of it lives any more", m.ID)
	}
	ended := stop.At
	if ended.IsZero() { // of a tombstone that cannot be read
		ended = time.Now()
	}
	if c.json {
		v, err := c.view(ctx, root, st)
		if err != nil {
			return err
		}
		return errors.Join(c.printJSON(v), quiet(code))
	}
	c.say("")
	c.say("Mission %s %s: %s", m.ID, stop.Cause.Phase(), stop.Reason)
	c.say("  %-8s %s", "cost", costText(st, m))
	c.say("  %-8s %s", "time", shortDuration(ended.Sub(m.CreatedAt)))
	if p, err := st.Plan(); err == nil && len(p.Steps) > 0 {
		c.say("  %-8s %d of %d done", "steps", p.Count(plan.Done), len(p.Steps))
		for _, s := range p.Skipped {
			c.say("  %-8s %s: %s", "left out", s.ID, s.Title)
		}
	}
	if _, err := os.Stat(st.Result()); err == nil {
		c.say("  %-8s %s", "result", st.Result())
		if m.From != nil && m.From.Kind == "git" {
			c.say("  %-8s AutoAgentProject deliver %s%s", "take it", m.ID, c.rootHint(root))
		}
		c.say("  %-8s git fetch %s main:autoagent/%s", "or", shellQuote(st.Repo()), m.ID)
	}
	if m.Scripted {
		c.say("The model's part was played from a script; nobody was asked and nobody pays.")
	}
	return quiet(code)
}

// shortDuration writes a duration for people: 4h, 1h30m, 2m5s.
func shortDuration(d time.Duration) string {
	if d >= time.Minute {
		d = d.Round(time.Second)
	} else {
		d = d.Round(100 * time.Millisecond)
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
