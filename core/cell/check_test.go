package cell

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/AutoAgentProject/core/usererr"
)

func TestCheck(t *testing.T) {
	needBwrap(t)
	r, err := Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !filepath.IsAbs(r.Bwrap) || !strings.HasPrefix(r.Version, "bubblewrap ") || !r.Walls.Seccomp || r.Walls.Landlock != landlockVersion() || len(r.Bounds) != 4 {
		t.Errorf("got %+v", r)
	}
	t.Logf("%+v", r)
}

func TestCheckWithoutBwrap(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := Check(t.Context())
	var u *usererr.Error
	if !errors.As(err, &u) || u.Code != usererr.Environment || !strings.HasPrefix(u.Sentence, "bwrap is not installed") || u.Hint == "" {
		t.Errorf("got %v", err)
	}
}

// A bwrap that fails as the real one does on machines that forbid it.
func TestCheckOnHostileMachines(t *testing.T) {
	for says, want := range map[string]string{
		"bwrap: No permissions to create a new namespace, likely because the kernel does not allow non-privileged user namespaces.": "does not let bwrap make user namespaces",
		"bwrap: setting up uid map: Permission denied":                      "does not let bwrap make user namespaces",
		"bwrap: Can't mount proc on /newroot/proc: Operation not permitted": "cannot mount /proc",
	} {
		dir := t.TempDir()
		script := "#!/bin/sh\n[ \"$1\" = --version ] && echo bubblewrap 0.0.0 && exit\ncat >&2 <<'E'\n" + says + "\nE\nexit 1\n"
		if err := os.WriteFile(filepath.Join(dir, "bwrap"), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
		t.Setenv("PATH", dir+":/usr/bin:/bin")
		_, err := Check(t.Context())
		var u *usererr.Error
		if !errors.As(err, &u) || u.Code != usererr.Environment || !strings.Contains(u.Error(), want) || !strings.Contains(u.Error(), says) || u.Hint == "" {
			t.Errorf("%s: got %v", says, err)
		}
	}
}

func TestNamespaceHint(t *testing.T) {
	for file, want := range map[string]string{
		"/proc/sys/kernel/apparmor_restrict_unprivileged_userns": "AppArmor",
		"/proc/sys/kernel/unprivileged_userns_clone":             "unprivileged_userns_clone=1",
		"/proc/sys/user/max_user_namespaces":                     "max_user_namespaces=",
		"none":                                                   "RestrictNamespaces",
	} {
		hint := namespaceHint(func(name string) ([]byte, error) {
			switch {
			case name != file:
				return nil, os.ErrNotExist
			case strings.Contains(name, "apparmor"):
				return []byte("1\n"), nil
			}
			return []byte("0\n"), nil
		})
		if !strings.Contains(hint, want) {
			t.Errorf("%s: %q does not name %q", file, hint, want)
		}
	}
}

func TestProbe(t *testing.T) {
	needBwrap(t)
	root := t.TempDir()
	data, clone := filepath.Join(root, "data"), filepath.Join(root, "missions", "m", "agent")
	for _, d := range []string{filepath.Join(data, "m"), clone} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	attempts, err := Probe(t.Context(), data, clone, data, filepath.Dir(filepath.Dir(clone)), "", filepath.Join(data, "none"))
	if err != nil || len(attempts) < 12 {
		t.Fatal(attempts, err)
	}
	for _, a := range attempts {
		if !a.Held || a.Detail == "" {
			t.Errorf("%+v", a)
		}
	}
	if left, _ := os.ReadDir(clone); len(left) != 0 {
		t.Errorf("it left %v in the clone", left)
	}
}

// Every trial must be able to fail: here each is made where it succeeds.
func TestTrialsCanFail(t *testing.T) {
	needBwrap(t)
	clone := t.TempDir()
	file := filepath.Join(clone, "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	ns, err := namespace(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	sub := filepath.Join(clone, "sub")
	if err := os.Mkdir(sub, 0o755); err != nil {
		t.Fatal(err)
	}
	trials := []trial{
		{Name: "create", Do: doCreate, Path: clone},
		{Name: "may create", Do: doMayCreate, Path: "/usr"},
		{Name: "link out", Do: doLinkOut, Path: sub}, // leads to the clone
		{Name: "read a folder", Do: doRead, Path: clone},
		{Name: "read a file", Do: doRead, Path: file},
		{Name: "write", Do: doWrite, Path: file},
		{Name: "landlock", Do: doLandlock, Path: clone},
		{Name: "landlock, but another wall", Do: doLandlock, Path: "/usr"},
		{Name: "unknown", Do: "unknown"},
	}
	attempts, _, err := try(t.Context(), Spec{Dir: clone, Writable: []string{clone}, trials: trials})
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range attempts {
		if a.Held {
			t.Errorf("held: %+v", a)
		}
	}
	// Outside of a cell nothing holds.
	if held, detail := (trial{Do: doSignal, PID: os.Getpid(), NS: ns}).try(); held {
		t.Errorf("a signal within one namespace: %s", detail)
	}
	if name, l, err := abstractSocket(); err != nil {
		t.Error(err)
	} else {
		if held, detail := (trial{Do: doAbstract, Path: name}).try(); held {
			t.Errorf("an abstract socket of its own: %s", detail)
		}
		l.Close()
	}
	if held, detail := (trial{Do: doMore}).try(); held {
		t.Errorf("without no_new_privs: %s", detail)
	}
	if held, detail := (trial{Do: doSeccomp}).try(); held {
		t.Errorf("no filter: %s", detail)
	}
}

func TestBounds(t *testing.T) {
	root := t.TempDir()
	for file, content := range map[string]string{
		"pids.max": "max\n", "a/pids.max": "500\n", "a/b/pids.max": "900\n", "a/b/memory.max": "max\n",
	} {
		path := filepath.Join(root, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	mounts := "29 1 0:26 / /sys/fs/cgroup rw shared:4 - tmpfs tmpfs rw\n30 29 0:27 / " + root + " rw shared:5 - cgroup2 cgroup2 rw\n"
	at, group := cgroup2([]byte("4:memory:/x\n0::/a/b\n"), []byte(mounts))
	if at != root || group != "/a/b" {
		t.Fatalf("found %q %q", at, group)
	}
	if n, ok := lowest(at, group, "pids.max"); n != 500 || !ok {
		t.Errorf("pids.max: %d %v", n, ok)
	}
	if n, ok := lowest(at, group, "memory.max"); ok {
		t.Errorf("memory.max: %d", n)
	}
	if at, _ := cgroup2(nil, []byte("29 1 0:26 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n")); at != "" {
		t.Errorf("no cgroup2, but found %q", at)
	}
}
