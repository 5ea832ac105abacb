package specialist

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"example.com/AutoAgentProject/core/conductor"
	"example.com/AutoAgentProject/core/files"
	"example.com/AutoAgentProject/core/flow"
	"example.com/AutoAgentProject/core/git"
	"example.com/AutoAgentProject/core/journal"
	"example.com/AutoAgentProject/core/money"
	"example.com/AutoAgentProject/core/plan"
	"example.com/AutoAgentProject/core/profession"
	"example.com/AutoAgentProject/core/runner"
	"example.com/AutoAgentProject/core/tick"
)

// Limits of what a visit is told and may leave. What is too much is an error and never cut in silence.
const (
	maxPrompt = 96 << 10 // bytes
	maxSpecs  = 40
	maxSpec   = 48 << 10 // bytes
)

// station is a visit with all that belongs to it.
type station struct {
	step plan.Step
	flow flow.Step
	prof profession.Profession
}

// station returns the visit behind a step; false in missions that follow a list.
func (s Specialist) station(step plan.Step) (station, bool) {
	if s.Flow == nil || step.Visit == nil {
		return station{}, false
	}
	fs, ok := s.Flow.Step(step.Visit.Step)
	prof, known := s.Professions.Get(step.Profession)
	return station{step, fs, prof}, ok && known
}

// ask is the run of a visit. A context that is too large comes back as its reason.
func (st station) ask(ctx context.Context, s Specialist, p *plan.Plan, f promptFacts) (a tick.Ask, tooLarge string, err error) {
	specs, err := s.specs(ctx, p)
	if err != nil {
		return a, "", err
	}
	goal, err := os.ReadFile(s.Store.Goal())
	if err != nil {
		return a, "", err
	}
	notes, err := s.Store.Notes()
	if err != nil {
		return a, "", err
	}
	var said []string
	for _, n := range notes {
		said = append(said, n.Text)
	}
	text, parts := st.prompt(p, string(goal), specs, said, f)
	a = tick.Ask{Prompt: text, Context: parts, Model: s.ModelOf(conductor.Tier(st.model(), st.step.Visit.Raised))}
	if st.flow.Exit.On != "" {
		a.Schema = st.flow.Exit.Schema()
	}
	if b, err := money.ParseBudget(st.prof.Budget); err == nil {
		if n, _ := money.Fix(b, money.Allowance{}); n.Unit == s.Mission.Budget.Unit {
			a.StepLimit = n.N
		}
	}
	if len(text) > maxPrompt {
		return a, fmt.Sprintf("its context has %d bytes, at most %d are given to an agent: %s", len(text), maxPrompt, sizes(parts)), nil
	}
	return a, "", nil
}

func (st station) model() string {
	if st.flow.Model != "" {
		return st.flow.Model
	}
	return st.prof.Model
}

func sizes(parts map[string]int) string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(parts)) {
		out = append(out, fmt.Sprintf("%s %d", k, parts[k]))
	}
	return strings.Join(out, ", ")
}

