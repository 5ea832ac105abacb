package profession

import (
	"strings"
	"testing"
	"testing/fstest"
)

const goodSoul = "# Soul\n\n## Core Values\n\n- a\n\n## Working Style\n\n- b\n\n## Handoff Ritual\n\n1. c\n\n## Quality Standard\n\n- d\n"

func smallFS() fstest.MapFS {
	file := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
	return fstest.MapFS{
		"workplace.md":           file("# Place\n\nHere.\n"),
		"professions/manager.md": file("---\nname: manager\ndescription: plans\ntools: Read\n---\nPlan.\n"),
		"professions/smith.md":   file("---\nname: smith\ndescription: forges\nhandoff_to: manager\n---\nForge.\n"),
		"souls/manager.md":       file(goodSoul),
		"souls/smith.md":         file(strings.Replace(goodSoul, "# Soul", "# Soul of the smith", 1)),
		"professions/.smith.md":  file("junk"),
		"professions/notes.txt":  file("junk"),
		"souls/old/smith.md":     file("junk"),
	}
}

func TestLoad(t *testing.T) {
	s, err := Load(smallFS())
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(s.Names(), " "); got != "manager smith" {
		t.Errorf("names %q", got)
	}
	p, ok := s.Get("smith")
	want := strings.Replace(goodSoul, "# Soul", "# Soul of the smith", 1) + "\nForge.\n\n# Place\n\nHere.\n"
	if got := p.SystemPrompt(); !ok || got != want {
		t.Errorf("system prompt %q, want %q", got, want)
	}
	if m, _ := s.Get(Manager); m.SystemPrompt() != goodSoul+"\nPlan.\n" {
		t.Errorf("the manager is told %q", m.SystemPrompt())
	}
	if _, ok := s.Get("nobody"); ok {
		t.Error("found nobody")
	}
}

func TestLoadRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(fstest.MapFS)
		says  string
	}{
		"profession without soul": {func(m fstest.MapFS) { delete(m, "souls/smith.md") }, "souls/smith.md"},
		"soul without profession": {func(m fstest.MapFS) { delete(m, "professions/smith.md") }, "souls/smith.md:1: "},
		"no workplace":            {func(m fstest.MapFS) { delete(m, "workplace.md") }, "workplace.md"},
		"no professions":          {func(m fstest.MapFS) { delete(m, "professions/manager.md"); delete(m, "professions/smith.md") }, "profession"},
		"bad profession":          {func(m fstest.MapFS) { m["professions/smith.md"].Data = []byte("x") }, "professions/smith.md:1: "},
		"other name": {func(m fstest.MapFS) {
			m["professions/smith.md"].Data = []byte("---\nname: cook\ndescription: x\n---\nx")
		}, "professions/smith.md:1: "},
		"unknown recipient": {func(m fstest.MapFS) {
			m["professions/smith.md"].Data = []byte("---\nname: smith\ndescription: x\nhandoff_to: cook\n---\nx")
		}, `"cook"`},
		"soul without a section": {func(m fstest.MapFS) {
			m["souls/smith.md"].Data = []byte(strings.Replace(goodSoul, "## Working Style", "## Habits", 1))
		}, `"## Working Style" is missing`},
	} {
		t.Run(name, func(t *testing.T) {
			m := smallFS()
			c.spoil(m)
			s, err := Load(m)
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error %v, want %q", err, c.says)
			}
			if len(s.Names()) != 0 {
				t.Errorf("a set came with the error: %q", s.Names())
			}
		})
	}
}

