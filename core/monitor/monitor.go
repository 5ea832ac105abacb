// Package monitor decides, while a run goes on, whether it still gets anywhere, and at its end what it left undone. Pure:
// what the run shows, what was found beside it and the time come in, a verdict comes out.
//
// Words are no progress and neither is a heartbeat. Progress is what outlives the run: files that changed, commits, messages,
// the state of the plan; and a child of the program that computes, for a compiler says nothing for an hour.
package monitor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"example.com/AutoAgentProject/core/runner"
)

// Limits are what a run may take. Times are of a clock that stands still while the machine sleeps.
type Limits struct {
	Silence  time.Duration // no event, no change and no busy child for so long; 0: not looked at
	Stuck    time.Duration // events, but no progress for so long; 0: not looked at
	Wall     time.Duration // from the run's start; 0: not looked at
	Start    time.Duration // the program has so long to show anything at all before silence and standing still begin
	Loop     int           // how often the same tool with the same input, nothing having changed; 0: not looked at
	Required []string      // tools that must have been called before its answer counts
	// Reads says that a call it did not make before is progress: who changes no files has nothing else to show.
	Reads bool
}

// Facts are what was found beside the stream. The texts are digests: only whether they change counts.
type Facts struct {
	Files    string        // what lies in the agent's folder
	Commits  string        // where the branches of its clone are
	Messages string        // drafts, documents, envelopes
	Plan     string        // the steps and their states
	CPU      time.Duration // processor time of all that the program started, its own left out; grows
	// Unknown says that it could not be looked at. That is no sign of death: the time up to then does not count.
	Unknown bool
}

// Busy is the share of one processor from which on the children of a program count as at work. A compiler has more even on a
// crowded machine; a process that sleeps and looks at the clock has less.
const Busy = 0.03

// leastWork is less than the clock of processor times can be wrong by when something ran for a moment.
const leastWork = 30 * time.Millisecond

// window is the time over which the work of children is measured.
func (m *Monitor) window() time.Duration {
	return min(max(m.limits.Silence/4, time.Second), 30*time.Second)
}

// gap is how long a watcher is not away by itself: after more the machine slept, or stood still, and so did the run.
const gap = time.Minute

// Verdict says why a run is to be ended; an empty class: it goes on. The classes are those of runner.Result.
type Verdict struct{ Class, Reason string }

// The classes.
const (
	Silent = "silence"
	Stuck  = "stuck"
	Loop   = "loop"
	Wall   = "wall"
)

// Monitor is one run as it is seen. Times are durations since the run's start.
type Monitor struct {
	limits Limits

	looked   time.Duration // last look
	facts    Facts         // of the last look that saw something
	seen     bool          // there was one
	begun    bool          // there was an event
	work     time.Duration // processor time of the children at workAt
	workAt   time.Duration
	life     time.Duration // last sign of life
	progress time.Duration // last progress

	calls  map[call]int  // since files, commits, messages or the plan changed
	loop   *call         // the first that was made too often since then; nil: none
	loopAt time.Duration // when it became that
	met    map[call]bool // calls it ever made
	tools  []string      // tools it called, each once
}

type call struct{ tool, input string }

// most and mostTools are how many calls and tools are remembered apart: a program gone wild names ever new ones.
const (
	most      = 10_000
	mostTools = 500
)

// New begins to watch a run.
func New(l Limits) *Monitor {
	return &Monitor{limits: l, calls: map[call]int{}, met: map[call]bool{}}
}

// Event takes note of what the run shows.
func (m *Monitor) Event(at time.Duration, e runner.Event) {
	m.life = max(m.life, at)
	if !m.begun {
		m.begun, m.progress = true, max(m.progress, at)
	}
	if e.Kind != "tool" {
		return
	}
	if !slices.Contains(m.tools, e.Tool) && len(m.tools) < mostTools {
		m.tools = append(m.tools, e.Tool)
	}
	c := call{e.Tool, e.Input}
	if len(m.met) < most && !m.met[c] {
		m.met[c] = true
		if m.limits.Reads {
			m.progress = max(m.progress, at)
		}
	}
	if len(m.calls) >= most {
		clear(m.calls)
	}
	if m.calls[c]++; m.calls[c] == m.limits.Loop && m.loop == nil {
		m.loop, m.loopAt = &c, at
	}
}

// Look takes note of what was found beside the stream.
func (m *Monitor) Look(at time.Duration, f Facts) {
	away := at - m.looked
	if away > gap { // nobody looked, and most likely nobody ran
		m.life, m.progress = m.life+away, m.progress+away
	}
	if !m.begun && at <= m.limits.Start {
		m.life, m.progress = max(m.life, at), max(m.progress, at)
	}
	before := m.facts
	m.looked = max(m.looked, at)
	if f.Unknown {
		m.life, m.progress = max(m.life, at), max(m.progress, at)
		return
	}
	first := !m.seen
	m.facts, m.seen = f, true
	if first {
		m.work, m.workAt = f.CPU, at
		return
	}
	if f.Files != before.Files || f.Commits != before.Commits || f.Messages != before.Messages || f.Plan != before.Plan {
		m.life, m.progress = max(m.life, at), max(m.progress, at)
		clear(m.calls)
		m.loop = nil
		return
	}
	if since := at - m.workAt; since >= m.window() {
		if used := f.CPU - m.work; used >= leastWork && float64(used) >= Busy*float64(since) {
			m.life, m.progress = max(m.life, at), max(m.progress, at)
		}
		m.work, m.workAt = f.CPU, at
	}
}

// Judge says whether the run is to be ended. Silence, standing still and a loop are seen only by looking: before the first look,
// and after the last one, nothing is known of them.
func (m *Monitor) Judge(at time.Duration) Verdict {
	l := m.limits
	switch {
	case l.Wall > 0 && at >= l.Wall:
		return Verdict{Wall, fmt.Sprintf("the run took longer than %v", l.Wall)}
	case !m.seen:
		return Verdict{}
	case l.Silence > 0 && m.looked-m.life >= l.Silence:
		return Verdict{Silent, fmt.Sprintf("no sign of life for %v, and nothing it started is at work", l.Silence)}
	case m.loop != nil && m.looked > m.loopAt:
		return Verdict{Loop, fmt.Sprintf("it called %s %d times with the same input, and nothing changed", m.loop.tool, m.calls[*m.loop])}
	case l.Stuck > 0 && m.looked-m.progress >= l.Stuck:
		return Verdict{Stuck, fmt.Sprintf("no file, commit or message changed for %v, and nothing it started is at work", l.Stuck)}
	}
	return Verdict{}
}

// Missing are the required tools that were not called, in the order in which they are required.
func (m *Monitor) Missing() []string {
	var out []string
	for _, t := range m.limits.Required {
		if !slices.Contains(m.tools, t) {
			out = append(out, t)
		}
	}
	return out
}

// Ask is the further message to a run that answered without having called what it must.
func Ask(missing []string, state string) string {
	which := "the tool " + missing[0]
	if len(missing) > 1 {
		which = "the tools " + strings.Join(missing, ", ")
	}
	return fmt.Sprintf("You must call %s before you finish. Do it now, then answer again.\n\nWhere things stand: %s\n", which, state)
}
