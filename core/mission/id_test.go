package mission

import (
	"strings"
	"testing"

	"example.com/AutoAgentProject/core/usererr"
)

var goodIDs = []string{"a", "x1", "my-site", "a-b-c", "a-1", "site2", "a" + strings.Repeat("b", 39)}

var badIDs = map[string]string{
	"empty":                  "",
	"dot":                    ".",
	"dots":                   "..",
	"option":                 "-rf",
	"long option":            "--help",
	"slash":                  "a/b",
	"parent":                 "../a",
	"absolute":               "/etc",
	"back slash":             `a\b`,
	"41 characters":          "a" + strings.Repeat("b", 40),
	"300 characters":         strings.Repeat("a", 300),
	"upper case":             "My-site",
	"Cyrillic а":             "\u0430bc",
	"Cyrillic о inside":      "sit\u0435",
	"full width":             "\uff41bc",
	"accent":                 "caf\u00e9",
	"combining accent":       "cafe\u0301",
	"zero width":             "my\u200bsite",
	"two dashes":             "a--b",
	"dash at the end":        "a-",
	"digit first":            "1a",
	"underscore":             "a_b",
	"dot inside":             "a.b",
	"space":                  "a b",
	"space around":           " a",
	"newline at the end":     "a\n",
	"newline inside":         "a\nb",
	"NUL":                    "a\x00",
	"not UTF-8":              "a\xff",
	"percent":                "a%h",
	"dollar":                 "a$x",
	"star":                   "a*",
	"at sign of an instance": "a@b",
}

func TestCheckID(t *testing.T) {
	for _, id := range goodIDs {
		if err := CheckID(id); err != nil {
			t.Errorf("%q: %v", id, err)
		}
	}
	for name, id := range badIDs {
		err := CheckID(id)
		if usererr.CodeOf(err) != usererr.Usage {
			t.Errorf("%s, %q: %v", name, id, err)
		} else if text := err.Error(); len(text) > 200 || strings.ContainsAny(text, "\n\x00") {
			t.Errorf("%s: the sentence is not fit to be shown: %q", name, text)
		}
	}
}

func TestCheckAgent(t *testing.T) {
	for _, name := range append([]string{"manager", "reporter", "quota", "codebuilder-1", "code-builder-12"}, goodIDs...) {
		if err := CheckAgent(name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for name, agent := range badIDs {
		if CheckAgent(agent) == nil {
			t.Errorf("%s, %q: accepted", name, agent)
		}
	}
}
