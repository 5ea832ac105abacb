// Package systemdengine is the engine that lets systemd tick a mission: it puts the mission's units in place, and carries
// out the stop that takes them away again. It works with the system's manager and with a user's own.
package systemdengine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/dbus"

	"example.com/AutoAgentProject/core/engine"
	"example.com/AutoAgentProject/core/files"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/store"
	"example.com/AutoAgentProject/core/units"
	"example.com/AutoAgentProject/core/usererr"
)

// Name is the engine's name in mission.json.
const Name = units.Engine

// DefaultGrace is how long ticks may take to end in order: a little more than what their units give them.
const DefaultGrace = 17 * time.Second

// Engine lets the manager of Settings tick the missions below one root.
type Engine struct {
	Root     store.Root
	Settings units.Settings
	// Finish counts what is left to count and tells the end, after everything is proven dead. It is repeatable. Where
	// Carry runs as root, it must let the owner do the writing.
	Finish func(ctx context.Context, m mission.Mission, stop mission.Stop) error
	// Mark sets the tombstone of a mission whose start was cut off; nil: this process does it. Where Reconcile runs as root,
	// it must let the owner do it.
	Mark func(ctx context.Context, id string, stop mission.Stop) error
	// Open wires the engine of another root of the same manager, for Reconcile; nil: it leaves their missions alone.
	Open func(root store.Root) (*Engine, error)
	// Save writes how far a stop is; nil: this process does it. Where Carry runs as root, it must let the owner do it.
	Save func(ctx context.Context, id string, r engine.Record) error
	// Connect connects to the manager; nil: directly where this process may, else over the message bus.
	Connect func(ctx context.Context) (*dbus.Conn, error)
	Grace   time.Duration // 0: DefaultGrace
	Log     *slog.Logger
}

func (e *Engine) Name() string { return Name }

func (e *Engine) log() *slog.Logger {
	if e.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return e.Log
}

// set is a mission's units by what is done with them.
type set struct {
	id     string
	roster []mission.Agent
}

func (s set) base() string { return "forge-autoagent-" + s.id }

func (s set) target() string      { return s.base() + ".target" }
func (s set) stopService() string { return s.base() + "-stop.service" }
func (s set) stopSocket() string  { return s.base() + "-stop.socket" }

// names are all units.
func (s set) names() []string { return mission.UnitNames(s.id, s.roster) }

// of are the agents' units of one kind: ".timer".
func (s set) of(kinds ...string) []string {
	var out []string
	for _, a := range s.roster {
		for _, kind := range kinds {
			out = append(out, s.base()+"-"+a.Name+kind)
		}
	}
	return out
}

// ending are the units that must be down before anybody can say that nothing lives: all but what stops, and the slices.
func (s set) ending() []string { return append(s.of(".timer", ".socket", ".service"), s.target()) }

// has says whether a name is one of the mission's units.
func (s set) has(name string) bool { return slices.Contains(s.names(), name) }

// unitsOf returns the units of a mission: those of its roster, and those that are installed for it. Where the mission's own
// record cannot be read, m is nil, and why says why.
//
// Whoever owns the root can write that record, and root can be who acts on it: what is installed for another mission is
// never taken for this one's. If that is the stop itself, the error is a usererr Conflict and there is no roster.
func (e *Engine) unitsOf(id string) (s set, m *mission.Mission, why error) {
	if err := mission.CheckID(id); err != nil {
		return set{id: id}, nil, err
	}
	s = set{id: id}
	text, err := e.unit(s.stopService())
	if err == nil && !strings.Contains(string(text), " stop-mission "+id+" --root "+quoted(e.Settings.Root)+"\n") {
		return s, nil, usererr.New(usererr.Conflict, "", "the units of a mission %s in %s belong to another root", id, e.Settings.UnitDir)
	}
	read, why := e.Root.Mission(id).Mission()
	if why == nil {
		m = &read
	}
	for _, a := range read.Roster {
		if mission.CheckAgent(a.Name) == nil && !e.others(id, a.Name) {
			s.roster = append(s.roster, a)
		}
	}
	for _, a := range e.installed(id) {
		if !slices.ContainsFunc(s.roster, func(b mission.Agent) bool { return a.Name == b.Name }) {
			s.roster = append(s.roster, a)
		}
	}
	return s, m, why
}

// quoted is a path as it stands in ExecStart=.
func quoted(path string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, `%`, `%%`).Replace(path) + `"`
}

// tickLine finds the role in the service of an agent.
func (e *Engine) tickLine(id, agent string) *regexp.Regexp {
	return regexp.MustCompile(`(?m)^ExecStart=.*/autoagent-([a-z]+)" --root ` + regexp.QuoteMeta(quoted(e.Settings.Root)+" --mission "+id+" --agent "+agent) + `$`)
}

// others says whether a unit of that name is installed for somebody else: mission x-site and its manager, mission x and
// its site-manager have the same ones.
func (e *Engine) others(id, agent string) bool {
	base := "forge-autoagent-" + id + "-" + agent
	for _, kind := range []string{".service", ".timer", ".socket"} {
		text, err := e.unit(base + kind)
		if err == nil && (missionOf(string(text)) != id || kind == ".service" && !e.tickLine(id, agent).Match(text)) {
			return true
		}
	}
	return false
}

// missionOf is the mission that an installed unit belongs to, by its own words; "" if it says none.
func missionOf(text string) string {
	for line := range strings.Lines(text) {
		if d, ok := strings.CutPrefix(line, "Description="); ok {
			return described(strings.TrimSpace(d))
		}
	}
	return ""
}

// described is the mission in a unit's description: each begins with it.
func described(description string) string {
	id, ok := strings.CutPrefix(description, "AutoAgent ")
	id, _, _ = strings.Cut(id, ":")
	if !ok || mission.CheckID(id) != nil {
		return ""
	}
	return id
}

// installed reads the roster of a mission out of its installed units.
func (e *Engine) installed(id string) []mission.Agent {
	entries, _ := os.ReadDir(e.Settings.UnitDir)
	var out []mission.Agent
	for _, f := range entries {
		name, ok1 := strings.CutPrefix(f.Name(), "forge-autoagent-"+id+"-")
		name, ok2 := strings.CutSuffix(name, ".service")
		if !ok1 || !ok2 {
			continue
		}
		text, err := e.unit(f.Name())
		if err != nil {
			continue
		}
		if found := e.tickLine(id, name).FindSubmatch(text); found != nil {
			out = append(out, mission.Agent{Name: name, Role: mission.Role(found[1])})
		}
	}
	return out
}

// unit reads an installed unit.
func (e *Engine) unit(name string) ([]byte, error) {
	return files.Read(filepath.Join(e.Settings.UnitDir, name), 1<<20)
}

// here are those of the units whose files are in place and ours.
func (e *Engine) here(names []string) ([]string, error) {
	var out []string
	for _, name := range names {
		text, err := e.unit(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return out, fmt.Errorf("unit %s: %w", name, err)
		}
		if strings.HasPrefix(string(text), units.Header) {
			out = append(out, name)
		}
	}
	return out, nil
}

// runtime is the folder in which the sockets lie.
func (e *Engine) runtime() string {
	return units.Runtime(e.Settings.Manager)
}

// record reads how far a stop is. What cannot be read is done again: each step is harmless twice.
func (e *Engine) record(id string) engine.Record {
	var r engine.Record
	if err := e.Root.Mission(id).Load("stopping.json", &r); err != nil {
		return engine.Record{Version: mission.Version}
	}
	return r
}
