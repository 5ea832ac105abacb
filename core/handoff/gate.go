package handoff

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Tree is what git says about the sender's tree and the commit that a draft names.
type Tree struct {
	Objects   int      // how many objects the commit's digits match
	Type      string   // of the object, if it is one
	Canonical string   // the commit, abbreviated to 10 digits or as many as it takes
	Reachable bool     // the sender's branch holds the commit
	Byline    bool     // its message has the line By <role>.
	Dirty     []string // files of the sender's tree that differ from its HEAD, and unknown ones
	Runtime   []string // files in the commit that are runtime state
	Layout    string   // why this is not the tree of the sender's branch; empty: it is
}

// Held is a task that the sender has in process.
type Held struct {
	Task      string   // empty for a note
	Carries   []string // tasks of an earlier batch that go on under its name
	MergeOnly bool     // a terminal broadcast
	Hops      int      // handoffs that led to it
}

// HeldOf is what a sender has in process; nil: nothing.
func HeldOf(u *Unit) (held []Held) {
	if u != nil {
		for _, i := range u.Items {
			held = append(held, Held{Task: i.Text.Or("task", ""), Carries: i.Text.Carried(), MergeOnly: i.Text.MergeOnly(), Hops: i.Text.Hops()})
		}
	}
	return held
}

// Facts is all that the gate knows besides the draft.
type Facts struct {
	Sender string
	Roles  []string // who can get a handoff
	Tree   Tree     // about the draft's commit; see CommitOf
	Held   []Held   // what the sender works on
	Policy Policy
}

var (
	priorityPattern = regexp.MustCompile(`^[0-9][0-9]$`)
	commitPattern   = regexp.MustCompile(`^[0-9a-fA-F]{10}$`)
)

// CommitOf returns the commit whose facts the gate needs; empty: none, there is nothing to ask git about.
func (d Draft) CommitOf() string {
	if c := d.Get("commit"); d.Get("type") == GitHandoff && commitPattern.MatchString(c) {
		return c
	}
	return ""
}

// Check is the gate. It returns all that is wrong with a draft at once: first the lines, then what is missing or wrong in
// type, to and priority, the recipients, headers that do not belong to the type, then the work or the note, then the
// policy. Without problems the message is what may be sent.
func Check(d Draft, f Facts) (Message, []Problem) {
	g := gate{d: d, f: f, typ: d.Get("type")}
	g.problems = slices.Clone(d.Problems)
	g.base()
	g.recipients()
	g.belonging()
	if g.typ != Note {
		g.work()
	}
	if g.typ != GitHandoff {
		g.note()
	}
	g.policy()
	m := Message{Type: g.typ, From: f.Sender, To: strings.Split(d.Get("to"), ","), Priority: d.Get("priority"), Hops: g.hops(),
		Task: d.Get("task"), Commit: f.Tree.Canonical, Text: d.Get("message"), Tasks: g.carries()}
	if g.problems != nil {
		return Message{}, g.problems
	}
	return m, nil
}

type gate struct {
	d        Draft
	f        Facts
	typ      string
	problems []Problem
}

func (g *gate) add(header, value, text, remedy string) {
	g.problems = append(g.problems, Problem{header, value, text, remedy})
}

func (g *gate) missing(header, remedy string) bool {
	if g.d.Get(header) == "" {
		g.add(header, "", "it is missing", remedy)
		return true
	}
	return false
}

func (g *gate) base() {
	const types, digits = "write type: git_handoff or type: note", "write two digits, from 00 (urgent) over 50 (the chain) to 99 (low)"
	noType := g.missing("type", types)
	g.missing("to", "name one role or more, with commas and no spaces: "+strings.Join(g.f.Roles, ", "))
	noPriority := g.missing("priority", digits)
	if !noType && g.typ != GitHandoff && g.typ != Note {
		g.add("type", g.typ, "there is no such type", types)
	}
	if p := g.d.Get("priority"); !noPriority && !priorityPattern.MatchString(p) {
		g.add("priority", p, "it is no priority", digits)
	}
}

