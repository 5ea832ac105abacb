// Package profession reads what an agent may do and who it is: the profession, a Markdown file with YAML front matter
// that takes Claude Code's subagent files as they are, and the soul, plain Markdown.
package profession

import (
	"slices"
	"strings"
	"time"
)

// Manager is the name of the profession that plans. It gets no step, so the workplace of the steps is not its own.
const Manager = "manager"

// Profession is one profession with the soul that goes with it. Lists that a file leaves out are nil.
type Profession struct {
	Name        string        // a-z, 0-9 and dashes, at most MaxName characters
	Display     string        // letters and digits, as people read it: CodeBuilder
	Description string        // what it is for; a manager chooses by it
	Tools       []string      // offered to the model, in the order of the file; empty: it only answers
	Required    []string      // of Tools: those a run must have called before its answer counts
	Writes      bool          // Tools has an editing tool
	Model       string        // alias, tier (see Tiers) or exact id; empty: the mission's
	Effort      string        // how much the model thinks: low, medium, high; empty: its default
	MaxOutput   int           // tokens of one response at most; 0: the runner's default
	Fallback    []string      // models to take, in this order, while Model is not available
	Budget      string        // most that one step of it may use, as money.ParseBudget reads it; empty: the mission's
	MaxTurns    int           // model requests of a run at most; 0: not said
	Wall        time.Duration // wall-clock limit of a run; 0: not said
	Silence     time.Duration // no sign of life for so long ends a run; 0: not said
	Owns        []string      // globs of the files it may change; nil: every file, if it writes
	Reads       []string      // globs of the files it is pointed to; nil: every file
	HandoffTo   []string      // professions it may hand to; nil: any
	Notes       bool          // it may write notes to other agents
	Gates       []string      // where a person approves its work: goal, design, plan, code, review
	Verify      []string      // shell commands that must pass after each of its steps, besides the step's own
	Ignored     []string      // what stood in the file and means something to Claude Code, but has no effect here; sorted
	Body        string        // the Markdown below the front matter
	Soul        string        // the whole soul; a Set fills it in
	Workplace   string        // what is true of every step, whoever does it; a Set fills it in
	Source      string        // the file it was read from
	SoulSource  string        // the file of its soul; empty: it has none
	Origin      string        // the layer that the file is of: built-in, user, project, mission
}

// SystemPrompt is what the model is told before anything else: the whole soul, then the profession, then the
// workplace. The same profession gives the same bytes.
func (p Profession) SystemPrompt() string {
	var parts []string
	for _, part := range []string{p.Soul, p.Body, p.Workplace} {
		if part = strings.Trim(part, "\n"); part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, "\n\n") + "\n"
}

// MayChange says whether the profession may change the file at path, which is relative to the repository and uses
// slashes. Who offers no editing tool changes nothing, whatever else its commands can do.
func (p Profession) MayChange(path string) bool {
	if !p.Writes || !local(path) {
		return false
	}
	if p.Owns == nil {
		return true
	}
	return Matches(p.Owns, path)
}

// Specs is where the specifications of a mission lie in a clone, one Markdown file each. They are no part of the product.
const Specs = ".autoagent/specs/"

// specPrefix stands in owns and reads for Specs: spec:goals is .autoagent/specs/goals.md.
const specPrefix = "spec:"

// expand writes a glob out.
func expand(glob string) string {
	if name, ok := strings.CutPrefix(glob, specPrefix); ok && name != "" {
		return Specs + name + ".md"
	}
	return glob
}

// ReadsSpec says whether the specification of that name belongs into its prompt: what it reads, and what it owns.
func (p Profession) ReadsSpec(name string) bool {
	return Matches(ofSpecs(p.Reads), Specs+name+".md") || p.OwnsSpec(name)
}

// OwnsSpec says whether it may change the specification of that name. Nobody owns one who does not say so.
func (p Profession) OwnsSpec(name string) bool {
	return p.Writes && Matches(ofSpecs(p.Owns), Specs+name+".md")
}

// ofSpecs are the globs that name specifications; **/*.md means the documents of the product.
func ofSpecs(globs []string) []string {
	return slices.DeleteFunc(slices.Clone(globs), func(g string) bool { return !strings.HasPrefix(g, Specs) })
}

// Matches says whether one of the globs matches a path.
func Matches(globs []string, path string) bool {
	return slices.ContainsFunc(globs, func(g string) bool { return matchGlob(g, path) })
}

// Tiers are words for models of growing strength and price; the configuration says which model each is.
func Tiers() []string { return []string{"cheap", "standard", "strong"} }
