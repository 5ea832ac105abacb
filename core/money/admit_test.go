package money

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
)

func TestDecide(t *testing.T) {
	for _, c := range []struct {
		name  string
		f     Facts
		limit int64
		d     Decision
	}{
		{"alone: all that is free", Facts{Budget: 1000, MinRun: 50, AgentsDue: 1}, 1000, Admit},
		{"shared among those that want to run", Facts{Budget: 1000, MinRun: 50, AgentsDue: 4}, 250, Admit},
		{"the step's limit is smaller", Facts{Budget: 1000, StepLimit: 100, MinRun: 50, AgentsDue: 4}, 100, Admit},
		{"the share is smaller", Facts{Budget: 1000, StepLimit: 900, MinRun: 50, AgentsDue: 4}, 250, Admit},
		{"at least the smallest run", Facts{Budget: 1000, Used: 900, MinRun: 50, AgentsDue: 4}, 50, Admit},
		{"the step's limit holds below the smallest run", Facts{Budget: 1000, StepLimit: 20, MinRun: 50, AgentsDue: 1}, 20, Admit},
		{"exactly the smallest run is free", Facts{Budget: 1000, Used: 900, Reserved: 50, MinRun: 50, AgentsDue: 1}, 50, Admit},
		{"too little is free, others may give back", Facts{Budget: 1000, Used: 900, Reserved: 51, MinRun: 50, AgentsDue: 1}, 0, Wait},
		{"too little is free and nobody gives back", Facts{Budget: 1000, Used: 951, MinRun: 50, AgentsDue: 1}, 0, Exhausted},
		{"overspent", Facts{Budget: 1000, Used: 1200, MinRun: 50, AgentsDue: 1}, 0, Exhausted},
		{"no budget is not an endless one", Facts{MinRun: 50, AgentsDue: 1}, 0, Exhausted},
		{"a negative budget is not an endless one", Facts{Budget: math.MinInt64, MinRun: 50, AgentsDue: 1}, 0, Exhausted},
		{"the step has nothing left", Facts{Budget: 1000, StepLimit: -1, MinRun: 50, AgentsDue: 1}, 0, StepSpent},
		{"never a cap of 0", Facts{Budget: 3, AgentsDue: 9}, 1, Admit},
		{"agents not counted", Facts{Budget: 1000, AgentsDue: 0}, 1000, Admit},
		{"sums that do not fit", Facts{Budget: math.MaxInt64, Used: math.MaxInt64, Reserved: math.MaxInt64, MinRun: 1, AgentsDue: 1}, 0, Wait},
	} {
		if limit, d := Decide(c.f); limit != c.limit || d != c.d {
			t.Errorf("%s: Decide(%+v) = %d, %s; want %d, %s", c.name, c.f, limit, d, c.limit, c.d)
		}
	}
}

func TestDecideNeverPassesTheBudget(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	admitted := 0
	for range 100_000 {
		f := Facts{Budget: r.Int64N(1000) - 10, Used: r.Int64N(1000), Reserved: r.Int64N(300), StepLimit: r.Int64N(200) - 20, MinRun: r.Int64N(60) - 5, AgentsDue: r.IntN(5)}
		limit, d := Decide(f)
		if d != Admit {
			if limit != 0 {
				t.Fatalf("%+v: %s with the cap %d", f, d, limit)
			}
			continue
		}
		admitted++
		if limit < 1 || f.Used+f.Reserved+limit > f.Budget || f.StepLimit > 0 && limit > f.StepLimit {
			t.Fatalf("%+v: cap %d", f, limit)
		}
	}
	if admitted < 1000 {
		t.Fatalf("only %d admitted", admitted)
	}
}

func TestThresholds(t *testing.T) {
	var cases struct {
		Budget    int64
		Sequences []struct {
			Used          []int64
			Say           []int
			Percent       []int64
			RemainingLast int64 `json:"remaining_last"`
		}
	}
	data, err := os.ReadFile("testdata/thresholds.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &cases); err != nil || len(cases.Sequences) < 3 {
		t.Fatal(err, len(cases.Sequences))
	}
	for i, s := range cases.Sequences {
		var say []int
		var percent []int64
		said, now := 0, 0
		for _, used := range s.Used {
			now, said = Thresholds(cases.Budget, used, said)
			say = append(say, now)
			percent = append(percent, ShownPercent(cases.Budget, used))
		}
		if !slices.Equal(say, s.Say) || !slices.Equal(percent, s.Percent) {
			t.Errorf("sequence %d: says %v, shows %v; want %v, %v", i, say, percent, s.Say, s.Percent)
		}
		if got := Remaining(cases.Budget, s.Used[len(s.Used)-1]); got != s.RemainingLast {
			t.Errorf("sequence %d: %d remain, want %d", i, got, s.RemainingLast)
		}
	}
}

func TestThresholdsAtTheEdges(t *testing.T) {
	for _, c := range []struct {
		budget, used    int64
		said            int
		say, newSaid    int
		percent, remain int64
	}{
		{math.MaxInt64, math.MaxInt64, 0, 100, 100, 100, 0},
		{math.MaxInt64, math.MaxInt64 - 1, 0, 85, 85, 99, 1},
		{1, math.MaxInt64, 85, 100, 100, math.MaxInt64, 0}, // no percent that would wrap
		{100, 99, 100, 0, 100, 99, 1},                      // stopped stays stopped
		{100, 60, 85, 0, 85, 60, 40},                       // a lower figure says nothing again
		{0, 0, 0, 100, 100, 100, 0},                        // no budget is a used-up one
		{-5, 0, 0, 100, 100, 100, 0},
		{100, -50, 0, 0, 0, 0, 100},
		{3, 2, 0, 0, 0, 66, 1},
	} {
		say, newSaid := Thresholds(c.budget, c.used, c.said)
		if say != c.say || newSaid != c.newSaid || ShownPercent(c.budget, c.used) != c.percent || Remaining(c.budget, c.used) != c.remain {
			t.Errorf("%+v: says %d, %d, shows %d, remain %d", c, say, newSaid, ShownPercent(c.budget, c.used), Remaining(c.budget, c.used))
		}
	}
}
