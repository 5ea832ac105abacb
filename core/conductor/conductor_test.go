package conductor

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"strings"
	"testing"

	"example.com/AutoAgentProject/core/flow"
	"example.com/AutoAgentProject/core/profession"
)

func shipped(t testing.TB) (flow.Set, profession.Set) {
	t.Helper()
	dir := os.DirFS("../../prompts")
	profs, err := profession.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	flows, err := flow.Load(profs, profession.Layer{Name: profession.BuiltIn, Files: dir})
	if err != nil {
		t.Fatal(err)
	}
	return flows, profs
}

func world(mode string, profs profession.Set) World {
	return World{Mode: mode, Gates: func(name string) []string { p, _ := profs.Get(name); return p.Gates }}
}

// story plays facts, written as words, and returns where the baton was: "step" or "?gate" or "=status".
func story(f flow.Flow, w World, facts ...string) string {
	s := Begin(f)
	at := func() string {
		switch s.Status {
		case Running:
			return s.Step
		case Asking:
			return "?" + s.Gate.Kind
		}
		return "=" + string(s.Status)
	}
	out := []string{at()}
	for _, word := range facts {
		x := Fact{Kind: Passed}
		kind, arg, _ := strings.Cut(word, ":")
		switch kind {
		case "fail":
			x = Fact{Kind: Failing, Reason: "red", Commit: "c0ffee"}
		case "blocked":
			x = Fact{Kind: Failing, Reason: "BLOCKED: no", Final: true}
		case "yes", "no":
			x = Fact{Kind: Decided, Yes: kind == "yes", Reason: arg}
		case "undone":
			x = Fact{Kind: Undone, Reason: "red"}
		case "answer":
			x.Answer, x.Said = arg, "because"
		}
		s = Next(f, w, s, x)
		out = append(out, at())
	}
	return strings.Join(out, " ")
}

func TestStories(t *testing.T) {
	flows, profs := shipped(t)
	for _, c := range []struct{ flow, mode, facts, want string }{
		{"fix", "gsd", "ok ok answer:accept", "reproduce mend review =complete"},
		{"fix", "check", "ok ok yes answer:accept yes", "reproduce mend ?code review ?review =complete"},
		{"fix", "gsd", "ok fail ok answer:change ok answer:accept", "reproduce mend mend review mend review =complete"},
		{"fix", "gsd", "ok fail fail fail fail fail yes:once ok answer:accept", "reproduce mend mend mend mend mend ?error mend review =complete"},
		{"fix", "gsd", "ok fail fail fail fail fail no:enough", "reproduce mend mend mend mend mend ?error =failed"},
		{"fix", "gsd", "blocked yes ok", "reproduce ?error reproduce mend"},
		{"fix", "gsd", "ok ok answer:change ok answer:change ok answer:change", "reproduce mend review mend review mend review ?error"},
		{"fix", "gsd", "ok ok answer:maybe ok answer:accept", "reproduce mend review mend review =complete"},
		{"fix", "gsd", "ok ok answer:accept undone yes", "reproduce mend review =complete ?error mend"},
		{"fix", "check", "ok ok no:smaller ok yes answer:accept no:again ok yes answer:accept yes", "reproduce mend ?code mend ?code review ?review mend ?code review ?review =complete"},
		{"feature", "gsd", "answer:QUESTION", "intake =stopped"},
		{"feature", "gsd", "answer:DIRECT ok ok answer:accept ok", "intake code test review document =complete"},
		{"feature", "gsd", "answer:NEW_GOAL ok ok ok ok ok ok answer:accept ok", "intake discover design plan test-plan code test review document =complete"},
		{"feature", "check", "answer:NEW_GOAL ok yes ok yes ok yes ok ok yes ok answer:accept yes ok",
			"intake discover ?goal design ?design plan ?plan test-plan code ?code test review ?review document =complete"},
		{"feature", "gsd", "answer:DIRECT blocked", "intake code design"}, // a spec's problem goes to its owner
		{"feature", "gsd", "answer:DIRECT ok fail ok fail ok fail ok fail", "intake code test code test code test code test ?error"},
		{"six-pack", "gsd", "ok yes ok ok ok ok fail ok", "specify ?human code clean structure harden try code clean"},
		{"six-pack", "gsd", "ok no:unclear ok yes", "specify ?human specify ?human code"},
		{"project", "gsd", "ok answer:block ok answer:pass ok ok answer:block ok answer:pass", "vision vision-eval vision vision-eval research spec spec-eval spec spec-eval plan"},
	} {
		f, _ := flows.Get(c.flow)
		if got := story(f, world(c.mode, profs), strings.Fields(c.facts)...); got != c.want {
			t.Errorf("%s %s %s\n got %s\nwant %s", c.flow, c.mode, c.facts, got, c.want)
		}
	}
}

