package plan

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"example.com/AutoAgentProject/core/mission"
)

// TestRandomMissions plays missions in which everything happens in any order, repeated, late and to the wrong one. What
// must hold is looked at after each operation.
func TestRandomMissions(t *testing.T) {
	ends := map[Action]int{}
	for seed := range uint64(120) {
		w := &world{t: t, r: rand.New(rand.NewPCG(seed, 7)), seed: seed, crew: crew(t), p: &Plan{}, done: map[string]string{}}
		ends[w.play()]++
	}
	if ends[Complete] == 0 || ends[GiveUp] == 0 {
		t.Errorf("the missions all ended alike: %v", ends)
	}
}

type world struct {
	t    *testing.T
	r    *rand.Rand
	seed uint64
	crew []mission.Agent
	p    *Plan
	made int               // steps and handoffs so far
	done map[string]string // finished steps, as they were then
}

func (w *world) fail(format string, args ...any) {
	w.t.Helper()
	w.t.Fatalf("mission %d: %s\n%+v", w.seed, fmt.Sprintf(format, args...), w.p.Steps)
}

func (w *world) name(s Step, to string) Handoff {
	w.made++
	return Handoff{Name: fmt.Sprint("h", w.made), From: "manager", At: noon}
}

func (w *world) play() Action {
	head := 0
	for range 5000 {
		f := Facts{HasVerify: w.seed%2 == 0, Head: fmt.Sprint(head)}
		action, reason := Decide(w.p, f)
		if again, r := Decide(w.p, f); again != action || r != reason {
			w.fail("the same facts: %s, then %s", action, again)
		}
		switch action {
		case MakePlan, MakeReplan:
			p := w.propose()
			if bad := Check(p, w.crew, w.p); len(bad) > 0 {
				w.fail("refused: %q", bad)
			}
			w.p.Accept(p, noon)
		case Verify:
			w.p.Final = Final{Commit: f.Head, Passed: w.r.IntN(2) == 0, Output: "output"}
		case Complete, GiveUp:
			if action == Complete && !w.p.AllDone() || w.p.Round > MaxRounds {
				w.fail("%s: %s", action, reason)
			}
			return action
		case Wait:
			head++
			w.operate()
		}
		w.look()
	}
	w.fail("it does not end")
	return ""
}

// operate does one thing to one step: by its holder or by somebody else, with a handoff of today or of yesterday.
func (w *world) operate() {
	s := &w.p.Steps[w.r.IntN(len(w.p.Steps))]
	agent, handoff := s.Agent, s.Last().Name
	if w.r.IntN(4) == 0 {
		agent = w.crew[w.r.IntN(len(w.crew))].Name
	}
	if w.r.IntN(4) == 0 {
		handoff = fmt.Sprint("h", w.r.IntN(w.made+2))
	}
	mine := s.Agent == agent && s.Last().Name == handoff
	before := *s
	switch w.r.IntN(12) {
	case 0, 1, 2:
		w.p.Assign(w.crew, w.name, noon)
		if again := w.p.Assign(w.crew, w.name, noon); again != nil {
			w.fail("given twice: %s", who(again))
		}
	case 3, 4, 5:
		if w.p.Take(s.ID, agent, handoff, noon) && !mine {
			w.fail("%s took %s of %s with %s", agent, before.ID, before.Agent, handoff)
		}
	case 6, 7, 8:
		w.p.Finish(s.ID, "commit", fmt.Sprint("merge ", w.r.Int()), "", noon)
		if s.State == Done && before.State != Working && before.State != Done {
			w.fail("%s is done and was %s", s.ID, before.State)
		}
	case 9:
		if w.p.Return(s.ID, "reason", false, w.name, noon) && before.State != Working {
			w.fail("%s went back and was %s", s.ID, before.State)
		}
	case 10:
		if w.r.IntN(3) == 0 {
			w.p.Fail(s.ID, "reason", noon)
		}
	case 11: // the tick died; the next one reads the file
		b, err := json.Marshal(w.p)
		w.p = &Plan{}
		if err != nil || json.Unmarshal(b, w.p) != nil {
			w.fail("not written: %v", err)
		}
	}
}

// look checks what must hold at any time.
func (w *world) look() {
	handoffs := map[string]string{}
	for _, s := range w.p.Steps {
		for _, h := range s.Handoffs {
			if other, ok := handoffs[h.Name]; ok {
				w.fail("%s belongs to %s and %s", h.Name, other, s.ID)
			}
			handoffs[h.Name] = s.ID
		}
		if len(s.Handoffs) > 1+MaxReturns {
			w.fail("%s was handed over %d times", s.ID, len(s.Handoffs))
		}
		if s.State == Waiting {
			continue
		}
		if !slices.ContainsFunc(w.crew, func(a mission.Agent) bool { return a.Name == s.Agent && a.Profession == s.Profession }) && s.State != Failed {
			w.fail("%s is with %q", s.ID, s.Agent)
		}
		if s.State == Failed && len(s.Reasons) == 0 {
			w.fail("%s failed without a reason", s.ID)
		}
		for _, d := range s.DependsOn {
			if x := w.p.Step(d); s.State != Failed && (x == nil || x.State != Done) {
				w.fail("%s began before %s was done", s.ID, d)
			}
		}
	}
	for _, s := range w.p.Steps {
		if s.State != Done {
			continue
		}
		if _, ok := w.done[s.ID]; !ok {
			w.done[s.ID] = fmt.Sprintf("%+v", s)
		}
	}
	for id, was := range w.done {
		if s := w.p.Step(id); s == nil || fmt.Sprintf("%+v", *s) != was {
			w.fail("%s was done: %s", id, was)
		}
	}
}

// propose makes a plan that serves what is left, with dependencies in any order and on what is done.
func (w *world) propose() Proposal {
	var p Proposal
	n := 1 + w.r.IntN(6)
	for range n {
		w.made++
		s := step(fmt.Sprint("s", w.made))
		if w.r.IntN(3) == 0 {
			s.Profession = "designer"
		}
		for _, x := range p.Steps {
			if w.r.IntN(3) == 0 {
				s.DependsOn = append(s.DependsOn, x.ID)
			}
		}
		for _, x := range w.p.Steps {
			if x.State == Done && w.r.IntN(4) == 0 {
				s.DependsOn = append(s.DependsOn, x.ID)
			}
		}
		if w.p.Round > 0 {
			s.Acceptance = []string{strings.ReplaceAll(w.p.Acceptance[w.r.IntN(len(w.p.Acceptance))], " ", "  ")}
		}
		p.Steps = append(p.Steps, s)
	}
	if w.p.Round > 0 {
		p.Steps[0].Acceptance = slices.Clone(w.p.Acceptance[:min(len(w.p.Acceptance), MaxAcceptance)])
	}
	w.r.Shuffle(n, func(i, j int) { p.Steps[i], p.Steps[j] = p.Steps[j], p.Steps[i] })
	return p
}
