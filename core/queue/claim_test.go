package queue

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"example.com/AutoAgentProject/core/handoff"
	"time"

	"example.com/AutoAgentProject/core/proc"
)

func TestOrder(t *testing.T) {
	q := fresh(t)
	at := func(prio, sec, seq int) string {
		name, _, e := handoff.NewWork(handoff.Work{From: "manager", To: "coder", Priority: prio, Task: "t", Commit: "0123456789", Seq: seq, At: noon.Add(time.Duration(sec) * time.Second)})
		ok(t, q.Send("manager", name, e))
		return name
	}
	want := []string{at(99, 0, 1), at(50, 2, 2), at(50, 1, 4), at(50, 1, 3), at(0, 9, 5), at(7, 9, 6), at(50, 1, 100)}
	deliver(t, q, "manager")
	for _, i := range []int{4, 5, 3, 2, 6, 1, 0} { // by priority, time, sequence
		held, _ := claim(t, q, "coder")
		if held == nil || held.Name != want[i] || held.Claim.Attempt != 1 || held.Envelope.Get("dequeued_at") != handoff.Instant(noon) {
			t.Fatalf("%+v, want %s", held, want[i])
		}
		ok(t, q.Complete("coder", held.Name, noon))
	}
	if held, dead := claim(t, q, "coder"); held != nil || dead != nil {
		t.Errorf("%+v, %q", held, dead)
	}
}

// TestOneAtATime: what is held is resumed, also when something more urgent has come.
func TestOneAtATime(t *testing.T) {
	q := fresh(t)
	name := sent(t, q, "manager", "coder", "b")
	deliver(t, q, "manager")
	claim(t, q, "coder")
	sent(t, q, "manager", "coder", "a")
	deliver(t, q, "manager")
	for range 3 { // the same owner again: no further attempt
		if held, _ := claim(t, q, "coder"); held.Name != name || held.Claim.Attempt != 1 {
			t.Fatalf("%+v", held)
		}
	}
}

func TestComplete(t *testing.T) {
	q := fresh(t)
	name := sent(t, q, "manager", "coder", "a")
	deliver(t, q, "manager")
	claim(t, q, "coder")
	holds(t, q, "coder", "inbox/in_process/"+name, "inbox/in_process/"+name+".claim")
	for range 3 {
		ok(t, q.Complete("coder", name, noon.Add(time.Minute)))
		holds(t, q, "coder", "inbox/completed/"+name)
	}
	const want = `id: a
from: manager
to: coder
recipient: coder
priority: 50
type: note
message: about a
created_at: 2026-03-01T12:00:00Z
enqueued_at: 2026-03-01T12:00:00Z
dequeued_at: 2026-03-01T12:00:00Z
completed_at: 2026-03-01T12:01:00Z

about a
`
	if got := content(t, filepath.Join(q.inbox("coder", "completed"), name)); got != want {
		t.Error(got)
	}
	ok(t, q.Complete("coder", "nosuch"+handoff.Suffix, noon))
	holds(t, q, "coder", "inbox/completed/"+name)
}

// TestCompletedTwice: a copy that somebody put back is not worked on for ever.
func TestCompletedTwice(t *testing.T) {
	q := fresh(t)
	name := sent(t, q, "manager", "coder", "a")
	deliver(t, q, "manager")
	claim(t, q, "coder")
	ok(t, q.Complete("coder", name, noon))
	copied := content(t, filepath.Join(q.inbox("coder", "completed"), name))
	ok(t, os.WriteFile(filepath.Join(q.inbox("coder", "new"), name), []byte(copied), 0o600))
	claim(t, q, "coder")
	ok(t, q.Complete("coder", name, noon.Add(time.Hour)))
	holds(t, q, "coder", "inbox/completed/"+name, "inbox/failed/"+name, "inbox/failed/"+name+".error")
	if got := content(t, filepath.Join(q.inbox("coder", "completed"), name)); got != copied {
		t.Error("the completed one was overwritten")
	}
	if held, dead := claim(t, q, "coder"); held != nil || dead != nil {
		t.Errorf("%+v, %q", held, dead)
	}
}

