package app_test

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/store"
	"example.com/AutoAgentProject/core/testkit"
)

// TestBridgeProgram: it takes over the socket that it is handed, works where nothing at all can be written, and ends when nobody
// looks any more.
func TestBridgeProgram(t *testing.T) {
	testkit.Need(t, testkit.OnPath("bwrap"), "bwrap (apt-get install bubblewrap)")
	dir := t.TempDir()
	w := testkit.Tell(t, store.Root(dir), "my-site", "Build a site.\n", time.Now(), time.Hour)
	w.Repo("x", map[string]string{"a.txt": "a\n"})
	w.Ticked()
	w.Write("working")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	base := "http://" + l.Addr().String()
	f, err := l.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	var said bytes.Buffer
	cmd := exec.Command("bwrap", "--die-with-parent", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "sh", "-c", `LISTEN_PID=$$ LISTEN_FDS=1 exec "$@"`, "sh",
		filepath.Join(bin, "autoagent-bridge"), "--root", dir, "--idle", "1s")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir}
	cmd.ExtraFiles, cmd.Stdout, cmd.Stderr = []*os.File{f}, &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	f.Close()
	for path, want := range map[string]string{"/": "my-site", "/missions/my-site": "a.txt", "/missions/my-site/files/a.txt": ">a\n<", "/healthz": "ok", "/metrics": `autoagent_mission_budget{mission="my-site",unit="usd"} 4`} {
		r, err := http.Get(base + path)
		if err != nil {
			t.Fatal(err, said.String())
		}
		b, err := io.ReadAll(r.Body)
		r.Body.Close()
		if err != nil || r.StatusCode != 200 || !strings.Contains(string(b), want) || strings.Contains(string(b), "read-only file system") {
			t.Errorf("%s: %s, %v\n%.2000s", path, r.Status, err, b)
		}
	}
	http.DefaultClient.CloseIdleConnections()
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		if err != nil || said.Len() > 0 {
			t.Error(err, said.String())
		}
	case <-time.After(time.Minute):
		t.Error("it does not end")
		_ = cmd.Process.Kill()
	}
}
