package mission

import (
	"slices"
	"strings"
	"testing"

	"example.com/AutoAgentProject/core/usererr"
)

var known = []string{"manager", "codebuilder", "designer", "code-builder", "tester", strings.Repeat("p", 37)}

func names(roster []Agent) string {
	var out []string
	for _, a := range roster {
		out = append(out, a.Name)
	}
	return strings.Join(out, " ")
}

func TestParseRoster(t *testing.T) {
	for in, want := range map[string]string{
		"codebuilder":                 "codebuilder-1",
		"codebuilder:1":               "codebuilder-1",
		"codebuilder:2,designer:1":    "codebuilder-1 codebuilder-2 designer-1",
		"designer:1,codebuilder:2":    "designer-1 codebuilder-1 codebuilder-2",
		" codebuilder:2 , designer:1": "codebuilder-1 codebuilder-2 designer-1",
		"code-builder:2":              "code-builder-1 code-builder-2",
	} {
		roster, err := ParseRoster(in, known)
		if err != nil || names(roster) != "manager "+want+" reporter quota" {
			t.Errorf("%q: %s, %v", in, names(roster), err)
			continue
		}
		for _, a := range roster {
			if err := CheckAgent(a.Name); err != nil {
				t.Errorf("%q: %v", in, err)
			}
			want := map[string]Role{"manager": Manager, "reporter": Reporter, "quota": Quota}[a.Name]
			if want == "" {
				want = Specialist
			}
			if a.Role != want || (a.Profession == "") != (want == Reporter || want == Quota) {
				t.Errorf("%q: %+v", in, a)
			}
		}
		if got := Specialists(roster); len(got) != len(roster)-3 || slices.ContainsFunc(got, func(a Agent) bool { return a.Role != Specialist }) {
			t.Errorf("%q: specialists %v", in, got)
		}
	}
}

func TestParseRosterRefuses(t *testing.T) {
	for in, say := range map[string]string{
		"":                                 "empty",
		" ":                                "empty",
		",":                                "empty",
		"codebuilder:1,":                   "empty",
		"codebuilder:1,,designer:1":        "empty",
		"codebuilder:0":                    "0 agents",
		"codebuilder:1000":                 "1000 agents",
		"codebuilder:13":                   "13 agents",
		"codebuilder:-1":                   "-1 agents",
		"codebuilder:01":                   "count",
		"codebuilder:+1":                   "count",
		"codebuilder:":                     "count",
		"codebuilder:x":                    "count",
		"codebuilder:1.5":                  "count",
		"codebuilder:1e3":                  "count",
		"codebuilder: 1":                   "count",
		"codebuilder:1:2":                  "count",
		"codebuilder:\u0661":               "count",
		"codebuilder:\u0967":               "count",
		"codebuilder:99999999999999999999": "count",
		":2":                               "no profession",
		"codebuilder:1,codebuilder:1":      "twice",
		"codebuilder,designer,codebuilder": "twice",
		"manager":                          "one manager",
		"manager:2":                        "one manager",
		"reporter:1":                       "no profession",
		"quota:1":                          "no profession",
		"nosuch:1":                         "no profession",
		"Codebuilder:1":                    "no profession",
		"c\u043edebuilder:1":               "no profession",
		"codebuilder 1":                    "no profession",
		"codebuilder:12,designer:12":       "too many",
	} {
		roster, err := ParseRoster(in, known)
		if usererr.CodeOf(err) != usererr.Usage || !strings.Contains(err.Error(), say) || roster != nil {
			t.Errorf("%q: %v, %v; want %q", in, names(roster), err, say)
		}
	}
	if _, err := ParseRoster("codebuilder:12,designer:8", known); err != nil {
		t.Errorf("%d specialists: %v", MaxSpecialists, err)
	}
}

// TestLongestNames: whatever profession exists, its agents' names pass the check that every tick makes.
func TestLongestNames(t *testing.T) {
	roster, err := ParseRoster(strings.Repeat("p", 37)+":12", known)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range roster {
		if err := CheckAgent(a.Name); err != nil {
			t.Error(err)
		}
	}
}

func TestDisplay(t *testing.T) {
	for _, c := range []struct{ name, title, want string }{
		{"manager", "", "AutoAgent-Manager"},
		{"manager", "Manager", "AutoAgent-Manager"},
		{"codebuilder-1", "CodeBuilder", "AutoAgent-CodeBuilder-1"},
		{"codebuilder-12", "CodeBuilder", "AutoAgent-CodeBuilder-12"},
		{"codebuilder-1", "", "AutoAgent-Codebuilder-1"},
		{"code-builder-2", "CodeBuilder", "AutoAgent-CodeBuilder-2"},
		{"code-builder-2", "", "AutoAgent-Code-builder-2"},
		{"reporter", "", "AutoAgent-Reporter"},
	} {
		if got := (Agent{Name: c.name}).Display(c.title); got != c.want {
			t.Errorf("%s, %q: %s, want %s", c.name, c.title, got, c.want)
		}
	}
}