// prompt is what the model of a visit reads, and the size of its parts: what the step asks for, the person's words, the
// specifications its profession reads, the document of the one before it, and why it came here. It does not grow with the steps done.
func (st station) prompt(p *plan.Plan, goal string, specs map[string]string, notes []string, f promptFacts) (string, map[string]int) {
	var b strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&b, format, args...) }
	parts, last := map[string]int{}, 0
	part := func(name string) { parts[name], last = b.Len()-last, b.Len() }
	say("# Your step: %s (%s)\n\n%s\n", st.step.Title, st.step.ID, strings.TrimSpace(st.step.Brief))
	part("step")
	say("\n## What the person asks for\n\n%s\n", quote(goal))
	for _, n := range notes {
		say("\nThe person said later:\n\n%s\n", quote(n))
	}
	part("goal")
	st.sayDone(say)
	part("checks")
	for _, name := range slices.Sorted(maps.Keys(specs)) {
		if !st.prof.ReadsSpec(name) {
			continue
		}
		mine := ""
		if st.prof.OwnsSpec(name) {
			mine = ", which is yours"
		}
		say("\n## The specification %s%s (%s%s.md)\n\n%s\n", name, mine, profession.Specs, name, quote(specs[name]))
		part("spec " + name)
	}
	for _, id := range st.step.DependsOn {
		if d := p.Step(id); d != nil {
			doc, ok := f.Documents[id]
			said := doc.Passed(f.Tight)
			if !ok {
				said = d.Summary
			}
			say("\n## What the one before you hands over (%s, %s)\n\n%s\n", d.ID, d.Agent, quote(said))
		}
	}
	part("document")
	if st.step.Visit.Note != "" {
		say("\n## Why it came to you\n")
		if st.step.Visit.From != "" {
			say("The work that did not pass is in your folder.")
		}
		say("\n\n%s\n", quote(st.step.Visit.Note))
	}
	sayRest(say, st.step, f)
	part("reasons")
	if st.flow.Exit.On != "" {
		say("\n## Your answer\nYour answer is JSON and nothing else: %s is one of %s, and answer holds the reasons. No document is needed for it.\n",
			st.flow.Exit.On, strings.Join(st.flow.Exit.Answers(), ", "))
	}
	part("answer")
	return b.String(), parts
}

// sayDone names what the gate behind the step will ask.
func (st station) sayDone(say func(string, ...any)) {
	say("\n## It is done when\n")
	for _, name := range st.flow.Produces {
		if name == flow.Code {
			say("- the product has changed as the step asks\n")
		} else {
			say("- %s%s.md holds the specification %s\n", profession.Specs, name, name)
		}
	}
	for _, v := range st.flow.Validators {
		switch v.Kind {
		case "changed":
			say("- some file that %s matches has changed\n", v.Arg)
		case "unchanged":
			say("- no file that %s matches has changed\n", v.Arg)
		case "spec":
			say("- the specification %s has content\n", v.Arg)
		}
	}
	if st.prof.Owns != nil {
		say("- nothing is changed but what is yours: %s\n", strings.Join(st.prof.Owns, ", "))
	}
	say("- no specification is changed that is not yours. What is wrong in one is a reason to stop, for its owner to settle\n")
	if strings.TrimSpace(st.step.Verify) != "" {
		say("- this command exits 0 in a fresh checkout of the tree with your work merged:\n\n```sh\n%s\n```\n", st.step.Verify)
	}
}

// specs are the specifications as they were accepted last, by name.
func (s Specialist) specs(ctx context.Context, p *plan.Plan) (map[string]string, error) {
	out := map[string]string{}
	for name, kept := range p.Specs {
		data, err := s.Repo().Document(ctx, git.DocsRef(s.Mission.ID), kept)
		if err != nil {
			return nil, fmt.Errorf("the specification %s: %w", name, err)
		}
		out[name] = string(data)
	}
	return out, nil
}

