package systemdengine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coreos/go-systemd/v22/dbus"

	"example.com/AutoAgentProject/core/store"
)

// missions are those that units name, and those of their roots and of this engine's own.
func (r *round) missions(ctx context.Context, t table) []key {
	keys, roots := map[key]bool{}, map[store.Root]bool{r.e.Root: true}
	named := map[string]bool{}
	add := func(id string, root store.Root) {
		if id != "" && root != "" {
			keys[key{root, id}], roots[root], named[id] = true, true, true
		}
	}
	for _, u := range t.files {
		add(u.id, u.root)
	}
	for name, u := range t.units {
		if _, here := t.files[name]; !here && u.load == "loaded" && strings.HasSuffix(name, ".service") {
			root, err := r.b.rootOf(ctx, name, u.id)
			if err != nil {
				r.report.add(key{id: u.id}, look, Unknown, err.Error())
			}
			add(u.id, root)
		}
	}
	for root := range roots {
		ids, err := root.IDs()
		if err != nil {
			r.report.add(key{root: root}, look, Unknown, fmt.Sprintf("its missions cannot be listed, those without units were left alone: %v", err))
		}
		for _, id := range ids {
			add(id, root)
		}
	}
	r.loose(ctx, t, named)
	return slices.SortedFunc(maps.Keys(keys), func(a, b key) int {
		return cmp.Or(cmp.Compare(a.id, b.id), cmp.Compare(a.root, b.root))
	})
}

// loose are installed units of missions that nobody knows: no service says which root is theirs. A stop that was cut off
// at its very end leaves a slice.
func (r *round) loose(ctx context.Context, t table, named map[string]bool) {
	left := map[string][]string{}
	for name, u := range t.files {
		switch {
		case u.ours && !named[u.id]:
			left[u.id] = append(left[u.id], name)
		case u.err != nil && !slices.ContainsFunc(slices.Collect(maps.Keys(named)), func(id string) bool { return strings.HasPrefix(name, "forge-autoagent-"+id) }):
			r.report.add(key{}, look, Unknown, fmt.Sprintf("%s cannot be read: %v", name, u.err))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(left)) {
		names := slices.Sorted(slices.Values(left[id]))
		text := strings.Join(names, ", ")
		if id == "" || slices.ContainsFunc(names, func(n string) bool { return filepath.Ext(n) != ".slice" }) {
			r.report.add(key{id: id}, look, Unknown, text+" are here, and no service says below which root their mission lies")
			continue
		}
		err := errors.Join(r.b.must(ctx, set{id: id}, names...), r.e.unlink(names))
		if err == nil {
			err = r.b.reload(ctx)
		}
		r.tell(key{id: id}, endGone, text+" had been left by a stop and was removed", err)
	}
}

// rootOf is the root that a service without a file was started for; "" if it was not for this mission.
func (b *bus) rootOf(ctx context.Context, service, id string) (store.Root, error) {
	var argv []string
	err := b.do(ctx, "ask "+service, func(ctx context.Context, c *dbus.Conn) error {
		p, err := c.GetUnitTypePropertyContext(ctx, service, "Service", "ExecStart")
		if err != nil {
			return err
		}
		if lines, ok := p.Value.Value().([][]any); ok && len(lines) == 1 && len(lines[0]) > 1 {
			argv, _ = lines[0][1].([]string)
		}
		return nil
	})
	if err != nil && !unloaded(err) {
		return "", err
	}
	i := slices.Index(argv, "--root")
	if i < 0 || i+1 >= len(argv) || !slices.Contains(argv, id) || !filepath.IsAbs(argv[i+1]) {
		return "", nil
	}
	return store.Root(argv[i+1]), nil
}
