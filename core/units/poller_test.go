package units

import (
	"strings"
	"testing"

	"example.com/AutoAgentProject/systemd"
)

func pollerSettings(m Manager) Settings {
	return Settings{Templates: systemd.Files(), Manager: m, User: "example", Root: "/srv/my root", Bin: "/usr/local/bin", UnitDir: "/etc/systemd/system", Path: "/usr/bin:/bin", Home: "/home/example"}
}

// TestPoller: it is what a person would write, in both managers, and holds no secret.
func TestPoller(t *testing.T) {
	for _, m := range []Manager{User, System} {
		f, err := Poller(pollerSettings(m), "0123456789abcdef")
		if err != nil {
			t.Fatal(err)
		}
		if f.Name != "forge-autoagent-poller@0123456789abcdef.service" || !IsPoller(f.Name) || !strings.HasPrefix(string(f.Text), Header) {
			t.Error(f.Name)
		}
		for line, want := range map[string]bool{"ExecStart=:\"/usr/local/bin/AutoAgentProject\" poller --until-idle --root \"/srv/my root\"\n": true,
			"User=example\n": m == System, "WantedBy=default.target\n": m == User, "WantedBy=multi-user.target\n": m == System, "Restart=on-failure\n": true, "Slice=forge-autoagentguard.slice\n": true, "LoadCredential": false} {
			if strings.Contains(string(f.Text), line) != want {
				t.Errorf("%s: %q in it is %v:\n%s", m, line, !want, f.Text)
			}
		}
	}
	for _, bad := range []func(*Settings) string{
		func(*Settings) string { return "" }, func(*Settings) string { return "123456:TOKEN" }, func(*Settings) string { return "../../x" },
		func(s *Settings) string { s.Root = "relative"; return "0123456789abcdef" },
		func(s *Settings) string { s.Root = "/srv/a\nExecStartPre=/bin/x"; return "0123456789abcdef" },
		func(s *Settings) string { s.User = "root"; return "0123456789abcdef" },
		func(s *Settings) string { s.Home = "/home/x\ny"; return "0123456789abcdef" },
	} {
		s := pollerSettings(System)
		hash := bad(&s)
		if f, err := Poller(s, hash); err == nil {
			t.Errorf("%s", f.Text)
		}
	}
	for _, name := range []string{"forge-autoagent-poller@.service", "forge-autoagent-poller@x.service", "forge-autoagent-poller-manager.service", "forge-autoagent-poller@0123456789abcdef.timer"} {
		if IsPoller(name) {
			t.Error(name)
		}
	}
}
