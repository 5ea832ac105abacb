package plan

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/mission"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// crew is manager, two codebuilders, a designer, reporter and quota.
func crew(t testing.TB) []mission.Agent {
	t.Helper()
	r, err := mission.ParseRoster("codebuilder:2,designer:1", []string{"codebuilder", "designer"})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// step is a proposed step that is right in everything.
func step(id string, deps ...string) ProposedStep {
	return ProposedStep{ID: id, Title: "Title of " + id, Brief: "Brief of " + id, Profession: "codebuilder",
		DependsOn: deps, Verify: "true", Acceptance: []string{"criterion of " + id}}
}

func steps(s ...ProposedStep) Proposal { return Proposal{Steps: s} }

// with changes a right step.
func with(change func(*ProposedStep)) ProposedStep {
	s := step("a")
	change(&s)
	return s
}

func TestCheckAccepts(t *testing.T) {
	many := make([]ProposedStep, MaxSteps)
	for i := range many {
		many[i] = step(fmt.Sprintf("s%d", i))
		if i > 0 {
			many[i].DependsOn = []string{many[i-1].ID}
		}
	}
	for name, p := range map[string]Proposal{
		"one step":                 steps(step("a")),
		"a diamond, in any order":  steps(step("d", "b", "c"), step("c", "a"), step("b", "a"), step("a")),
		"as many steps as allowed": steps(many...),
		"longest texts": steps(with(func(s *ProposedStep) {
			s.Title, s.Brief, s.Verify = strings.Repeat("ü", MaxTitle), strings.Repeat("😀", MaxBrief), strings.Repeat("é", MaxVerify)
		})),
		"brief and verify of lines":   steps(with(func(s *ProposedStep) { s.Brief, s.Verify = "one\n\ttwo\r\n", "make\nmake test\n" })),
		"the longest id":              steps(with(func(s *ProposedStep) { s.ID = "a" + strings.Repeat("b", 39) })),
		"both professions":            steps(step("a"), with(func(s *ProposedStep) { s.ID, s.Profession = "b", "designer" })),
		"as many criteria as allowed": steps(with(func(s *ProposedStep) { s.Acceptance = slices.Repeat([]string{"x"}, MaxAcceptance) })),
	} {
		if bad := Check(p, crew(t), nil); len(bad) > 0 {
			t.Errorf("%s: %q", name, bad)
		}
	}
}

func TestCheckRefuses(t *testing.T) {
	set := func(id string) ProposedStep { return with(func(s *ProposedStep) { s.ID = id }) }
	for name, c := range map[string]struct {
		p    Proposal
		want []string // one for each sentence, in order
	}{
		"nothing": {Proposal{}, []string{"no step"}},
		"too many": {steps(slices.Collect(func(yield func(ProposedStep) bool) {
			for i := range MaxSteps + 1 {
				yield(step(fmt.Sprint("s", i)))
			}
		})...), []string{"25 steps, at most 24"}},
		"empty id":               {steps(set("")), []string{`step id ""`}},
		"upper case id":          {steps(set("A")), []string{`step id "A"`}},
		"id that is a path":      {steps(set("../x")), []string{`step id "../x"`}},
		"id that is an option":   {steps(set("-x")), []string{`step id "-x"`}},
		"id of 41":               {steps(set("a" + strings.Repeat("b", 40))), []string{"step id"}},
		"Cyrillic id":            {steps(set("\u0430")), []string{"step id"}},
		"id with a newline":      {steps(set("a\n")), []string{`step id "a\n"`}},
		"the same id twice":      {steps(step("a"), step("a")), []string{`"a" stands twice`}},
		"unknown profession":     {steps(with(func(s *ProposedStep) { s.Profession = "wizard" })), []string{`"wizard"; there are: codebuilder, designer`}},
		"the manager's own":      {steps(with(func(s *ProposedStep) { s.Profession = "manager" })), []string{`nobody in the roster is a "manager"`}},
		"no profession":          {steps(with(func(s *ProposedStep) { s.Profession = "" })), []string{`is a ""`}},
		"empty title":            {steps(with(func(s *ProposedStep) { s.Title = "" })), []string{"title is empty"}},
		"no verify":              {steps(with(func(s *ProposedStep) { s.Verify = " " })), []string{"verify is empty"}},
		"blank brief":            {steps(with(func(s *ProposedStep) { s.Brief = " \n\t" })), []string{"brief is empty"}},
		"blank criterion":        {steps(with(func(s *ProposedStep) { s.Acceptance = []string{"x", " "} })), []string{"acceptance is empty"}},
		"no criterion":           {steps(with(func(s *ProposedStep) { s.Acceptance = nil })), []string{"at least one acceptance"}},
		"too many criteria":      {steps(with(func(s *ProposedStep) { s.Acceptance = slices.Repeat([]string{"x"}, 13) })), []string{"13 acceptances, at most 12"}},
		"long title":             {steps(with(func(s *ProposedStep) { s.Title = strings.Repeat("ü", MaxTitle+1) })), []string{"title has 101 characters"}},
		"long brief":             {steps(with(func(s *ProposedStep) { s.Brief = strings.Repeat("x", MaxBrief+1) })), []string{"brief has 8001"}},
		"long verify":            {steps(with(func(s *ProposedStep) { s.Verify = strings.Repeat("x", MaxVerify+1) })), []string{"verify has 2001"}},
		"long criterion":         {steps(with(func(s *ProposedStep) { s.Acceptance = []string{strings.Repeat("x", MaxCriterion+1)} })), []string{"acceptance has 401"}},
		"title of two lines":     {steps(with(func(s *ProposedStep) { s.Title = "a\nBy somebody else" })), []string{"the title"}},
		"title with an escape":   {steps(with(func(s *ProposedStep) { s.Title = "a\x1b[2J" })), []string{"the title"}},
		"NUL in the brief":       {steps(with(func(s *ProposedStep) { s.Brief = "a\x00" })), []string{"no text"}},
		"NUL in the verify":      {steps(with(func(s *ProposedStep) { s.Verify = "make\x00" })), []string{"no text"}},
		"not UTF-8":              {steps(with(func(s *ProposedStep) { s.Brief = "a\xff" })), []string{"no text"}},
		"long and not UTF-8":     {steps(with(func(s *ProposedStep) { s.Brief = strings.Repeat("\xff", MaxBrief+1) })), []string{"8001", "no text"}},
		"blank and too long":     {steps(with(func(s *ProposedStep) { s.Brief = strings.Repeat(" ", MaxBrief+1) })), []string{"brief is empty", "8001"}},
		"depends on itself":      {steps(step("a", "a")), []string{"depends on itself"}},
		"depends on nothing":     {steps(step("a", "z")), []string{`"z", which is no step`}},
		"depends on an empty id": {steps(step("a", "")), []string{`"", which is no step`}},
		"depends twice":          {steps(step("a"), step("b", "a", "a")), []string{"twice"}},
		"a circle of two":        {steps(step("a", "b"), step("b", "a")), []string{"circle: a -> b -> a"}},
		"a circle behind a tail": {steps(step("z", "a"), step("a", "b"), step("b", "c"), step("c", "a")), []string{"circle: a -> b -> c -> a"}},
		"two circles":            {steps(step("a", "b"), step("b", "a"), step("c", "d"), step("d", "c")), []string{"a -> b -> a", "c -> d -> c"}},
		"a circle and an itself": {steps(step("a", "a", "b"), step("b", "a")), []string{"itself", "a -> b -> a"}},
	} {
		bad := Check(c.p, crew(t), nil)
		if len(bad) != len(c.want) {
			t.Errorf("%s: %q, want %q", name, bad, c.want)
			continue
		}
		for i, w := range c.want {
			if !strings.Contains(bad[i], w) {
				t.Errorf("%s: %q, want %q", name, bad[i], w)
			}
		}
	}
}

// TestCheckFindsEverythingAtOnce: each refusal costs a turn, so one answer says it all.
func TestCheckFindsEverythingAtOnce(t *testing.T) {
	p := steps(
		step("a", "b"), step("b", "a"), step("b"), step("BAD ID"), step("e", "e"), step("f", "nosuch"), step("g", "a", "a"),
		ProposedStep{ID: "h", Profession: "wizard"},
		ProposedStep{ID: "i", Title: "x\x00", Brief: strings.Repeat("y", MaxBrief+1), Verify: "\xff", Profession: "designer", Acceptance: []string{""}},
	)
	got := strings.Join(Check(p, crew(t), nil), "\n")
	for _, want := range []string{
		`"b" stands twice`, `"BAD ID"`, `"e" depends on itself`, `"f" depends on "nosuch"`, `"g" depends on "a" twice`,
		`"h": the title is empty`, `"h": the brief is empty`, `"h": the verify is empty`, `"h": nobody`, `"h": name at least one acceptance`,
		`"i": the title`, `"i": the brief has 8001`, `"i": the verify holds`, `"i": the acceptance is empty`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is not said", want)
		}
	}
	// Of two steps with one id the later one counts for circles; repaired, the circle is found.
	p.Steps = slices.Delete(p.Steps, 2, 3)
	if got := strings.Join(Check(p, crew(t), nil), "\n"); !strings.Contains(got, "a -> b -> a") {
		t.Error("the circle is not said")
	}
}

