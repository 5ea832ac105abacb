package app

import (
	"testing"

	"example.com/AutoAgentProject/core/systemdengine"
)

// TestRepairText: each line says whose repair it is and what came of it.
func TestRepairText(t *testing.T) {
	for want, i := range map[string]systemdengine.Item{
		"mission x: put back":                                    {Mission: "x", Root: "/r", Outcome: systemdengine.Done, Text: "put back"},
		"mission x below /q: nothing was touched: no answer":     {Mission: "x", Root: "/q", Outcome: systemdengine.Unknown, Text: "no answer"},
		"mission x: not mended: refused":                         {Mission: "x", Outcome: systemdengine.Failed, Text: "refused"},
		"root /q: nothing was touched: cannot be read":           {Root: "/q", Outcome: systemdengine.Unknown, Text: "cannot be read"},
		"host: nothing was touched: the manager does not answer": {Outcome: systemdengine.Unknown, Text: "the manager does not answer"},
	} {
		if got := repairText(i, "/r"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
