package cell

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"example.com/AutoAgentProject/core/runner"
)

func TestRunKeepsHeadAndTail(t *testing.T) {
	needBwrap(t)
	s := Spec{Argv: []string{"sh", "-c", "echo first; seq 100000; echo last >&2; exit 3"}, Env: testEnv()}
	o, err := Run(t.Context(), s, 1000)
	if err != nil || o.Status != (Status{Exit: 3}) || o.Duration <= 0 {
		t.Fatal(o.Status, o.Duration, err)
	}
	if !bytes.HasPrefix(o.Text, []byte("first\n1\n2\n")) || !bytes.HasSuffix(o.Text, []byte("99999\n100000\nlast\n")) {
		t.Errorf("got %q", o.Text)
	}
	if !bytes.Contains(o.Text, fmt.Appendf(nil, "\n[%d bytes left out]\n", o.LeftOut)) || o.LeftOut == 0 || len(o.Text) > 1100 {
		t.Errorf("%d bytes, %d left out", len(o.Text), o.LeftOut)
	}
}

func TestHeadTail(t *testing.T) {
	for _, c := range []struct {
		limit  int
		writes []string
		want   string
		cut    int64
	}{
		{10, nil, "", 0},
		{10, []string{"0123456789"}, "0123456789", 0},
		{10, []string{"0123", "456", "789"}, "0123456789", 0},
		{10, []string{"0123456789A"}, "01234\n[1 bytes left out]\n6789A", 1},
		{10, []string{"01", "23456789ABCDEFGHIJKLMNO", "P"}, "01234\n[16 bytes left out]\nLMNOP", 16},
		{3, []string{"abcdef"}, "a\n[3 bytes left out]\nef", 3},
		{0, []string{"abc"}, "\n[3 bytes left out]\n", 3},
	} {
		h := &headTail{limit: c.limit}
		for _, w := range c.writes {
			if n, err := h.Write([]byte(w)); n != len(w) || err != nil {
				t.Errorf("write %q: %d, %v", w, n, err)
			}
		}
		if got, cut := h.result(); string(got) != c.want || cut != c.cut {
			t.Errorf("limit %d of %q: got %q, %d left out; want %q, %d", c.limit, c.writes, got, cut, c.want, c.cut)
		}
	}
}

func TestRunLeavesOneStreamToTheCaller(t *testing.T) {
	needBwrap(t)
	var out bytes.Buffer
	o, err := Run(t.Context(), Spec{Argv: []string{"sh", "-c", "echo data; echo words >&2"}, Env: testEnv(), Stdout: &out}, 100)
	if err != nil || out.String() != "data\n" || string(o.Text) != "words\n" {
		t.Errorf("stdout %q, text %q, error %v", out.String(), o.Text, err)
	}
}

func TestLauncher(t *testing.T) {
	needBwrap(t)
	dir := t.TempDir()
	for _, d := range []string{"clone", "home", "tmp", "input", "bind"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	out, err := os.Create(filepath.Join(dir, "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	var told Identity
	var l runner.Launcher = Launcher{
		Limits:  Limits{OpenFiles: 123},
		Binds:   []Bind{{filepath.Join(dir, "bind"), "/cache", false}},
		OnStart: func(id Identity) error { told = id; return nil },
	}
	p, err := l.Launch(t.Context(), runner.Command{
		Argv: []string{"sh", "-c", "cat; pwd; ulimit -n; echo $NAME; ls -d /cache " + dir + "/input; touch here ~/h /tmp/t; echo lost >&2; exit 4"},
		Env:  testEnv("NAME=value"), Dir: filepath.Join(dir, "clone"),
		Writable: []string{filepath.Join(dir, "clone")}, ReadOnly: []string{filepath.Join(dir, "input")},
		Home: filepath.Join(dir, "home"), Tmp: filepath.Join(dir, "tmp"),
		Stdin: bytes.NewBufferString("given\n"), Stdout: out,
	})
	if err != nil {
		t.Fatal(err)
	}
	if exit, err := p.Wait(); exit != 4 || err != nil {
		t.Errorf("exit %d, error %v", exit, err)
	}
	want := fmt.Sprintf("given\n%[1]s/clone\n123\nvalue\n/cache\n%[1]s/input\n", dir)
	if b, _ := os.ReadFile(out.Name()); string(b) != want {
		t.Errorf("it printed %q, want %q", b, want)
	}
	for _, f := range []string{"clone/here", "home/h", "tmp/t"} {
		if !exists(filepath.Join(dir, f))() {
			t.Errorf("no %s", f)
		}
	}
	if told.PID == 0 {
		t.Error("OnStart was not told")
	}

	p, err = l.Launch(t.Context(), runner.Command{Argv: []string{"sleep", "1000"}, Env: testEnv(), Dir: "/"})
	if err != nil {
		t.Fatal(err)
	}
	p.Kill()
	if exit, err := p.Wait(); exit != -1 || err != nil {
		t.Errorf("killed: exit %d, error %v", exit, err)
	}
	if alive, err := told.Alive(); alive || err != nil {
		t.Errorf("killed: alive %v, error %v", alive, err)
	}
}
