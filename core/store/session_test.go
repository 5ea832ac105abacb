package store

import (
	"context"
	"fmt"
	"os"
	"testing"

	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/plan"
)

// session changes every document once; done again it changes nothing more that counts.
func session(ctx context.Context, s *Store) error {
	if err := s.ChangePlan(ctx, func(p *plan.Plan) (bool, error) {
		if p.Round == 0 {
			p.Accept(plan.Proposal{Steps: []plan.ProposedStep{{ID: "a"}}}, noon)
		}
		return true, nil
	}); err != nil {
		return err
	}
	if err := s.SetPhase(ctx, "working", noon); err != nil {
		return err
	}
	if err := s.SetLine(ctx, "codebuilder-2", Line{Text: "works on b"}, "", noon); err != nil {
		return err
	}
	if _, err := s.Pause(ctx, mission.Pause{Cause: "human"}, noon); err != nil {
		return err
	}
	_, err := s.Clock(ctx, func(c mission.Clock) mission.Clock { return c.Advance("boot", 1, noon, false) })
	return err
}

// ended checks what a session comes to; where the state was damaged it was rebuilt.
func ended(t *testing.T, where string, s *Store, damaged bool) {
	t.Helper()
	p, perr := s.Plan()
	st, serr := s.State()
	pauses, aerr := s.Pauses(noon)
	c, cerr := s.Clock(t.Context(), nil)
	if perr != nil || serr != nil || aerr != nil || cerr != nil {
		t.Errorf("%s: %v %v %v %v", where, perr, serr, aerr, cerr)
		return
	}
	if p.Round != 1 || len(p.Steps) != 1 || len(pauses) != 1 || c.Boot != "boot" || st.Phase != "working" || st.Agents["codebuilder-2"].Text != "works on b" ||
		st.Agents["manager"].Text != "waits" || st.Agents["codebuilder-1"].Text != "works on a" || st.Generation < 4 {
		t.Errorf("%s: %+v, %+v, %+v, %+v", where, p, st, pauses, c)
	}
	events, _, bad, err := s.Journal().Read(0)
	if err != nil || bad > 0 || (len(events) > 0) != damaged {
		t.Errorf("%s: told %+v, %d, %v", where, events, bad, err)
	}
}

func TestSession(t *testing.T) {
	for _, damaged := range []bool{false, true} {
		s := working(t)
		if damaged {
			ok(t, os.WriteFile(s.file("state.json"), []byte("\x00\x00\x00"), 0o600))
		}
		for n := range 3 {
			ok(t, session(t.Context(), s))
			ended(t, fmt.Sprint("session ", n), s, damaged)
		}
	}
}
