package money

// Thresholds says which message about the budget is due: say is 70, 80, 85 or 100, or 0 for none. said is the highest
// one said so far, newSaid what to remember. Each is said once, a jump over several says the highest, and after 100
// nothing more. Whoever raises the budget starts again with said 0. A budget of 0 or less is used up.
func Thresholds(budget, used int64, said int) (say, newSaid int) {
	for _, t := range []int{100, 85, 80, 70} {
		if t <= said {
			break
		}
		if budget <= 0 || reaches(max(used, 0), 100, budget, int64(t)) {
			return t, t
		}
	}
	return 0, said
}

// ShownPercent is how much of the budget is used, in whole percent, rounded down. It may pass 100.
func ShownPercent(budget, used int64) int64 {
	if budget <= 0 {
		return 100
	}
	return mulDiv(used, 100, budget, false)
}

// Remaining is what is left of the budget, never less than 0.
func Remaining(budget, used int64) int64 {
	if budget <= 0 {
		return 0
	}
	return max(budget-max(used, 0), 0)
}
