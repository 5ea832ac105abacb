package money

// Decision is the answer to the question whether a run may start.
type Decision string

// The decisions.
const (
	Admit     Decision = "admit"      // start, with the cap
	Wait      Decision = "wait"       // too little is free, but runs that end may give some back
	Exhausted Decision = "exhausted"  // the budget is used up
	StepSpent Decision = "step-spent" // the step has used up its own limit; the budget has not
)

// Facts are what the decision about a run rests on, all in the unit of the budget.
type Facts struct {
	Budget    int64 // absolute; 0 or less: there is none to spend
	Used      int64 // spent by all runs that ended
	Reserved  int64 // caps of all runs that have not
	StepLimit int64 // the most that this run may take; 0: no limit of its own; below 0: its step has none left
	MinRun    int64 // a run with less is not worth its start
	AgentsDue int   // agents that want to run now, this one included; the free amount is shared among them
}

// Decide says whether a run may start and with which cap: the step's limit or this agent's share of what is free,
// whichever is smaller, but at least MinRun. The step's limit holds even where it is smaller than MinRun.
// Used, reserved and the cap together never exceed the budget. The cap is 0 unless the decision is Admit.
func Decide(f Facts) (limit int64, d Decision) {
	if f.StepLimit < 0 {
		return 0, StepSpent
	}
	free := Remaining(f.Budget, Sum(f.Used, f.Reserved))
	least := max(f.MinRun, 1)
	if f.StepLimit > 0 {
		least = min(least, f.StepLimit)
	}
	if free < least {
		if f.Reserved > 0 {
			return 0, Wait
		}
		return 0, Exhausted
	}
	limit = free / int64(max(f.AgentsDue, 1))
	if f.StepLimit > 0 {
		limit = min(limit, f.StepLimit)
	}
	return max(limit, least), Admit
}
