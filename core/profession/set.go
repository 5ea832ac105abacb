package profession

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"example.com/AutoAgentProject/core/front"
)

// Set is a number of professions with their souls, found by name. It never changes.
type Set struct {
	byName    map[string]Profession
	souls     map[string]Soul
	texts     map[string]string // of what lies above the built-in: professions/<name>.md, souls/<name>.md
	workplace string
}

// Soul is who an agent is: plain Markdown with the sections of SoulSections.
type Soul struct {
	Name   string
	Text   string
	Source string
	Origin string
}

// BuiltIn is the layer of what comes with the program.
const BuiltIn = "built-in"

// Layer is a folder with professions/<name>.md and souls/<name>.md, either of which may be missing.
type Layer struct {
	Name  string // for people: built-in, user, project, mission
	Place string // where it lies, in front of file names in messages; empty: nothing
	Files fs.FS
}

// Load reads the professions that come with the program: professions/<name>.md, souls/<name>.md and workplace.md. Every one of
// them has a soul with all sections, and every soul a profession. The layers lie above them, each above the one before it: a
// profession takes the place of the one of the same name, a soul that of the same name, and each may come without the other.
func Load(builtin fs.FS, above ...Layer) (Set, error) {
	place, err := fs.ReadFile(builtin, "workplace.md")
	if err != nil {
		return Set{}, fmt.Errorf("load professions: %w", err)
	}
	s := Set{byName: map[string]Profession{}, souls: map[string]Soul{}, texts: map[string]string{}}
	if s.workplace, err = front.Clean("workplace.md", place); err != nil {
		return Set{}, err
	}
	if err := s.read(Layer{Name: BuiltIn, Files: builtin}); err != nil {
		return Set{}, err
	}
	for name := range s.souls {
		if _, ok := s.byName[name]; !ok {
			return Set{}, front.Fault(s.souls[name].Source, 1, "", "there is no profession %q for this soul", name)
		}
	}
	for _, name := range s.Names() {
		if _, ok := s.souls[name]; !ok {
			return Set{}, fmt.Errorf("load soul of %s: souls/%s.md: %w", name, name, fs.ErrNotExist)
		}
	}
	for _, l := range above {
		if err := s.read(l); err != nil {
			return Set{}, err
		}
	}
	for _, name := range s.Names() {
		p := s.byName[name]
		p.Soul, p.SoulSource = s.souls[name].Text, s.souls[name].Source
		s.byName[name] = s.settled(p)
	}
	for _, name := range s.Names() {
		if err := s.checkHandoffs(s.byName[name]); err != nil {
			return Set{}, err
		}
	}
	return s, nil
}

// read puts a layer over what is there.
func (s Set) read(l Layer) error {
	names, err := markdown(l.Files, "professions")
	if err != nil && !(l.Name != BuiltIn && errors.Is(err, fs.ErrNotExist)) {
		return fmt.Errorf("load professions: %w", err)
	}
	for _, name := range names {
		file := filepath.Join(l.Place, "professions", name+".md")
		data, err := fs.ReadFile(l.Files, "professions/"+name+".md")
		if err != nil {
			return fmt.Errorf("load profession %s: %w", name, err)
		}
		p, err := Parse(file, data)
		if err != nil {
			return err
		}
		if p.Name != name {
			return front.Fault(file, 1, "name the file after its profession", "the file is named %q and its profession %q", name, p.Name)
		}
		p.Origin = l.Name
		s.byName[name] = p
		s.keep(l, "professions/"+name+".md", data)
	}
	names, err = markdown(l.Files, "souls")
	if err != nil && !(l.Name != BuiltIn && errors.Is(err, fs.ErrNotExist)) {
		return fmt.Errorf("load souls: %w", err)
	}
	for _, name := range names {
		file := filepath.Join(l.Place, "souls", name+".md")
		data, err := fs.ReadFile(l.Files, "souls/"+name+".md")
		if err != nil {
			return fmt.Errorf("load soul %s: %w", name, err)
		}
		if err := CheckSoul(file, data); err != nil {
			return err
		}
		if _, ok := s.byName[name]; !ok && l.Name != BuiltIn {
			return front.Fault(file, 1, "there are "+strings.Join(s.Names(), ", "), "there is no profession %q for this soul", name)
		}
		text, err := front.Clean(file, data)
		if err != nil {
			return err
		}
		s.souls[name] = Soul{Name: name, Text: text, Source: file, Origin: l.Name}
		s.keep(l, "souls/"+name+".md", data)
	}
	return nil
}

func (s Set) keep(l Layer, name string, data []byte) {
	if l.Name != BuiltIn {
		s.texts[name] = string(data)
	}
}

// Texts are the files in force that do not come with the program, by their names below a layer: what has to be kept so that the
// same set can be loaded again.
func (s Set) Texts() map[string]string { return maps.Clone(s.texts) }

// markdown lists the names of the Markdown files in a folder, without .md; other files are none of ours.
func markdown(fsys fs.FS, dir string) ([]string, error) {
	entries, err := fs.ReadDir(fsys, dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if name := e.Name(); !e.IsDir() && path.Ext(name) == ".md" && !strings.HasPrefix(name, ".") {
			names = append(names, strings.TrimSuffix(name, ".md"))
		}
	}
	return names, nil
}

// With returns the set with one profession more, which takes the place of one with the same name. It gets the
// workplace of the set. A soul of its own stays; without one it takes over the soul of the one it replaces, and a new
// one has none.
func (s Set) With(p Profession) (Set, error) {
	p.Soul = cmp.Or(p.Soul, s.byName[p.Name].Soul)
	more := Set{byName: maps.Clone(s.byName), souls: s.souls, texts: s.texts, workplace: s.workplace}
	if more.byName == nil {
		more.byName = map[string]Profession{}
	}
	more.byName[p.Name] = more.settled(p)
	if err := more.checkHandoffs(p); err != nil {
		return Set{}, err
	}
	return more, nil
}

// settled gives a profession the workplace of the set. Who has no tool works in no folder.
func (s Set) settled(p Profession) Profession {
	if p.Name != Manager && (p.Tools == nil || len(p.Tools) > 0) {
		p.Workplace = s.workplace
	}
	return p
}

func (s Set) checkHandoffs(p Profession) error {
	for _, to := range p.HandoffTo {
		if _, ok := s.byName[to]; !ok {
			return front.Fault(p.Source, 1, "there are "+strings.Join(s.Names(), ", "), "handoff_to names the profession %q, which does not exist", to)
		}
	}
	return nil
}

// Get finds a profession. Its lists belong to the set.
func (s Set) Get(name string) (Profession, bool) {
	p, ok := s.byName[name]
	return p, ok
}

// Names lists the professions in alphabetical order.
func (s Set) Names() []string {
	return slices.Sorted(maps.Keys(s.byName))
}

// Souls lists the souls in alphabetical order.
func (s Set) Souls() []Soul {
	var out []Soul
	for _, name := range slices.Sorted(maps.Keys(s.souls)) {
		out = append(out, s.souls[name])
	}
	return out
}
