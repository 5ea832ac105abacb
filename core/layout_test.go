package core_test

import (
	"cmp"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	top    = ".." // the repository
	module = "example.com/AutoAgentProject/"
)

// layer is a set of packages that may import the same layers.
type layer struct {
	name     string
	packages []string
	imports  []string // layers, its own among them if its packages may import each other
	others   []string // modules of others; nil: any
}

// layers says who may import whom, from below to above. A new package stands in one of them.
func layers() []layer {
	return []layer{
		{"words", []string{"core/usererr", "core/front", "core/flow", "core/conductor", "core/money", "core/mission", "core/plan", "core/profession", "core/runner", "core/handoff", "core/monitor", "core/recovery"},
			[]string{"words"}, []string{"github.com/goccy/go-yaml"}},
		{"storage", []string{"core/files", "core/store", "core/queue", "core/ledger", "core/journal", "core/proc", "core/wake", "core/login", "core/caps", "core/logline", "core/usage"},
			[]string{"words", "storage"}, nil},
		{"engines", []string{"core/audit", "core/cgroup", "core/cell", "core/claude", "core/git", "core/tick", "core/engine", "core/supervisor", "core/systemdengine", "core/view", "core/scriptmodel", "core/units", "core/preflight", "core/gateway", "core/notify", "core/telegram"},
			[]string{"words", "storage", "engines"}, nil},
		{"roles", []string{"core/manager", "core/specialist", "core/guard", "core/reporter"},
			[]string{"words", "storage", "engines"}, nil}, // not each other
		{"testkit", []string{"core/testkit"},
			[]string{"words", "storage", "engines"}, nil},
		{"texts", []string{"prompts", "systemd"},
			nil, []string{}},
		{"bridge", []string{"bridge"},
			[]string{"words", "storage", "engines"}, nil},
		{"app", []string{"cmd/internal/app"},
			[]string{"words", "storage", "engines", "roles", "texts", "bridge"}, nil},
		{"missions", []string{"cmd/internal/e2e"}, // tests of whole missions
			[]string{"words", "storage", "engines", "testkit"}, nil},
		{"mains", []string{"cmd/AutoAgentProject", "cmd/autoagent-bridge", "cmd/autoagent-manager", "cmd/autoagent-quota", "cmd/autoagent-reporter", "cmd/autoagent-specialist"},
			[]string{"words", "engines", "app"}, []string{}},
	}
}

// file is one Go file of the repository, whatever its build tags are.
type file struct {
	path string // relative to the repository
	pkg  string // its folder
	test bool
	ast  *ast.File
}

// sources parses all Go files that are ours.
func sources(t *testing.T) []file {
	t.Helper()
	var all []file
	err := filepath.WalkDir(top, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(top, p)
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); rel != "." && (strings.HasPrefix(name, ".") || name == "testdata" || rel == "autoagent-missions" || rel == "bin" || rel == "data") {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(rel, ".go") {
			return nil
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), p, nil, parser.ParseComments|parser.SkipObjectResolution)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // removed meanwhile
		}
		if err != nil {
			return err
		}
		all = append(all, file{filepath.ToSlash(rel), path.Dir(filepath.ToSlash(rel)), strings.HasSuffix(rel, "_test.go"), parsed})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// imported are the paths that a file imports.
func (f file) imported() []string {
	var out []string
	for _, i := range f.ast.Imports {
		p, _ := strconv.Unquote(i.Path.Value)
		out = append(out, p)
	}
	return out
}

// layerOf finds the layer of a package of ours.
func layerOf(pkg string) (layer, bool) {
	for _, l := range layers() {
		if slices.Contains(l.packages, pkg) {
			return l, true
		}
	}
	return layer{}, false
}

// external says whether an import path is a module of somebody else: its first element is a host.
func external(p string) bool {
	first, _, _ := strings.Cut(p, "/")
	return strings.Contains(first, ".")
}

