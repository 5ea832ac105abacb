package app

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"example.com/AutoAgentProject/core/cell"
	"example.com/AutoAgentProject/core/claude"
	"example.com/AutoAgentProject/core/git"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/money"
	"example.com/AutoAgentProject/core/usererr"
)

// machine checks programs and walls and takes down what the ticks need to know of them.
func (c *cli) machine(ctx context.Context, d *draft, cfg config) error {
	m := &d.mission
	if _, err := git.Check(ctx); err != nil {
		return err
	}
	for _, r := range []mission.Role{mission.Manager, mission.Specialist, mission.Reporter, mission.Quota} {
		if _, err := roleProgram(r); err != nil {
			return err
		}
	}
	rep, err := cell.Check(ctx)
	if err != nil {
		return err
	}
	d.walls, d.bounds = wallsSentence(rep), strings.Join(rep.Bounds, ", ")
	if _, priced := money.Default().Rates(m.Model, 0, m.CreatedAt); !priced {
		d.warnings = append(d.warnings, "no list price is known for "+m.Model+": the dearest one counts")
	}
	if n := len(mission.Specialists(m.Roster)); n > mission.WarnSpecialists {
		d.warnings = append(d.warnings, fmt.Sprintf("%d specialists are many for one manager; %d work well", n, mission.WarnSpecialists))
	}
	m.Path = cellPath(c.env.Getenv("PATH"))
	if m.Program, err = c.program(cfg); err != nil {
		return err
	}
	r := newRunner(m.Program, m.Path, cell.Launcher{})
	v, err := r.Check(ctx)
	if err != nil {
		return err
	}
	m.Agents = r.Name() + " " + v
	return nil
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
