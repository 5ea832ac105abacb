package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/usererr"
)

func ask(t *testing.T, s *Store, subject string) Asked {
	t.Helper()
	a, _, err := s.Ask(t.Context(), mission.Approval{Kind: mission.Deviation, Title: "t", Subject: subject, By: "manager"}, noon)
	ok(t, err)
	return a
}

// TestAsk: the same question is asked once while it is open; an answered one is asked anew.
func TestAsk(t *testing.T) {
	s := fresh(t)
	a, b := ask(t, s, "one"), ask(t, s, "one")
	if a.N != 1 || b.N != 1 || a.Nonce == "" || a.Nonce != b.Nonce || !a.Expires.Equal(noon.Add(mission.ApprovalWait)) {
		t.Errorf("%+v, %+v", a, b)
	}
	if c := ask(t, s, "two"); c.N != 2 || c.Token() == a.Token() || len(c.Token()) != 10 {
		t.Errorf("%+v", c)
	}
	_, _, err := s.Decide(1, mission.Decision{Verdict: mission.Approved, Key: "k"}, noon)
	ok(t, err)
	if c := ask(t, s, "one"); c.N != 3 {
		t.Errorf("%+v", c)
	}
	all, err := s.Approvals()
	if err != nil || len(all) != 3 || all[0].Decision == nil || all[1].Decision != nil {
		t.Errorf("%+v, %v", all, err)
	}
}

// TestFirstDecisionWins, whoever is first, and the same answer given again is mine.
func TestFirstDecisionWins(t *testing.T) {
	s := fresh(t)
	ask(t, s, "x")
	var won atomic.Int32
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			v := mission.Approved
			if i%2 == 0 {
				v = mission.Rejected
			}
			for range 2 {
				a, mine, err := s.Decide(1, mission.Decision{Verdict: v, Key: fmt.Sprint(i)}, noon)
				if err != nil || a.Decision == nil || mine != (a.Decision.Key == fmt.Sprint(i)) {
					t.Error(a.Decision, mine, err)
				} else if mine {
					won.Add(1)
				}
			}
		})
	}
	all.Wait()
	if won.Load() != 2 { // the winner, twice
		t.Errorf("%d won", won.Load())
	}
}

// TestSkip: only what offers it can be skipped, by whatever way.
func TestSkip(t *testing.T) {
	s := fresh(t)
	ask(t, s, "x")
	_, _, err := s.Ask(t.Context(), mission.Approval{Kind: mission.Fault, MaySkip: true, Subject: "y", By: "manager"}, noon)
	ok(t, err)
	for _, n := range []int{1, 2} {
		a, mine, err := s.Decide(n, mission.Decision{Verdict: mission.Skipped, Key: "k"}, noon)
		if n == 2 && (err != nil || !mine || a.Decision.Verdict != mission.Skipped || a.Decision.Allows("y")) || n == 1 && (usererr.CodeOf(err) != usererr.Conflict || a.Decision != nil) {
			t.Errorf("%d: %+v, %v, %v", n, a.Decision, mine, err)
		}
	}
	ok(t, os.WriteFile(filepath.Join(s.file("approvals"), "0001.decision.json"), []byte(`{"version":1,"n":1,"verdict":"skipped","subject":"x","key":"k"}`), 0o600))
	if _, err := s.Approval(1); usererr.CodeOf(err) != usererr.Unreadable {
		t.Error(err)
	}
}

// TestExpiry: silence is no yes, and a late one neither.
func TestExpiry(t *testing.T) {
	s := fresh(t)
	a := ask(t, s, "x")
	ask(t, s, "y")
	ok(t, s.Expire(noon))
	if b, err := s.Approval(1); err != nil || b.Decision != nil {
		t.Error(b, err)
	}
	late := a.Expires
	b, mine, err := s.Decide(1, mission.Decision{Verdict: mission.Approved, Key: "k"}, late)
	if err != nil || mine || b.Decision.Verdict != mission.Expired || b.Decision.Allows("x") {
		t.Errorf("%+v, %v, %v", b.Decision, mine, err)
	}
	ok(t, s.Expire(late))
	if b, err := s.Approval(2); err != nil || b.Decision == nil || b.Decision.Verdict != mission.Expired {
		t.Error(b, err)
	}
}

// TestDamagedApprovals: what cannot be read, or answers something else, is no yes, and stays.
func TestDamagedApprovals(t *testing.T) {
	for _, name := range []string{"0001.json", "0001.decision.json"} {
		for how, data := range damages() {
			s := fresh(t)
			ask(t, s, "x")
			_, _, err := s.Decide(1, mission.Decision{Verdict: mission.Approved, Key: "k"}, noon)
			ok(t, err)
			path := filepath.Join(s.file("approvals"), name)
			ok(t, os.WriteFile(path, []byte(data), 0o600))
			if _, err := s.Approvals(); usererr.CodeOf(err) != usererr.Unreadable {
				t.Errorf("%s, %s: %v", name, how, err)
			}
			if _, _, err := s.Decide(1, mission.Decision{Verdict: mission.Approved, Key: "k"}, noon); err == nil {
				t.Errorf("%s, %s: decided", name, how)
			}
			if content(t, path) != data {
				t.Errorf("%s, %s: replaced", name, how)
			}
		}
	}
	s := fresh(t)
	ask(t, s, "x")
	ok(t, os.WriteFile(filepath.Join(s.file("approvals"), "0001.decision.json"), []byte(`{"version":1,"n":1,"verdict":"approved","subject":"other","key":"k"}`), 0o600))
	if _, err := s.Approval(1); usererr.CodeOf(err) != usererr.Unreadable {
		t.Error(err)
	}
	for _, name := range []string{"gate.approved", "0002.decision.json", "x.json", ".tmp-1", "00001.json"} { // nobody asked
		s := fresh(t)
		ok(t, os.MkdirAll(s.file("approvals"), 0o700))
		ok(t, os.WriteFile(filepath.Join(s.file("approvals"), name), []byte(`{"version":1}`), 0o600))
		if all, err := s.Approvals(); err != nil || len(all) != 0 {
			t.Errorf("%s: %v, %v", name, all, err)
		}
	}
	if _, err := fresh(t).Approval(3); usererr.CodeOf(err) != usererr.NotFound {
		t.Error(err)
	}
}

func TestNotesOfPeople(t *testing.T) {
	s := fresh(t)
	for i, text := range []string{"second", "first"} {
		made, err := s.AddNote(Note{Key: fmt.Sprint("k", i), At: noon.Add(-time.Duration(i) * time.Hour), By: "p", Text: " " + text + "\xff\n"})
		if !made || err != nil {
			t.Error(made, err)
		}
	}
	if made, err := s.AddNote(Note{Key: "k0", Text: "again"}); made || err != nil {
		t.Error(made, err)
	}
	all, err := s.Notes()
	if err != nil || len(all) != 2 || all[0].Text != "first\ufffd" || all[1].Text != "second\ufffd" {
		t.Errorf("%+v, %v", all, err)
	}
	for _, bad := range []Note{{Key: "k", Text: " \n"}, {Key: "k", Text: strings.Repeat("x", MaxNote+1)}, {Key: "../k", Text: "x"}, {Key: "", Text: "x"}, {Key: ".k", Text: "x"}} {
		if _, err := s.AddNote(bad); err == nil {
			t.Errorf("%+v", bad)
		}
	}
	if _, err := os.Stat(s.file("k.json")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}