// TestExhaustedOnce: an exhausted loop takes its way out once, then a person is asked.
func TestExhaustedOnce(t *testing.T) {
	flows, profs := shipped(t)
	f, _ := flows.Get("feature")
	w := world("gsd", profs)
	facts := []string{"answer:DIRECT"}
	for range 6 {
		facts = append(facts, "fail")
	}
	facts = append(facts, "ok", "ok", "ok") // design, plan, test-plan
	for range 6 {
		facts = append(facts, "fail")
	}
	got := story(f, w, facts...)
	want := "intake code code code code code code design plan test-plan code code code code code code ?error"
	if got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
}

// TestOptionalStepsAreLeftOut when money is short.
func TestOptionalStepsAreLeftOut(t *testing.T) {
	flows, profs := shipped(t)
	w := world("gsd", profs)
	w.Short = true
	for id, c := range map[string][2]string{
		"feature": {"answer:DIRECT ok ok answer:accept", "intake code test review =complete"},
		"project": {"ok answer:pass ok ok answer:pass ok answer:pass ok answer:pass answer:pass",
			"vision vision-eval research spec spec-eval plan plan-eval execute execute-eval verify =complete"},
	} {
		f, _ := flows.Get(id)
		if got := story(f, w, strings.Fields(c[0])...); got != c[1] {
			t.Errorf("%s: %s", id, got)
		}
	}
}

func TestTheBatonCarriesTheWork(t *testing.T) {
	flows, profs := shipped(t)
	f, _ := flows.Get("fix")
	w := world("gsd", profs)
	s := Next(f, w, Begin(f), Fact{Kind: Passed})
	s = Next(f, w, s, Fact{Kind: Failing, Reason: "two tests are red", Commit: "c0ffee"})
	if s.Step != "mend" || s.From != "c0ffee" || s.Note != "two tests are red" || s.VisitID() != "mend-3" || s.Last != "reproduce-1" || s.Counts["mend"].Tier != 1 {
		t.Errorf("%+v", s)
	}
	if s = Next(f, w, s, Fact{Kind: Passed}); s.From != "" || s.Note != "" || s.Step != "review" {
		t.Errorf("%+v", s)
	}
	b, _ := json.Marshal(s)
	var back State
	if err := json.Unmarshal(b, &back); err != nil || !reflect.DeepEqual(back, s) {
		t.Errorf("%v: %s", err, b)
	}
}

// TestUnprovenWorkStops: what did not pass goes on only with somebody who is held to the same.
func TestUnprovenWorkStops(t *testing.T) {
	flows, profs := shipped(t)
	w := world("gsd", profs)
	fail := Fact{Kind: Failing, Reason: "red", Commit: "c0ffee"}
	at := func(id, step string) State {
		return State{Flow: id, Status: Running, Step: step, Visit: 5, Counts: map[string]Count{step: {Failures: MaxVisits}}}
	}
	for _, c := range []struct{ flow, step, to, from string }{
		{"feature", "code", "design", ""},       // an architect verifies nothing
		{"six-pack", "code", "specify", ""},     // nor does a specifier
		{"six-pack", "clean", "code", "c0ffee"}, // a coder is held to the same command
	} {
		f, _ := flows.Get(c.flow)
		if s := Next(f, w, at(c.flow, c.step), fail); s.Step != c.to || s.From != c.from {
			t.Errorf("%s %s: %+v", c.flow, c.step, s)
		}
	}
	f, _ := flows.Get("feature")
	s := at("feature", "test")
	s.Counts = nil
	if s = Next(f, w, s, fail); s.Step != "code" || s.From != "c0ffee" {
		t.Errorf("a failing test does not reach the coder: %+v", s)
	}
	s = State{Flow: "fix", Status: Running, Step: "mend", Visit: 5, Counts: map[string]Count{"mend": {Failures: MaxVisits}}}
	f, _ = flows.Get("fix")
	s = Next(f, w, Next(f, w, s, fail), Fact{Kind: Decided, Yes: true})
	if s.Step != "mend" || s.From != "c0ffee" {
		t.Errorf("after a person's word: %+v", s)
	}
}

func TestFactsThatDoNotFit(t *testing.T) {
	flows, profs := shipped(t)
	f, _ := flows.Get("fix")
	w := world("gsd", profs)
	s := Begin(f)
	for _, x := range []Fact{{Kind: Decided, Yes: true}, {Kind: Undone}, {}} {
		if got := Next(f, w, s, x); !reflect.DeepEqual(got, s) {
			t.Errorf("%+v made %+v", x, got)
		}
	}
	s.Step = "gone"
	if got := Next(f, w, s, Fact{Kind: Passed}); got.Status != Failed {
		t.Errorf("%+v", got)
	}
}

