package units

import (
	"math/rand"
	"slices"
	"strings"
	"testing"

	"example.com/AutoAgentProject/core/mission"
)

// split reads a line as systemd does: words, quotes, backslashes, then the specifier %%.
func split(line string) []string {
	var out []string
	var b strings.Builder
	quote, began := byte(0), false
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case c == '\\' && i+1 < len(line):
			i++
			b.WriteByte(line[i])
			began = true
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '"' || c == '\''):
			quote, began = c, true
		case quote == 0 && c == ' ':
			if began {
				out = append(out, b.String())
			}
			b.Reset()
			began = false
		default:
			b.WriteByte(c)
			began = true
		}
	}
	if began {
		out = append(out, b.String())
	}
	for i := range out {
		out[i] = strings.ReplaceAll(out[i], "%%", "%")
	}
	return out
}

// TestEscape: what systemd reads is what was meant, whatever a path holds.
func TestEscape(t *testing.T) {
	if got := split(`a "b \"c\" \\" 'd e' 50%%`); !slices.Equal(got, []string{"a", `b "c" \`, "d e", "50%"}) {
		t.Fatalf("this test could not fail: %q", got)
	}
	r := rand.New(rand.NewSource(2))
	letters := []rune(` %$"'\/abné☃;#=:{}*~-`)
	for range 2000 {
		var names []string
		for range 1 + r.Intn(3) {
			var b strings.Builder
			for range 1 + r.Intn(6) {
				b.WriteRune(letters[r.Intn(len(letters))])
			}
			names = append(names, b.String())
		}
		var line []string
		for _, n := range names {
			line = append(line, word(n))
		}
		if got := split(strings.Join(line, " ")); !slices.Equal(got, names) {
			t.Fatalf("%q was read as %q", names, got)
		}
		got, err := raw(names[0])
		if lost := strings.TrimSpace(names[0]) != names[0] || strings.HasSuffix(names[0], `\`); lost != (err != nil) || !lost && strings.ReplaceAll(got, "%%", "%") != names[0] {
			t.Fatalf("%q became %q, %v", names[0], got, err)
		}
	}
}

// TestSlicesDoNotNest: ending the slice of my ends nothing of my-site.
func TestSlicesDoNotNest(t *testing.T) {
	slice := func(id, agent string) string {
		text := find(t, render(t, sample(t, id, "codebuilder"), userSettings()), "forge-autoagent-"+id+"-"+agent+".service")
		return lines(text, "Slice")[0]
	}
	seen := map[string]bool{}
	for _, id := range []string{"my", "my-site", "my-site-2"} {
		for _, agent := range []string{"manager", "quota"} {
			s := slice(id, agent)
			if seen[s] {
				t.Errorf("%s is shared", s)
			}
			seen[s] = true
		}
	}
	for a := range seen {
		for b := range seen {
			if a != b && strings.HasPrefix(b, strings.TrimSuffix(a, "slice")[:len(a)-len(".slice")]+"-") {
				t.Errorf("%s contains %s", a, b)
			}
		}
	}
	if s := mission.Slice("my-site"); !seen[s] {
		t.Errorf("nobody is in %s", s)
	}
}
