package cell

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

// TestForward: from a network of its own a cell reaches what it is led to, and nothing else of the host.
func TestForward(t *testing.T) {
	needBwrap(t)
	answer := http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%d bytes at %s", len(b), r.URL.Path)
	})}
	defer answer.Close()
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	script := `import sys, socket, urllib.request as u
n = 0
for i in range(5):
    print(u.urlopen("http://127.0.0.1:%s/x%d" % (sys.argv[1], i), data=b"x" * 300000).read().decode())
try:
    socket.create_connection(("127.0.0.1", int(sys.argv[2])), 2)
    print("HOLE")
except OSError as e:
    print(type(e).__name__)
print(sorted(i[1] for i in socket.if_nameindex()))
`
	for _, network := range []string{"unix", "tcp"} {
		address := "127.0.0.1:0"
		if network == "unix" {
			address = filepath.Join(t.TempDir(), "gateway")
		}
		l, err := net.Listen(network, address)
		if err != nil {
			t.Fatal(err)
		}
		go answer.Serve(l)
		_, port, _ := net.SplitHostPort(other.Addr().String())
		s := Spec{Argv: []string{python(t), "-c", script, "4567", port}, Env: testEnv(), NoNetwork: true, Forward: ForwardTo(4567, l.Addr().String())}
		want := ""
		for i := range 5 {
			want += fmt.Sprintf("300000 bytes at /x%d\n", i)
		}
		if got := mustRun(t, s); got != want+"ConnectionRefusedError\n['lo']\n" {
			t.Errorf("%s: %q", network, got)
		}
	}
}

// Nobody outside: the program sees a connection that ends. A port that cannot be had refuses the start.
func TestForwardFails(t *testing.T) {
	s := Spec{Argv: []string{python(t), "-c", `import socket; s = socket.create_connection(("127.0.0.1", 4567)); print(s.recv(1))`},
		Env: testEnv(), NoNetwork: true, Forward: ForwardTo(4567, filepath.Join(t.TempDir(), "none"))}
	if got := mustRun(t, s); got != "b''\n" {
		t.Errorf("%q", got)
	}
	s.Forward = ForwardTo(80, "/none")
	if _, err := Start(t.Context(), s); err == nil || !strings.Contains(err.Error(), "port 80") {
		t.Errorf("a privileged port: %v", err)
	}
	s.Forward, s.NoNetwork = ForwardTo(4567, "/none"), false
	if _, err := Start(t.Context(), s); err == nil {
		t.Error("a way out of the host's network")
	}
}

// A connection that nobody ends, ends with the cell.
func TestForwardEnds(t *testing.T) {
	needBwrap(t)
	closed := make(chan struct{})
	dial := func(context.Context) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go func() {
			_, _ = io.Copy(io.Discard, theirs)
			close(closed)
		}()
		return ours, nil
	}
	s := Spec{Argv: []string{python(t), "-c", `import socket; s = socket.create_connection(("127.0.0.1", 4567)); s.send(b"x")`},
		Env: testEnv(), NoNetwork: true, Forward: &Forward{Port: 4567, Dial: dial}}
	mustRun(t, s)
	<-closed
}
