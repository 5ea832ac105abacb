package systemdengine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/dbus"

	"example.com/AutoAgentProject/core/engine"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/proc"
	"example.com/AutoAgentProject/core/units"
	"example.com/AutoAgentProject/core/usererr"
)

// Live says whether the mission's timers are up, and when each fires.
func (e *Engine) Live(ctx context.Context, id string) (engine.Live, error) {
	s, _, err := e.unitsOf(id)
	if usererr.CodeOf(err) == usererr.Conflict {
		return engine.Live{}, nil
	}
	if err != nil && len(s.roster) == 0 {
		return engine.Live{}, err
	}
	b := &bus{e: e, patience: glance}
	defer b.close()
	found, err := b.loaded(ctx, s)
	if err != nil {
		return engine.Live{}, err
	}
	live := engine.Live{By: fmt.Sprintf("%s (%s manager)", Name, e.Settings.Manager), Next: map[string]time.Time{}}
	for _, a := range s.roster {
		name := s.base() + "-" + a.Name + ".timer"
		if found[name].ActiveState != "active" {
			continue
		}
		live.Ticking = true
		at, err := b.next(ctx, name)
		if err != nil && !unloaded(err) {
			return engine.Live{}, err
		}
		if !at.IsZero() {
			live.Next[a.Name] = at
		}
	}
	if !live.Ticking {
		return engine.Live{}, nil
	}
	return live, nil
}

// next is when a timer fires; zero: by time it does not, also because its service runs just now.
func (b *bus) next(ctx context.Context, timer string) (time.Time, error) {
	var at time.Time
	err := b.do(ctx, "ask "+timer, func(ctx context.Context, c *dbus.Conn) error {
		p, err := c.GetUnitTypePropertiesContext(ctx, timer, "Timer")
		if err != nil {
			return err
		}
		at = time.Time{}
		if us, ok := p["NextElapseUSecMonotonic"].(uint64); ok && us != 0 && us < math.MaxInt64/1000 {
			at = time.Now().Add(time.Duration(us)*time.Microsecond - proc.Mono())
		}
		if us, ok := p["NextElapseUSecRealtime"].(uint64); ok && us != 0 && us < math.MaxInt64 {
			if real := time.UnixMicro(int64(us)); at.IsZero() || real.Before(at) {
				at = real
			}
		}
		return nil
	})
	return at, err
}

// Answers says whether a manager is there to tick missions.
func (e *Engine) Answers(ctx context.Context, manager units.Manager) error {
	_, err := e.Version(ctx, manager)
	return err
}

// booted is there where systemd is the first process: sd_booted(3).
const booted = "/run/systemd/system"

// Version is what a manager that is there calls its version.
func (e *Engine) Version(ctx context.Context, manager units.Manager) (version string, err error) {
	if _, err := os.Stat(booted); errors.Is(err, fs.ErrNotExist) && e.Connect == nil { // nothing to wait for
		return "", usererr.New(usererr.Environment, "--engine embedded does without systemd", "systemd does not run this machine")
	}
	other := *e
	other.Settings.Manager = manager
	b := &bus{e: &other, patience: glance}
	defer b.close()
	err = b.do(ctx, "ask for its version", func(_ context.Context, c *dbus.Conn) error {
		version, err = c.GetManagerProperty("Version")
		return err
	})
	if err == nil {
		return strings.Trim(version, `"`), nil
	}
	hint := "--engine embedded does without systemd"
	if manager == units.User {
		hint = "log in as this user (not by su or sudo), or run loginctl enable-linger and set XDG_RUNTIME_DIR=/run/user/$(id -u); " + hint
	}
	return "", usererr.Wrap(err, usererr.Environment, hint, "systemd's %s manager does not answer", manager)
}

