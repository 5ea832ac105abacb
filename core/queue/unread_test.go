package queue

import (
	"testing"
	"time"
)

// TestUnread: what lies unread too long is told once, and what explains it takes the time back.
func TestUnread(t *testing.T) {
	t0 := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	mail := Depth{New: 1, Oldest: t0}
	var u Unread
	at := func(d time.Duration, depth Depth, paused, want bool) {
		t.Helper()
		var tell bool
		if u, tell = u.Next(depth, paused, t0.Add(d)); tell != want {
			t.Errorf("after %s: told %v, want %v", d, tell, want)
		}
	}
	at(time.Hour, mail, false, false) // seen for the first time
	at(time.Hour+OldMail-1, mail, false, false)
	at(time.Hour+OldMail, mail, false, true)
	at(2*time.Hour, mail, false, false) // once
	at(3*time.Hour, Depth{New: 1, Oldest: t0.Add(1)}, false, false)
	at(3*time.Hour+OldMail, Depth{New: 1, Oldest: t0.Add(1)}, false, true) // another incident
	at(4*time.Hour, mail, false, false)
	at(4*time.Hour+OldMail/2, mail, true, false) // paused
	at(4*time.Hour+OldMail, mail, false, false)
	at(5*time.Hour, Depth{New: 1, InProcess: 1, Oldest: t0}, false, false) // it has something in hand
	at(5*time.Hour+OldMail, mail, false, false)
	at(6*time.Hour, Depth{}, false, false)
	if u != (Unread{}) {
		t.Errorf("an empty inbox leaves %+v", u)
	}
}

// TestBind: the holder's claim names the run that works on it; a claim of somebody else is left alone.
func TestBind(t *testing.T) {
	q := fresh(t)
	name := sent(t, q, "manager", "coder", "a")
	deliver(t, q, "manager")
	ok(t, q.Bind("coder", name, Holder{Owner: self(t), Run: "r1"})) // not in hand yet
	claim(t, q, "coder")
	owner := self(t)
	ok(t, q.Bind("coder", name, Holder{Owner: owner, Run: "r1"}))
	ok(t, q.Bind("coder", name, Holder{Owner: dead(t, 1), Run: "r2"}))
	ok(t, q.Bind("coder", "plan-1", Holder{Owner: owner, Run: "r3"}))
	c, err := peekClaim(q.inbox("coder", "in_process") + "/" + name)
	if ok(t, err); c.Run != "r1" || c.Owner != owner || c.Attempt != 1 {
		t.Errorf("%+v", c)
	}
}
