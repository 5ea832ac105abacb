package units

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// verify returns everything that systemd-analyze says about units: it ends with 0 also when it warns.
func verify(t *testing.T, manager Manager, files []File) string {
	t.Helper()
	tool, err := exec.LookPath("systemd-analyze")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("THIS TEST NEEDS systemd-analyze: %v", err)
		}
		t.Skipf("THIS TEST NEEDS systemd-analyze AND DID NOT RUN: %v", err)
	}
	dir := t.TempDir()
	args := []string{"--man=no", "verify"}
	if manager == User {
		args = append([]string{"--user"}, args...)
	}
	for _, f := range files {
		path := filepath.Join(dir, f.Name)
		if err := os.WriteFile(path, f.Text, 0o644); err != nil {
			t.Fatal(err)
		}
		args = append(args, path)
	}
	cmd := exec.Command(tool, args...)
	cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+t.TempDir())
	out, err := cmd.CombinedOutput()
	if err != nil {
		return string(out) + err.Error()
	}
	return string(out)
}

// programs makes a folder with all programs in it.
func programs(t *testing.T, name string) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), name)
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{"AutoAgentProject", "autoagent-manager", "autoagent-specialist", "autoagent-reporter", "autoagent-quota"} {
		if err := os.WriteFile(filepath.Join(bin, p), []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return bin
}

// TestVerify: systemd has nothing to say about any unit, whatever the folders are called.
func TestVerify(t *testing.T) {
	for name, c := range map[string]struct{ root, bin string }{
		"plain":     {"/var/lib/example", "bin"},
		"spaces":    {"/srv/my  example root", "my bin"},
		"specifier": {"/srv/100%h %i%", "50%s %%"},
		"variable":  {"/srv/$HOME ${PATH} $", "$HOME ${PATH}"},
		"unicode":   {"/srv/größe ☃", "größe ☃"},
		"quotes":    {`/srv/it's "quoted"`, "bin"},
		"backslash": {`/srv/a\x20b\n\`, "bin"},
		"others":    {"/srv/#a;b=c:d*{e}~-", "#a;b=c:d*{e}~-+!@"},
	} {
		for _, s := range []Settings{userSettings(), systemSettings()} {
			t.Run(name+"/"+string(s.Manager), func(t *testing.T) {
				s.Root, s.Home, s.Bin = c.root, c.root, programs(t, c.bin)
				s.Env = map[string]string{"AUTOAGENT_CONFIG": c.root + "/config"}
				if out := verify(t, s.Manager, render(t, sample(t, "my-site", "codebuilder:2,designer"), s)); out != "" {
					t.Errorf("systemd-analyze verify says:\n%s", out)
				}
			})
		}
	}
}

// TestVerifySees: a unit that is wrong is one that systemd-analyze complains about, in each of the ways that count here.
func TestVerifySees(t *testing.T) {
	s := userSettings()
	s.Bin = programs(t, "bin")
	good := render(t, sample(t, "my-site", "codebuilder"), s)
	if out := verify(t, User, good); out != "" {
		t.Fatal(out)
	}
	for name, c := range map[string][2]string{
		"misspelt key": {"KillMode=", "KilMode="}, "wrong value": {"KillMode=mixed", "KillMode=mix"},
		"no program": {"autoagent-manager", "autoagent-nobody"}, "wrong section": {"[Service]", "[Servce]"},
	} {
		bad := []File{}
		for _, f := range good {
			if f.Name == "forge-autoagent-my-site-manager.service" {
				f.Text = []byte(strings.ReplaceAll(string(f.Text), c[0], c[1]))
			}
			bad = append(bad, f)
		}
		if out := verify(t, User, bad); out == "" {
			t.Errorf("%s: systemd-analyze verify says nothing", name)
		}
	}
}