func (g *gate) recipients() {
	to := g.d.Get("to")
	if to == "" {
		return
	}
	seen := map[string]bool{}
	for _, r := range strings.Split(to, ",") {
		switch {
		case blank(r):
			g.add("to", to, "a recipient is empty", "put names between the commas, without spaces")
		case strings.Contains(r, "_"):
			g.add("to", r, "names of roles have no underscore", "write one of "+strings.Join(g.f.Roles, ", "))
		case !slices.Contains(g.f.Roles, r):
			g.add("to", r, "there is no such role", "write one of "+strings.Join(g.f.Roles, ", "))
		}
		if seen[r] {
			g.add("to", r, "the recipient stands twice", "name everybody once")
		}
		seen[r] = true
	}
}

// belonging refuses headers of the other type.
func (g *gate) belonging() {
	if g.typ != GitHandoff && g.typ != Note {
		return
	}
	for _, h := range g.d.Headers {
		if !slices.Contains(allowed(h.Name), g.typ) {
			g.add(h.Name, h.Value, "a "+g.typ+" has no such header", "take it out")
		}
	}
}

// work checks task and commit; without a known type only what is there.
func (g *gate) work() {
	known := g.typ == GitHandoff
	task, commit := g.d.Get("task"), g.d.Get("commit")
	if known {
		g.missing("task", "write the name that the task has had from its beginning")
	}
	g.length("task", task)
	switch t := g.f.Tree; {
	case known && g.missing("commit", "write the first 10 digits of your commit"):
	case commit == "":
	case !commitPattern.MatchString(commit):
		g.add("commit", commit, "it is not exactly 10 hexadecimal digits", "write what git rev-parse --short=10 HEAD prints")
	case !known:
	case t.Layout != "": // nothing can be said about it
	case t.Objects == 0:
		g.add("commit", commit, "git knows no such object", "commit first, then write what git rev-parse --short=10 HEAD prints")
	case t.Objects > 1:
		g.add("commit", commit, fmt.Sprintf("%d objects begin with it", t.Objects), "make another commit, whose first 10 digits are its own")
	case t.Type != "commit":
		g.add("commit", commit, "it is a "+t.Type+" and no commit", "write what git rev-parse --short=10 HEAD prints")
	}
}

func (g *gate) note() {
	if g.typ == Note {
		g.missing("message", "write one line of at most "+strconv.Itoa(MaxText)+" characters")
	}
	g.length("message", g.d.Get("message"))
}

func (g *gate) length(header, value string) {
	if n := units(value); n > MaxText {
		g.add(header, value, fmt.Sprintf("it has %d characters", n), "shorten it to "+strconv.Itoa(MaxText))
	}
}

// batch are the tasks that the sender holds and has to hand on, the first one first.
func (g *gate) batch() (tasks []string) {
	for _, h := range g.f.Held {
		if h.Task != "" && !h.MergeOnly {
			tasks = append(tasks, h.Task)
		}
	}
	return tasks
}

// carries are all tasks that the draft's work stands for, if it is more than the one it names. Only a mission's files have room
// for them.
func (g *gate) carries() (tasks []string) {
	held := g.batch()
	if g.f.Policy.MaxHops == 0 || g.typ != GitHandoff || !slices.Contains(held, g.d.Get("task")) {
		return nil
	}
	for _, h := range g.f.Held {
		for _, t := range append([]string{h.Task}, h.Carries...) {
			if t != "" && !h.MergeOnly && !slices.Contains(tasks, t) {
				tasks = append(tasks, t)
			}
		}
	}
	if len(tasks) < 2 {
		return nil
	}
	return tasks
}

// hops is how many handoffs lead to the one that the draft makes; 0 where nobody counts.
func (g *gate) hops() int {
	if g.f.Policy.MaxHops == 0 {
		return 0
	}
	n := 0
	for _, h := range g.f.Held {
		n = max(n, h.Hops+1)
	}
	return n
}

// IsCommit says whether text can name a commit: 10 digits, or more where 10 are not enough.
func IsCommit(s string) bool {
	return len(s) >= 10 && len(s) <= 64 && strings.Trim(strings.ToLower(s), "0123456789abcdef") == ""
}
