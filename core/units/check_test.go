package units

import (
	"errors"
	"strings"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/usererr"
)

// TestRefused: settings that would render wrong units render none, and the error says what is wrong.
func TestRefused(t *testing.T) {
	user := func(change func(*Settings)) Settings { s := userSettings(); change(&s); return s }
	system := func(change func(*Settings)) Settings { s := systemSettings(); change(&s); return s }
	for name, c := range map[string]struct {
		s      Settings
		says   string
		person bool // it is one that a person can mend
	}{
		"newline in root":  {user(func(s *Settings) { s.Root = "/srv/a\nExecStart=/bin/evil" }), "the root holds characters", true},
		"tab in root":      {user(func(s *Settings) { s.Root = "/srv/a\tb" }), "the root holds characters", true},
		"no UTF-8":         {user(func(s *Settings) { s.Root = "/srv/a\xff" }), "the root holds characters", true},
		"relative root":    {user(func(s *Settings) { s.Root = "srv" }), "no absolute, clean path", true},
		"unclean root":     {user(func(s *Settings) { s.Root = "/srv/../etc" }), "no absolute, clean path", true},
		"quotes in bin":    {user(func(s *Settings) { s.Bin = `/srv/a"b` }), "systemd starts no program", true},
		"backslash in bin": {user(func(s *Settings) { s.Bin = `/srv/a\b` }), "systemd starts no program", true},
		"no units' folder": {user(func(s *Settings) { s.UnitDir = "" }), "the units' folder", true},
		"newline in home":  {user(func(s *Settings) { s.Home = "/home/\n" }), "the home folder holds", true},
		"newline in PATH":  {user(func(s *Settings) { s.Path = "/usr/bin:/a\nb" }), "PATH holds characters", true},
		"no PATH":          {user(func(s *Settings) { s.Path = ".:bin" }), "PATH has no folder", false},
		"secret":           {user(func(s *Settings) { s.Env = map[string]string{"AUTOAGENT_API_KEY": "x"} }), "has no place in a unit", false},
		"foreign variable": {user(func(s *Settings) { s.Env = map[string]string{"LD_PRELOAD": "/x"} }), "has no place in a unit", false},
		"newline in value": {user(func(s *Settings) { s.Env = map[string]string{"AUTOAGENT_CONFIG": "/x\nUser=root"} }), "AUTOAGENT_CONFIG holds", true},
		"no manager":       {user(func(s *Settings) { s.Manager = "" }), "there is no manager", false},
		"no wall":          {user(func(s *Settings) { s.RunWall = 0 }), "how long a run may take", false},
		"no templates":     {user(func(s *Settings) { s.Templates = nil }), "templates are missing", false},
		"weight":           {user(func(s *Settings) { s.CPUWeight = 10001 }), "out of its range", false},
		"user with user":   {user(func(s *Settings) { s.User = "example" }), "run as its user", false},
		"nobody":           {system(func(s *Settings) { s.User = "" }), "no user that ticks can run as", true},
		"root":             {system(func(s *Settings) { s.User = "root" }), "do not run as root", true},
		"uid 0":            {system(func(s *Settings) { s.User = "0" }), "do not run as 0", true},
		"uid 00":           {system(func(s *Settings) { s.User = "00" }), "do not run as 00", true},
		"uid -1":           {system(func(s *Settings) { s.User = "4294967295" }), "do not run as", true},
		"specifier":        {system(func(s *Settings) { s.User = "%u" }), "no user that ticks can run as", true},
		"owner's programs": {system(func(s *Settings) { s.Bin = "/var/lib/autoagent/bin" }), "root would run what autoagent can write", true},
		"owner's home":     {system(func(s *Settings) { s.Home = "/usr/local" }), "root would run what autoagent can write", true},
	} {
		t.Run(name, func(t *testing.T) {
			files, err := Render(sample(t, "my-site", "codebuilder"), c.s)
			if err == nil || files != nil {
				t.Fatalf("%d units, no error", len(files))
			}
			var u *usererr.Error
			if !strings.Contains(err.Error(), c.says) || errors.As(err, &u) != c.person {
				t.Errorf("%T: %v", err, err)
			}
		})
	}
}

func TestRefusedMission(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*mission.Mission)
		says   string
	}{
		"id":       {func(m *mission.Mission) { m.ID = "a%b" }, "cannot be a mission's id"},
		"agent":    {func(m *mission.Mission) { m.Roster[1].Name = "a b" }, "cannot be an agent's name"},
		"role":     {func(m *mission.Mission) { m.Roster[1].Role = "../x" }, "no role that is ticked"},
		"no guard": {func(m *mission.Mission) { m.Roster = m.Roster[:2] }, "nobody in its roster would stop it"},
		"twice":    {func(m *mission.Mission) { m.Roster[1].Name = "manager" }, "two agents"},
		"stop":     {func(m *mission.Mission) { m.Roster[1].Name = "stop" }, "two agents"},
	} {
		m := sample(t, "my-site", "codebuilder")
		c.change(&m)
		if _, err := Render(m, userSettings()); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestPath: folders that an agent can fill, or that depend on where a tick is, are no part of PATH.
func TestPath(t *testing.T) {
	s := userSettings()
	s.Root, s.Path = "/r", "/usr/bin/:.::node_modules/.bin:/r/autoagent-missions/x/manager/bin:/opt/a b:/r/../r/autoagent-missions:/bin"
	text := find(t, render(t, sample(t, "x", "codebuilder"), s), "forge-autoagent-x-manager.service")
	if got := lines(text, "Environment")[0]; got != `"PATH=/usr/bin:/opt/a b:/bin"` {
		t.Error(got)
	}
}

// TestEvery: quota looks at least once a minute.
func TestEvery(t *testing.T) {
	for every, want := range map[time.Duration][2]string{0: {"60s", "60s"}, 5 * time.Minute: {"300s", "60s"}, 2 * time.Second: {"2s", "2s"}, 1500 * time.Millisecond: {"2s", "2s"}} {
		s := userSettings()
		s.TickEvery = every
		files := render(t, sample(t, "x", "codebuilder"), s)
		for i, agent := range []string{"manager", "quota"} {
			if got := lines(find(t, files, "forge-autoagent-x-"+agent+".timer"), "OnUnitInactiveSec"); len(got) != 1 || got[0] != want[i] {
				t.Errorf("every %v: %s ticks after %q, want %s", every, agent, got, want[i])
			}
		}
	}
}
