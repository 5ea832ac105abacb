package tick

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"example.com/AutoAgentProject/core/journal"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/money"
	"example.com/AutoAgentProject/core/runner"
)

// lastWait is how long to wait for what only a person can mend, before it is tried again.
const lastWait = 30 * time.Minute

// heed does what a result asks of the whole mission: limits and lost logins pause all agents and count no attempt.
// Moved means that the result is the step's own affair.
func (t *Tick) heed(ctx context.Context, h *Hold, res runner.Result) (Outcome, error) {
	now := t.Now()
	switch {
	case res.Verdict == runner.Later:
		until, told := money.Park(res.ResetAt, now, time.Duration(rand.Int64N(int64(time.Minute))), h.Waits+1) // not all missions at the same second
		if h.Waits++; told {
			h.Waits = 0
		}
		if err := t.uncount(h); err != nil {
			return Idle, err
		}
		fresh, err := t.Store.Pause(ctx, mission.Pause{Cause: "limit", Reason: res.Reason, Until: until.UTC()}, now)
		if fresh {
			level := journal.Routine
			if res.Class == "usage-limit" {
				level = journal.Milestone
			}
			t.Event(journal.Event{Kind: journal.Paused, Level: level, Text: fmt.Sprintf("paused until %s: %s", until.UTC().Format("15:04 MST"), res.Reason)})
		}
		return Later, err
	case res.Verdict == runner.LoginLost:
		if err := t.uncount(h); err != nil {
			return Idle, err
		}
		return Later, t.pauseLogin(ctx, "the login was refused: "+res.Reason)
	case res.Class == "credit":
		if err := t.uncount(h); err != nil {
			return Idle, err
		}
		fresh, err := t.Store.Pause(ctx, mission.Pause{Cause: "limit", Reason: res.Reason, Until: now.Add(lastWait).UTC()}, now)
		if fresh {
			t.Event(journal.Event{Kind: journal.Paused, Level: journal.Blocker, Incident: incident("credit", now), Text: "the account has no credit left: " + res.Reason})
		}
		return Later, err
	case res.Class == "init-mismatch" || res.Class == "model":
		// The program or the model is not what the mission was started with: no step is to blame, and no run would help.
		if err := t.uncount(h); err != nil {
			return Idle, err
		}
		fresh, err := t.Store.Pause(ctx, mission.Pause{Cause: "stall", Reason: res.Reason, Until: now.Add(lastWait).UTC()}, now)
		if fresh {
			t.Event(journal.Event{Kind: journal.Paused, Level: journal.Blocker, Incident: incident("program", now), Text: "the agent program does not do as asked: " + res.Reason})
		}
		return Later, err
	case res.Class == "transcript": // the disk is full or broken; the work is not to blame
		return Later, t.uncount(h)
	case res.Class == "overage":
		return Over, t.Stop(mission.Budget, "the account began to spend paid extra usage")
	}
	h.Waits = 0
	return Moved, nil
}

// ofMission says whether a failure of that class is no step's affair: heed looks at each of them.
func ofMission(class string) bool {
	return class == "credit" || class == "init-mismatch" || class == "model" || class == "overage"
}

// incident names one occurrence of a condition: the next one is told again.
func incident(what string, at time.Time) string {
	return fmt.Sprintf("%s-%d", what, at.Unix())
}

// uncount forgets the last run of a hold: it is no attempt at the work.
func (t *Tick) uncount(h *Hold) error {
	h.Run, h.Runs = "", max(h.Runs-1, 0)
	return t.Keep(*h)
}

func (t *Tick) pauseLogin(ctx context.Context, reason string) error {
	fresh, err := t.Store.Pause(ctx, mission.Pause{Cause: "login", Reason: reason}, t.Now())
	if fresh {
		t.Event(journal.Event{Kind: journal.Paused, Level: journal.Blocker, Incident: incident("login", t.Now()), Text: reason + "; AutoAgentProject login takes a new one"})
	}
	t.Line(ctx, "blocked", "", "", "waits for a login")
	return err
}