// layOutSpecs puts the specifications into the clone. Nobody runs in it now.
func (s Specialist) layOutSpecs(ctx context.Context) error {
	if s.Flow == nil {
		return nil
	}
	p, err := s.Store.Plan()
	if err != nil {
		return err
	}
	specs, err := s.specs(ctx, p)
	if err != nil {
		return err
	}
	clone := s.Store.Clone(s.Agent.Name)
	left, err := files.ListBeneath(clone, strings.TrimSuffix(profession.Specs, "/"), 10_000)
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, files.ErrNotRegular) {
		return err
	}
	for _, name := range left { // of an earlier visit: what was not accepted is no specification
		if n, ok := strings.CutSuffix(name, ".md"); ok && specs[n] == "" {
			specs[n] = ""
		}
	}
	for name, text := range specs {
		if err := files.PlaceBeneath(clone, profession.Specs+name+".md", []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// leftSpecs are the specifications that differ from what was accepted last, as the agent left them.
func (s Specialist) leftSpecs(before map[string]string) (changed map[string]string, reason string, err error) {
	clone := s.Store.Clone(s.Agent.Name)
	names, err := files.ListBeneath(clone, strings.TrimSuffix(profession.Specs, "/"), maxSpecs)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		names = nil
	case errors.Is(err, files.ErrNotRegular), errors.Is(err, files.ErrTooBig), errors.Is(err, fs.ErrPermission):
		return nil, fmt.Sprintf("%s is a link, cannot be read, or holds more than %d files", profession.Specs, maxSpecs), nil
	case err != nil:
		return nil, "", err
	}
	changed = map[string]string{}
	there := map[string]bool{}
	for _, file := range names {
		name, ok := strings.CutSuffix(file, ".md")
		if !ok || strings.HasPrefix(file, ".") {
			continue // notes of its own; nobody reads them
		}
		data, err := files.ReadBeneath(clone, profession.Specs+file, maxSpec)
		switch {
		case errors.Is(err, files.ErrNotRegular), errors.Is(err, fs.ErrPermission):
			return nil, fmt.Sprintf("%s%s is no plain file, or cannot be read", profession.Specs, file), nil
		case errors.Is(err, files.ErrTooBig):
			return nil, fmt.Sprintf("%s%s has more than %d bytes", profession.Specs, file, maxSpec), nil
		case err != nil:
			return nil, "", err
		}
		there[name] = true
		if text := strings.ToValidUTF8(string(data), "\uFFFD"); text != before[name] {
			changed[name] = text
		}
	}
	for name := range before {
		if !there[name] && before[name] != "" {
			changed[name] = ""
		}
	}
	return changed, "", nil
}

// judged is what came of a visit: the specifications that were accepted, and why it does not pass.
type judged struct {
	specs  map[string]string // name to its place on the docs ref
	reason string
	final  bool
	answer string
	said   string
}

// gateFlow holds what a visit left to its flow and profession: who owns what was changed, what had to be made, the answer of one that
// judges. Owned specifications are taken over even if the visit fails: the one who goes on is told what was wrong with them.
func (s Specialist) gateFlow(ctx context.Context, h *tick.Hold, st station) (j judged, err error) {
	p, err := s.Store.Plan()
	if err != nil {
		return j, err
	}
	before, err := s.specs(ctx, p)
	if err != nil {
		return j, err
	}
	changed, reason, err := s.leftSpecs(before)
	if err != nil || reason != "" {
		j.reason = reason
		return j, err
	}
	if j.specs, err = s.keepSpecs(ctx, st, changed); err != nil {
		return j, err
	}
	stats, err := s.Repo().DiffStat(ctx, h.Base, h.Commit)
	if err != nil {
		return j, err
	}
	var paths []string
	for _, f := range stats {
		paths = append(paths, f.Path)
	}
	for name, text := range changed {
		if st.prof.OwnsSpec(name) {
			before[name] = text
		}
	}
	if j.reason = st.check(paths, slices.Sorted(maps.Keys(changed)), before); j.reason != "" {
		return j, nil
	}
	if st.flow.Exit.On != "" {
		res, _, err := s.Result(h.Run)
		if err != nil {
			return j, err
		}
		j.answer, j.said, j.reason = st.answer(res)
	}
	return j, nil
}

// check is the gate of a visit: paths are the files it changed, specs the specifications it changed, now what each holds.
func (st station) check(paths, specs []string, now map[string]string) string {
	var foreign []string
	for _, f := range paths {
		if !st.prof.MayChange(f) {
			foreign = append(foreign, f)
		}
	}
	for _, name := range specs {
		if !st.prof.OwnsSpec(name) {
			foreign = append(foreign, profession.Specs+name+".md")
		}
	}
	if len(foreign) > 0 {
		if more := len(foreign) - 20; more > 0 {
			foreign = append(foreign[:20], fmt.Sprintf("and %d more", more))
		}
		return fmt.Sprintf("%s changed what it does not own: %s. Take that back; what is wrong there is for its owner to settle", st.prof.Name, strings.Join(foreign, ", "))
	}
	changedAny := func(glob string) bool {
		return slices.ContainsFunc(paths, func(p string) bool { return profession.Matches([]string{glob}, p) })
	}
	for _, name := range st.flow.Produces {
		switch {
		case name == flow.Code && len(paths) == 0:
			return "no file of the product was changed, and the step is there to change it"
		case name != flow.Code && strings.TrimSpace(now[name]) == "":
			return fmt.Sprintf("%s%s.md is missing or empty, and the step is there to write it", profession.Specs, name)
		}
	}
	for _, v := range st.flow.Validators {
		switch {
		case v.Kind == "changed" && !changedAny(v.Arg):
			return fmt.Sprintf("no file that %s matches was changed, and the step is there for that", v.Arg)
		case v.Kind == "unchanged" && changedAny(v.Arg):
			return fmt.Sprintf("a file that %s matches was changed, which this step must not do", v.Arg)
		case v.Kind == "spec" && strings.TrimSpace(now[v.Arg]) == "":
			return fmt.Sprintf("the specification %s is empty", v.Arg)
		}
	}
	return ""
}

// answer takes the answer of a step that judges out of its result.
func (st station) answer(res runner.Result) (answer, said, reason string) {
	var fields map[string]string
	if err := json.Unmarshal(res.Structured, &fields); err != nil {
		return "", "", "the answer is not the JSON that was asked for"
	}
	answer = fields[st.flow.Exit.On]
	if !slices.Contains(st.flow.Exit.Answers(), answer) && st.flow.Exit.Default == "" {
		return "", "", fmt.Sprintf("the answer %q is none of %s", firstLines(answer, 60), strings.Join(st.flow.Exit.Answers(), ", "))
	}
	return answer, firstLines(fields["answer"], 6000), ""
}

// keepSpecs puts the specifications that the visit's profession owns on the docs ref, each under the visit's name.
func (s Specialist) keepSpecs(ctx context.Context, st station, changed map[string]string) (map[string]string, error) {
	out := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(changed)) {
		if !st.prof.OwnsSpec(name) || strings.TrimSpace(changed[name]) == "" {
			continue
		}
		place := path.Join("specs", name, fmt.Sprintf("%s-%d.md", st.step.ID, len(st.step.Handoffs)))
		message := fmt.Sprintf("Specification %s by %s\n\nBy %s.\n", name, st.step.ID, s.Agent.Name)
		if _, err := s.Repo().AddDocument(ctx, git.DocsRef(s.Mission.ID), place, []byte(changed[name]), s.Who(), message, s.Now()); err != nil {
			return nil, err
		}
		out[name] = place
	}
	return out, nil
}