// anyFlow makes a flow that the loader accepts.
func anyFlow(r *rand.Rand) flow.Flow {
	n := 1 + r.IntN(7)
	var b strings.Builder
	b.WriteString("---\nflow: any\ndescription: d\nsteps:\n")
	id := func(i int) string { return fmt.Sprintf("s%d", i) }
	for i := range n {
		fmt.Fprintf(&b, "  - id: %s\n    profession: p\n", id(i))
		loop := fmt.Sprintf("max: %d", 1+r.IntN(4))
		if r.IntN(2) == 0 {
			loop += ", back: " + id(r.IntN(i+1))
		}
		switch r.IntN(3) {
		case 0:
			loop += ", on_fail: " + id(r.IntN(n))
		case 1:
			loop += ", on_fail: gate"
		}
		fmt.Fprintf(&b, "    loop: {%s}\n", loop)
		if r.IntN(3) == 0 {
			fmt.Fprintf(&b, "    gate: %s\n", []string{"auto", "human", "code"}[r.IntN(3)])
		}
		if r.IntN(4) == 0 {
			b.WriteString("    optional: true\n")
		}
		if r.IntN(3) == 0 {
			fmt.Fprintf(&b, "    exit: {on: v, A: next, B: fail, C: %s}\n", []string{"complete", "stop", "fail"}[r.IntN(3)])
		}
	}
	b.WriteString("---\n")
	f, err := flow.Parse("any.md", []byte(b.String()))
	if err != nil {
		panic(err.Error() + "\n" + b.String())
	}
	return f
}

// TestProperties, over many flows and many courses of events: without people a task ends or asks within a bound that the flow's loops
// give; the same facts give the same state; the state before is not touched; and no step below an exhausted one is reached by a failure.
func TestProperties(t *testing.T) {
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 1))
		f := anyFlow(r)
		w := World{Mode: []string{"gsd", "check"}[r.IntN(2)], Gates: func(string) []string { return nil }, Short: r.IntN(4) == 0}
		bad := r.IntN(100)
		s := Begin(f)
		for n := 0; s.Status == Running; n++ {
			if n > MaxVisits {
				t.Fatalf("seed %d: it does not end", seed)
			}
			x := Fact{Kind: Passed, Answer: []string{"A", "B", "C", "Z"}[r.IntN(4)]}
			if r.IntN(100) < bad {
				x = Fact{Kind: Failing, Reason: "red", Final: r.IntN(5) == 0}
			}
			before, _ := json.Marshal(s)
			next, again := Next(f, w, s, x), Next(f, w, s, x)
			if after, _ := json.Marshal(s); string(after) != string(before) {
				t.Fatalf("seed %d: the state before was changed", seed)
			}
			if !reflect.DeepEqual(next, again) {
				t.Fatalf("seed %d: %+v and %+v", seed, next, again)
			}
			if x.Kind == Failing && next.Status != Running && next.Status != Asking {
				t.Fatalf("seed %d: a failure made %+v", seed, next)
			}
			if x.Kind == Failing && next.Status == Running {
				step, _ := f.Step(s.Step)
				c := s.Counts[s.Step]
				switch next.Step {
				case step.BackTo():
					if c.Failures+1 > step.Limit() && next.Step != step.Loop.OnFail {
						t.Fatalf("seed %d: %s went on after %d failures of %d", seed, s.Step, c.Failures+1, step.Limit())
					}
				case step.Loop.OnFail:
					if c.Escalated {
						t.Fatalf("seed %d: %s took its way out twice", seed, s.Step)
					}
				default:
					t.Fatalf("seed %d: a failure of %s led to %s", seed, s.Step, next.Step)
				}
			}
			s = next
		}
		if s.Status == Asking && s.Gate == nil || s.Status != Asking && s.Gate != nil {
			t.Fatalf("seed %d: %+v", seed, s)
		}
	}
}

func TestTier(t *testing.T) {
	for _, c := range []struct {
		said string
		n    int
		want string
	}{{"cheap", 0, "cheap"}, {"cheap", 1, "standard"}, {"cheap", 5, "strong"}, {"strong", 1, "strong"}, {"claude-example-5", 2, "claude-example-5"}, {"", 1, ""}} {
		if got := Tier(c.said, c.n); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}

func TestLevelOf(t *testing.T) {
	for _, c := range []struct {
		spent, limit int64
		want         Level
	}{{0, 100, Free}, {69, 100, Free}, {70, 100, WrapUp}, {84, 100, WrapUp}, {85, 100, Tight}, {99, 100, Tight}, {100, 100, HandOver}, {500, 100, HandOver},
		{10, 0, Free}, {1 << 62, -1, Free}} {
		if got := LevelOf(c.spent, c.limit); got != c.want {
			t.Errorf("%d of %d: %d, want %d", c.spent, c.limit, got, c.want)
		}
	}
}
