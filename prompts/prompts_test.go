package prompts

import (
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestEveryTextIsInTheProgram compares what is embedded with what lies in the folder.
func TestEveryTextIsInTheProgram(t *testing.T) {
	texts := func(fsys fs.FS) []string {
		var names []string
		err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() && !strings.HasSuffix(name, ".go") {
				names = append(names, name)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return names
	}
	embedded, folder := texts(Files()), texts(os.DirFS("."))
	if !slices.Equal(embedded, folder) || len(embedded) < 17 {
		t.Errorf("embedded %q\nfolder   %q", embedded, folder)
	}
	for _, name := range embedded {
		data, err := fs.ReadFile(Files(), name)
		if err != nil {
			t.Fatal(err)
		}
		onDisk, err := os.ReadFile(name)
		if err != nil || string(onDisk) != string(data) {
			t.Errorf("%s: the program has another text than the folder (%v)", name, err)
		}
		if len(data) == 0 || data[len(data)-1] != '\n' || strings.Contains(string(data), " \n") || strings.Contains(string(data), "\r") {
			t.Errorf("%s: empty, without a last line end, or with stray white space", name)
		}
	}
}
