// Package audit looks whether anything outside of a cell changed while it ran: a second look at what the walls are for.
// What is looked at is a set that its caller states; how two looks are compared is pure.
package audit

import (
	"cmp"
	"io/fs"
	"slices"
)

// Stamp is what tells one state of a file from another without reading it. Of a folder only its inode and mode count:
// what comes and goes in it shows by its own name, as far as the set goes down.
type Stamp struct {
	Inode uint64
	Mode  fs.FileMode
	Size  int64
	Ctime int64 // nanoseconds; no program can set it
}

// Snapshot is the state of a set at a moment, by path.
type Snapshot map[string]Stamp

// Change is one difference of two snapshots.
type Change struct {
	Path string `json:"path"`
	What string `json:"what"` // "is new", "is gone", "was changed", "was replaced"
}

func (c Change) String() string { return c.Path + " " + c.What }

// Compare lists what differs, by path.
func Compare(before, after Snapshot) []Change {
	var out []Change
	for path, b := range before {
		a, ok := after[path]
		switch {
		case !ok:
			out = append(out, Change{path, "is gone"})
		case a.Inode != b.Inode || a.Mode.Type() != b.Mode.Type():
			out = append(out, Change{path, "was replaced"})
		case a.Mode != b.Mode, !a.Mode.IsDir() && a != b:
			out = append(out, Change{path, "was changed"})
		}
	}
	for path := range after {
		if _, ok := before[path]; !ok {
			out = append(out, Change{path, "is new"})
		}
	}
	slices.SortFunc(out, func(a, b Change) int { return cmp.Compare(a.Path, b.Path) })
	return out
}
