package money

import "maps"

// State is where a budget stands. It only rises.
type State string

// The states, from below to above.
const (
	StateOK     State = "ok"
	StateWarn70 State = "warn70" // wrap up
	StateWarn80 State = "warn80" // a person should look
	StateWarn85 State = "warn85" // the cheaper model, the smallest context
	StateStop   State = "stop"
)

// stateOf is the state that belongs to the highest threshold reached.
func stateOf(said int) State {
	switch said {
	case 70:
		return StateWarn70
	case 80:
		return StateWarn80
	case 85:
		return StateWarn85
	case 100:
		return StateStop
	}
	return StateOK
}

// Watch is what must be remembered of a budget between two looks at it, in JSON. Its zero value has seen nothing.
type Watch struct {
	Marks map[string]int64 `json:"marks"` // the most that each source ever showed, in the unit of the budget
	Said  int              `json:"said"`  // the highest threshold that was told
}

// Reading is what one look shows: what each source says was used. A source that could not be read is in Unreadable.
// Sources that are not mentioned keep what they had.
type Reading struct {
	Used       map[string]int64
	Unreadable []string
}

// Alert is something wrong with the sources.
type Alert string

// The alerts.
const (
	AlertDown       Alert = "usage went down"  // a source shows less than before: files were removed or another folder was read
	AlertUnreadable Alert = "usage unreadable" // what was used is not known
)

// Standing is what one look comes to.
type Standing struct {
	Used    int64 // the sum of the marks: it never goes down
	State   State
	Say     int   // threshold to tell now, 0 for none: each once, of several the highest
	Alert   Alert // empty for none
	Blocked bool  // no new run may start: the budget is used up, or what was used is not known
	Percent int64 // rounded down, may pass 100
	Left    int64 // never below 0
}

// Look is one look at a budget. It returns what to remember, and never changes what it was given.
func (w Watch) Look(budget int64, r Reading) (Watch, Standing) {
	marks := maps.Clone(w.Marks)
	if marks == nil {
		marks = map[string]int64{}
	}
	var s Standing
	for source, n := range r.Used {
		if n < marks[source] {
			s.Alert = AlertDown
		}
		marks[source] = max(marks[source], n)
	}
	if len(r.Unreadable) > 0 {
		s.Alert = AlertUnreadable
	}
	for _, n := range marks {
		s.Used = Sum(s.Used, n)
	}
	next := Watch{Marks: marks}
	s.Say, next.Said = Thresholds(budget, s.Used, w.Said)
	s.State = stateOf(next.Said)
	s.Blocked = len(r.Unreadable) > 0 || s.State == StateStop
	s.Percent, s.Left = ShownPercent(budget, s.Used), Remaining(budget, s.Used)
	return next, s
}
