package profession

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"example.com/AutoAgentProject/core/usererr"
)

// FuzzParse holds for any bytes: no panic, an error names file and line in one line, and what is accepted can be used.
func FuzzParse(f *testing.F) {
	for _, pattern := range []string{"testdata/*.md", "../../prompts/professions/*.md"} {
		names, err := filepath.Glob(pattern)
		if err != nil || len(names) == 0 {
			f.Fatalf("no seeds in %s: %v", pattern, err)
		}
		for _, n := range names {
			data, err := os.ReadFile(n)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data)
		}
	}
	f.Add([]byte(ours))
	f.Add([]byte("---\nname: a\ndescription: b: [c\ntools: {Read: &x [*x]}\n---\nx"))
	clean := regexp.MustCompile(`^f\.md:[1-9][0-9]*: [^\n\x00-\x1f]+$`)
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := Parse("f.md", data)
		if err != nil {
			if usererr.CodeOf(err) != usererr.Usage || !clean.MatchString(err.Error()) {
				t.Fatalf("error %q", err)
			}
			return
		}
		if checkName(p.Name) != nil || !displayPattern.MatchString(p.Display) || p.Description == "" || p.Body == "" {
			t.Fatalf("accepted %+v", p)
		}
		for _, tool := range p.Tools {
			if !slices.Contains(KnownTools(), tool) {
				t.Fatalf("offers %q", tool)
			}
		}
		if p.MaxTurns < 0 || p.MaxTurns > MaxTurns || p.Wall < 0 || p.Silence < 0 {
			t.Fatalf("limits %+v", p)
		}
		for _, glob := range p.Owns {
			matchGlob(glob, "a/b/c")
		}
		if p.SystemPrompt() != p.Body+"\n" {
			t.Fatal("the system prompt is not the body")
		}
	})
}

// FuzzCheckSoul holds for any bytes: no panic, an error names file and line in one line, and a good soul has all its sections.
func FuzzCheckSoul(f *testing.F) {
	f.Add([]byte(goodSoul))
	f.Add([]byte("## Core Values\n## Core Values\n"))
	told := regexp.MustCompile(`^s\.md:[0-9]+: [^\n\x00-\x1f]+$`)
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := CheckSoul("s.md", data); err != nil {
			if usererr.CodeOf(err) != usererr.Usage || !told.MatchString(err.Error()) {
				t.Fatalf("error %q", err)
			}
			return
		}
		for _, name := range SoulSections() {
			if !regexp.MustCompile(`(?m)^[ \t\x{85}\x{a0}\p{Z}\v\f\r]*## ` + name).Match(data) {
				t.Fatalf("%q passes without %s", data, name)
			}
		}
	})
}
