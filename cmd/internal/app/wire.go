package app

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"example.com/AutoAgentProject/core/caps"
	"example.com/AutoAgentProject/core/cell"
	"example.com/AutoAgentProject/core/claude"
	"example.com/AutoAgentProject/core/flow"
	"example.com/AutoAgentProject/core/login"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/money"
	"example.com/AutoAgentProject/core/runner"
	"example.com/AutoAgentProject/core/store"
	"example.com/AutoAgentProject/core/supervisor"
	"example.com/AutoAgentProject/core/tick"
	"example.com/AutoAgentProject/core/usererr"
)

// This file chooses the implementations.

// prices is the price table, read once: the meter asks it at every event of a stream.
var prices = sync.OnceValue(money.Default)

func newRunner(program, path string, l runner.Launcher) *claude.Claude {
	return claude.New(claude.Config{Program: program, Launcher: l, Price: prices().Cost, Path: path})
}

// newTick wires the tick of one agent.
func newTick(st *store.Store, m mission.Mission, a mission.Agent, log *slog.Logger) (*tick.Tick, error) {
	have, err := loadCraft()
	if a.Role == mission.Manager || a.Role == mission.Specialist { // who counts and stops depends on no text of a mission
		have, err = missionCraft(st)
	}
	if err != nil {
		return nil, err
	}
	var follows *flow.Flow
	if a.Role == mission.Manager || a.Role == mission.Specialist {
		if follows, err = have.missionFlow(m); err != nil {
			return nil, err
		}
	}
	t := &tick.Tick{
		Store: st, Mission: m, Agent: a, Professions: have.profs, Flow: follows, Limits: tick.DefaultLimits, Now: time.Now, Log: log, Home: os.Getenv("HOME"), UnitDirs: []string{systemUnits, "/run/systemd/system"},
		Credential: func() (runner.Credential, error) {
			f, err := login.Read(m.Credentials)
			return f.Credential(), err
		},
	}
	t.Caps = func() (caps.Limits, error) {
		cfg, err := readConfig(m.Config, false)
		return cfg.caps(), err
	}
	if m.VerifyLimit > 0 {
		t.Limits.Verify = time.Duration(m.VerifyLimit)
	}
	if m.Gateway != mission.GatewayOff {
		t.Price = prices().Cost
	}
	t.Limits.Cell = cellLimits(m.Bounds)
	t.Runner = newRunner(m.Program, m.Path, t)
	return t, nil
}

// cellLimits are the limits of each cell of a mission. Where no cgroup bounds the whole, at least no single process takes
// more of the memory than the mission may.
func cellLimits(b mission.Bounds) cell.Limits {
	l := cell.Limits{}
	if b.Tasks > 0 {
		l.Processes = min(cell.DefaultProcesses, uint64(b.Tasks))
	}
	if b.Memory > 0 {
		l.DataBytes = min(cell.DefaultDataBytes, uint64(b.Memory))
	}
	return l
}

// roleProgram is the binary that ticks a role: beside this one.
func roleProgram(r mission.Role) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	path := filepath.Join(filepath.Dir(self), "autoagent-"+string(r))
	if _, err := os.Stat(path); err != nil {
		return "", usererr.New(usererr.Environment, "make install puts all programs into one folder", "%s is not beside %s", filepath.Base(path), self)
	}
	return path, nil
}

// newSupervisor wires the embedded engine.
func (c *cli) newSupervisor(root store.Root, log *slog.Logger) *supervisor.Supervisor {
	return &supervisor.Supervisor{
		Root: root, Log: log,
		Command: func(m mission.Mission, a mission.Agent) []string {
			path, err := roleProgram(a.Role)
			if err != nil {
				path = "autoagent-" + string(a.Role) // the start says that it is not there
			}
			return []string{path, "--root", string(root), "--mission", m.ID, "--agent", a.Name}
		},
		Env: tickEnvironment(c.env.Getenv),
		Finish: func(ctx context.Context, m mission.Mission, stop mission.Stop) error {
			return finish(ctx, root.Mission(m.ID), m, stop, log)
		},
	}
}

// tickEnvironment is the closed list of variables that a tick gets; what else stands in the person's shell (keys among
// them) stays there.
func tickEnvironment(getenv func(string) string) []string {
	var env []string
	for _, k := range append([]string{"PATH", "HOME", "LANG", "TZ", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"}, testOnlyVariables...) {
		if v := getenv(k); v != "" {
			env = append(env, k+"="+v)
		}
	}
	return env
}

// systemPath holds the folders of programs that every cell shows.
const systemPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// cellPath is the PATH inside the cells: those entries of the person's own that the cells show.
func cellPath(path string) string {
	var out []string
	for _, d := range append(filepath.SplitList(path), filepath.SplitList(systemPath)...) {
		for _, top := range []string{"/usr/", "/bin", "/sbin", "/opt/", "/nix/"} {
			if strings.HasPrefix(d+"/", top+"/") || strings.HasPrefix(d, top) && strings.HasSuffix(top, "/") {
				if !slices.Contains(out, d) {
					out = append(out, d)
				}
			}
		}
	}
	return strings.Join(out, ":")
}
