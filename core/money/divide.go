package money

import (
	"maps"
	"slices"
)

// Divide shares n among names by their weights. The parts add up to n exactly: what rounding leaves goes to the heaviest,
// or to the first by name. Weights below 0 count as 0; without any weight the first by name gets all.
func Divide(n int64, weights map[string]int64) map[string]int64 {
	parts := map[string]int64{}
	names := slices.Sorted(maps.Keys(weights))
	if len(names) == 0 {
		return parts
	}
	var all []int64
	heaviest := names[0]
	for _, name := range names {
		all = append(all, weights[name])
		if weights[name] > weights[heaviest] {
			heaviest = name
		}
	}
	sum, rest := Sum(all...), n
	for _, name := range names {
		if sum > 0 {
			parts[name] = min(mulDiv(n, weights[name], sum, false), rest)
		} else {
			parts[name] = 0
		}
		rest -= parts[name]
	}
	parts[heaviest] += rest
	return parts
}

// Part is a share in hundredths of a percent, rounded down; of nothing it is 0.
func Part(of, whole int64) int64 {
	if whole <= 0 {
		return 0
	}
	return mulDiv(of, 10_000, whole, false)
}
