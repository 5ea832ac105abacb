package profession

import (
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
)

// Set is a number of professions with their souls, found by name. It never changes.
type Set struct {
	byName    map[string]Profession
	workplace string
}

// Load reads the professions that come with the program: professions/<name>.md, souls/<name>.md and workplace.md.
// Every profession has a soul with all sections, and every soul a profession.
func Load(builtin fs.FS) (Set, error) {
	place, err := fs.ReadFile(builtin, "workplace.md")
	if err != nil {
		return Set{}, fmt.Errorf("load professions: %w", err)
	}
	s := Set{byName: map[string]Profession{}}
	if s.workplace, err = clean("workplace.md", place); err != nil {
		return Set{}, err
	}
	names, err := markdown(builtin, "professions")
	if err != nil {
		return Set{}, fmt.Errorf("load professions: %w", err)
	}
	souls, err := markdown(builtin, "souls")
	if err != nil {
		return Set{}, fmt.Errorf("load souls: %w", err)
	}
	for _, soul := range souls {
		if !slices.Contains(names, soul) {
			return Set{}, fault("souls/"+soul+".md", 1, "", "there is no profession %q for this soul", soul)
		}
	}
	for _, name := range names {
		p, err := load(builtin, name)
		if err != nil {
			return Set{}, err
		}
		s.byName[name] = s.settled(p)
	}
	for _, name := range s.Names() {
		if err := s.checkHandoffs(s.byName[name]); err != nil {
			return Set{}, err
		}
	}
	return s, nil
}

// load reads one profession with its soul.
func load(builtin fs.FS, name string) (Profession, error) {
	file, soulFile := "professions/"+name+".md", "souls/"+name+".md"
	data, err := fs.ReadFile(builtin, file)
	if err != nil {
		return Profession{}, fmt.Errorf("load profession %s: %w", name, err)
	}
	p, err := Parse(file, data)
	if err != nil {
		return Profession{}, err
	}
	if p.Name != name {
		return Profession{}, fault(file, 1, "", "the file is named %q and its profession %q", name, p.Name)
	}
	soul, err := fs.ReadFile(builtin, soulFile)
	if err != nil {
		return Profession{}, fmt.Errorf("load soul of %s: %w", name, err)
	}
	if err := CheckSoul(soulFile, soul); err != nil {
		return Profession{}, err
	}
	p.Soul, err = clean(soulFile, soul)
	return p, err
}

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
	if p.Soul == "" {
		p.Soul = s.byName[p.Name].Soul
	}
	more := Set{byName: maps.Clone(s.byName), workplace: s.workplace}
	if more.byName == nil {
		more.byName = map[string]Profession{}
	}
	more.byName[p.Name] = more.settled(p)
	if err := more.checkHandoffs(p); err != nil {
		return Set{}, err
	}
	return more, nil
}

// settled gives a profession the workplace of the set.
func (s Set) settled(p Profession) Profession {
	if p.Name != Manager {
		p.Workplace = s.workplace
	}
	return p
}

func (s Set) checkHandoffs(p Profession) error {
	for _, to := range p.HandoffTo {
		if _, ok := s.byName[to]; !ok {
			return fault(p.Source, 1, "there are "+strings.Join(s.Names(), ", "), "handoff_to names the profession %q, which does not exist", to)
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
