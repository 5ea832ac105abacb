package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"example.com/AutoAgentProject/core/cell"
	"example.com/AutoAgentProject/core/claude"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/money"
	"example.com/AutoAgentProject/core/preflight"
	"example.com/AutoAgentProject/core/usererr"
)

// machine checks programs, walls, disk and clock and takes down what the ticks need to know of them.
func (c *cli) machine(ctx context.Context, d *draft, cfg config) error {
	m := &d.mission
	m.Path = cellPath(c.env.Getenv("PATH"))
	found := preflight.ForStart(ctx, c.machineOf(string(d.root), cfg))
	if err := found.Failed(); err != nil {
		return err
	}
	d.warnings = append(d.warnings, found.Warnings()...)
	d.walls, d.bounds = wallsSentence(found.Cell), strings.Join(cell.Bounds(cellLimits(m.Bounds)), ", ")
	if _, priced := money.Default().Rates(m.Model, 0, m.CreatedAt); !priced {
		d.warnings = append(d.warnings, "no list price is known for "+m.Model+": the dearest one counts")
	}
	if n := len(mission.Specialists(m.Roster)); n > mission.WarnSpecialists && m.Flow == "" {
		d.warnings = append(d.warnings, fmt.Sprintf("%d specialists are many for one manager; %d work well", n, mission.WarnSpecialists))
	}
	m.Program, m.Agents = found.Program, newRunner(found.Program, m.Path, cell.Launcher{}).Name()+" "+found.Agent
	return nil
}

// machineOf is what the checks of this machine are told.
func (c *cli) machineOf(root string, cfg config) preflight.Machine {
	return preflight.Machine{
		Root: root, Temp: os.TempDir(), UID: os.Geteuid(), Now: time.Now(), Built: built(),
		Roles: func() error {
			for _, r := range []mission.Role{mission.Manager, mission.Specialist, mission.Reporter, mission.Quota} {
				if _, err := roleProgram(r); err != nil {
					return err
				}
			}
			return nil
		},
		Program: func() (string, error) { return c.program(cfg) },
		Agent: func(ctx context.Context, program string) (string, error) {
			return newRunner(program, cellPath(c.env.Getenv("PATH")), cell.Launcher{}).Check(ctx)
		},
	}
}

// built is when the commit of this build was made; zero: the build does not know.
func built() time.Time {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.time" {
				at, _ := time.Parse(time.RFC3339, s.Value)
				return at
			}
		}
	}
	return time.Time{}
}

// wallsSentence says in a line what holds around everything untrusted.
func wallsSentence(r cell.Report) string {
	s := r.Version
	if r.Walls.Landlock > 0 {
		s += fmt.Sprintf(", Landlock %d", r.Walls.Landlock)
	} else {
		s += ", no Landlock in this kernel"
	}
	if r.Walls.Seccomp {
		s += ", system call filter"
	}
	return s
}

// program finds the agent program: AUTOAGENT_CLAUDE, the configuration, PATH, the pinned one.
func (c *cli) program(cfg config) (string, error) {
	if cfg.Claude == "" || c.env.Getenv("AUTOAGENT_CLAUDE") != "" {
		return claude.Find(c.env.Getenv)
	}
	path, err := claude.Find(func(k string) string {
		if k == "AUTOAGENT_CLAUDE" {
			return cfg.Claude
		}
		return c.env.Getenv(k)
	})
	if u, ok := errors.AsType[*usererr.Error](err); ok {
		err = usererr.Wrap(u.Cause, u.Code, "correct it in "+c.configPath(), "claude of the configuration names no program")
	}
	return path, err
}
