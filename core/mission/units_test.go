package mission

import (
	"slices"
	"strings"
	"testing"
)

func roster(t *testing.T, s string, professions ...string) []Agent {
	t.Helper()
	r, err := ParseRoster(s, professions)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestCollision: x with an agent site-codebuilder-1 renders the same unit as x-site with codebuilder-1.
func TestCollision(t *testing.T) {
	all := []string{"codebuilder", "site-codebuilder", "manager"}
	code, site := roster(t, "codebuilder", all...), roster(t, "site-codebuilder", all...)
	if c := Collision("x", site, "x-site", code); c != "forge-autoagent-x-site-codebuilder-1.service" {
		t.Errorf("%q", c)
	}
	if c := Collision("x-site", code, "x", site); c == "" {
		t.Error("the other way round it is none")
	}
	if c := Collision("x", code, "x", code); c == "" {
		t.Error("the same mission twice is none")
	}
	for _, c := range [][2]string{{"my", "my-site"}, {"x", "x-stop"}, {"x", "x-manager"}, {"x", "xx"}, {"stop", "x-stop"}} {
		if n := Collision(c[0], code, c[1], code); n != "" {
			t.Errorf("%s and %s meet in %s", c[0], c[1], n)
		}
	}
}

// TestUnitNames: systemd's rules for names, none twice, and no name that the host's own units have.
func TestUnitNames(t *testing.T) {
	for _, id := range []string{"x", "bridge", "reconcile", "my-site", "a" + strings.Repeat("-b", 19)} {
		names := UnitNames(id, roster(t, "codebuilder:12,designer:8", "codebuilder", "designer"))
		if want := 5 + 3*23; len(names) != want {
			t.Errorf("%s: %d names, want %d", id, len(names), want)
		}
		for i, n := range names {
			if len(n) > 255 || strings.Trim(n, `abcdefghijklmnopqrstuvwxyz0123456789-.\`) != "" {
				t.Errorf("%s is no name of a unit", n)
			}
			if slices.Contains(names[:i], n) {
				t.Errorf("%s stands twice", n)
			}
			for _, host := range []string{"bridge.socket", "bridge.service", "reconcile.service", "reconcile.timer"} {
				if n == "forge-autoagent-"+host {
					t.Errorf("%s of %s belongs to the host", n, id)
				}
			}
		}
	}
}

// parents are the slices that systemd puts a slice into, by the dashes in its name.
func parents(slice string) []string {
	var out []string
	name := strings.TrimSuffix(slice, ".slice")
	for i := strings.LastIndexByte(name, '-'); i > 0; i = strings.LastIndexByte(name[:i], '-') {
		out = append(out, name[:i]+".slice")
	}
	return out
}

func TestSlicesDoNotNest(t *testing.T) {
	if got := Slice("my-site"); got != `forge-autoagent-my\x2dsite.slice` {
		t.Error(got)
	}
	var all []string
	for _, id := range []string{"my", "my-site", "my-site-2", "mysite", "site"} {
		all = append(all, Slice(id), GuardSlice(id))
	}
	for i, a := range all {
		if slices.Contains(all[:i], a) {
			t.Errorf("%s belongs to two", a)
		}
		for _, b := range all {
			if slices.Contains(parents(b), a) {
				t.Errorf("stopping %s stops %s", a, b)
			}
		}
	}
	if !slices.Contains(parents("a-b-c.slice"), "a-b.slice") {
		t.Error("this test could not fail")
	}
}
