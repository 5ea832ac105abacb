package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReadable(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	home, root := filepath.Join(base, "home"), filepath.Join(base, "root")
	for _, d := range []string{"home/.ssh", "home/go/pkg/mod", "home/.config/other", "root/data/autoagent/m", "free", "moved"} {
		if err := os.MkdirAll(filepath.Join(base, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"link": "free", "to-ssh": "home/.ssh", "home/.aws": "moved"} {
		if err := os.Symlink(filepath.Join(base, to), filepath.Join(base, link)); err != nil {
			t.Fatal(err)
		}
	}
	put := func(name string) {
		if err := os.WriteFile(filepath.Join(base, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("free/file")
	put("login.json")
	c := &cli{env: Env{Getenv: func(k string) string { return map[string]string{"HOME": home}[k] }}}
	for _, x := range []struct{ path, want string }{
		{"free", "free"}, {"free/file", "free/file"}, {"link", "free"}, {"home/go/pkg/mod", "home/go/pkg/mod"}, {"home/.config/other", "home/.config/other"}, {"~/go", "home/go"},
		{"home", ""}, {"", ""}, {"home/.ssh", ""}, {"to-ssh", ""}, {"home/.config", ""}, {"root", ""}, {"root/data/autoagent/m", ""}, {"login.json", ""},
		{"none", ""}, {"moved", ""}, {"/", ""}, {"/etc", ""}, {"/run", ""}, {"/proc/self", ""}, {"/dev/null", ""}, {"/var/log", ""},
	} {
		path := x.path
		if !strings.HasPrefix(path, "/") && !strings.HasPrefix(path, "~") {
			path = filepath.Join(base, path)
		}
		got, err := c.readable(root, []string{path, path}, filepath.Join(base, "login.json"))
		if x.want == "" {
			if err == nil {
				t.Errorf("%s is shown: %v", path, got)
			}
			continue
		}
		if err != nil || len(got) != 1 || got[0] != filepath.Join(base, x.want) {
			t.Errorf("%s: %v, %v", path, got, err)
		}
	}
}
