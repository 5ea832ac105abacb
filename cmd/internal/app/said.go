package app

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"example.com/AutoAgentProject/core/journal"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/notify"
	"example.com/AutoAgentProject/core/plan"
	"example.com/AutoAgentProject/core/store"
	"example.com/AutoAgentProject/core/tick"
	"example.com/AutoAgentProject/core/units"
	"example.com/AutoAgentProject/core/usererr"
	"example.com/AutoAgentProject/core/wake"
)

// This file holds what a person can say to a mission, the same for the terminal and for the bot. Each function does one
// thing, may be called again with the same key without doing it twice, and returns what to tell the person.

// terminal is who decides at the terminal.
const terminal = "at the terminal"

// live refuses what makes no sense for a mission that ended.
func live(st *store.Store) error {
	stop, err := st.Stopped()
	if err == nil && stop != nil {
		err = usererr.New(usererr.Conflict, "AutoAgentProject status "+st.ID()+" shows its end", "mission %s is %s", st.ID(), stop.Cause.Phase())
	}
	return err
}

// note writes an event of the person's; it is a record and holds nothing up.
func note(st *store.Store, kind, format string, args ...any) {
	_ = st.Journal().Add(journal.Event{At: time.Now(), Kind: kind, Agent: "person", Text: fmt.Sprintf(format, args...)})
}

// wakeUp wakes agents; the timer is the backstop.
func wakeUp(st *store.Store, agents ...string) {
	m, err := st.Mission()
	if err != nil {
		return
	}
	for _, a := range agents {
		_ = wake.Send(units.Wakes(st, m, a))
	}
}

// decide answers an approval. The first answer counts; a later one is told what it was.
func decide(st *store.Store, n int, v mission.Verdict, text, by, key string) (store.Asked, string, error) {
	if err := owned(st.Dir()); err != nil {
		return store.Asked{}, "", err
	}
	asked, err := st.Approval(n)
	if err != nil {
		return asked, "", err
	}
	if asked.Decision == nil {
		if err := live(st); err != nil {
			return asked, "", err
		}
	}
	asked, mine, err := st.Decide(n, mission.Decision{Verdict: v, Note: cutRunes(clean(text), maxReason*4), By: by, Key: key}, time.Now())
	if err != nil {
		return asked, "", err
	}
	if !mine {
		return asked, fmt.Sprintf("approval %d of %s was decided before: %s", n, st.ID(), asked.Decision.Said()), nil
	}
	note(st, journal.ApprovalDecided, "approval %d (%s) is %s", n, asked.Title, asked.Decision.Said())
	wakeUp(st, asked.By, "manager")
	return asked, fmt.Sprintf("approval %d of %s is %s", n, st.ID(), asked.Decision.Said()), nil
}

// tell keeps a note for the manager.
func tell(st *store.Store, text, by, key string) (string, error) {
	if err := owned(st.Dir()); err != nil {
		return "", err
	}
	if err := live(st); err != nil {
		return "", err
	}
	fresh, err := st.AddNote(store.Note{Key: key, At: time.Now(), By: by, Text: clean(text)})
	if err != nil {
		return "", err
	}
	if fresh {
		note(st, journal.PersonTold, "the manager got a note: %s", cutRunes(strings.Join(strings.Fields(clean(text)), " "), 200))
	}
	wakeUp(st, "manager")
	said := fmt.Sprintf("the manager of %s has your note and looks at its plan again now; what is under way goes on", st.ID())
	if m, err := st.Mission(); err == nil && m.Flow != "" { // nobody plans
		said = fmt.Sprintf("%s has your note, and every run that its flow starts from now on reads it", st.ID())
	}
	pauses, _ := st.Pauses(time.Now())
	asked, _ := st.Approvals()
	open := slices.IndexFunc(asked, func(a store.Asked) bool { return a.Open(time.Now()) })
	switch {
	case open >= 0:
		said += fmt.Sprintf(". It is no answer to approval %d: approve or reject does that", asked[open].N)
	case len(pauses) > 0:
		said += fmt.Sprintf(". It waits until the mission goes on: %s", pauses[0].Reason)
	}
	return said, nil
}

// setMuted mutes a mission or lifts that.
func setMuted(st *store.Store, muted bool) (string, error) {
	if err := owned(st.Dir()); err != nil {
		return "", err
	}
	if err := (notify.Outbox{Dir: st.Notify()}).Set(func(s *notify.Setting) { s.Muted = muted }); err != nil {
		return "", err
	}
	wakeUp(st, "reporter")
	if muted {
		return fmt.Sprintf("%s is muted: blockers, questions and the end are told all the same", st.ID()), nil
	}
	return fmt.Sprintf("%s is not muted any more", st.ID()), nil
}

