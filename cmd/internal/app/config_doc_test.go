package app

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// TestConfigurationPage: docs/configuration.md names the keys of the configuration, each once and no other, its example
// is a configuration that sets them all, and no environment variable is missing.
func TestConfigurationPage(t *testing.T) {
	b, err := os.ReadFile("../../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(b)
	var keys []string
	for _, f := range reflect.VisibleFields(reflect.TypeFor[config]()) {
		keys = append(keys, f.Tag.Get("yaml"))
	}
	var told []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllStringSubmatch(section(t, page, "Keys"), -1) {
		told = append(told, row[1])
	}
	if want := slices.Sorted(slices.Values(keys)); !slices.Equal(slices.Sorted(slices.Values(told)), want) {
		t.Errorf("the table has the keys\n%v, the program knows\n%v", told, want)
	}

	_, example, _ := strings.Cut(section(t, page, "Example"), "```yaml\n")
	example, _, found := strings.Cut(example, "```")
	if !found {
		t.Fatal("there is no example")
	}
	var cfg config
	if err := yaml.NewDecoder(bytes.NewReader([]byte(example)), yaml.DisallowUnknownField()).Decode(&cfg); err != nil {
		t.Fatalf("the example: %v", err)
	}
	if wrong := cfg.wrong(); wrong != "" {
		t.Errorf("the example: %s", wrong)
	}
	for i, v := 0, reflect.ValueOf(cfg); i < v.NumField(); i++ {
		if v.Field(i).IsZero() {
			t.Errorf("the example does not set %s", keys[i])
		}
	}

	variables := section(t, page, "Environment variables")
	for _, name := range environmentVariables(t) {
		if !strings.Contains(variables, "`"+name+"`") {
			t.Errorf("the program reads %s, the page does not tell it", name)
		}
	}
}

// section is what stands below a heading of the second level.
func section(t *testing.T, page, heading string) string {
	t.Helper()
	_, text, found := strings.Cut(page, "\n## "+heading+"\n")
	if !found {
		t.Fatalf("there is no section %q", heading)
	}
	text, _, _ = strings.Cut(text, "\n## ")
	return text
}

// environmentVariables are the project's own that the sources read, those of test builds left out.
func environmentVariables(t *testing.T) []string {
	t.Helper()
	var names []string
	read := regexp.MustCompile(`(?:[gG]etenv|env)\("(AUTOAGENT_[A-Z]+)"\)`)
	for _, dir := range []string{"../../../cmd", "../../../core"} {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			b, err := os.ReadFile(path)
			for _, m := range read.FindAllStringSubmatch(string(b), -1) {
				names = append(names, m[1])
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(names)
	if names = slices.Compact(names); len(names) < 3 {
		t.Fatalf("only %v were found", names)
	}
	return names
}
