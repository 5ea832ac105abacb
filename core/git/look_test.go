package git

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// lookers are a work tree and a clone with the same content and the branch main, and how each is looked at.
func lookers(t *testing.T) map[string]struct {
	dir  string
	look func(digits string) (Sight, error)
} {
	t.Helper()
	r, base := started(t, "f", "1\n")
	c := prepared(t, r, base)
	w := Worktree{Dir: must(filepath.EvalSymlinks(t.TempDir()))}
	shell(t, w.Dir, "init", "--quiet")
	write(t, w.Dir, "f", "1\n")
	shell(t, w.Dir, "add", "f")
	shell(t, w.Dir, "commit", "--quiet", "-m", "begin")
	return map[string]struct {
		dir  string
		look func(digits string) (Sight, error)
	}{
		"clone":     {c.Dir, func(digits string) (Sight, error) { s, err := c.Look(t.Context(), digits); s.Base = ""; return s, err }},
		"work tree": {w.Dir, func(digits string) (Sight, error) { return w.Look(t.Context(), digits) }},
	}
}

// TestSight: both see the same.
func TestSight(t *testing.T) {
	for name, l := range lookers(t) {
		see := func(digits string, want Sight) {
			t.Helper()
			got, err := l.look(digits)
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%s: %+v, %v, want\n%+v", name, got, err, want)
			}
		}
		git := func(args ...string) string { return shell(t, l.dir, args...) }
		commit := func(file, message string) string {
			write(t, l.dir, file, message)
			git("add", "-f", file)
			git("commit", "--quiet", "-m", message)
			return git("rev-parse", "HEAD")
		}
		head := commit("a\nb", "Work\n\nBy coder.")
		see("", Sight{Branch: "main", Head: head})
		see(head[:10], Sight{Branch: "main", Head: head, Objects: []string{head}, Type: "commit", Short: head[:10], Holds: true, Message: strings.TrimSpace(git("show", "-s", "--format=%B"))})
		tree := git("rev-parse", "HEAD^{tree}")
		see(tree[:10], Sight{Branch: "main", Head: head, Objects: []string{tree}, Type: "tree"})
		see("0000000000", Sight{Branch: "main", Head: head})
		if got, err := l.look(""); err != nil || got.Objects != nil {
			t.Errorf("%s: %+v, %v", name, got, err)
		}

		write(t, l.dir, "f", "2\n", "odd\n\"name", "", ".autoagent/draft", "", ".swarmforge/x", "")
		if got, err := l.look(""); err != nil || !slices.Equal(got.Dirty, []string{"f", "odd\n\"name"}) {
			t.Errorf("%s: dirty are %q, %v", name, got.Dirty, err)
		}
		git("checkout", "--quiet", "f")
		check(t, os.Remove(filepath.Join(l.dir, "odd\n\"name")))

		git("checkout", "--quiet", "-b", "side")
		side := commit(".swarmforge/roles.tsv", "Beside it")
		git("checkout", "--quiet", "main")
		see(side[:10], Sight{Branch: "main", Head: head, Objects: []string{side}, Type: "commit", Short: side[:10], Message: "Beside it", Runtime: []string{".swarmforge/roles.tsv"}})
		git("checkout", "--quiet", "--detach")
		see("", Sight{Head: head})
		git("checkout", "--quiet", "main")
		write(t, l.dir, ".git/MERGE_HEAD", side+"\n")
		see("", Sight{Branch: "main", Head: head, Pending: true})
		check(t, os.Remove(filepath.Join(l.dir, ".git", "MERGE_HEAD")))
		git("checkout", "--quiet", "--orphan", "new")
		git("rm", "-rqf", ".")
		if got, err := l.look(""); err != nil || got.Branch != "new" || got.Head != "" {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// TestLookAtNoClone says what is wrong and repairs nothing.
func TestLookAtNoClone(t *testing.T) {
	r, base := started(t, "f", "1\n")
	c := prepared(t, r, base)
	check(t, os.RemoveAll(filepath.Join(c.Dir, ".git")))
	var layout *LayoutError
	if got, err := c.Look(t.Context(), ""); !errors.As(err, &layout) {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := os.Lstat(filepath.Join(c.Dir, ".git")); err == nil {
		t.Error("it was repaired")
	}
}

// TestRoots: of a work tree beside the main one, and of no work tree.
func TestRoots(t *testing.T) {
	lonely(t)
	dir := must(filepath.EvalSymlinks(t.TempDir()))
	if _, _, err := (Worktree{Dir: dir}).Roots(t.Context()); !errors.Is(err, ErrNoTree) {
		t.Error(err)
	}
	shell(t, dir, "init", "--quiet")
	shell(t, dir, "commit", "--quiet", "--allow-empty", "-m", "begin")
	beside := filepath.Join(dir, ".worktrees", "coder")
	shell(t, dir, "worktree", "add", "--quiet", "-B", "swarmforge-coder", beside, "HEAD")
	below := filepath.Join(beside, "sub")
	check(t, os.Mkdir(below, 0o755))
	for from, want := range map[string]string{dir: dir, beside: beside, below: beside} {
		if top, project, err := (Worktree{Dir: from}).Roots(t.Context()); err != nil || top != want || project != dir {
			t.Errorf("%s: %s, %s, %v", from, top, project, err)
		}
	}
}

// TestWorktreeMerge: merged, nothing to merge, conflicts that stay in the tree; no hook runs.
func TestWorktreeMerge(t *testing.T) {
	lonely(t)
	w := Worktree{Dir: t.TempDir()}
	shell(t, w.Dir, "init", "--quiet")
	shell(t, w.Dir, "config", "user.name", "Pat Example")
	shell(t, w.Dir, "config", "user.email", "pat@example.com")
	commit := func(kv ...string) string {
		write(t, w.Dir, kv...)
		shell(t, w.Dir, "add", "-A")
		shell(t, w.Dir, "commit", "--quiet", "-m", "work")
		return shell(t, w.Dir, "rev-parse", "HEAD")
	}
	base := commit("f", "1\n")
	shell(t, w.Dir, "checkout", "--quiet", "-b", "other")
	good, bad := commit("g", "1\n"), commit("f", "2\n")
	shell(t, w.Dir, "checkout", "--quiet", "main")
	mine := commit("h", "1\n")
	trap := filepath.Join(t.TempDir(), "sprung")
	write(t, w.Dir, ".git/hooks/post-merge", "#!/bin/sh\ntouch '"+trap+"'\n")
	check(t, os.Chmod(filepath.Join(w.Dir, ".git/hooks/post-merge"), 0o755))
	for n, want := range []bool{true, false} {
		if moved, conflicts, err := w.Merge(t.Context(), good, "Merge it\n\nBy coder.\n"); moved != want || conflicts != nil || err != nil {
			t.Errorf("%d: %v, %q, %v", n, moved, conflicts, err)
		}
	}
	if got := shell(t, w.Dir, "show", "-s", "--format=%B|%P"); got != "Merge it\n\nBy coder.\n|"+mine+" "+good {
		t.Errorf("%q", got)
	}
	if _, err := os.Stat(trap); err == nil {
		t.Error("a hook ran")
	}
	commit("f", "3\n")
	if moved, conflicts, err := w.Merge(t.Context(), bad, "x"); !moved || !slices.Equal(conflicts, []string{"f"}) || err != nil {
		t.Errorf("%v, %q, %v", moved, conflicts, err)
	}
	if s := must(w.Look(t.Context(), "")); !s.Pending {
		t.Errorf("%+v", s)
	}
	if same, err := w.SameFiles(t.Context(), mine, "HEAD"); same || err != nil {
		t.Error(same, err)
	}
	if same, err := w.SameFiles(t.Context(), base, base); !same || err != nil {
		t.Error(same, err)
	}
	if same, err := w.SameFiles(t.Context(), "0123456789", "HEAD"); same || err != nil {
		t.Error(same, err)
	}
}