// acknowledge ends the repetition of the blockers told so far.
func acknowledge(st *store.Store) (string, error) {
	if err := owned(st.Dir()); err != nil {
		return "", err
	}
	if err := (notify.Outbox{Dir: st.Notify()}).Set(func(s *notify.Setting) { s.AckedAt = time.Now().UTC() }); err != nil {
		return "", err
	}
	return fmt.Sprintf("the blockers of %s told so far are not repeated", st.ID()), nil
}

// humanPause is the cause of a pause that a person set.
const humanPause = "human"

// pauseMission lets a mission, or one agent of it, start nothing new.
func pauseMission(ctx context.Context, st *store.Store, agent, by string) (string, error) {
	if err := owned(st.Dir()); err != nil {
		return "", err
	}
	if err := live(st); err != nil {
		return "", err
	}
	fresh, err := st.Pause(ctx, mission.Pause{Cause: humanPause, Agent: agent, Reason: "paused by a person " + by}, time.Now())
	if err != nil {
		return "", err
	}
	if agent != "" {
		if fresh {
			note(st, journal.Paused, "%s was paused by a person %s", agent, by)
		}
		return fmt.Sprintf("%s of %s is paused: what it runs ends its run, it begins nothing new", agent, st.ID()), nil
	}
	if fresh {
		note(st, journal.Paused, "paused by a person %s", by)
	}
	return fmt.Sprintf("%s is paused: what runs ends its run, nothing new begins", st.ID()), nil
}

// unpauseMission lifts what waits for a person, and nothing else: a person's pause, steps that are blocked and breakers; of
// one agent, if one is named. was is false if there was none.
func unpauseMission(ctx context.Context, st *store.Store, m mission.Mission, agent string) (text string, was bool, err error) {
	if err := owned(st.Dir()); err != nil {
		return "", false, err
	}
	now := time.Now()
	pauses, err := st.AllPauses(now)
	if err != nil {
		return "", false, err
	}
	p, err := st.Plan()
	if err != nil {
		return "", false, err
	}
	over := map[string]bool{} // incidents that are over
	for _, s := range p.Steps {
		if s.State == plan.Blocked && (agent == "" || s.Agent == agent) {
			over[tick.BlockedIncident(s)] = true
		}
	}
	mine := func(p mission.Pause) bool {
		switch p.Cause {
		case humanPause: // an agent that a person paused is named to let it go on
			return p.Agent == agent
		case tick.BreakerCause:
			return agent == "" || p.Agent == agent
		case tick.BlockedCause:
			return agent == "" || len(over) > 0
		case tick.WaitCause: // the question about what is blocked is out of date; whoever still has nothing to do waits again
			return len(over) > 0
		}
		return false
	}
	if len(over) == 0 && !slices.ContainsFunc(pauses, mine) {
		return "", false, nil
	}
	if len(over) > 0 {
		if err := st.ChangePlan(ctx, func(p *plan.Plan) (bool, error) { return len(p.Unblock(agent, now)) > 0, nil }); err != nil {
			return "", true, err
		}
	}
	breakers := map[string]bool{}
	for _, p := range pauses {
		if !mine(p) {
			continue
		}
		if p.Cause == tick.BreakerCause {
			breakers[p.Agent] = true
			if err := tick.ResetBreaker(st, p.Agent); err != nil {
				return "", true, err
			}
		}
		if err := st.UnpauseAgent(ctx, p.Agent, p.Cause, now); err != nil {
			return "", true, err
		}
	}
	if err := st.TickTodo(ctx, func(incident string) bool {
		for a := range breakers {
			if tick.BreakerIncident(incident, a) {
				over[incident] = true
			}
		}
		return over[incident]
	}); err != nil {
		return "", true, err
	}
	who := cmp.Or(agent, st.ID())
	_ = st.Journal().Add(journal.Event{At: now, Kind: journal.Unpaused, Agent: "person", Text: fmt.Sprintf("a person lets %s go on", who)})
	for incident := range over {
		_ = st.Journal().Add(journal.Event{At: now, Kind: journal.Unpaused, Agent: "person", Incident: incident, Over: true, Text: fmt.Sprintf("a person lets %s go on", who)})
	}
	for _, a := range m.Roster {
		_ = wake.Send(units.Wakes(st, m, a.Name))
	}
	text = who + " goes on"
	if left := slices.DeleteFunc(pauses, func(p mission.Pause) bool { return mine(p) || p.Agent != "" && p.Agent != agent }); len(left) > 0 {
		text = fmt.Sprintf("%s is still paused: %s", who, left[0].Reason)
	}
	return text, true, nil
}
