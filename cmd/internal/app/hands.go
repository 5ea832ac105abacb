package app

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/money"
	"example.com/AutoAgentProject/core/plan"
	"example.com/AutoAgentProject/core/store"
	"example.com/AutoAgentProject/core/supervisor"
	"example.com/AutoAgentProject/core/telegram"
	"example.com/AutoAgentProject/core/usererr"
	"example.com/AutoAgentProject/core/view"
)

// hands do what the person says to the bot, by the functions of the command line.
type hands struct{ c *cli }

const byBot = "by Telegram"

// Live are the missions without a tombstone.
func (h hands) Live(_ context.Context, root store.Root) ([]string, error) {
	ids, err := root.IDs()
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(ids, func(id string) bool {
		stop, err := root.Mission(id).Stopped()
		return err != nil || stop != nil
	}), nil
}

// Do does one thing.
func (h hands) Do(ctx context.Context, a telegram.Action, key string) (string, error) {
	if a.Mission == "" {
		return h.all(ctx, a.Root)
	}
	st := a.Root.Mission(a.Mission)
	m, err := st.Mission()
	if errors.Is(err, store.ErrNoMission) {
		return "", usererr.New(usererr.NotFound, "", "there is no mission %s", a.Mission)
	}
	if err != nil && a.Verb != telegram.DoAbort {
		return "", err
	}
	switch a.Verb {
	case telegram.Status:
		v, err := h.c.view(ctx, st.Root(), st)
		if err != nil {
			return "", err
		}
		return statusText(v), nil
	case telegram.Costs:
		return costsText(st)
	case telegram.Pause:
		return pauseMission(ctx, st, "", byBot)
	case telegram.Resume:
		return h.resume(ctx, st, m)
	case telegram.DoAbort:
		return h.abort(ctx, st, m)
	case telegram.Approve, telegram.Reject, telegram.Skip:
		v := map[string]mission.Verdict{telegram.Approve: mission.Approved, telegram.Reject: mission.Rejected, telegram.Skip: mission.Skipped}[a.Verb]
		_, text, err := decide(st, a.N, v, a.Note, byBot, key)
		return text, err
	case telegram.Mute, telegram.Unmute:
		return setMuted(st, a.Verb == telegram.Mute)
	case telegram.Ack:
		return acknowledge(st)
	case telegram.Tell:
		return tell(st, a.Note, byBot, key)
	}
	return "", usererr.New(usererr.Usage, "", "this cannot be done from here")
}

// all is the status of all live missions, a line each.
func (h hands) all(ctx context.Context, root store.Root) (string, error) {
	list, err := h.c.missions(ctx, root, false)
	if err != nil {
		return "", err
	}
	var lines []string
	for _, v := range list {
		if v.Unreadable && v.Phase == "unreadable" {
			lines = append(lines, v.ID+": unreadable")
			continue
		}
		lines = append(lines, statusText(v))
	}
	return strings.Join(lines, "\n\n"), nil
}

// statusText is a mission in a few lines.
func statusText(v view.Mission) string {
	lines := []string{v.ID + ": " + v.Phase}
	if n := len(v.Steps); n > 0 {
		done := 0
		for _, s := range v.Steps {
			if s.State == plan.Done {
				done++
			}
		}
		lines[0] += fmt.Sprintf(" · %d of %d steps done", done, n)
	}
	money := v.Budget.Text
	if v.Time.Limited && v.Stop == nil {
		money += " · " + shortDuration(time.Duration(v.Time.Left).Round(time.Minute)) + " left"
	}
	lines = append(lines, money)
	for _, a := range v.Agents {
		if a.Doing == "working" || a.Doing == "blocked" {
			lines = append(lines, a.Name+": "+cutRunes(a.Line, 120))
		}
	}
	for _, p := range v.Pauses {
		who := ""
		if p.Agent != "" {
			who = p.Agent + " is "
		}
		lines = append(lines, fmt.Sprintf("%spaused (%s): %s", who, p.Cause, cutRunes(p.Reason, 200)))
	}
	for _, n := range v.Needs {
		if n.Kind == "approval" {
			lines = append(lines, cutRunes(n.Title, 200))
		}
	}
	for _, w := range v.Warnings {
		lines = append(lines, "warning: "+cutRunes(w, 200))
	}
	return clean(strings.Join(lines, "\n"))
}

// costsText is what a mission cost by agent.
func costsText(st *store.Store) (string, error) {
	book, err := st.Ledger().Read()
	if err != nil {
		return "", err
	}
	lines := []string{fmt.Sprintf("%s: %s of %s used (%d%%)", st.ID(), book.Used, book.Budget, money.ShownPercent(book.Budget.N, book.Used.N))}
	for _, a := range slices.Sorted(maps.Keys(book.ByAgent)) {
		s := book.ByAgent[a]
		lines = append(lines, fmt.Sprintf("%s: %s in %d runs, %s tokens", a, money.FormatUSD(s.Nano), s.Runs, money.FormatTokens(s.Tokens)))
	}
	if n := len(book.OpenRuns); n > 0 {
		lines = append(lines, fmt.Sprintf("%d runs are under way, at most %s more", n, book.Reserved))
	}
	return strings.Join(lines, "\n"), nil
}

// resume lifts a person's pause; a halted mission goes on where an engine other than a terminal ticks it.
func (h hands) resume(ctx context.Context, st *store.Store, m mission.Mission) (string, error) {
	stop, err := st.Stopped()
	if err != nil {
		return "", err
	}
	if stop == nil {
		text, was, err := unpauseMission(ctx, st, m, "")
		if err == nil && !was {
			text = m.ID + " is not paused"
		}
		return text, err
	}
	if m.Engine == supervisor.Name {
		if err := mayGoOn(ctx, st, m, stop); err != nil {
			return "", err
		}
		return "", usererr.New(usererr.Conflict, "AutoAgentProject resume "+m.ID, "mission %s is ticked at a terminal, and goes on from there", m.ID)
	}
	quietly := *h.c
	quietly.env.Stdout, quietly.json = discardWriter{}, false
	if err := quietly.resume(ctx, st.Root(), st, m); err != nil {
		return "", err
	}
	return m.ID + " goes on", nil
}

type discardWriter struct{}

func (discardWriter) Write(p []byte) (int, error) { return len(p), nil }

// abort sets the tombstone, which holds at once, and lets the engine end the rest meanwhile.
func (h hands) abort(ctx context.Context, st *store.Store, m mission.Mission) (string, error) {
	made, err := h.c.bury(ctx, st.Root(), st, m, mission.Stop{Cause: mission.Aborted, Reason: noReason + " " + byBot, By: "person", At: time.Now()})
	if err != nil {
		return "", err
	}
	if stop, err := st.Stopped(); !made && err == nil && stop != nil && stop.Cause != mission.Aborted {
		return fmt.Sprintf("mission %s had ended already: %s", st.ID(), stop.Cause.Phase()), nil
	}
	if e, err := h.c.engineOf(st.Root(), m); err == nil {
		go func(ctx context.Context) {
			ctx, done := context.WithTimeout(ctx, abortWait)
			defer done()
			_, _ = e.Stop(ctx, m.ID) // who ticks it does the same; the last message says that it is proven
		}(context.WithoutCancel(ctx))
	}
	return fmt.Sprintf("%s is told to stop and starts nothing any more. The last message comes when everything of it is proven gone.", st.ID()), nil
}
