package units

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/store"
	"example.com/AutoAgentProject/core/usererr"
)

// check refuses settings that would render units which do not load, do something else than they say, or hand root to
// whom it does not belong.
func (s Settings) check() error {
	if s.Templates == nil || s.RunWall < 0 || s.TickEvery < 0 || s.Memory < 0 || s.Tasks < 0 || s.CPUWeight < 0 || s.CPUWeight > 10000 {
		return errors.New("settings of units: the templates are missing, or a limit is out of its range")
	}
	if err := errors.Join(checkPath("the root", s.Root), s.checkHost(), checkPath("the home folder", s.Home)); err != nil {
		return err
	}
	if err := s.checkEnvironment(); err != nil {
		return err
	}
	if s.Manager == User {
		if s.User != "" {
			return errors.New("settings of units: a user manager's ticks run as its user")
		}
		return nil
	}
	return s.checkSystem()
}

// checkHost is what the host's own units need.
func (s Settings) checkHost() error {
	if s.Templates == nil || s.Manager != System && s.Manager != User {
		return fmt.Errorf("settings of units: the templates are missing, or there is no manager %q", s.Manager)
	}
	if err := errors.Join(checkPath("the programs' folder", s.Bin), checkPath("the units' folder", s.UnitDir)); err != nil {
		return err
	}
	if strings.ContainsAny(s.Bin, `"'\`) {
		return usererr.New(usererr.Environment, "install the programs elsewhere", "systemd starts no program whose path holds quotes or backslashes: %s", s.Bin)
	}
	return nil
}

var userName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]*\$?$`)

// checkSystem: there ticks are never root's, and what root runs is no one else's to change.
func (s Settings) checkSystem() error {
	if !userName.MatchString(s.User) {
		return usererr.New(usererr.Usage, "name the owner of the root", "%q is no user that ticks can run as", s.User)
	}
	if n, err := strconv.ParseUint(s.User, 10, 64); s.User == "root" || err == nil && (n == 0 || n == 1<<16-1 || n >= 1<<32-1) {
		return usererr.New(usererr.Usage, "give the root to a user of its own", "ticks do not run as %s", s.User)
	}
	for _, folder := range []string{s.Root, s.Home} {
		if folder != "/" && (within(s.Bin, folder) || within(s.UnitDir, folder)) {
			return usererr.New(usererr.Environment, "make install puts the programs below /usr/local", "with the system manager root would run what %s can write: %s and %s must not lie in %s", s.User, s.Bin, s.UnitDir, folder)
		}
	}
	return nil
}

var (
	ownVariable = regexp.MustCompile(`^AUTOAGENT_[A-Z0-9_]+$`)
	secretName  = regexp.MustCompile(`TOKEN|SECRET|PASS|KEY`)
)

// checkEnvironment: what stands in a unit can be read by everybody.
func (s Settings) checkEnvironment() error {
	if s.path() == "" {
		return errors.New("settings of units: PATH has no folder that ticks can use")
	}
	if err := errors.Join(checkText("PATH", s.Path), checkText("LANG", s.Lang)); err != nil {
		return err
	}
	for k, v := range s.Env {
		if !ownVariable.MatchString(k) || secretName.MatchString(k) {
			return fmt.Errorf("settings of units: %s has no place in a unit", k)
		}
		if err := checkText(k, v); err != nil {
			return err
		}
	}
	return nil
}

// path is PATH without what an agent could put a program into: folders of missions, and those that depend on where a
// tick is.
func (s Settings) path() string {
	var out []string
	for _, dir := range filepath.SplitList(s.Path) {
		if dir = filepath.Clean(dir); filepath.IsAbs(dir) && !within(dir, store.Root(s.Root).Missions()) {
			out = append(out, dir)
		}
	}
	return strings.Join(out, ":")
}

// checkMission refuses names that would mean something else in a unit; whoever read the mission has checked them already.
func checkMission(m mission.Mission) error {
	if err := mission.CheckID(m.ID); err != nil {
		return err
	}
	if !slices.ContainsFunc(m.Roster, func(a mission.Agent) bool { return a.Role == mission.Quota }) {
		return fmt.Errorf("units of mission %s: nobody in its roster would stop it", m.ID)
	}
	for _, a := range m.Roster {
		if err := mission.CheckAgent(a.Name); err != nil {
			return err
		}
		switch a.Role {
		case mission.Manager, mission.Specialist, mission.Reporter, mission.Quota:
		default:
			return fmt.Errorf("units of mission %s: %s has no role that is ticked: %q", m.ID, a.Name, a.Role)
		}
	}
	return nil
}

func checkPath(what, path string) error {
	if !filepath.IsAbs(path) || filepath.Clean(path) != path {
		return usererr.New(usererr.Usage, "", "%s is no absolute, clean path: %q", what, path)
	}
	return checkText(what, path)
}

// checkText refuses what no quoting brings into a unit.
func checkText(what, s string) error {
	if !utf8.ValidString(s) || strings.ContainsFunc(s, unicode.IsControl) {
		return usererr.New(usererr.Usage, "choose another one", "%s holds characters that cannot stand in a unit: %q", what, s)
	}
	return nil
}

// within says whether path is folder or lies below it.
func within(path, folder string) bool {
	return path == folder || strings.HasPrefix(path, strings.TrimSuffix(folder, "/")+"/")
}