// below says whether an import path is one of those modules or a package in one.
func below(p string, modules []string) bool {
	return slices.ContainsFunc(modules, func(m string) bool { return p == m || strings.HasPrefix(p, m+"/") })
}

func TestArrows(t *testing.T) {
	for _, f := range sources(t) {
		if f.pkg == "core" {
			continue // this test
		}
		from, ok := layerOf(f.pkg)
		if !ok {
			t.Errorf("%s: the package %s stands in no layer", f.path, f.pkg)
			continue
		}
		for _, p := range f.imported() {
			pkg, ours := strings.CutPrefix(p, module)
			switch {
			case ours && f.test:
				checkTestArrow(t, f, pkg)
			case ours && pkg == f.pkg:
			case ours:
				to, ok := layerOf(pkg)
				if !ok || !slices.Contains(from.imports, to.name) {
					t.Errorf("%s: %s of the %s imports %s of the %s", f.path, f.pkg, from.name, pkg, cmp.Or(to.name, "unknown"))
				}
			case external(p) && !f.test && from.others != nil && !below(p, from.others):
				t.Errorf("%s: %s of the %s imports %s", f.path, f.pkg, from.name, p)
			case p == "testing" && !f.test && f.pkg != "core/testkit":
				t.Errorf("%s imports testing", f.path)
			}
		}
	}
}

// checkTestArrow: tests may use more than what they test, but core's never what stands above core.
func checkTestArrow(t *testing.T, f file, pkg string) {
	t.Helper()
	above := strings.HasPrefix(pkg, "cmd/") || strings.HasPrefix(pkg, "bridge")
	if above && strings.HasPrefix(f.pkg, "core/") {
		t.Errorf("%s: a test of core imports %s", f.path, pkg)
	}
}

// TestLayersAreReal: the table names no package that is gone, and none twice.
func TestLayersAreReal(t *testing.T) {
	have := map[string]bool{}
	for _, f := range sources(t) {
		have[f.pkg] = true
	}
	seen := map[string]bool{}
	for _, l := range layers() {
		for _, p := range l.packages {
			if seen[p] {
				t.Errorf("%s stands in two layers", p)
			}
			seen[p] = true
			if !have[p] {
				t.Errorf("%s of the %s does not exist", p, l.name)
			}
		}
	}
}

// TestPackageComments: a package says what it is for once.
func TestPackageComments(t *testing.T) {
	comments := map[string][]string{}
	for _, f := range sources(t) {
		if f.test {
			continue
		}
		if _, ok := comments[f.pkg]; !ok {
			comments[f.pkg] = nil
		}
		if f.ast.Doc == nil {
			continue
		}
		comments[f.pkg] = append(comments[f.pkg], f.path)
		begin := "Package " + f.ast.Name.Name + " "
		if f.ast.Name.Name == "main" {
			begin = "Command " + path.Base(f.pkg) + " "
		}
		if text := f.ast.Doc.Text(); !strings.HasPrefix(text, begin) || !strings.HasSuffix(strings.TrimSpace(text), ".") {
			t.Errorf("%s: the comment does not begin with %q or is no sentence", f.path, begin)
		}
	}
	for _, pkg := range slices.Sorted(maps.Keys(comments)) {
		if n := len(comments[pkg]); n != 1 {
			t.Errorf("%s has %d package comments, not one: %v", pkg, n, comments[pkg])
		}
	}
}

// TestWhoExits: only a main ends the process; the cell's shim is one, in whatever program it lives.
func TestWhoExits(t *testing.T) {
	for _, f := range sources(t) {
		if f.test || f.ast.Name.Name == "main" || f.path == "core/cell/shim.go" {
			continue
		}
		for _, call := range uses(f, map[string]string{"os": "Exit", "syscall": "Exit|Exec", "golang.org/x/sys/unix": "Exit|Exec", "log": "Fatal|Fatalf|Fatalln|Panic|Panicf|Panicln"}) {
			t.Errorf("%s uses %s", f.path, call)
		}
	}
}

