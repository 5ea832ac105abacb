package usage

import (
	"fmt"
	"strings"
	"testing"

	"example.com/AutoAgentProject/core/money"
)

func out(session, version string, totals ...string) string {
	var b strings.Builder
	if version != "" {
		fmt.Fprintf(&b, "{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":%q,\"claude_code_version\":%q}\n", session, version)
	}
	for _, total := range totals {
		if total != "" {
			total = `,"total_cost_usd":` + total
		}
		fmt.Fprintf(&b, "{\"type\":\"result\",\"subtype\":\"success\",\"session_id\":%q%s}\n", session, total)
	}
	return b.String()
}

// TestTotalsOfResults: running totals of a process, and totals that a resumed session begins with or not.
func TestTotalsOfResults(t *testing.T) {
	sessions, sum := money.Sessions(nil), money.Nano(0)
	for i, c := range []struct {
		out   string
		known bool
		cost  money.Nano
	}{
		{out("a", "2.1.301", "0.5"), true, 500_000_000},
		{out("a", "2.1.301", "0.53"), true, 30_000_000},         // resumed: goes on from 0.5
		{out("b", "2.1.276", "0.2"), true, 200_000_000},         // before the change
		{out("b", "2.1.276", "0.04"), true, 40_000_000},         // resumed: began at 0
		{out("b", "2.1.276", "0.3"), true, 300_000_000},         // also where it is more than before
		{out("c", "2.1.277", "0.1", "0.35"), true, 350_000_000}, // two results of one process
		{out("c", "2.1.277", "0.05"), true, 50_000_000},         // less than before: it began anew
		{out("d", "", "0"), true, 0},                            // a start that failed
		{out("a", "", "0.6"), true, 600_000_000},                // which version is not known
		{out("e", "2.1.301 (Claude Code)", "0.1"), true, 100_000_000},
		{out("f", "2.1.301", ""), false, 0},
		{out("f", "2.1.301", "null"), false, 0},
		{out("f", "2.1.301", `"0.2"`), false, 0},
		{out("f", "2.1.301", "-0.2"), false, 0},
		{out("f", "2.1.301", "1e300"), false, 0},
		{out("f", "2.1.301", "0.2", "null"), false, 0}, // the last one counts, and it says nothing
		{"", false, 0},
	} {
		r, err := ReadResult(strings.NewReader(c.out), int64(len(c.out)))
		if err != nil || r.Known != c.known {
			t.Errorf("run %d: %+v, %v", i, r, err)
			continue
		}
		if !r.Known {
			continue
		}
		var cost money.Nano
		if sessions, cost = sessions.Charge(r.Session, r.Version, r.Total); cost != c.cost {
			t.Errorf("run %d costs %d, want %d", i, cost, c.cost)
		}
		sum += cost
	}
	if sum != 2_170_000_000 {
		t.Errorf("together %d", sum)
	}
}
