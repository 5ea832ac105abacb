package systemdengine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/dbus"

	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/store"
	"example.com/AutoAgentProject/core/units"
)

// key names a mission: ids are one root's own.
type key struct {
	root store.Root
	id   string
}

// table is what is installed and what the manager has loaded, of all missions, at one moment.
type table struct {
	files map[string]unitFile
	units map[string]unitState
}

// unitFile is an installed unit.
type unitFile struct {
	ours    bool
	id      string     // of the mission it says it belongs to
	root    store.Root // services only
	version int
	err     error // it cannot be read
}

// unitState is a unit that the manager knows.
type unitState struct {
	id     string // of the mission that its description names
	load   string
	active string
	sub    string
	job    bool
	exit   int32 // of a failed service
	noNext bool  // a timer that does not fire by itself any more

}

func (u unitState) settled() bool {
	return settled(dbus.UnitStatus{ActiveState: u.active, JobId: map[bool]uint32{true: 1}[u.job]})
}

// again says that a service failed and waits to be started again.
func (u unitState) again() bool { return strings.HasPrefix(u.sub, "auto-restart") }

// fact is all that is known of one mission.
type fact struct {
	key
	set      set
	m        *mission.Mission
	unknown  string // why nothing can be said
	refused  string // why its units are not its own
	gone     bool   // it has no folder, for sure
	foreign  bool   // another engine or manager ticks it
	roots    bool   // root's manager ticks it: what the owner wrote down brings no unit into place
	stop     *mission.Stop
	ended    bool // its stop is proven and told
	handed   bool
	born     time.Time
	disabled bool            // it would not come back after a reboot
	working  map[string]bool // agents of whom state.json says so
	files    map[string]unitFile
	units    map[string]unitState
	blocked  []string // files that are in the way
	lost     []string // programs of its services that are not there
}

// table looks at the folder of units and asks the manager.
func (e *Engine) table(ctx context.Context, b *bus) (table, error) {
	t := table{map[string]unitFile{}, map[string]unitState{}}
	entries, err := os.ReadDir(e.Settings.UnitDir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return t, err
	}
	for _, f := range entries {
		if isUnit(f.Name()) {
			t.files[f.Name()] = e.unitFile(f.Name())
		}
	}
	err = b.do(ctx, "list the units", func(ctx context.Context, c *dbus.Conn) error {
		clear(t.units)
		all, err := c.ListUnitsContext(ctx)
		for _, u := range all {
			if isUnit(u.Name) {
				t.units[u.Name] = unitState{id: described(u.Description), load: u.LoadState, active: u.ActiveState, sub: u.SubState, job: u.JobId != 0}
			}
		}
		return err
	})
	return t, err
}

// isUnit says whether a name can be one of a mission's units.
func isUnit(name string) bool {
	return (strings.HasPrefix(name, "forge-autoagent-") || strings.HasPrefix(name, "forge-autoagentguard-")) && !isHostUnit(name) && !units.IsPoller(name) && !units.IsBridge(name) &&
		slices.Contains([]string{".service", ".timer", ".socket", ".target", ".slice"}, filepath.Ext(name))
}

func (e *Engine) unitFile(name string) unitFile {
	b, err := e.unit(name)
	if err != nil {
		return unitFile{err: err}
	}
	text := string(b)
	rest, ours := strings.CutPrefix(text, units.Header)
	if !ours {
		return unitFile{}
	}
	number, _, _ := strings.Cut(rest, ".")
	f := unitFile{ours: true, id: missionOf(text)}
	f.version, _ = strconv.Atoi(number)
	if root, id, ok := units.Owner(text); ok && id == f.id {
		f.root = store.Root(root)
	}
	return f
}

// fact looks at one mission of this root. What cannot be looked at makes it unknown, and nothing is done about it.
func (e *Engine) fact(ctx context.Context, b *bus, t table, id string) fact {
	s, m, why := e.unitsOf(id)
	f := fact{key: key{e.Root, id}, set: s, m: m, roots: e.Settings.Manager == units.System}
	st := e.Root.Mission(id)
	f.collect(t)
	if stop := s.stopService(); t.files[stop].root != e.Root {
		for name, u := range t.files {
			if u.id == id && u.root != "" && u.root != e.Root {
				f.refused = name + " belongs to a mission of the same id below " + string(u.root)
			}
		}
	}
	if f.refused != "" {
		f.files, f.units = nil, nil
		if read, err := st.Mission(); err == nil {
			f.m = &read
		}
	}
	switch _, err := os.Lstat(st.Dir()); {
	case errors.Is(err, fs.ErrNotExist):
		if _, err := os.ReadDir(e.Root.Home()); err != nil {
			f.unknown = fmt.Sprintf("its root cannot be looked into (%v); if it was removed on purpose, mkdir -p %s lets its units go", err, e.Root.Home())
		}
		f.gone = true
		return f
	case err != nil:
		f.unknown = err.Error()
		return f
	}
	switch _, err := os.Lstat(filepath.Join(st.Dir(), "stop.json")); {
	case err == nil:
		if f.stop, err = st.Stopped(); err != nil {
			f.unknown = err.Error()
			return f
		}
	case !errors.Is(err, fs.ErrNotExist):
		f.unknown = err.Error()
		return f
	}
	f.ended = f.stop != nil && (e.record(id).Done || e.unwritten(id))
	if f.m != nil {
		f.foreign = f.m.Engine != Name || units.ManagerOf(*f.m) != e.Settings.Manager
	}
	if f.stop != nil || f.foreign || f.refused != "" {
		return f
	}
	if why != nil {
		f.unknown = why.Error()
		return f
	}
	return e.alive(ctx, b, t, f)
}

