package profession

import (
	"strings"
	"testing"
)

func TestMayChange(t *testing.T) {
	for _, c := range []struct {
		owns string
		yes  string
		no   string
	}{
		{"review/**", "review/a.md review/x/y/z", "review reviews/a a/review/b Review/a"},
		{"**/*.css", "a.css x/a.css x/y/a.css .css", "a.scss a.css/b x/a.css.bak"},
		{"**/tests/**", "tests/a x/tests/a x/y/tests/z/a", "tests x/tests atests/a"},
		{"*.md", "a.md .md", "x/a.md a.mdx"},
		{"a/**/b", "a/b a/x/b a/x/y/b", "a/x/b/c ab a/xb"},
		{"**", "a x/y/z .env", ""},
		{"**/**/a", "a x/a x/y/a", "x/y"},
		{"a/*/c", "a/b/c", "a/c a/b/b/c"},
		{"docs/[a-m]?.txt", "docs/ab.txt", "docs/zb.txt docs/a.txt"},
		{"**/a/**/a/**/b", "a/a/b x/a/y/a/z/b", "a/b x/a/b"},
	} {
		if err := CheckGlob(c.owns); err != nil {
			t.Errorf("%s: %v", c.owns, err)
		}
		p := Profession{Writes: true, Owns: []string{"never", c.owns}}
		for f := range strings.FieldsSeq(c.yes) {
			if !p.MayChange(f) {
				t.Errorf("%s does not own %s", c.owns, f)
			}
		}
		for f := range strings.FieldsSeq(c.no) {
			if p.MayChange(f) {
				t.Errorf("%s owns %s", c.owns, f)
			}
		}
	}
}

func TestMayChangeKeepsInside(t *testing.T) {
	everything := Profession{Writes: true}
	if !everything.MayChange("a/b") || !everything.MayChange(" odd !name") {
		t.Error("who writes and names no files owns all")
	}
	for _, f := range []string{"", ".", "..", "/etc/passwd", "../x", "a/../../x", "a//b", "a/", "./a"} {
		if everything.MayChange(f) {
			t.Errorf("%q may be changed", f)
		}
	}
	if (Profession{Tools: []string{"Bash"}}).MayChange("a") {
		t.Error("without an editing tool nothing may be changed")
	}
}

func TestMatchGlobDoesNotExplode(t *testing.T) {
	glob := strings.Repeat("**/a/", 60) + "b"
	if matchGlob(glob, strings.Repeat("a/", 2000)+"c") {
		t.Error("matched")
	}
}
