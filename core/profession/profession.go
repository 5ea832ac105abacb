// Package profession reads what an agent may do and who it is: the profession, a Markdown file with YAML front matter
// that takes Claude Code's subagent files as they are, and the soul, plain Markdown.
package profession

import (
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
	Model       string        // alias, tier or exact id; empty: the mission's
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
	for _, glob := range p.Owns {
		if matchGlob(glob, path) {
			return true
		}
	}
	return false
}
