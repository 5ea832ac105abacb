package units

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestBridgeUnits: the dashboard is behind a socket, in both managers, and the token is in neither unit.
func TestBridgeUnits(t *testing.T) {
	for _, m := range []Manager{User, System} {
		list, err := BridgeUnits(pollerSettings(m), BridgeSettings{Listen: "127.0.0.1:7777", Hosts: []string{"box.example"}, TokenFile: "/etc/autoagent/bridge token"})
		if err != nil || len(list) != 2 || list[0].Name != "forge-autoagent-bridge.socket" || list[1].Name != "forge-autoagent-bridge.service" {
			t.Fatal(list, err)
		}
		text := string(list[0].Text) + string(list[1].Text)
		for line, want := range map[string]bool{"ListenStream=127.0.0.1:7777\n": true, "WantedBy=sockets.target\n": true,
			"ExecStart=:\"/usr/local/bin/autoagent-bridge\" --root \"/srv/my root\" --hosts \"box.example\"\n": true, "LoadCredential=bridge-token:/etc/autoagent/bridge token\n": true,
			"User=example\n": m == System, "PrivateUsers=yes\n": m == User, "ProtectSystem=strict\n": true, "ReadWritePaths": false} {
			if strings.Contains(text, line) != want {
				t.Errorf("%s: %q in it is %v:\n%s", m, line, !want, text)
			}
		}
		if !IsBridge(list[0].Name) || !IsBridge(list[1].Name) || IsBridge("forge-autoagent-bridge.target") || IsBridge("forge-autoagent-bridge-manager.service") {
			t.Error("the names")
		}
	}
	for _, b := range []BridgeSettings{{Listen: ""}, {Listen: "7777"}, {Listen: "example.org:80"}, {Listen: "127.0.0.1:80\nExecStartPre=/x"}, {Listen: "127.0.0.1:http"},
		{Listen: "127.0.0.1:1", Hosts: []string{"a b"}}, {Listen: "127.0.0.1:1", Hosts: []string{"a,b"}}, {Listen: "127.0.0.1:1", TokenFile: "relative"}, {Listen: "127.0.0.1:1", TokenFile: "/a\nb"}} {
		if list, err := BridgeUnits(pollerSettings(User), b); err == nil {
			t.Errorf("%+v: %s", b, list)
		}
	}
	s := pollerSettings(System)
	s.User = "root"
	if _, err := BridgeUnits(s, BridgeSettings{Listen: "127.0.0.1:7777"}); err == nil {
		t.Error("root runs it")
	}
}

// TestVerifyBridge: systemd has nothing to say about them, whatever the folders are called.
func TestVerifyBridge(t *testing.T) {
	for _, m := range []Manager{User, System} {
		s := pollerSettings(m)
		s.Bin = programs(t, "my bin % $x")
		if err := os.WriteFile(filepath.Join(s.Bin, "autoagent-bridge"), []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		list, err := BridgeUnits(s, BridgeSettings{Listen: "[::1]:7777", Hosts: []string{"box.example"}, TokenFile: "/etc/autoagent/a %h token"})
		if err != nil {
			t.Fatal(err)
		}
		if out := verify(t, m, list); out != "" {
			t.Errorf("%s: %s", m, out)
		}
	}
}