// settle puts what came of a visit into the plan.
func (j judged) settle(p *plan.Plan, id string) {
	if p.Specs == nil {
		p.Specs = map[string]string{}
	}
	maps.Copy(p.Specs, j.specs)
	if x := p.Step(id); x != nil && x.Visit != nil {
		x.Visit.Answer, x.Visit.Said, x.Visit.Final = j.answer, j.said, j.final
	}
}

// failVisit ends a visit that did not pass; the conductor says who goes on, from the commit if there is one.
func (s Specialist) failVisit(ctx context.Context, name string, step plan.Step, j judged, commit string) (tick.Outcome, error) {
	head, err := s.Repo().Resolve(ctx, "refs/heads/main")
	if err != nil {
		return tick.Idle, err
	}
	if err := s.Change(ctx, head, func(p *plan.Plan) error {
		if x := p.Step(step.ID); x != nil && x.State == plan.Working {
			j.settle(p, step.ID)
			x.Commit = commit
			p.Fail(step.ID, j.reason, s.Now())
		}
		return nil
	}, journal.Event{Kind: journal.StepReturned, Step: step.ID, Text: fmt.Sprintf("step %s did not pass: %s", step.ID, firstLines(j.reason, 300))}); err != nil {
		return tick.Idle, err
	}
	s.Line(ctx, "idle", step.ID, "", "%s did not pass: %s", step.ID, j.reason)
	s.Wake("manager")
	return tick.Moved, s.close(name)
}
