package mission

import (
	"strings"
	"testing"
)

func TestParseFromRepo(t *testing.T) {
	for _, c := range []struct {
		typed []string
		want  string
		bad   bool
	}{
		{nil, "", false},
		{[]string{"none"}, "", false},
		{[]string{"mcp,claude-md"}, "claude-md mcp", false},
		{[]string{"hooks", "settings, hooks"}, "settings hooks", false},
		{[]string{"all"}, "", true},
		{[]string{""}, "", true},
		{[]string{"hooks,"}, "", true},
		{[]string{"none,hooks"}, "", true},
		{[]string{"CLAUDE-MD"}, "", true},
	} {
		got, err := ParseFromRepo(c.typed)
		if strings.Join(got, " ") != c.want || (err != nil) != c.bad {
			t.Errorf("ParseFromRepo(%q) = %q, %v", c.typed, got, err)
		}
	}
}
