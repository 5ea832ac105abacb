package cell

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestListening(t *testing.T) {
	const table = "  sl  local_address rem_address   st tx_queue rx_queue\n" +
		"   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000\n" +
		"   1: 00000000000000000000000000000000:0016 00000000000000000000000000000000:0000 0A 0\n" +
		"   2: 0100007F:A000 0100007F:1F90 01 00000000:00000000\n   3: torn\n   4: 0100007F:zz x 0A\n   5: 0100007F:0000 x 0A\n"
	if got := listening(table); !slices.Equal(got, []uint16{8080, 22}) {
		t.Errorf("%v", got)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	got, err := Listening()
	if err != nil || !slices.Contains(got, uint16(l.Addr().(*net.TCPAddr).Port)) {
		t.Errorf("%v, %v", got, err)
	}
}

// TestClosedPorts: a closed port is out of reach in each way to connect, another one and a server of the cell's own are not, and
// without the wall the same command reaches it.
func TestClosedPorts(t *testing.T) {
	if !ClosesPorts() {
		t.Skip("the kernel's Landlock does not close ports")
	}
	needBwrap(t)
	var ports []int
	for range 2 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	const script = `import socket, sys
def way(name, f):
    try: f(); print(name, "open")
    except OSError as e: print(name, "closed")
closed, other = int(sys.argv[1]), int(sys.argv[2])
way("tcp", lambda: socket.create_connection(("127.0.0.1", closed)))
way("mapped", lambda: socket.socket(socket.AF_INET6).connect(("::ffff:127.0.0.1", closed)))
way("mptcp", lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262).connect(("127.0.0.1", closed)))
way("sendto", lambda: socket.socket().sendto(b"x", 0x20000000, ("127.0.0.1", closed)))
way("sendmsg", lambda: socket.socket().sendmsg([b"x"], [], 0x20000000, ("127.0.0.1", closed)))
way("other", lambda: socket.create_connection(("127.0.0.1", other)))
s = socket.create_server(("127.0.0.1", 0))
way("own", lambda: socket.create_connection(s.getsockname()))
`
	try := func(closed ...uint16) string {
		t.Helper()
		out, err := Run(t.Context(), Spec{Argv: []string{"python3", "-c", script, fmt.Sprint(ports[0]), fmt.Sprint(ports[1])}, Env: []string{"PATH=/usr/local/bin:/usr/bin:/bin"}, Closed: closed}, 1<<16)
		if err != nil || out.Status.Exit != 0 {
			t.Fatalf("%v, %+v", err, out)
		}
		return strings.Join(strings.Fields(string(out.Text)), " ")
	}
	began := time.Now()
	if got := try(uint16(ports[0])); got != "tcp closed mapped closed mptcp closed sendto closed sendmsg closed other open own open" {
		t.Errorf("closed: %s", got)
	}
	t.Logf("with a closed port: %v", time.Since(began))
	began = time.Now()
	if got := try(); !strings.HasPrefix(got, "tcp open mapped open mptcp closed") || !strings.HasSuffix(got, "other open own open") {
		t.Errorf("without: %s", got)
	}
	t.Logf("without: %v", time.Since(began))
}
