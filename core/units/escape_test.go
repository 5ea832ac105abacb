package units

import (
	"math/rand"
	"slices"
	"strings"
	"testing"

	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/store"
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

// TestPaths: each line that names a path means that path, whatever it holds, to the rules of its own key.
func TestPaths(t *testing.T) {
	const odd = `my  %h %% $HOME ${x} "q" 'r' \x41 é`
	root, bin, home := "/srv/"+odd, "/opt/my %h $HOME é", "/home/"+odd
	st := store.Root(root).Mission("my-site")
	for _, s := range []Settings{userSettings(), systemSettings()} {
		s.Root, s.Bin, s.Home, s.UnitDir, s.Path = root, bin, home, "/etc/"+odd, "/usr/bin:/opt/"+odd
		s.Env = map[string]string{"AUTOAGENT_CONFIG": home + "/x"}
		whole := func(v string) []string { return []string{strings.ReplaceAll(v, "%%", "%")} }
		means := map[string]func(string) []string{
			"ExecStart": split, "ReadWritePaths": split, "RequiresMountsFor": split, "Environment": split,
			"WorkingDirectory": whole, "ListenDatagram": whole, "ConditionPathIsDirectory": whole,
		}
		known := []string{
			"--root", root, "--mission", "my-site", "--agent", "codebuilder-1", "quota",
			":" + bin + "/autoagent-specialist", ":" + bin + "/autoagent-quota", ":" + bin + "/AutoAgentProject", "stop-mission", "reconcile",
			bin, "-" + st.Dir(), "-" + st.Logs(), "-" + st.Work(), "-" + s.UnitDir, "-/run/forge-autoagent",
			"PATH=" + s.Path, "HOME=" + home, "LANG=" + or(s.Lang, "C.UTF-8"), "AUTOAGENT_CONFIG=" + home + "/x",
			WakeSocket("%t", "my-site", "codebuilder-1"), WakeSocket("%t", "my-site", "quota"), st.Agent("codebuilder-1"), st.Agent("quota"), "%t/forge-autoagent/my-site.stop",
		}
		seen := map[string]bool{}
		for _, f := range render(t, sample(t, "my-site", "codebuilder"), s) {
			if strings.Contains(f.Name, "-manager.") || strings.Contains(f.Name, "-reporter.") {
				continue
			}
			for key, read := range means {
				for _, v := range lines(string(f.Text), key) {
					for _, w := range read(v) {
						seen[w] = true
						if !slices.Contains(known, w) {
							t.Errorf("%s of the %s manager: %s=%s means %q", f.Name, s.Manager, key, v, w)
						}
					}
				}
			}
			plain := strings.NewReplacer("%%", "", "=%t/", "", "=75%\n", "").Replace(string(f.Text))
			if strings.Contains(plain, "%") {
				t.Errorf("%s of the %s manager holds a specifier:\n%s", f.Name, s.Manager, plain)
			}
		}
		for _, w := range known {
			if !seen[w] && (s.Manager == System || !strings.HasPrefix(w, "-/") && w != bin) {
				t.Errorf("no unit of the %s manager names %q", s.Manager, w)
			}
		}
	}
}
