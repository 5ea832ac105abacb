package handoff

import (
	"fmt"
	"slices"
	"strings"

	"example.com/AutoAgentProject/core/plan"
)

// Forward says when finished work has to be handed on.
type Forward string

const (
	ForwardOff         Forward = "off"          // nobody looks
	ForwardAlways      Forward = "always"       // also a change of form only, and none at all
	ForwardWhenChanged Forward = "when-changed" // only if the tree differs from the one that came
)

// Policy are the rules beyond the format. The zero value has none.
type Policy struct {
	Tree    bool     // the tree is clean, the commit is on the sender's own branch, has its byline and no runtime state
	Notes   []string // who may write notes; "*": everybody
	To      []string // who may get a handoff of the sender; nil: everybody
	Planned bool     // work is handed on along a plan, so that a draft can be a note only
	Forward Forward  // checked when a task is done
	MaxHops int      // longest chain of handoffs; 0: nobody counts
}

// SwarmPolicy is that of SwarmForge's helpers, which leave these rules to the prompts.
func SwarmPolicy() Policy { return Policy{Notes: []string{"*"}, Forward: ForwardOff} }

// MissionPolicy is that of a mission: notes are for whoever owns the goal, everybody else hands on work or is blocked.
func MissionPolicy() Policy {
	return Policy{Tree: true, Notes: []string{"manager"}, Forward: ForwardAlways, MaxHops: plan.MaxHops}
}

// MayWriteNotes says whether the sender may write notes.
func (f Facts) MayWriteNotes() bool {
	return slices.Contains(f.Policy.Notes, "*") || slices.Contains(f.Policy.Notes, f.Sender)
}

// policy checks the rules beyond the format, of what is well-formed.
func (g *gate) policy() {
	p := g.f.Policy
	if g.typ == Note && !g.f.MayWriteNotes() {
		g.add("type", Note, g.f.Sender+" may not write notes", "hand on your work with a git_handoff; if something is unclear, do not ask around: stop and say BLOCKED: and your question")
	}
	if g.typ == GitHandoff && p.Planned {
		g.add("type", GitHandoff, "finished work is handed on along the plan, by the program", "take the draft out; what the next one needs to know belongs into "+DocumentFile)
	}
	g.reach()
	if n := g.hops(); n > p.MaxHops {
		g.add("hops", fmt.Sprint(n), fmt.Sprintf("hop limit: %d handoffs led to this one, at most %d may", n, p.MaxHops), "stop and say BLOCKED: and why the work goes round")
	}
	if g.typ != GitHandoff {
		return
	}
	if held, task := g.batch(), g.d.Get("task"); p.MaxHops > 0 && slices.Index(held, task) > 0 {
		g.add("task", task, "a batch is handed on once, under the name of its first task", "write task: "+held[0])
	}
	g.mergeOnly()
	if t := g.f.Tree; t.Layout != "" { // stop and say so, whatever the policy is
		g.add("tree", "", "the git layout is not the expected one: "+t.Layout, "stop and report it; do not repair it")
	} else if p.Tree {
		g.tree(t)
	}
}

// reach refuses recipients that the sender's profession does not hand to.
func (g *gate) reach() {
	to := g.f.Policy.To
	if to == nil {
		return
	}
	remedy := "its profession hands to nobody; take the draft out, and if that leaves a question open stop and say BLOCKED: and the question"
	if len(to) > 0 {
		remedy = "write one of " + strings.Join(to, ", ")
	}
	for r := range strings.SplitSeq(g.d.Get("to"), ",") {
		if slices.Contains(g.f.Roles, r) && !slices.Contains(to, r) {
			g.add("to", r, "the profession of "+g.f.Sender+" does not hand to it", remedy)
		}
	}
}

// mergeOnly refuses to hand on what came as a terminal broadcast.
func (g *gate) mergeOnly() {
	if f := g.f.Policy.Forward; f == ForwardOff || f == "" {
		return
	}
	task := g.d.Get("task")
	for _, h := range g.f.Held {
		if h.MergeOnly && h.Task == task && task != "" {
			g.add("task", task, "it came as a terminal broadcast, which is merged and not handed on", "merge it, test, and say that you are done")
			return
		}
	}
}

// tree checks the sender's tree and the commit.
func (g *gate) tree(t Tree) {
	commit := g.d.Get("commit")
	if len(t.Dirty) > 0 {
		g.add("tree", strings.Join(t.Dirty, ", "), "it holds changes that are not committed", "commit them or take them back; temporary files belong into an ignored folder")
	}
	if t.Type != "commit" || t.Objects != 1 || !commitPattern.MatchString(commit) {
		return
	}
	if !t.Reachable {
		g.add("commit", commit, "your own branch does not hold it", "hand on a commit of your own branch")
	}
	if !t.Byline {
		g.add("commit", commit, "its message has no byline", "end the message with the line By "+g.f.Sender+".")
	}
	if len(t.Runtime) > 0 {
		g.add("commit", strings.Join(t.Runtime, ", "), "it holds runtime state", "take these files out of the commit and leave them to the program")
	}
}

// HasByline says whether a commit's message has the line By <role>.
func HasByline(message, role string) bool {
	for line := range strings.SplitSeq(message, "\n") {
		if strings.TrimSpace(line) == "By "+role+"." {
			return true
		}
	}
	return false
}

// RuntimeState says whether a path in a repository belongs to the program and never into a commit.
func RuntimeState(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return first == ".swarmforge" || first == ".worktrees" || first == ".autoagent"
}

// Sent is a git_handoff that an agent sent since it took up what it finishes now.
type Sent struct {
	Task string
	To   []string
}

// CheckDone judges whether a unit may be finished. Work has to be handed on under the name that it came with, a batch once
// for all under that of its first task; a terminal broadcast must not. mergeOnly says that the unit is one although it does not look like it.
func CheckDone(agent string, u Unit, sent []Sent, changed, mergeOnly bool, p Policy) []Problem {
	if p.Forward == ForwardOff || p.Forward == "" {
		return nil
	}
	onward := slices.DeleteFunc(slices.Clone(sent), func(s Sent) bool { // mail to oneself hands nothing on
		return !slices.ContainsFunc(s.To, func(to string) bool { return to != agent })
	})
	var due, broadcast, others []string
	for _, i := range u.Items {
		if task, ok := i.Text.Field("task"); ok && i.Text.Or("type", "") == GitHandoff {
			if mergeOnly || i.Text.MergeOnly() {
				broadcast = append(broadcast, task)
			} else {
				due = append(due, task)
			}
		}
	}
	var problems []Problem
	met := false
	for _, s := range onward {
		switch {
		case len(due) > 0 && s.Task == due[0]:
			met = true
		case slices.Contains(broadcast, s.Task):
			problems = append(problems, Problem{"forward", s.Task, "a terminal broadcast is merged and not handed on", "tell the person: it went to " + strings.Join(s.To, ",")})
		default:
			others = append(others, s.Task)
		}
	}
	if len(due) == 0 || met || p.Forward == ForwardWhenChanged && !changed {
		return problems
	}
	if len(others) > 0 {
		return append(problems, Problem{"task", strings.Join(others, ", "), "it was handed on under another name", "hand it on again with task: " + due[0]})
	}
	return append(problems, Problem{"forward", strings.Join(due, ", "), "it was not handed on", "send a git_handoff with this task to the next role, also if only the form changed or nothing"})
}