// TestRefusalIsShort: the refusal goes back to the model, so that hostile lengths must not come back in it.
func TestRefusalIsShort(t *testing.T) {
	long := strings.Repeat("X", 1<<20)
	p := steps(ProposedStep{ID: long, Profession: long, DependsOn: []string{long + "y", long}}, step("b", long), step(long, "b"))
	if n := len(strings.Join(Check(p, crew(t), nil), "\n")); n > 4000 {
		t.Errorf("%d bytes", n)
	}
}

func TestReplan(t *testing.T) {
	// The first plan: a is done, b failed; together they serve three criteria.
	prior := &Plan{Round: 1, Acceptance: []string{"criterion of a", "criterion of b", "the page  loads"}, Steps: []Step{
		{ID: "a", State: Done, Acceptance: []string{"criterion of a"}}, {ID: "b", State: Failed, Acceptance: []string{"criterion of b", "the page  loads"}},
	}}
	serve := func(id string, criteria ...string) ProposedStep {
		s := step(id, "a")
		s.Acceptance = criteria
		return s
	}
	for name, c := range map[string]struct {
		p    Proposal
		want []string
	}{
		"kept":                        {steps(serve("c", "criterion of b", "the page  loads")), nil},
		"kept with other white space": {steps(serve("c", " criterion\nof b", "the page loads ")), nil},
		"spread over two":             {steps(serve("c", "criterion of b"), serve("d", "the page  loads")), nil},
		"one more besides":            {steps(serve("c", "criterion of b", "the page loads", "and it is blue")), nil},
		"the failed id again":         {steps(serve("b", "criterion of b", "the page loads")), nil},
		"a done one is served again":  {steps(serve("c", "criterion of b", "the page loads"), serve("d", "criterion of a")), nil},
		"one dropped":                 {steps(serve("c", "criterion of b")), []string{`"the page  loads" of the first plan is dropped`}},
		"said in other words":         {steps(serve("c", "criterion of b", "the page is loaded")), []string{"dropped"}},
		"other case":                  {steps(serve("c", "criterion of b", "The page loads")), []string{"dropped"}},
		"a step that serves none":     {steps(serve("c", "criterion of b", "the page loads"), serve("d", "and it is blue")), []string{`"d" serves none`}},
		"a done id again":             {steps(serve("c", "criterion of b", "the page loads"), step("a")), []string{`"a" is done already`}},
		"depends on a failed one": {steps(func() ProposedStep {
			s := serve("c", "criterion of b", "the page loads")
			s.DependsOn = []string{"b"}
			return s
		}()), []string{`"b", which is no step`}},
		"drops all and serves none": {steps(step("c")), []string{"serves none", "criterion of b", "page  loads"}},
	} {
		bad := append(Check(c.p, crew(t), prior), Deviations(c.p, prior)...)
		if len(bad) != len(c.want) {
			t.Errorf("%s: %q, want %q", name, bad, c.want)
			continue
		}
		for i, w := range c.want {
			if !strings.Contains(bad[i], w) {
				t.Errorf("%s: %q, want %q", name, bad[i], w)
			}
		}
	}
	if bad := Check(steps(step("z")), crew(t), &Plan{}); len(bad) > 0 {
		t.Errorf("without a round it is the first plan: %q", bad)
	}
}

