package flow

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"example.com/AutoAgentProject/core/front"
	"example.com/AutoAgentProject/core/profession"
)

// Set is a number of flows, found by id.
type Set struct{ byID map[string]Flow }

// Load reads flows/<id>.md and flows/<id>.flow.ad of the layers, each above the one before it, and holds every flow to the
// professions.
func Load(profs profession.Set, layers ...profession.Layer) (Set, error) {
	s := Set{byID: map[string]Flow{}}
	for _, l := range layers {
		entries, err := fs.ReadDir(l.Files, "flows")
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return Set{}, fmt.Errorf("load flows: %w", err)
		}
		here := map[string]string{}
		for _, e := range entries {
			name, ok := fileID(e.Name())
			if e.IsDir() || !ok {
				continue
			}
			data, err := fs.ReadFile(l.Files, path.Join("flows", e.Name()))
			if err != nil {
				return Set{}, fmt.Errorf("load flow %s: %w", e.Name(), err)
			}
			f, err := Parse(filepath.Join(l.Place, "flows", e.Name()), data)
			if err != nil {
				return Set{}, err
			}
			if f.ID != name && f.ID != slug(name) {
				return Set{}, front.Fault(f.Source, 1, "name the file after its flow", "the file is named %q and its flow %q", name, f.ID)
			}
			if other := here[f.ID]; other != "" {
				return Set{}, front.Fault(f.Source, 1, "remove one of them", "the flow %s is in %s as well", f.ID, other)
			}
			f.Origin, here[f.ID] = l.Name, e.Name()
			s.byID[f.ID] = f
		}
	}
	for _, id := range s.IDs() {
		if err := s.byID[id].Fit(profs.Get, profs.Names()); err != nil {
			return Set{}, err
		}
	}
	return s, nil
}

// fileID is the id that a file name says.
func fileID(name string) (string, bool) {
	if strings.HasPrefix(name, ".") {
		return "", false
	}
	if id, ok := strings.CutSuffix(name, ".flow.ad"); ok {
		return id, true
	}
	return strings.CutSuffix(name, ".md")
}

// Get finds a flow.
func (s Set) Get(id string) (Flow, bool) {
	f, ok := s.byID[id]
	return f, ok
}

// IDs lists the flows in alphabetical order.
func (s Set) IDs() []string { return slices.Sorted(maps.Keys(s.byID)) }