// Lingers says whether the user manager of whoever runs this goes on when that user logs out.
func (e *Engine) Lingers() error {
	u, err := user.Current()
	if err != nil {
		return fmt.Errorf("find out who this is: %w", err)
	}
	_, err = os.Stat(filepath.Join(lingerers, u.Username))
	if errors.Is(err, fs.ErrNotExist) {
		return usererr.New(usererr.Environment, "loginctl enable-linger "+u.Username+", or --no-linger to start it all the same",
			"units of %s end at log-out and do not come back after a reboot", u.Username)
	}
	return err
}

// lingerers holds a file for each user whose manager runs from boot on.
const lingerers = "/var/lib/systemd/linger"

// Trouble says in sentences what is wrong with the mission's units while it should tick.
func (e *Engine) Trouble(ctx context.Context, id string) ([]string, error) {
	s, m, err := e.unitsOf(id)
	if err != nil && len(s.roster) == 0 {
		return nil, err
	}
	b := &bus{e: e, patience: glance}
	defer b.close()
	found, err := b.loaded(ctx, s)
	if err != nil {
		return nil, err
	}
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if m == nil {
		say("the mission's own record cannot be read, but its units are there")
	}
	here, err := e.here(s.names())
	if err != nil {
		return nil, err
	}
	for _, name := range s.names() {
		if !slices.Contains(here, name) {
			say("unit %s is missing in %s", name, e.Settings.UnitDir)
		}
	}
	for _, name := range s.names() {
		if u, ok := found[name]; ok && u.LoadState != "loaded" {
			say("systemd cannot load %s: %s", name, u.LoadState)
		}
	}
	for _, program := range e.lost(s) {
		say("the program %s of its units is not there: put it back, or end the mission", program)
	}
	out = append(out, e.foreign(m)...)
	for _, a := range s.roster {
		base := s.base() + "-" + a.Name
		if u := found[base+".socket"]; u.ActiveState != "active" {
			say("nothing wakes %s: %s is %s", a.Name, base+".socket", state(u))
		}
		if err := e.timerTrouble(ctx, b, a, base, found, say); err != nil {
			return out, err
		}
	}
	if u := found[s.stopSocket()]; u.ActiveState != "active" {
		say("nobody listens for a stop: %s is %s", s.stopSocket(), state(u))
	}
	return out, nil
}

func state(u dbus.UnitStatus) string {
	if u.ActiveState == "" {
		return "not loaded"
	}
	return u.ActiveState
}

func (e *Engine) timerTrouble(ctx context.Context, b *bus, a mission.Agent, base string, found map[string]dbus.UnitStatus, say func(string, ...any)) error {
	timer, service := found[base+".timer"], found[base+".service"]
	if timer.ActiveState != "active" {
		say("%s is not ticked by time: %s is %s", a.Name, base+".timer", state(timer))
		return nil
	}
	if service.ActiveState == "failed" {
		exit, err := b.exit(ctx, base+".service")
		if err != nil && !unloaded(err) {
			return err
		}
		if usererr.Code(exit) == usererr.DoNotRetry {
			say("%s says that it must not be started again (exit status %d)", a.Name, exit)
		} else {
			say("the last tick of %s ended badly: %s is failed", a.Name, base+".service")
		}
	}
	at, err := b.next(ctx, base+".timer")
	if err != nil && !unloaded(err) {
		return err
	}
	// While a tick runs, and for the instant after it, a timer that counts from its end has no time.
	if at.IsZero() && settled(service) && timer.SubState == "elapsed" {
		say("%s has no next run, so %s is ticked only when somebody wakes it", base+".timer", a.Name)
	}
	return nil
}

// foreign are installed units that tick this mission and that it does not have.
func (e *Engine) foreign(m *mission.Mission) []string {
	var out []string
	if m == nil {
		return nil
	}
	for _, a := range e.installed(m.ID) {
		if _, ok := m.Agent(a.Name); !ok {
			out = append(out, fmt.Sprintf("forge-autoagent-%s-%s.service ticks an agent whom the mission does not have", m.ID, a.Name))
		}
	}
	return out
}
