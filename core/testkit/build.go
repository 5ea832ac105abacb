package testkit

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Build builds the programs of this project into a folder that is removed with the test's process, once per process and
// tags, and returns the folder.
func Build(dir, tags string) error {
	args := []string{"build", "-o", dir + "/"}
	if tags != "" {
		args = append(args, "-tags", tags)
	}
	cmd := exec.Command("go", append(args, "example.com/AutoAgentProject/cmd/...")...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		os.Stderr.Write(out.Bytes())
		return err
	}
	return nil
}

// Need ends a test that lacks something: loudly skipped on a person's machine, failed where CI=true.
func Need(t testing.TB, ok bool, what string) {
	t.Helper()
	switch {
	case ok:
	case os.Getenv("CI") == "true":
		t.Fatalf("THIS TEST NEEDS %s", what)
	default:
		t.Skipf("THIS TEST NEEDS %s AND DID NOT RUN", what)
	}
}

// OnPath says whether a program is installed.
func OnPath(name string) bool {
	_, err := exec.LookPath(name)
	return err == nil
}

// Files returns the regular files below dir, with paths relative to it.
func Files(t testing.TB, dir string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			rel, _ := filepath.Rel(dir, path)
			out = append(out, rel)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
