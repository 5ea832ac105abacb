package units

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/store"
)

// fields are what the templates name.
type fields struct {
	Header string
	System bool
	User   string

	ID, Base, Target string
	Slice            string
	Wanted           []string // units that come with the target

	Agent string
	Role  mission.Role
	Quota bool // it stands outside of what a stop ends
	Cells bool // it asks the model and starts cells

	Root, Bin, UnitDir  string
	Program             string
	Data, Logs, Work    string
	Folder              string
	Environment         []string // NAME=value
	OwnTmp              bool     // a private /tmp hides nothing that is needed
	Every, Limit, Grace string
	Memory              string
	Tasks, CPUWeight    int

	Listen, Hosts, Token string // of the dashboard
}

// fields are those of the whole mission.
func (s Settings) fields(m mission.Mission) fields {
	st := store.Root(s.Root).Mission(m.ID)
	base := "forge-autoagent-" + m.ID
	f := fields{
		Header: header(),
		System: s.Manager == System, User: s.User,
		ID: m.ID, Base: base, Target: base + ".target", Slice: mission.Slice(m.ID),
		Root: s.Root, Bin: s.Bin, UnitDir: s.UnitDir, Data: st.Dir(), Logs: st.Logs(), Work: st.Work(),
		Environment: s.environment(), Grace: seconds(grace), Every: seconds(s.every()),
		OwnTmp: !slices.ContainsFunc(s.needed(m), inTmp),
		Memory: "75%", Tasks: or(m.Bounds.Tasks, or(s.Tasks, DefaultTasks)), CPUWeight: or(m.Bounds.CPUWeight, or(s.CPUWeight, DefaultCPUWeight)),
	}
	if memory := or(m.Bounds.Memory, s.Memory); memory > 0 {
		f.Memory = fmt.Sprint(memory)
	}
	for _, a := range m.Roster {
		f.Wanted = append(f.Wanted, base+"-"+a.Name+".socket", base+"-"+a.Name+".timer")
	}
	f.Wanted = append(f.Wanted, base+"-stop.socket")
	return f
}

func header() string {
	return fmt.Sprintf("%s%d. docs/units.md explains the lines.", Header, Version)
}

// guard turns them into those of what stops a mission. What root runs gets nothing of the owner's environment: who could
// write a folder of its PATH would be root.
func (f fields) guard() fields {
	f.Slice = mission.GuardSlice(f.ID)
	f.Memory, f.Tasks, f.CPUWeight = guardMemory, guardTasks, guardWeight
	if f.System {
		f.Environment = nil
	}
	return f
}

// program says what is run, and how long at most.
func (f fields) program(s Settings, name string, limit time.Duration) fields {
	f.Program, f.Limit = filepath.Join(s.Bin, name), seconds(limit)
	return f
}

// agent turns them into those of one agent's units.
func (f fields) agent(m mission.Mission, s Settings, a mission.Agent) fields {
	limit := quickLimit
	switch a.Role {
	case mission.Manager, mission.Specialist:
		f.Cells = true
		verify := or(time.Duration(m.VerifyLimit), verifyLimit)
		limit = TickTime + s.RunWall + 2*verify + gitTime
	case mission.Quota:
		environment := f.Environment // its ticks are the owner's like all others
		f = f.guard()
		f.Environment, f.Quota, f.Every = environment, true, seconds(min(s.every(), time.Minute))
	}
	st := store.Root(s.Root).Mission(m.ID)
	f.Agent, f.Role, f.Folder = a.Name, a.Role, st.Agent(a.Name)
	return f.program(s, "autoagent-"+string(a.Role), limit)
}

func (s Settings) every() time.Duration { return or(s.TickEvery, DefaultTickEvery) }

// environment is the closed list of variables that a tick gets.
func (s Settings) environment() []string {
	out := []string{"PATH=" + s.path(), "HOME=" + s.Home, "LANG=" + or(s.Lang, "C.UTF-8")}
	for _, k := range slices.Sorted(maps.Keys(s.Env)) {
		out = append(out, k+"="+s.Env[k])
	}
	return out
}

// needed are the paths that ticks, stop and reconcile must find.
func (s Settings) needed(m mission.Mission) []string {
	return append(filepath.SplitList(s.path()), s.Root, s.Bin, s.UnitDir, s.Home, m.Program, m.Credentials, s.Env["AUTOAGENT_CREDENTIALS"])
}

// inTmp says whether a private /tmp or /var/tmp would hide the path.
func inTmp(path string) bool { return within(path, "/tmp") || within(path, "/var/tmp") }

func seconds(d time.Duration) string { return fmt.Sprintf("%ds", int64((d+time.Second-1)/time.Second)) }

func or[T comparable](v, otherwise T) T {
	var none T
	if v == none {
		return otherwise
	}
	return v
}
