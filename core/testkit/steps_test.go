package testkit

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestStepsAreFound: make test runs the tests that need the tag testonly by the name of their file.
func TestStepsAreFound(t *testing.T) {
	found := 0
	for _, pattern := range []string{"../*/*_test.go", "../../*/*_test.go", "../../cmd/internal/*/*_test.go"} {
		names, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(string(b), "//go:build testonly\n") {
				continue
			}
			found++
			if ok, _ := filepath.Match("../*/step_test.go", name); !ok {
				t.Errorf("%s needs the tag testonly and is no core/<package>/step_test.go: nothing runs it", name)
			}
		}
	}
	if found == 0 {
		t.Error("no test needs the tag testonly")
	}
}
