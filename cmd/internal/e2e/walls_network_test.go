package e2e

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/AutoAgentProject/core/cell"
)

// TestNetwork: without a network an agent still gets its model, and reaches no service of this machine, in a run and in a
// verify command; with one it does not either where the kernel can close ports. The control, with the host's, reaches it.
func TestNetwork(t *testing.T) {
	t.Parallel()
	service, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer service.Close()
	_, port, _ := net.SplitHostPort(service.Addr().String())
	script := `if python3 -c 'import socket; socket.create_connection(("127.0.0.1", ` + port + `), 3)' 2>/dev/null; then echo reached; else echo cut off; fi`
	open := "reached"
	if cell.ClosesPorts() {
		open = "cut off"
	}
	for network, want := range map[string]string{"none": "cut off", "open": open, "host": "reached"} {
		w := newWorld(t, planned(step("net", "test \"$("+script+")\" = '"+want+"'")), works("net", bash(script+" >net.txt; ls /sys/class/net >/dev/null 2>&1; true")))
		w.must(0, "start", "net", "Look around", "--network", network)
		b, err := os.ReadFile(filepath.Join(w.store("net").Result(), "net.txt"))
		if err != nil || strings.TrimSpace(string(b)) != want {
			t.Errorf("%s: %q, %v; want %q", network, b, err, want)
		}
		if v := w.status("net"); v.Network != network {
			t.Errorf("%s: status says %q", network, v.Network)
		}
	}
	w := newWorld(t, planned(step("net", "true")))
	if code, out := w.do("start", "net", "Look around", "--network", "nothing"); code != 2 || !strings.Contains(out, "no network") {
		t.Errorf("%d\n%s", code, out)
	}
	w.env = append(w.env, "AUTOAGENT_UPSTREAM=https://gateway.example")
	if code, out := w.do("start", "net", "Look around", "--network", "none", "--gateway", "off"); code != 2 || !strings.Contains(out, "gateway on this machine") {
		t.Errorf("without a gateway here: %d\n%s", code, out)
	}
}
