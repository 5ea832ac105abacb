package app_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/testkit"
)

// handoffCase is behaviour of SwarmForge's helpers, recorded or worked out by a second reading of the format: what lies in a work tree, what is called, what is left.
type handoffCase struct {
	Name  string
	Role  string      // SWARMFORGE_ROLE
	Roles [][2]string // role and receive mode; nil: there is no roles.tsv
	Given map[string]string
	Runs  []struct {
		Args    []string
		Exit    int
		Stdout  string
		Refused bool // something is said on standard error
	}
	Left map[string]*string // whole content; null: an empty folder
}

// TestHandoffLikeSwarmForge: output, exit status and the tree afterwards are byte for byte those of SwarmForge's helpers.
// $ROOT, $COMMIT, $COMMITUPPER, $TREEOBJ stand for what differs from place to place, $TS and $IDTS for the times of now.
func TestHandoffLikeSwarmForge(t *testing.T) {
	testkit.Need(t, testkit.OnPath("git"), "git")
	data, err := os.ReadFile("testdata/handoff/cases.json")
	must(t, err)
	var cases []handoffCase
	must(t, json.Unmarshal(data, &cases))
	if len(cases) < 60 {
		t.Errorf("%d cases only", len(cases))
	}
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			c.check(t)
		})
	}
}

func (c handoffCase) check(t *testing.T) {
	w := newSwarm(t, c.Roles)
	for path, text := range c.Given {
		w.put(t, path, w.fill(text))
	}
	for _, run := range c.Runs {
		exit, stdout, stderr := w.handoff(t, c.Role, run.Args...)
		if got := w.plain(stdout); exit != run.Exit || got != run.Stdout || (stderr != "") != run.Refused {
			t.Errorf("%q ended with %d, want %d\nstdout %q\nwant   %q\nstderr %q", run.Args, exit, run.Exit, got, run.Stdout, stderr)
		}
	}
	left := w.tree(t)
	for _, path := range slices.Sorted(maps.Keys(left)) {
		want, expected := c.Left[path]
		switch got := left[path]; {
		case !expected:
			t.Errorf("%s is left: %q", path, show(got))
		case (got == nil) != (want == nil) || got != nil && *got != *want:
			t.Errorf("%s holds\n%q, want\n%q", path, show(got), show(want))
		}
	}
	for path := range c.Left {
		if _, there := left[path]; !there {
			t.Errorf("%s is missing", path)
		}
	}
}

func show(s *string) string {
	if s == nil {
		return "(an empty folder)"
	}
	return *s
}

// swarm is a repository of SwarmForge's kind, and the time from which on things happen in it.
type swarm struct {
	root  string
	since time.Time
	head  string // commit
	files string // its tree
}

// newSwarm makes one whose roles all work in the root.
func newSwarm(t *testing.T, roles [][2]string) swarm {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	w := swarm{root: root, since: time.Now().UTC().Truncate(time.Second)}
	w.git(t, root, "init", "--quiet", "--initial-branch=main")
	must(t, os.WriteFile(filepath.Join(root, ".git", "info", "exclude"), []byte(".swarmforge/\n.worktrees/\ntmp/\n"), 0o644))
	w.git(t, root, "commit", "--quiet", "--allow-empty", "--message", "begin\n\nBy specifier.")
	w.head = w.git(t, root, "rev-parse", "HEAD")
	w.files = w.git(t, root, "rev-parse", "HEAD^{tree}")
	must(t, os.Mkdir(filepath.Join(root, ".swarmforge"), 0o755))
	if roles != nil {
		var rows strings.Builder
		for _, r := range roles {
			rows.WriteString(strings.Join([]string{r[0], "master", root, "swarmforge-" + r[0], r[0], "claude", r[1]}, "\t") + "\n")
		}
		w.put(t, ".swarmforge/roles.tsv", rows.String())
	}
	return w
}

func (w swarm) git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=Pat Example", "-c", "user.email=pat@example.com"}, args...)...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %q: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (w swarm) put(t *testing.T, path, text string) {
	t.Helper()
	full := filepath.Join(w.root, path)
	if strings.HasSuffix(path, "/") {
		must(t, os.MkdirAll(full, 0o755))
		return
	}
	must(t, os.MkdirAll(filepath.Dir(full), 0o755))
	must(t, os.WriteFile(full, []byte(text), 0o644))
}

func (w swarm) fill(s string) string {
	return strings.NewReplacer("$COMMITUPPER", strings.ToUpper(w.head[:10]), "$COMMIT", w.head[:10], "$TREEOBJ", w.files[:10], "$ROOT", w.root).Replace(s)
}

var (
	instants = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3}|\.\d{6}|\.\d{9})?Z`)
	stamps   = regexp.MustCompile(`\d{8}T\d{6}Z`)
)

// plain puts the names back in. Times before the test stay.
func (w swarm) plain(s string) string {
	now := func(form, name string) func(string) string {
		return func(m string) string {
			if at, err := time.Parse(form, m); err != nil || at.Before(w.since) {
				return m
			}
			return name
		}
	}
	s = strings.ReplaceAll(strings.ReplaceAll(s, w.root, "$ROOT"), w.head[:10], "$COMMIT")
	s = strings.NewReplacer(strings.ToUpper(w.head[:10]), "$COMMITUPPER", w.files[:10], "$TREEOBJ").Replace(s)
	s = instants.ReplaceAllStringFunc(s, now(time.RFC3339Nano, "$TS"))
	return stamps.ReplaceAllStringFunc(s, now("20060102T150405Z", "$IDTS"))
}

// handoff calls the built program in the root of the work tree.
func (w swarm) handoff(t *testing.T, role string, args ...string) (exit int, stdout, stderr string) {
	t.Helper()
	return w.handoffIn(t, w.root, role, args...)
}

func (w swarm) handoffIn(t *testing.T, dir, role string, args ...string) (exit int, stdout, stderr string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "AutoAgentProject"), append([]string{"handoff", "--layout", "swarmforge"}, args...)...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "GIT_CONFIG_NOSYSTEM=1"}
	if role != "" {
		cmd.Env = append(cmd.Env, "SWARMFORGE_ROLE="+role)
	}
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		var e *exec.ExitError
		if !errors.As(err, &e) {
			t.Fatal(err)
		}
		exit = e.ExitCode()
	}
	return exit, out.String(), errs.String()
}

// tree is all that is left but git's own and roles.tsv.
func (w swarm) tree(t *testing.T) map[string]*string {
	t.Helper()
	left := map[string]*string{}
	must(t, filepath.WalkDir(w.root, func(path string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(w.root, path)
		switch {
		case err != nil || rel == "." || rel == ".swarmforge/roles.tsv":
			return err
		case rel == ".git":
			return fs.SkipDir
		case d.IsDir():
			entries, err := os.ReadDir(path)
			if err == nil && len(entries) == 0 {
				left[w.plain(rel)+"/"] = nil
			}
			return err
		}
		b, err := os.ReadFile(path)
		text := w.plain(string(b))
		left[w.plain(rel)] = &text
		return err
	}))
	return left
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
