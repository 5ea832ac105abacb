package cgroup

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// TestFind: another process knows the record alone.
func TestFind(t *testing.T) {
	g := opened(t, "find", Limits{Memory: 1 << 30, Tasks: 50})
	b, err := json.Marshal(g.Record())
	if err != nil {
		t.Fatal(err)
	}
	var r Record
	if err := json.Unmarshal(b, &r); err != nil {
		t.Fatal(err)
	}
	cmd := begun(t, g, "trap '' TERM; setsid sleep 60 & echo ready; wait")
	for name, record := range map[string]*Record{"with the record": &r, "without": nil} {
		f, err := Find(g.name, record)
		if err != nil || f == nil || len(f.places) != len(g.places) {
			t.Fatalf("%s: %+v, %v", name, f, err)
		}
		if empty, err := f.Empty(); err != nil || empty {
			t.Errorf("%s: empty %v, %v", name, empty, err)
		}
	}
	f, err := Find(g.name, &r)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if f, err = Find(g.name, &r); err != nil {
		t.Fatal(err)
	}
	if empty, err := f.Empty(); err != nil || !empty {
		t.Errorf("removed: empty %v, %v", empty, err)
	}
	if f, err := Find(g.name, nil); f != nil || err != nil {
		t.Errorf("removed and not recorded: %v, %v", f, err)
	}
}

// TestUnknown: what cannot be looked at is never empty, and a record leads to no other group than its own.
func TestUnknown(t *testing.T) {
	g := opened(t, "unknown", Limits{Tasks: 50})
	good := g.Record().Places[0]
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, g.name), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Place){
		"no cgroups there":        func(p *Place) { p.Mount, p.Path = dir, filepath.Join(dir, g.name) },
		"nothing there":           func(p *Place) { p.Mount, p.Path = dir+"/x", dir+"/x/"+g.name },
		"the tree of a container": func(p *Place) { p.Inode += 7 },
		"the other version":       func(p *Place) { p.V2 = !p.V2 },
	} {
		p := good
		change(&p)
		if f, err := Find(g.name, &Record{Name: g.name, Places: []Place{p}}); err == nil {
			t.Errorf("%s: found %+v", name, f)
		}
		missing := place{Place: p}
		missing.Path += "-missing"
		if empty, err := (&Group{places: []place{missing}}).Empty(); err == nil {
			t.Errorf("%s: empty %v and no error", name, empty)
		}
	}
	for name, r := range map[string]Record{
		"another name":     {Name: "other", Places: []Place{good}},
		"another folder":   {Name: g.name, Places: []Place{{good.V2, good.Mount, good.Inode, good.Mount}}},
		"a way around":     {Name: g.name, Places: []Place{{good.V2, good.Mount, good.Inode, good.Mount + "/x/../" + g.name}}},
		"outside the tree": {Name: g.name, Places: []Place{{good.V2, good.Mount, good.Inode, "/elsewhere/" + g.name}}},
	} {
		if f, err := Find(g.name, &r); err == nil {
			t.Errorf("%s: found %+v", name, f)
		}
	}
	// Folders of any other kind: no process can be listed, so none is said to be absent.
	for _, v2 := range []bool{true, false} {
		p := place{Place: Place{V2: v2, Mount: dir, Path: filepath.Join(dir, g.name)}}
		if empty, err := (&Group{places: []place{p}}).Empty(); err == nil {
			t.Errorf("a plain folder: empty %v and no error", empty)
		}
	}
}