func TestCheckSoul(t *testing.T) {
	for name, c := range map[string]struct{ soul, says string }{
		"good":            {goodSoul, ""},
		"good with CRLF":  {strings.ReplaceAll(goodSoul, "\n", "\r\n"), ""},
		"more sections":   {goodSoul + "\n## Voice\n", ""},
		"empty":           {"", "s.md:1: "},
		"section empty":   {strings.Replace(goodSoul, "- b\n", "", 1), `s.md:7: the section "Working Style" is empty`},
		"last one empty":  {strings.Replace(goodSoul, "- d\n", "", 1), `s.md:15: the section "Quality Standard" is empty`},
		"section twice":   {goodSoul + "## Core Values\n- x\n", `s.md:18: the section "Core Values" was there in line 3`},
		"wrong level":     {strings.Replace(goodSoul, "## Core", "### Core", 1), `"## Core Values" is missing`},
		"not a text file": {goodSoul + "\x00", "s.md:18: "},
	} {
		err := CheckSoul("s.md", []byte(c.soul))
		if (err == nil) != (c.says == "") || err != nil && !strings.HasPrefix(err.Error(), "s.md:") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
}

func TestWith(t *testing.T) {
	s, err := Load(smallFS())
	if err != nil {
		t.Fatal(err)
	}
	own := func(name, rest string) Profession {
		p, err := Parse("mine/"+name+".md", []byte("---\nname: "+name+"\ndescription: x\n"+rest+"---\nMine.\n"))
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	more, err := s.With(own("cook", "handoff_to: smith\n"))
	if err != nil || strings.Join(more.Names(), " ") != "cook manager smith" || strings.Join(s.Names(), " ") != "manager smith" {
		t.Errorf("with a cook %q, before %q, err %v", more.Names(), s.Names(), err)
	}
	if p, _ := more.Get("cook"); p.SystemPrompt() != "Mine.\n\n# Place\n\nHere.\n" {
		t.Errorf("the cook is told %q", p.SystemPrompt())
	}
	other, err := s.With(own("smith", ""))
	p, _ := other.Get("smith")
	if err != nil || !strings.HasPrefix(p.SystemPrompt(), "# Soul of the smith\n") || !strings.Contains(p.SystemPrompt(), "Mine.") || p.Source != "mine/smith.md" {
		t.Errorf("the other smith is told %q, err %v", p.SystemPrompt(), err)
	}
	if old, _ := s.Get("smith"); old.Body != "Forge." {
		t.Error("the old set changed")
	}
	mine := own("smith", "")
	mine.Soul = "# My own\n"
	other, _ = s.With(mine)
	if p, _ := other.Get("smith"); !strings.HasPrefix(p.SystemPrompt(), "# My own\n\nMine.") {
		t.Errorf("its own soul is not first: %q", p.SystemPrompt())
	}
	if _, err := s.With(own("cook", "handoff_to: waiter\n")); err == nil || !strings.HasPrefix(err.Error(), "mine/cook.md:") {
		t.Errorf("handing to nobody: %v", err)
	}
	if more, err := (Set{}).With(own("cook", "")); err != nil || len(more.Names()) != 1 {
		t.Errorf("in an empty set: %v", err)
	}
}

func TestLayers(t *testing.T) {
	file := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
	cook := func(says string) string { return "---\nname: cook\ndescription: cooks\n---\n" + says + "\n" }
	user := Layer{"user", "/home/config", fstest.MapFS{
		"professions/cook.md":  file(cook("User cook.")),
		"professions/smith.md": file("---\nname: smith\ndescription: forges\n---\nUser smith.\n"),
		"souls/cook.md":        file(strings.Replace(goodSoul, "# Soul", "# User soul", 1)),
	}}
	project := Layer{"project", "/src/.autoagent", fstest.MapFS{"professions/cook.md": file(cook("Project cook."))}}
	own := Layer{"mission", "/d", fstest.MapFS{"souls/cook.md": file(strings.Replace(goodSoul, "# Soul", "# Mission soul", 1))}}
	s, err := Load(smallFS(), user, project, own)
	if err != nil {
		t.Fatal(err)
	}
	c, _ := s.Get("cook")
	if !strings.HasPrefix(c.SystemPrompt(), "# Mission soul\n") || !strings.Contains(c.SystemPrompt(), "Project cook.") || c.Origin != "project" ||
		c.Source != "/src/.autoagent/professions/cook.md" || c.SoulSource != "/d/souls/cook.md" {
		t.Errorf("%+v", c)
	}
	if p, _ := s.Get("smith"); p.Origin != "user" || !strings.HasPrefix(p.SystemPrompt(), "# Soul of the smith\n") {
		t.Errorf("%+v", p)
	}
	if p, _ := s.Get("manager"); p.Origin != BuiltIn || p.Source != "professions/manager.md" {
		t.Errorf("%+v", p)
	}
	texts := s.Texts()
	if len(texts) != 3 || !strings.Contains(texts["professions/cook.md"], "Project cook.") || !strings.HasPrefix(texts["souls/cook.md"], "# Mission soul") {
		t.Errorf("%q", texts)
	}
	if souls := s.Souls(); len(souls) != 3 || souls[0].Name != "cook" || souls[0].Origin != "mission" {
		t.Errorf("%+v", souls)
	}
	for says, bad := range map[string]fstest.MapFS{
		"/p/professions/cook.md:2: ":                                         {"professions/cook.md": file("---\nnam: cook\n---\nx")},
		"/p/souls/waiter.md:1: there is no profession":                       {"souls/waiter.md": file(goodSoul)},
		`/p/souls/smith.md:18: the section "## Quality Standard" is missing`: {"souls/smith.md": file(strings.Replace(goodSoul, "## Quality", "## Other", 1))},
		`/p/professions/x.md:1: the file is named "x"`:                       {"professions/x.md": file(cook("x"))},
	} {
		if _, err := Load(smallFS(), Layer{"project", "/p", bad}); err == nil || !strings.HasPrefix(err.Error(), says) {
			t.Errorf("%v, want %s", err, says)
		}
	}
}
