// Package recovery says what is done about a run or an agent that gets nowhere: one table, as data, and the pure decisions by
// it. Whoever changes the table changes docs/recovery.md; a test holds the two together.
package recovery

import (
	"slices"
	"strings"
)

// Action is what is done.
type Action string

const (
	Say     Action = "say"     // a further user message in the same conversation
	Fresh   Action = "fresh"   // a new run in the same folder, told what the last one did and where things stand
	Smaller Action = "smaller" // the same, and told to do the smallest useful part only
	Anew    Action = "anew"    // a new run that is told nothing: there is nothing to go on from
	Break   Action = "break"   // the agent is paused, a person is told
	Block   Action = "block"   // the step waits for a person, who is told, and has it in TODO-human.md
)

// Fault is what was seen.
type Fault string

const (
	Silent     Fault = "silent"
	Stuck      Fault = "stuck"
	Loop       Fault = "loop"
	Overtime   Fault = "overtime"
	Undone     Fault = "tool missing"
	HalfBroken Fault = "error, with work"
	Broken     Fault = "error, without work"
	Refused    Fault = "refused"
	TooLong    Fault = "too long"
	Empty      Fault = "nothing made"
	Blocked    Fault = "blocked"
	Exhausted  Fault = "exhausted"
	Crashing   Fault = "crashing"
)

// ToolMissing is the class of a result that came without a tool that must be called.
const ToolMissing = "required-tool"

// Row is one row of the table.
type Row struct {
	Fault   Fault
	Classes []string // of a run's result that mean it; nil: it is seen otherwise
	Action  Action
	Seen    string // how it is seen, for people
	Done    string // what is done, for people
}

// MaxTries is how often a step is helped on, whatever the faults were: one counter for each step, kept in plan.json. Then
// it is blocked.
const MaxTries = 3

// MaxEmpty is how many runs of an agent in a row may make nothing before the agent is paused.
const MaxEmpty = 6

// Table is every fault and what is done about it. The first row whose classes fit counts.
var Table = []Row{
	{Silent, []string{"silence"}, Fresh, "no event, no changed file and no busy child for the profession's `silence`",
		"the run is interrupted; a fresh run gets a summary of where things stand"},
	{Stuck, []string{"stuck"}, Fresh, "words, but no changed file, commit or message and no busy child for twice the profession's `silence`",
		"the run is interrupted; a fresh run gets a summary of where things stand"},
	{Loop, []string{"loop"}, Fresh, "the same tool with the same input 8 times, and nothing changed",
		"the run is interrupted; a fresh run gets a summary and is told which call led nowhere"},
	{Overtime, []string{"wall"}, Fresh, "the run took longer than the profession's `wall`",
		"the run is interrupted; a fresh run gets a summary of where things stand"},
	{Undone, []string{ToolMissing}, Fresh, "it answered without having called a tool of `required_tools`, and was told to twice in the same conversation",
		"a fresh run gets a summary and is told which tool it must call"},
	{Refused, []string{"refusal"}, Smaller, "the model refused",
		"a fresh run is told to do the smallest useful part only"},
	{TooLong, []string{"max-turns", "max-output", "prompt-too-long"}, Smaller, "it reached its number of requests, the length of an answer or that of a conversation",
		"a fresh run in the same folder is told to do the smallest useful part only"},
	{HalfBroken, nil, Fresh, "the run ended with another error, and there is work in the folder",
		"a fresh run goes on in the same folder, with a summary of where things stand"},
	{Broken, nil, Anew, "the run ended with another error, and nothing was changed",
		"a fresh run begins as if there had been none"},
	{Empty, nil, Break, "6 runs of an agent in a row changed no file and finished no step",
		"the agent is paused and a person is told; `resume <id> <agent>` lifts it"},
	{Crashing, nil, Break, "5 ticks of an agent in 15 minutes crashed or ended badly; 30 quiet minutes forget them",
		"the agent is paused and a person is told; `resume <id> <agent>` lifts it"},
	{Blocked, nil, Block, "the agent answered `BLOCKED:` and why",
		"the step waits for a person: an entry in `TODO-human.md`, one blocker; `resume <id>` tries again"},
	{Exhausted, nil, Block, "a step was helped on 3 times and its run failed again",
		"the step waits for a person: an entry in `TODO-human.md`, one blocker; `resume <id>` tries again"},
}

// Find is the row of a fault.
func Find(f Fault) Row {
	for _, r := range Table {
		if r.Fault == f {
			return r
		}
	}
	return Row{}
}

// Of is the fault of a run that failed: by the class of its result, and by whether there is work in its folder.
func Of(class string, work bool) Fault {
	for _, r := range Table {
		if slices.Contains(r.Classes, class) {
			return r.Fault
		}
	}
	if work {
		return HalfBroken
	}
	return Broken
}

// Decide is what is done about a fault of a step that was helped on so often already.
func Decide(f Fault, tries int) (Fault, Row) {
	if r := Find(f); r.Action == Break || r.Action == Block {
		return f, r
	}
	if tries >= MaxTries {
		f = Exhausted
	}
	return f, Find(f)
}

// SaysBlocked says whether an answer means that the step is not possible.
func SaysBlocked(answer string) bool { return strings.HasPrefix(strings.TrimSpace(answer), "BLOCKED:") }

// Asks says whether an answer is a question to a person.
func Asks(answer string) bool { return strings.HasPrefix(strings.TrimSpace(answer), "QUESTION:") }

// Excused says whether an answer is none to the step, so that nothing is asked of it.
func Excused(answer string) bool { return SaysBlocked(answer) || Asks(answer) }
