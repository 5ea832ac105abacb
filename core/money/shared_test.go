package money

import (
	"maps"
	"math"
	"testing"
)

func TestDivide(t *testing.T) {
	for _, c := range []struct {
		n       int64
		weights map[string]int64
		want    map[string]int64
	}{
		{10, map[string]int64{"a": 1, "b": 1}, map[string]int64{"a": 5, "b": 5}},
		{10, map[string]int64{"a": 1, "b": 1, "c": 1}, map[string]int64{"a": 4, "b": 3, "c": 3}},
		{10, map[string]int64{"a": 1, "b": 5, "c": 1}, map[string]int64{"a": 1, "b": 8, "c": 1}},
		{10, map[string]int64{"a": 0, "b": 0}, map[string]int64{"a": 10, "b": 0}},
		{10, map[string]int64{"a": -5, "b": 1}, map[string]int64{"a": 0, "b": 10}},
		{10, nil, map[string]int64{}},
		{math.MaxInt64, map[string]int64{"a": math.MaxInt64, "b": math.MaxInt64}, nil},
	} {
		got := Divide(c.n, c.weights)
		sum := int64(0)
		for name, n := range got {
			if sum += n; n < 0 {
				t.Errorf("%v: %s gets %d", c, name, n)
			}
		}
		if c.want != nil && !maps.Equal(got, c.want) || len(got) > 0 && sum != c.n {
			t.Errorf("Divide(%d, %v) = %v, want %v", c.n, c.weights, got, c.want)
		}
	}
}

func TestSharedContext(t *testing.T) {
	for _, c := range []struct {
		runs []Stay
		want Nano
	}{
		{nil, 0},
		{[]Stay{{100, 9, 2}}, 0}, // nothing came before it
		{[]Stay{{100, 9, 2}, {10, 3, 2}}, 3 * 100 * 2},                  // each request reads what came before
		{[]Stay{{100, 9, 2}, {10, 3, 2}, {7, 0, 5}}, 600 + 110*5},       // requests that are not recorded count as one
		{[]Stay{{math.MaxInt64, 1, 1}, {1, 2, 5}}, Nano(math.MaxInt64)}, // too much to count
	} {
		if got := SharedContext(c.runs); got != c.want {
			t.Errorf("SharedContext(%v) = %d, want %d", c.runs, got, c.want)
		}
	}
	if Part(1, 3) != 3333 || Part(5, 0) != 0 || Part(30, 10) != 30_000 {
		t.Error("Part is wrong")
	}
}

// TestList: what people read is what is charged.
func TestList(t *testing.T) {
	table := Default()
	l := table.List()
	if len(l.Models) != len(table.Models()) || l.Checked != "2026-10-24" || l.Unknown.Output != 75_000 {
		t.Errorf("%+v", l)
	}
	for _, m := range l.Models {
		now, _ := table.Rates(m.Model, 1, day("2026-11-02T00:00:00Z"))
		if m.Rates != now {
			t.Errorf("%s: listed %+v, charged %+v", m.Model, m.Rates, now)
		}
		for _, e := range m.Earlier {
			if then, _ := table.Rates(m.Model, 1, day(e.Through+"T12:00:00Z")); then != e.Rates {
				t.Errorf("%s through %s: listed %+v, charged %+v", m.Model, e.Through, e.Rates, then)
			}
		}
		if m.Long != nil {
			if long, _ := table.Rates(m.Model, m.LongOver+1, day("2026-11-02T00:00:00Z")); long != *m.Long {
				t.Errorf("%s with a long prompt: listed %+v, charged %+v", m.Model, *m.Long, long)
			}
		}
	}
}