func TestFail(t *testing.T) {
	q := fresh(t)
	name := sent(t, q, "manager", "coder", "a")
	deliver(t, q, "manager")
	claim(t, q, "coder")
	for range 3 {
		ok(t, q.Fail("coder", name, "no such luck"))
		holds(t, q, "coder", "inbox/failed/"+name, "inbox/failed/"+name+".error")
	}
	if got := content(t, filepath.Join(q.inbox("coder", "failed"), name+".error")); got != "no such luck\n" {
		t.Error(got)
	}
}

// TestRelease: letting go in good order counts no attempt, however often it is said.
func TestRelease(t *testing.T) {
	q := fresh(t)
	name := sent(t, q, "manager", "coder", "a")
	deliver(t, q, "manager")
	claimAs(t, q, "coder", dead(t, 1))
	if held, _ := claimAs(t, q, "coder", dead(t, 2)); held.Claim.Attempt != 2 {
		t.Fatalf("%+v", held.Claim)
	}
	for n := range 6 {
		for range 1 + n%3 {
			ok(t, q.Release("coder", name))
		}
		if held, dead := claimAs(t, q, "coder", dead(t, 3+n)); held == nil || held.Claim.Attempt != 2 {
			t.Fatalf("claim %d: %+v, %q", n, held, dead)
		}
	}
	ok(t, q.Release("coder", "nosuch"+handoff.Suffix))
	ok(t, q.Complete("coder", name, noon))
	ok(t, q.Release("coder", name))
	holds(t, q, "coder", "inbox/completed/"+name)
}

// TestDeadClaims: the handoff of a dead tick is resumed first, counted, and given up at the third death.
func TestDeadClaims(t *testing.T) {
	q := fresh(t)
	name := sent(t, q, "manager", "coder", "b")
	deliver(t, q, "manager")
	for n := 1; n <= MaxAttempts; n++ {
		held, gone := claimAs(t, q, "coder", dead(t, n))
		if held == nil || held.Name != name || held.Claim.Attempt != n || held.Claim.Owner != dead(t, n) || gone != nil {
			t.Fatalf("attempt %d: %+v, %q", n, held, gone)
		}
		if n == 1 {
			sent(t, q, "manager", "coder", "a")
			deliver(t, q, "manager")
		}
	}
	held, gone := claim(t, q, "coder")
	if held == nil || held.Name != "50_a"+handoff.Suffix || held.Claim.Attempt != 1 || strings.Join(gone, " ") != name {
		t.Fatalf("after the third death: %+v, %q", held, gone)
	}
	if why := content(t, filepath.Join(q.inbox("coder", "failed"), name+".error")); why != "3 ticks died over it\n" {
		t.Error(why)
	}
	holds(t, q, "coder", "inbox/in_process/50_a"+handoff.Suffix, "inbox/in_process/50_a"+handoff.Suffix+".claim", "inbox/failed/"+name, "inbox/failed/"+name+".error")
	if q.Where("coder", name) != "failed" {
		t.Error(q.Where("coder", name))
	}
}

func TestOwners(t *testing.T) {
	sleep := exec.Command("sleep", "30")
	ok(t, sleep.Start())
	defer func() { _ = sleep.Process.Kill(); _ = sleep.Wait() }()
	living, err := proc.Of(sleep.Process.Pid)
	ok(t, err)
	for name, c := range map[string]struct {
		owner proc.ID
		busy  bool
	}{
		"lives":                  {living, true},
		"its number, used again": {proc.ID{Boot: living.Boot, PID: living.PID, Start: living.Start - 1}, false},
		"of another boot":        {proc.ID{Boot: "other", PID: living.PID, Start: living.Start}, false},
		"is gone":                {dead(t, 1), false},
		"nobody: it was let go":  {proc.ID{}, false},
		"is this very process":   {self(t), false},
	} {
		q := fresh(t)
		id := sent(t, q, "manager", "coder", "a")
		deliver(t, q, "manager")
		claimAs(t, q, "coder", c.owner)
		held, _, err := q.Claim("coder", self(t), noon)
		if errors.Is(err, ErrBusy) != c.busy || (held != nil) == c.busy {
			t.Errorf("%s: %+v, %v", name, held, err)
		}
		if c.busy {
			if b := content(t, filepath.Join(q.inbox("coder", "in_process"), id+".claim")); !strings.Contains(b, fmt.Sprint(living.PID)) {
				t.Errorf("%s: its claim was changed to %s", name, b)
			}
		}
	}
}