func TestAccept(t *testing.T) {
	var p Plan
	one := step("a")
	one.Title, one.Acceptance = "  Title  ", []string{"x", "shared  one"}
	two := step("b", "a")
	two.Acceptance = []string{"shared one", "y"}
	p.Accept(steps(one, two), noon)
	if p.Round != 1 || p.Version != mission.Version || len(p.Steps) != 2 || !slices.Equal(p.Acceptance, []string{"x", "shared  one", "y"}) {
		t.Fatalf("%+v", p)
	}
	if s := p.Steps[0]; s.Title != "Title" || s.State != Waiting || s.Round != 1 || s.DependsOn == nil || !s.Since.Equal(noon) {
		t.Errorf("%+v", s)
	}
	p.Assign(crew(t), name, noon)
	p.Take("a", "codebuilder-1", "a-0", noon)
	p.Finish("a", "c1", "m1", "did a", noon)
	p.Fail("b", "no", noon)
	p.Final = Final{Commit: "m1", Output: "broken"}
	done := p.Steps[0]
	one.ID = "c"
	p.Accept(steps(one), noon.Add(time.Hour))
	if p.Round != 2 || len(p.Steps) != 2 || p.Final != (Final{}) || !slices.Equal(p.Acceptance, []string{"x", "shared  one", "y"}) {
		t.Fatalf("%+v", p)
	}
	if got, want := fmt.Sprintf("%+v", p.Steps[0]), fmt.Sprintf("%+v", done); got != want {
		t.Errorf("the done step became %s, was %s", got, want)
	}
	if c := p.Step("c"); c == nil || c.State != Waiting || c.Round != 2 || p.Step("b") != nil {
		t.Errorf("%+v", p.Steps)
	}
	one.DependsOn = append(one.DependsOn, "later")
	one.Acceptance[0] = "changed by the caller"
	if c := p.Step("c"); len(c.DependsOn) != 0 || c.Acceptance[0] != "x" {
		t.Error("the plan shares memory with the proposal")
	}
}

