package mission

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/money"
)

func TestMissionFile(t *testing.T) {
	m := Mission{
		Version: Version, ID: "my-site", CreatedAt: noon, Engine: "embedded",
		Roster: []Agent{{Name: "manager", Role: Manager, Profession: "manager"}, {Name: "quota", Role: Quota}},
		Verify: "make test && echo '<ok>'", From: &Source{Kind: "git", Path: "/src/example", Commit: "abc", Branch: "main"},
		Budget: money.Amount{Unit: money.NanoUSD, N: 1<<62 + 1}, StepLimit: 1<<53 + 1, MaxRun: Duration(4 * time.Hour), Until: noon.Add(time.Hour),
	}
	b, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	var back Mission
	if err := json.Unmarshal(b, &back); err != nil || !reflect.DeepEqual(m, back) {
		t.Errorf("%v: %+v", err, back)
	}
	if s := string(b); !strings.Contains(s, `"max_run":"4h0m0s"`) || !strings.Contains(s, `"until":"2026-03-01T13:00:00Z"`) {
		t.Error(s)
	}
	b, _ = json.Marshal(Mission{ID: "x"})
	if s := string(b); strings.Contains(s, "until") || strings.Contains(s, "max_run") || strings.Contains(s, "from") {
		t.Errorf("what is not limited is written down: %s", s)
	}
	for _, bad := range []string{`{"max_run":"4"}`, `{"max_run":4}`, `{"max_run":""}`, `{"until":"tomorrow"}`} {
		if json.Unmarshal([]byte(bad), &back) == nil {
			t.Errorf("%s is accepted", bad)
		}
	}
}

func TestAgent(t *testing.T) {
	m := Mission{Roster: []Agent{{Name: "manager"}, {Name: "codebuilder-1"}}}
	if a, ok := m.Agent("codebuilder-1"); !ok || a.Name != "codebuilder-1" {
		t.Error(a, ok)
	}
	for _, name := range []string{"", "codebuilder", "codebuilder-10", "Manager"} {
		if a, ok := m.Agent(name); ok {
			t.Errorf("%q is %v", name, a)
		}
	}
}

func TestCauses(t *testing.T) {
	for c, want := range map[Cause]struct {
		final bool
		phase string
	}{
		Completed: {true, "completed"}, FailedEnd: {true, "failed"}, Aborted: {true, "aborted"},
		Budget: {false, "halted: budget"}, Time: {false, "halted: time"}, Damage: {false, "halted: damage"},
		"": {true, "stopped"}, "else": {true, "stopped"},
	} {
		if c.Final() != want.final || c.Phase() != want.phase {
			t.Errorf("%q: %v %q", c, c.Final(), c.Phase())
		}
	}
}
