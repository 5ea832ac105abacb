// Package units renders the systemd units of a mission and of the host. It asks no manager and reads no disk.
// docs/units.md explains the lines.
package units

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"text/template"
	"time"

	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/usererr"
)

// Version stands in the first line of every unit. Who finds another one installed writes the host's units anew.
const Version = 1

// Header begins the first line of every unit; the version follows.
const Header = "# AutoAgentProject units, version "

// Reconcile is the name of the host's service and timer.
const Reconcile = "forge-autoagent-reconcile"

// TickTime is how long after its start a tick begins another step; what is left is the next tick's. It ends at the
// latest when the step that it is in then has ended, which its unit allows for.
const TickTime = 10 * time.Minute

// Manager is which systemd ticks the missions.
type Manager string

// The managers.
const (
	System Manager = "system"
	User   Manager = "user"
)

// Settings is what units need to know beside the mission. Folders are absolute, clean, and free of symbolic links:
// nothing here can look where a link leads.
type Settings struct {
	Templates fs.FS // of package systemd
	Manager   Manager
	User      string // system manager: the root's owner, as whom ticks run; never root

	Root    string // of all missions
	Bin     string // folder of the programs; for the system manager one that only root can write
	UnitDir string // where the units are put; stop and reconcile take them away from there

	Path string            // PATH of ticks
	Home string            // HOME of ticks
	Lang string            // LANG of ticks; empty: C.UTF-8
	Env  map[string]string // more for ticks, AUTOAGENT_… only; whoever may look at units can read them

	// What a mission says goes before these.
	Memory    int64 // bytes; 0: three quarters of the machine's
	Tasks     int   // processes and threads; 0: DefaultTasks
	CPUWeight int   // 1 to 10000 against 100 of others; 0: DefaultCPUWeight

	TickEvery time.Duration // from the end of a tick to the next one, quota's at most a minute; 0: DefaultTickEvery
	RunWall   time.Duration // longest wall clock of a run of any profession
}

// The defaults of Settings.
const (
	DefaultTasks     = 4096
	DefaultCPUWeight = 50
	DefaultTickEvery = time.Minute
)

// What is not for callers to choose.
const (
	grace       = 15 * time.Second // the orderly end of a run: interrupt 3 s, TERM 5 s, kill, the last records
	quickLimit  = 2 * time.Minute  // of ticks that start no cell
	hostLimit   = 10 * time.Minute // of stop and reconcile
	verifyLimit = 15 * time.Minute // of a verify command whose mission says nothing
	gitTime     = 30 * time.Minute // for all git commands of one step
	guardWeight = 200              // CPUWeight of what must come through while agents work
	guardMemory = "1G"
	guardTasks  = 512
)

// File is one unit.
type File struct {
	Name string
	Text []byte
}

// Render returns every unit of the mission, in the order of mission.UnitNames. What a person can mend is a *usererr.Error.
func Render(m mission.Mission, s Settings) ([]File, error) {
	t, err := prepare(s)
	if err != nil {
		return nil, err
	}
	if err := checkMission(m); err != nil {
		return nil, err
	}
	if s.RunWall <= 0 {
		return nil, errors.New("settings of units: it is not said how long a run may take")
	}
	f := s.fields(m)
	made := map[string][]byte{}
	put := func(name, from string, f fields) error {
		var b strings.Builder
		if made[name] != nil {
			return usererr.New(usererr.Usage, "", "two agents of mission %s would have the unit %s", m.ID, name)
		}
		if err := t.ExecuteTemplate(&b, from, f); err != nil {
			return fmt.Errorf("render %s: %w", name, err)
		}
		made[name] = []byte(b.String())
		return nil
	}
	guard := f.guard()
	all := []struct {
		name, from string
		fields     fields
	}{
		{f.Target, "mission.target", f},
		{f.Base + "-stop.service", "stop.service", guard.program(s, "AutoAgentProject", hostLimit)},
		{f.Base + "-stop.socket", "stop.socket", guard},
		{mission.Slice(m.ID), "mission.slice", f},
		{mission.GuardSlice(m.ID), "guard.slice", guard},
	}
	for _, one := range all {
		if err := put(one.name, one.from, one.fields); err != nil {
			return nil, err
		}
	}
	for _, a := range m.Roster {
		f := f.agent(m, s, a)
		for _, kind := range []string{".service", ".timer", ".socket"} {
			if err := put(f.Base+"-"+a.Name+kind, "tick"+kind, f); err != nil {
				return nil, err
			}
		}
	}
	var out []File
	for _, name := range mission.UnitNames(m.ID, m.Roster) {
		out = append(out, File{name, made[name]})
	}
	return out, nil
}

// Host returns the units that every mission of the manager shares: the hourly reconcile. They are the same whatever the
// root: of the settings only templates, manager, Bin and UnitDir count. The names
// forge-autoagent-bridge.{socket,service}, forge-autoagent-poller@.service and forge-autoagent-ping.service are reserved.
func Host(s Settings) ([]File, error) {
	if err := s.checkHost(); err != nil {
		return nil, err
	}
	t, err := s.parse()
	if err != nil {
		return nil, err
	}
	f := fields{Header: header(), System: s.Manager == System, UnitDir: s.UnitDir, Bin: s.Bin, Grace: seconds(grace)}.program(s, "AutoAgentProject", hostLimit)
	var out []File
	for _, kind := range []string{".service", ".timer"} {
		var b strings.Builder
		if err := t.ExecuteTemplate(&b, "reconcile"+kind, f); err != nil {
			return nil, fmt.Errorf("render %s%s: %w", Reconcile, kind, err)
		}
		out = append(out, File{Reconcile + kind, []byte(b.String())})
	}
	return out, nil
}

// prepare checks the settings and reads the templates.
func prepare(s Settings) (*template.Template, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	return s.parse()
}

func (s Settings) parse() (*template.Template, error) {
	t, err := template.New("units").Option("missingkey=error").Funcs(template.FuncMap{"word": word, "raw": raw}).
		ParseFS(s.Templates, "*.service", "*.timer", "*.socket", "*.target", "*.slice")
	if err != nil {
		return nil, fmt.Errorf("templates of units: %w", err)
	}
	return t, nil
}