// TestSchema: what the model is told and what Check demands are the same caps.
func TestSchema(t *testing.T) {
	var s struct {
		Properties struct {
			Steps struct {
				MaxItems int
				Items    struct {
					Required   []string
					Properties map[string]struct {
						MaxLength, MaxItems int
						Enum                []string
						Items               struct{ MaxLength int }
					}
				}
			}
		}
	}
	if err := json.Unmarshal(Schema([]string{"codebuilder", "designer"}, false), &s); err != nil {
		t.Fatal(err)
	}
	p := s.Properties.Steps.Items.Properties
	if s.Properties.Steps.MaxItems != MaxSteps || p["title"].MaxLength != MaxTitle || p["brief"].MaxLength != MaxBrief || p["verify"].MaxLength != MaxVerify ||
		p["acceptance"].MaxItems != MaxAcceptance || p["acceptance"].Items.MaxLength != MaxCriterion || !slices.Equal(p["profession"].Enum, []string{"codebuilder", "designer"}) {
		t.Errorf("%+v", s)
	}
	b, _ := json.Marshal(ProposedStep{})
	var fields map[string]any
	json.Unmarshal(b, &fields)
	for f := range fields {
		if _, ok := p[f]; !ok || !slices.Contains(s.Properties.Steps.Items.Required, f) {
			t.Errorf("%s is not in the schema", f)
		}
	}
	if len(fields) != len(p) {
		t.Errorf("%d fields, %d in the schema", len(fields), len(p))
	}
}

// TestAllow: what a person allowed is the measure of the plan after it.
func TestAllow(t *testing.T) {
	p := &Plan{Round: 1, Acceptance: []string{"of a", "of b", "the page  loads"}, Steps: []Step{
		{ID: "a", State: Done, Acceptance: []string{"of a"}}, {ID: "b", State: Failed, Acceptance: []string{"of b", "the page  loads"}}}}
	c := step("c")
	c.Acceptance = []string{"the page loads", "and it is blue", "and it  is blue"}
	prop := Proposal{Steps: []ProposedStep{c}}
	if got := Deviations(prop, p); len(got) != 1 || !strings.Contains(got[0], "of b") {
		t.Errorf("%q", got)
	}
	p.Allow(prop)
	if !slices.Equal(p.Acceptance, []string{"of a", "the page  loads", "and it is blue"}) {
		t.Errorf("%q", p.Acceptance)
	}
	p.Accept(prop, time.Now())
	if got := Deviations(prop, p); got != nil {
		t.Errorf("%q", got)
	}
	if got := Deviations(prop, &Plan{}); got != nil {
		t.Errorf("the first plan leaves nothing: %q", got)
	}
}
