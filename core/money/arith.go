package money

import (
	"math"
	"math/bits"
)

// Sum adds amounts or counts. A negative one counts as 0, so that no claim can lower a sum, and a sum that does not
// fit stays at the largest number.
func Sum[N ~int64](ns ...N) N {
	var s N
	for _, n := range ns {
		if n <= 0 {
			continue
		}
		if s > math.MaxInt64-n {
			return math.MaxInt64
		}
		s += n
	}
	return s
}

// mulDiv is a*b/c with a product of 128 bits, for a, b ≥ 0 and c > 0. It rounds down, or up if told, and stays at the
// largest number when the quotient does not fit.
func mulDiv(a, b, c int64, up bool) int64 {
	hi, lo := bits.Mul64(uint64(max(a, 0)), uint64(max(b, 0)))
	if hi >= uint64(c) {
		return math.MaxInt64
	}
	q, rest := bits.Div64(hi, lo, uint64(c))
	if q >= math.MaxInt64 {
		return math.MaxInt64
	}
	if up && rest > 0 {
		q++
	}
	return int64(q)
}

// reaches says whether a*b ≥ c*d, exactly, for numbers ≥ 0.
func reaches(a, b, c, d int64) bool {
	h1, l1 := bits.Mul64(uint64(a), uint64(b))
	h2, l2 := bits.Mul64(uint64(c), uint64(d))
	return h1 > h2 || h1 == h2 && l1 >= l2
}
