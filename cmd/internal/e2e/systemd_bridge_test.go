package e2e

import (
	"encoding/json"
	"strings"
	"testing"

	"example.com/AutoAgentProject/core/units"
	"example.com/AutoAgentProject/core/view"
)

// TestSystemdBridge: the socket starts the dashboard when somebody looks; it knows from the manager who ticks, writes nothing, and
// goes whole when it is taken away, while the mission goes on. AUTOAGENT_FULL only: it boots a machine.
func TestSystemdBridge(t *testing.T) {
	if !full() {
		t.Skip("with AUTOAGENT_FULL")
	}
	t.Parallel()
	for _, manager := range []units.Manager{units.User, units.System} {
		t.Run(string(manager), func(t *testing.T) {
			p := personOf(t, manager, team("goal of site", "mark-of-site", 1))
			p.start("site", "goal of site")
			p.until("it works", func() bool { return len(p.marked("mark-of-site")) >= leftBy })
			by := owner
			if manager == units.System {
				by = ""
			}
			p.inside(by, "mkdir -p /tmp/secret-"+string(manager)+" && (umask 077; echo example-token-0123456789 > /tmp/secret-"+string(manager)+"/token)")
			if code, out := p.as(by, "bridge", "install", "--listen", "127.0.0.1:7799", "--token-file", "/tmp/secret-"+string(manager)+"/token"); code != 0 {
				t.Fatalf("bridge install: %d\n%s", code, out)
			}
			if out := p.systemctl("is-active", "forge-autoagent-bridge.service"); strings.TrimSpace(out) == "active" {
				t.Error("it runs though nobody looks")
			}
			ask := func(path, more string) string {
				return p.inside(owner, `bash -c 'exec 3<>/dev/tcp/127.0.0.1/7799; printf "GET `+path+` HTTP/1.0\r\nHost: localhost\r\n`+more+`\r\n" >&3; cat <&3'`)
			}
			if out := ask("/", ""); !strings.Contains(out, "401 Unauthorized") {
				t.Errorf("without the token:\n%.500s", out)
			}
			_, body, _ := strings.Cut(ask("/api/v1/missions/site", `Authorization: Bearer example-token-0123456789\r\n`), "\r\n\r\n")
			var d view.Detail
			if err := json.Unmarshal([]byte(body), &d); err != nil || !d.Live.Ticking || d.ID != "site" || d.Unreadable || len(d.Live.Next) == 0 {
				t.Errorf("%v %+v\n%.800s", err, d.Live, body)
			}
			if out := p.systemctl("show", "-p", "Environment,ExecStart,MainPID,User", "forge-autoagent-bridge.service"); strings.Contains(out, "example-token") || strings.Contains(out, "MainPID=0\n") {
				t.Error(out)
			}
			if code, out := p.as(by, "bridge", "install", "--listen", "127.0.0.1:7799", "--token-file", "/tmp/secret-"+string(manager)+"/token"); code != 0 {
				t.Errorf("again: %d\n%s", code, out)
			}
			if code, out := p.as(by, "bridge", "uninstall"); code != 0 {
				t.Errorf("bridge uninstall: %d\n%s", code, out)
			}
			if out := p.listed("forge-autoagent-bridge*"); out != "" {
				t.Errorf("it is still there:\n%s", out)
			}
			if s := p.status("site"); !s.Live.Ticking {
				t.Errorf("the mission does not go on: %+v", s)
			}
			if code, out := p.as(owner, "abort", "site"); code != 0 {
				t.Errorf("abort: %d\n%s", code, out)
			}
		})
	}
}
