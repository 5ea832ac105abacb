package cgroup

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Record tells another process where a group is.
type Record struct {
	Name   string  `json:"name"`
	Places []Place `json:"places"`
}

// Place is the folder of a group in one hierarchy.
type Place struct {
	V2    bool   `json:"v2"`
	Mount string `json:"mount"`
	Inode uint64 `json:"inode"` // of Mount: a container's tree begins elsewhere
	Path  string `json:"path"`
}

// Record says where the group is.
func (g *Group) Record() Record {
	r := Record{Name: g.name}
	for _, p := range g.places {
		r.Places = append(r.Places, p.Place)
	}
	return r
}

// Find returns the group of that name: where r, of this boot, says that it is, and, r or not, below this process's own
// cgroup. nil: there is none. A group that was removed since counts as an empty one. A record of another name, or of a
// tree that this process does not see, is an error.
func Find(name string, r *Record) (*Group, error) {
	g := &Group{name: name}
	if r != nil {
		for _, p := range r.Places {
			if r.Name != name || filepath.Base(p.Path) != name || filepath.Clean(p.Path) != p.Path || !strings.HasPrefix(p.Path, p.Mount+"/") {
				return nil, fmt.Errorf("the record of the cgroup %s tells of %s", name, p.Path)
			}
			if err := p.visible(); err != nil {
				return nil, err
			}
			g.places = append(g.places, place{Place: p})
		}
	}
	trees, _ := own() // none: nothing was made here
	for _, h := range trees {
		parent := h.own
		if h.v2 {
			parent = newBase(h).dir
		}
		p := h.place(parent, name)
		known := slices.ContainsFunc(g.places, func(k place) bool { return k.Path == p.Path })
		if _, err := os.Lstat(p.Path); err == nil && !known {
			g.places = append(g.places, place{Place: p})
		}
	}
	if len(g.places) == 0 {
		return nil, nil
	}
	return g, nil
}

// visible says whether the tree of the place is the one that this process sees there.
func (p Place) visible() error {
	var st unix.Statfs_t
	if err := unix.Statfs(p.Mount, &st); err != nil {
		return fmt.Errorf("look at the cgroups in %s: %w", p.Mount, err)
	}
	want := int64(unix.CGROUP_SUPER_MAGIC)
	if p.V2 {
		want = unix.CGROUP2_SUPER_MAGIC
	}
	n, err := inode(p.Mount)
	if err != nil || int64(st.Type) != want || n != p.Inode {
		return fmt.Errorf("the cgroups of the mission are not in %s as this process sees it", p.Mount)
	}
	return nil
}