// alive adds what counts for a mission that should tick.
func (e *Engine) alive(ctx context.Context, b *bus, t table, f fact) fact {
	st := e.Root.Mission(f.id)
	f.born = f.m.CreatedAt
	if fi, err := os.Lstat(filepath.Join(st.Dir(), "mission.json")); err == nil && fi.ModTime().After(f.born) {
		f.born = fi.ModTime() // making a mission takes its time
	}
	switch _, err := os.Lstat(filepath.Join(st.Dir(), store.Handed)); {
	case err == nil:
		f.handed = true
	case !errors.Is(err, fs.ErrNotExist):
		f.unknown = err.Error()
	}
	if n, most := len(f.m.Roster), mission.MaxSpecialists+3; n > most {
		f.refused = fmt.Sprintf("its record names %d agents, and no mission has more than %d", n, most)
	}
	for _, a := range f.m.Roster {
		if !slices.ContainsFunc(f.set.roster, func(x mission.Agent) bool { return x.Name == a.Name }) {
			f.refused = fmt.Sprintf("the units of its agent %q belong to another mission", a.Name)
		}
	}
	for _, name := range f.set.names() {
		switch u, ok := t.files[name]; {
		case !ok || u.ours && u.id == f.id:
		case u.err != nil:
			f.unknown = fmt.Sprintf("%s cannot be read: %v", name, u.err)
		default:
			f.blocked = append(f.blocked, name)
		}
	}
	wants := "default.target.wants"
	if e.Settings.Manager == units.System {
		wants = "multi-user.target.wants"
	}
	_, err := os.Lstat(filepath.Join(e.Settings.UnitDir, wants, f.set.target()))
	f.disabled = errors.Is(err, fs.ErrNotExist)
	f.lost = e.lost(f.set)
	f.working = map[string]bool{}
	if state, err := st.State(); err == nil {
		for _, a := range f.set.roster {
			f.working[a.Name] = state.Agents[a.Name].Doing == "working"
		}
	}
	for name, u := range f.units {
		var err error
		switch {
		case strings.HasSuffix(name, ".service") && u.active == "failed":
			u.exit, err = b.exit(ctx, name)
		case strings.HasSuffix(name, ".timer") && u.active == "active" && u.sub == "elapsed":
			var at time.Time
			at, err = b.next(ctx, name)
			u.noNext = at.IsZero()
		}
		if err != nil && !unloaded(err) {
			f.unknown = err.Error()
		}
		f.units[name] = u
	}
	return f
}

// collect takes the mission's units out of the table. Those that the manager has without a file count by what they say
// of themselves.
func (f *fact) collect(t table) {
	for name, u := range t.units {
		agent, ok := strings.CutPrefix(name, f.set.base()+"-")
		agent = strings.TrimSuffix(agent, filepath.Ext(name))
		if _, here := t.files[name]; !ok || here || u.id != f.id || f.set.has(name) || mission.CheckAgent(agent) != nil {
			continue
		}
		f.set.roster = append(f.set.roster, mission.Agent{Name: agent})
	}
	f.files, f.units = map[string]unitFile{}, map[string]unitState{}
	for _, name := range f.set.names() {
		if u, ok := t.files[name]; ok && u.ours && u.id == f.id {
			f.files[name] = u
		}
		if u, ok := t.units[name]; ok && (u.id == f.id || u.load != "loaded" || filepath.Ext(name) == ".slice") {
			f.units[name] = u
		}
	}
}

// exit is the exit status of the last run of a service.
func (b *bus) exit(ctx context.Context, service string) (int32, error) {
	var exit int32
	err := b.do(ctx, "ask "+service, func(ctx context.Context, c *dbus.Conn) error {
		p, err := c.GetUnitTypePropertyContext(ctx, service, "Service", "ExecMainStatus")
		if err == nil {
			exit, _ = p.Value.Value().(int32)
		}
		return err
	})
	return exit, err
}