// TestDamagedClaims: a claim that cannot be read counts as a death, is kept, and stops nobody.
func TestDamagedClaims(t *testing.T) {
	for name, damage := range map[string]string{
		"empty": "", "NULs": strings.Repeat("\x00", 4096), "cut": `{"owner":{"boot":"x"`, "garbage": "x", "wrong types": `{"owner":7}`, "too big": strings.Repeat("x", 5000),
	} {
		q := fresh(t)
		id := sent(t, q, "manager", "coder", "a")
		deliver(t, q, "manager")
		claimAs(t, q, "coder", dead(t, 1))
		path := filepath.Join(q.inbox("coder", "in_process"), id+".claim")
		ok(t, os.WriteFile(path, []byte(damage), 0o600))
		held, gone := claim(t, q, "coder")
		if held == nil || held.Name != id || held.Claim.Attempt != 2 || gone != nil {
			t.Errorf("%s: %+v, %q", name, held, gone)
		}
		if kept, _ := filepath.Glob(path + ".bad-*"); len(kept) != 1 || content(t, kept[0]) != damage {
			t.Errorf("%s: kept %q", name, kept)
		}
	}
	q := fresh(t)
	id := sent(t, q, "manager", "coder", "a")
	deliver(t, q, "manager")
	claimAs(t, q, "coder", dead(t, 1))
	path := filepath.Join(q.inbox("coder", "in_process"), id+".claim")
	ok(t, os.Remove(path))
	ok(t, os.Mkdir(path, 0o700))
	if held, _ := claim(t, q, "coder"); held == nil || held.Claim.Attempt != 2 {
		t.Errorf("a folder for a claim: %+v", held)
	}
	// Without one it was put there by hand.
	ok(t, os.Remove(path))
	if held, _ := claim(t, q, "coder"); held == nil || held.Claim.Attempt != 1 {
		t.Errorf("no claim: %+v", held)
	}
}

func TestClaimFile(t *testing.T) {
	q := fresh(t)
	id := sent(t, q, "manager", "coder", "a")
	deliver(t, q, "manager")
	held, _ := claim(t, q, "coder")
	var c Claim
	ok(t, json.Unmarshal([]byte(content(t, filepath.Join(q.inbox("coder", "in_process"), id+".claim"))), &c))
	if c != held.Claim || c.Owner != self(t) || !c.At.Equal(noon) {
		t.Errorf("%+v", c)
	}
}

// TestClaimsWithoutTheirHandoff: a tick died before the move, or after it.
func TestClaimsWithoutTheirHandoff(t *testing.T) {
	q := fresh(t)
	for _, name := range []string{"50_a" + handoff.Suffix, "50_z" + handoff.Suffix} {
		ok(t, writeClaim(filepath.Join(q.inbox("coder", "in_process"), name), Claim{Owner: dead(t, 1), Attempt: 3}))
	}
	name := sent(t, q, "manager", "coder", "a")
	deliver(t, q, "manager")
	if held, _ := claim(t, q, "coder"); held == nil || held.Claim.Attempt != 1 {
		t.Errorf("%+v", held)
	}
	holds(t, q, "coder", "inbox/in_process/"+name, "inbox/in_process/"+name+".claim")
}
