package cell

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestWhatItSees(t *testing.T) {
	root := t.TempDir()
	clone, data, input := filepath.Join(root, "missions", "m", "agent"), filepath.Join(root, "data"), filepath.Join(root, "input")
	for _, dir := range []string{clone, data, input, filepath.Join(root, "missions", "m", "other")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "file"), []byte("content"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	home, err := os.UserHomeDir()
	if err != nil {
		home = "/root"
	}
	for _, c := range []struct{ name, script, want string }{
		{"its clone", "cat file", "content"},
		{"its input", "cat " + input + "/file", "content"},
		{"a bind elsewhere", "cat /elsewhere/file", "content"},
		{"mission data", "ls " + data + " 2>&1 | grep -c 'No such'", "1"},
		{"only its own clone", "ls " + filepath.Dir(clone), "agent"},
		{"password hashes", "ls -d /etc/shadow /etc/gshadow /etc/ssl/private /etc/sudoers /etc/ssh 2>/dev/null | wc -l", "0"},
		{"the starter's home", "ls -A " + home + " 2>/dev/null | wc -l", "0"},
		{"homes", "ls -A /home", "agent"},
		{"sockets of the system", "ls -A /run", ""},
		{"the kernel's objects", "ls -d /sys /boot /var/lib 2>/dev/null | wc -l", "0"},
		{"its own user", "echo $(id -un) $(cat /proc/sys/kernel/hostname)", "agent cell"},
		{"capabilities", "grep -c '^Cap[IPEBA].*0000000000000000$' /proc/self/status", "5"},
		{"no new privileges", "grep -c '^NoNewPrivs:.1$' /proc/self/status", "1"},
		{"its processes", "echo /proc/[0-9]*", "/proc/1 /proc/2"},
		{"localhost", "getent hosts cell | wc -l", "1"},
		{"names can be resolved", "[ -s /etc/resolv.conf ] && [ -s /etc/nsswitch.conf ] && echo yes", "yes"},
		{"read-only, Landlock or not", `awk '$2 == "/" || $2 == "/dev" || $2 == "/proc" {print substr($4, 1, 2)}' /proc/self/mounts | xargs`, "ro ro ro"},
		{"its home", "cd && pwd && ls -A", InsideHome},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := shell(c.script, clone)
			s.ReadOnly, s.Binds = []string{input}, []Bind{{Host: input, Inside: "/elsewhere"}}
			if got := strings.TrimSpace(mustRun(t, s)); got != c.want {
				t.Errorf("%s: got %q, want %q", c.script, got, c.want)
			}
		})
	}
}

func TestWhatItWrites(t *testing.T) {
	outside := t.TempDir()
	for _, c := range []struct {
		name, script string
		written      string // file that must exist outside afterwards; empty: the script must fail
	}{
		{"clone", "echo x >new", "clone/new"},
		{"clone, moved between folders", "mkdir a b; echo x >a/f; mv a/f b/f; ln b/f a/g", "clone/a/g"},
		{"home", "echo x >~/f", "home/f"},
		{"tmp", "echo x >/tmp/f", "tmp/f"},
		{"writable bind", "echo x >/w/f", "bind/f"},
		{"shared memory", "echo x >/dev/shm/f && echo x >/dev/null && echo x >/var/tmp/f && echo >ok", "clone/ok"},
		{"read-only bind", "echo x >/r/f", ""},
		{"read-only bind, its file", "echo x >/r/file", ""},
		{"read-only bind, its mode", "chmod 777 /r/file", ""},
		{"read-only bind, moved away", "mv /r/file /r/other", ""},
		{"read-only folder in the clone", "echo x >fixed/file", ""},
		{"read-only folder in the clone, replaced", "mv fixed other || rm -rf fixed && mkdir fixed", ""},
		{"through a link", "ln -s " + outside + "/outside out; echo x >out/f", ""},
		{"through a link to a file", "ln -s " + outside + "/outside/file out2; echo x >out2", ""},
		{"system", "echo x >/usr/bin/autoagent-test", ""},
		{"system, its mode", "chmod 755 /usr/bin/env", ""},
		{"etc", "echo x >>/etc/passwd", ""},
		{"root", "mkdir /new", ""},
		{"run", "echo x >/run/f", ""},
		{"dev", "echo x >/dev/f", ""},
		{"kernel settings", "echo x >/proc/sys/kernel/core_pattern", ""},
		{"a setting of its own", "echo 1 >/proc/sys/kernel/hostname", ""},
		{"a device", "mknod disk b 7 0", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			for _, d := range []string{"clone/fixed", "home", "tmp", "bind", "ro", "outside"} {
				if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, d, "file"), []byte("before"), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			script := strings.ReplaceAll(c.script, outside, dir)
			s := shell(script, filepath.Join(dir, "clone"))
			s.Home, s.Tmp = filepath.Join(dir, "home"), filepath.Join(dir, "tmp")
			s.Binds = []Bind{{filepath.Join(dir, "bind"), "/w", true}, {filepath.Join(dir, "ro"), "/r", false}}
			s.ReadOnly = []string{filepath.Join(dir, "clone", "fixed")}
			text, status := inside(t, s)
			if c.written == "" {
				if status == (Status{}) {
					t.Errorf("%s: it succeeded: %s", script, text)
				}
			} else if !exists(filepath.Join(dir, c.written))() {
				t.Errorf("%s: nothing is written: %s", script, text)
			}
			for _, d := range []string{"ro", "outside", "clone/fixed"} {
				entries, err := os.ReadDir(filepath.Join(dir, d))
				b, _ := os.ReadFile(filepath.Join(dir, d, "file"))
				if err != nil || len(entries) != 1 || string(b) != "before" {
					t.Errorf("%s was changed: %v %q %v", d, entries, b, err)
				}
			}
		})
	}
}

func TestTerminalInside(t *testing.T) {
	s := Spec{Argv: []string{python(t), "-c", "import pty; print(len(pty.openpty()))"}, Env: testEnv()}
	if got := mustRun(t, s); got != "2\n" {
		t.Errorf("got %q", got)
	}
}

func TestWritableFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "one-file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	s := shell("echo changed >"+file, "")
	s.Writable = []string{file}
	mustRun(t, s)
	if b, _ := os.ReadFile(file); string(b) != "changed\n" {
		t.Errorf("the file has %q", b)
	}
}

func TestProgramsRunInside(t *testing.T) {
	clone := t.TempDir()
	for name, c := range map[string]struct{ script, want string }{
		"git":  {`git init -q . && git -c user.name=example -c user.email=example@example.com commit -q --allow-empty -m one && git log --format=%s`, "one\n"},
		"go":   {"go version | cut -d' ' -f1-2", "go version\n"},
		"node": {`node -e 'console.log(require("os").userInfo().username)'`, "agent\n"},
	} {
		t.Run(name, func(t *testing.T) {
			sp := shell(c.script, clone)
			path, err := filepath.EvalSymlinks(program(t, name))
			if err != nil {
				t.Fatal(err)
			}
			if dir := filepath.Dir(path); dir != "/usr/bin" {
				sp.Env = append(sp.Env, "PATH="+dir+":/usr/bin:/bin")
				if !below(path, "/usr") && !below(path, "/opt") {
					sp.ReadOnly = []string{filepath.Dir(dir)}
				}
			}
			if got := mustRun(t, sp); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
