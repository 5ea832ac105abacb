package claude

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/AutoAgentProject/core/usererr"
)

func TestFind(t *testing.T) {
	dir := t.TempDir()
	put := func(mode os.FileMode, name ...string) string {
		t.Helper()
		p := filepath.Join(append([]string{dir}, name...)...)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, nil, mode); err != nil {
			t.Fatal(err)
		}
		return p
	}
	named, real, plainFile := put(0o755, "named"), put(0o755, "real"), put(0o644, "flat", "claude")
	link := filepath.Join(dir, "bin", "claude")
	if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(real, link); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "folder", "claude"), 0o755); err != nil {
		t.Fatal(err)
	}
	env := func(pairs ...string) func(string) string {
		return func(k string) string {
			for _, p := range pairs {
				if name, v, _ := strings.Cut(p, "="); name == k {
					return v
				}
			}
			return ""
		}
	}
	cache := env("XDG_CACHE_HOME=" + dir)
	pinned := put(0o755, strings.TrimPrefix(PinnedPath(cache), dir))
	if PinnedPath(env("HOME=/h")) != strings.Replace(pinned, dir, "/h/.cache", 1) || !strings.Contains(pinned, "/autoagent/claude/"+PinnedVersion+"/node_modules/@anthropic-ai/claude-code-linux-") {
		t.Errorf("pinned path %s, %s", pinned, PinnedPath(env("HOME=/h")))
	}
	path := "PATH=relative:" + filepath.Dir(plainFile) + ":" + filepath.Join(dir, "folder") + ":" + filepath.Join(dir, "nowhere") + "::" + filepath.Dir(link)
	for _, c := range []struct {
		name string
		env  func(string) string
		want string
	}{
		{"named", env("AUTOAGENT_CLAUDE="+named, path), named},
		{"on PATH, by a link, after what is no program", env(path), real},
		{"pinned", env("PATH=/nowhere", "XDG_CACHE_HOME="+dir), pinned},
		{"named wrongly: nothing else is tried", env("AUTOAGENT_CLAUDE="+plainFile, path), ""},
		{"named by a relative path", env("AUTOAGENT_CLAUDE=named", path), ""},
		{"nowhere", env(), ""},
	} {
		got, err := Find(c.env)
		var u *usererr.Error
		if got != c.want || (c.want == "") != errors.As(err, &u) || u != nil && (u.Code != usererr.Environment || u.Hint == "") {
			t.Errorf("%s: %q, %v; want %q", c.name, got, err, c.want)
		}
	}
}

func TestCheckRefusesWhatIsNotTheProgram(t *testing.T) {
	dir := t.TempDir()
	for name, script := range map[string]string{
		"fails":       "#!/bin/sh\nexit 3\n",
		"other":       "#!/bin/sh\necho 1.0\n",
		"interpreter": "#!/no/such/interpreter\n",
	} {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
		_, err := New(Config{Program: p, Launcher: plain{}, Price: price}).Check(t.Context())
		if usererr.CodeOf(err) != usererr.Environment {
			t.Errorf("%s: %v", name, err)
		}
	}
	good := filepath.Join(dir, "good")
	if err := os.WriteFile(good, []byte("#!/bin/sh\n[ \"$1\" = --version ] && echo '9.8.7 (Claude Code)'\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if v, err := New(Config{Program: good, Launcher: plain{}, Price: price}).Check(t.Context()); v != "9.8.7" || err != nil {
		t.Errorf("%q, %v", v, err)
	}
	if _, err := New(Config{Program: good}).Check(t.Context()); err == nil {
		t.Error("checked without a launcher")
	}
}
