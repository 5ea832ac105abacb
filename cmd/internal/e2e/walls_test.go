package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestWalls: the real agent program is told to get out, and fails at each; its work inside succeeds.
func TestWalls(t *testing.T) {
	t.Parallel()
	outside := t.TempDir()
	secret := filepath.Join(outside, "secret.txt")
	put(t, outside, "secret.txt", "the person's own")
	attempts := map[string]string{
		"write outside":            fmt.Sprintf("echo x > %s/planted", outside),
		"read files of the person": "cat " + secret,
		"write the system":         "echo x > /usr/local/planted",
		"read the password hashes": "cat /etc/shadow",
		"signal the starter":       fmt.Sprintf("kill -0 %d", os.Getpid()),
		"reach the system bus":     "test -S /run/dbus/system_bus_socket",
		"reach the user bus":       "test -d /run/user",
		"follow a link out":        fmt.Sprintf("ln -s %s link && echo x > link/planted", outside),
		"mount":                    "mount -t tmpfs none /mnt",
		"a user namespace":         "unshare -Ur true",
	}
	script := ""
	for name, cmd := range attempts {
		script += fmt.Sprintf("if ( %s ) >/dev/null 2>&1; then echo 'HOLE: %s' >> holes.txt; fi\n", cmd, name)
	}
	script += "rm -f link; touch holes.txt; git log -1 --format=%an > author.txt; mkdir -p sub && echo inside > sub/inside.txt\n"
	v := newWorld(t, planned(step("try", "test -f sub/inside.txt")), works("try",
		bash(script), bash(`ls "$(dirname "$PWD")" > siblings.txt; ls / > top.txt; ls /proc | grep -c '^[0-9]' > processes.txt; env | cut -d= -f1 | sort > environment.txt`)))
	if code, out := v.do("start", "walls", "Try to get out"); code != 0 {
		runs, _ := filepath.Glob(filepath.Join(v.store("walls").Agent("codebuilder-1"), "runs", "*", "stream.jsonl"))
		stream, _ := os.ReadFile(runs[0])
		t.Fatalf("%d\n%s\n%s", code, out, stream)
	}
	result := v.status("walls").Result
	read := func(name string) string {
		b, err := os.ReadFile(filepath.Join(result, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	if holes := read("holes.txt"); holes != "" {
		t.Errorf("holes:\n%s", holes)
	}
	if entries, _ := os.ReadDir(outside); len(entries) != 1 {
		t.Errorf("something was planted outside: %v", entries)
	}
	if got := strings.TrimSpace(read("siblings.txt")); got != "codebuilder-1" {
		t.Errorf("beside its clone the agent sees %q", got)
	}
	if got := read("environment.txt"); strings.Contains(got, "AUTOAGENT") || strings.Contains(got, "SSH") {
		t.Errorf("environment of a command:\n%s", got)
	}
	if read("sub/inside.txt") != "inside\n" {
		t.Error("the work inside is not there")
	}
	// The same attempts succeed where there is no wall, so that each field means something.
	for _, f := range []string{secret, "/etc/shadow"} {
		if _, err := os.ReadFile(f); err != nil && os.Geteuid() == 0 {
			t.Errorf("control: %v", err)
		}
	}
}
