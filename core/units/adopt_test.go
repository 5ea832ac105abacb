package units

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// TestAdopt: a unit that is rendered from what the others say is the one that was there.
func TestAdopt(t *testing.T) {
	odd := func(s Settings) Settings {
		s.Root, s.Home, s.Path = `/srv/my  %h "q" é`, `/home/50%% \x`, "/usr/bin:/opt/a b%"
		s.Env = map[string]string{"AUTOAGENT_CONFIG": `/x y/%h"`}
		s.Bin, s.TickEvery = "/opt/my %h $HOME", 7*time.Second
		return s
	}
	for name, s := range map[string]Settings{"user": userSettings(), "system": systemSettings(), "odd user": odd(userSettings()), "odd system": odd(systemSettings())} {
		want := render(t, sample(t, "my-site", "codebuilder"), s)
		other := Settings{Templates: s.Templates, Manager: s.Manager, Root: s.Root, UnitDir: s.UnitDir, RunWall: s.RunWall,
			Bin: "/elsewhere", Path: "/elsewhere", Home: "/elsewhere", Lang: "xx"}
		if s.Manager == System {
			other.User = "somebody"
		}
		got := Adopt(other, false, find(t, want, "forge-autoagent-my-site-manager.service"), find(t, want, "forge-autoagent-my-site-manager.timer"))
		if again := render(t, sample(t, "my-site", "codebuilder"), got); !reflect.DeepEqual(again, want) {
			for i := range want {
				if string(again[i].Text) != string(want[i].Text) {
					t.Errorf("%s: %s is\n%s\nand was\n%s", name, want[i].Name, again[i].Text, want[i].Text)
					break
				}
			}
		}
		got = Adopt(other, true, find(t, want, "forge-autoagent-my-site-quota.service"), find(t, want, "forge-autoagent-my-site-quota.timer"))
		if got.Memory != 0 || got.Tasks != 0 || got.CPUWeight != 0 || got.TickEvery != 0 || got.Home != s.Home || got.User != s.User {
			t.Errorf("%s: from the guard: %+v", name, got)
		}
		for _, f := range want {
			root, id, ok := Owner(string(f.Text))
			service := f.Name[len(f.Name)-8:] == ".service" && f.Name != Reconcile+".service"
			if ok != service || ok && (root != s.Root || id != "my-site") {
				t.Errorf("%s: %s belongs to %q below %q, %v", name, f.Name, id, root, ok)
			}
			if got := filepath.Dir(Program(string(f.Text))); (got == s.Bin) != strings.HasSuffix(f.Name, ".service") {
				t.Errorf("%s: %s runs a program in %q, not in %s", name, f.Name, got, s.Bin)
			}
		}
	}
	if got := Adopt(userSettings(), false, "", ""); !reflect.DeepEqual(got, userSettings()) {
		t.Errorf("nothing is said, and yet: %+v", got)
	}
}

func FuzzFirst(f *testing.F) {
	f.Add(`a"b\c%d`)
	f.Fuzz(func(t *testing.T, s string) {
		if got := first(":" + word(s) + ` --x "y"`); got != s {
			t.Errorf("%q became %q", s, got)
		}
	})
}