// TestWhoStartsProcesses: a process is started by those who also see to its end.
func TestWhoStartsProcesses(t *testing.T) {
	allowed := []string{"core/cell", "core/git", "core/supervisor", "core/systemdengine/exposure.go", "core/systemdengine/start.go", "cmd/internal/app/cmd_tick.go", "cmd/internal/app/cmd_logs.go", "cmd/internal/app/beside.go", "core/notify/exec.go",
		"cmd/internal/app/owners_hand.go", "cmd/internal/app/start_system.go", // root, as the owner of a root
		"core/testkit"} // what tests start
	used := map[string]bool{}
	for _, f := range sources(t) {
		if f.test {
			continue
		}
		starts := uses(f, map[string]string{"os": "StartProcess", "syscall": "ForkExec|StartProcess", "golang.org/x/sys/unix": "ForkExec"})
		if slices.Contains(f.imported(), "os/exec") {
			starts = append(starts, "os/exec")
		}
		if len(starts) == 0 {
			continue
		}
		i := slices.IndexFunc(allowed, func(a string) bool { return a == f.pkg || a == f.path })
		if i < 0 {
			t.Errorf("%s uses %s", f.path, strings.Join(starts, ", "))
			continue
		}
		used[allowed[i]] = true
	}
	for _, a := range allowed {
		if !used[a] {
			t.Errorf("%s starts no process any more: strike it out", a)
		}
	}
}

// uses returns the names out of some packages that a file uses: import path to names, separated by |.
func uses(f file, names map[string]string) []string {
	local := map[string]string{} // name in this file to import path
	for _, i := range f.ast.Imports {
		p, _ := strconv.Unquote(i.Path.Value)
		name := path.Base(p)
		if i.Name != nil {
			name = i.Name.Name
		}
		local[name] = p
	}
	var out []string
	ast.Inspect(f.ast, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		x, ok := sel.X.(*ast.Ident)
		if ok && slices.Contains(strings.Split(names[local[x.Name]], "|"), sel.Sel.Name) {
			out = append(out, x.Name+"."+sel.Sel.Name)
		}
		return true
	})
	return out
}

// TestTopLevel: the repository has these entries at its top and no others, dot-files aside.
func TestTopLevel(t *testing.T) {
	want := []string{"LICENSE", "Makefile", "README.md", "autoagent-missions", "bridge", "cmd", "core", "docs", "go.mod", "go.sum", "prompts", "systemd"}
	cmd := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	cmd.Dir = top
	out, err := cmd.Output()
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("THIS TEST NEEDS git AND THE REPOSITORY: %v", err)
		}
		t.Skipf("THIS TEST NEEDS git AND THE REPOSITORY AND DID NOT RUN: %v", err)
	}
	have := map[string]bool{}
	for name := range strings.SplitSeq(strings.TrimRight(string(out), "\x00"), "\x00") {
		first, _, _ := strings.Cut(name, "/")
		if _, err := os.Lstat(filepath.Join(top, name)); err == nil && !strings.HasPrefix(first, ".") {
			have[first] = true
		}
	}
	if got := slices.Sorted(maps.Keys(have)); !slices.Equal(got, want) {
		t.Errorf("the top level is\n%v\nand not\n%v", got, want)
	}
}

// TestFlat: core, bridge, prompts and systemd are one level of packages with plain names.
func TestFlat(t *testing.T) {
	noun := regexp.MustCompile(`^[a-z]+$`)
	for _, f := range sources(t) {
		parts := strings.Split(f.pkg, "/")
		switch parts[0] {
		case "core":
			if len(parts) > 2 || !noun.MatchString(path.Base(f.pkg)) {
				t.Errorf("%s: core is one flat level of packages, one noun each", f.path)
			}
		case "bridge", "prompts", "systemd":
			if len(parts) > 1 {
				t.Errorf("%s: %s is one package", f.path, parts[0])
			}
		}
	}
}
