package git

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestCommit(t *testing.T) {
	r, base := started(t, "f", "1\n", ".gitignore", "*.o\n")
	ctx := t.Context()
	c := prepared(t, r, base)
	commit, changed, err := c.Commit(ctx, base, "nothing\n", noon())
	if commit != base || changed || err != nil {
		t.Errorf("nothing to commit: %s %v %v", commit, changed, err)
	}
	want := map[string]string{"f": "2\n", ".gitignore": "*.o\n", "link": "-> /etc/passwd", "sh": "*#!"}
	for _, n := range oddNames() {
		want[n] = n
	}
	for n, content := range want {
		if n != "link" && n != "sh" {
			write(t, c.Dir, n, content)
		}
	}
	write(t, c.Dir, "sh", "#!")
	check(t, os.Chmod(filepath.Join(c.Dir, "sh"), 0o755))
	check(t, os.Symlink("/etc/passwd", filepath.Join(c.Dir, "link")))
	write(t, c.Dir, "x.o", "ignored", ".autoagent/handoff.md", "doc", ".git/index.lock", "")
	message := "s-1: do \"it\" $(touch /tmp/x) --all\n\nBy codebuilder-1.\n"
	commit, changed, err = c.Commit(ctx, base, message, noon())
	if err != nil || !changed {
		t.Fatalf("%v %v", changed, err)
	}
	again, changed, err := c.Commit(ctx, base, message, noon().Add(time.Hour))
	if again != commit || !changed || err != nil {
		t.Errorf("the second commit is %s %v %v", again, changed, err)
	}
	handIn(t, c, r, base)
	sameTree(t, checkedOut(t, r, commit), want)
	l := must(r.Log(ctx, base, commit))
	if len(l) != 1 || l[0].Author != builder || !l[0].At.Equal(noon()) || l[0].Subject+"\n\n"+l[0].Body+"\n" != message {
		t.Errorf("the commit is %+v", l)
	}
	if raw := shell(t, r.Dir, "cat-file", "-p", commit); strings.Count(raw, " +0000\n") != 2 {
		t.Errorf("times are not in UTC:\n%s", raw)
	}
	for _, bad := range []string{"", " \n", "a\x00b"} {
		if _, _, err := c.Commit(ctx, base, bad, noon()); err == nil {
			t.Errorf("message %q was accepted", bad)
		}
	}
	if dirty, head, err := c.Status(ctx); dirty || head != commit || err != nil {
		t.Errorf("status %v %s %v", dirty, head, err)
	}
	write(t, c.Dir, "f", "3\n")
	if dirty, _, _ := c.Status(ctx); !dirty {
		t.Error("a changed tree is clean")
	}
}

// TestCommitTakesWhatTheAgentMade: other branches, own commits, an index of its own.
func TestCommitTakesWhatTheAgentMade(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(t *testing.T, c Clone){
		"own commits": func(t *testing.T, c Clone) {
			write(t, c.Dir, "g", "1")
			shell(t, c.Dir, "add", ".")
			shell(t, c.Dir, "commit", "-qm", "own")
		},
		"another branch": func(t *testing.T, c Clone) {
			shell(t, c.Dir, "checkout", "-qb", "feature/x")
			write(t, c.Dir, "g", "1")
		},
		"detached": func(t *testing.T, c Clone) {
			shell(t, c.Dir, "checkout", "-q", "--detach")
			write(t, c.Dir, "g", "1")
		},
		"a merge of its own branches": func(t *testing.T, c Clone) {
			shell(t, c.Dir, "checkout", "-qb", "side")
			write(t, c.Dir, "g", "1")
			shell(t, c.Dir, "add", ".")
			shell(t, c.Dir, "commit", "-qm", "side")
			shell(t, c.Dir, "checkout", "-q", "main")
			shell(t, c.Dir, "merge", "-q", "--no-ff", "--no-commit", "side")
		},
		"hidden from the index": func(t *testing.T, c Clone) {
			shell(t, c.Dir, "update-index", "--assume-unchanged", "f")
			shell(t, c.Dir, "update-index", "--skip-worktree", "keep")
			write(t, c.Dir, "f", "1", "keep", "1", "g", "1")
		},
		"no index": func(t *testing.T, c Clone) {
			write(t, c.Dir, "g", "1")
			check(t, os.Remove(filepath.Join(c.Dir, ".git/index")))
		},
		"a broken index": func(t *testing.T, c Clone) {
			write(t, c.Dir, "g", "1", ".git/index", "broken")
		},
		"no permissions": func(t *testing.T, c Clone) {
			write(t, c.Dir, "g", "1", "d/x", "x")
			check(t, os.Chmod(filepath.Join(c.Dir, "g"), 0))
			check(t, os.Chmod(filepath.Join(c.Dir, "d"), 0))
			check(t, os.Chmod(c.Dir, 0))
		},
		"a broken configuration": func(t *testing.T, c Clone) { write(t, c.Dir, "g", "1", ".git/config", "[core\n") },
		"a bare configuration": func(t *testing.T, c Clone) {
			write(t, c.Dir, "g", "1", ".git/config", "[core]\nbare = true\nworktree = /etc\nsparseCheckout = true\n", ".git/info/sparse-checkout", "nothing\n")
		},
		"drafts in a commit": func(t *testing.T, c Clone) {
			write(t, c.Dir, "g", "1", ".autoagent/draft", "secret thought")
			shell(t, c.Dir, "add", "-f", ".autoagent", "g")
			shell(t, c.Dir, "commit", "-qm", "draft")
		},
		"drafts let in by an ignore file": func(t *testing.T, c Clone) {
			write(t, c.Dir, "g", "1", ".autoagent/draft", "secret thought", ".gitignore", "!.autoagent/\n!/.autoagent\n")
		},
		"a replaced ignore list": func(t *testing.T, c Clone) {
			check(t, os.RemoveAll(filepath.Join(c.Dir, ".git/info")))
			check(t, os.Symlink("/etc", filepath.Join(c.Dir, ".git/info")))
			write(t, c.Dir, "g", "1", ".autoagent/draft", "x")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, base := started(t, "f", "0", "keep", "0")
			c := prepared(t, r, base)
			do(t, c)
			commit, changed := handIn(t, c, r, base)
			got := checkedOut(t, r, commit)
			if !changed || got["g"] != "1" || (name == "hidden from the index") != (got["f"] == "1") || (name == "hidden from the index") != (got["keep"] == "1") {
				t.Errorf("the commit holds %q", got)
			}
			if log := shell(t, r.Dir, "log", "--full-history", "--format=%H", commit, "--", ".autoagent"); log != "" {
				t.Errorf("drafts are in the history: %s", log)
			}
			if again, _, err := c.Commit(t.Context(), base, "x\n", noon()); err != nil || again != commit {
				t.Errorf("again: %s %v, want %s", again, err, commit)
			}
			must(c.Prepare(t.Context(), r, base, Fresh))
		})
	}
}

func TestCommitRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		do    func(t *testing.T, r Repo, c Clone)
		words string
	}{
		".git is gone": {func(t *testing.T, r Repo, c Clone) { check(t, os.RemoveAll(filepath.Join(c.Dir, ".git"))) }, "not the folder"},
		".git is a file": {func(t *testing.T, r Repo, c Clone) {
			check(t, os.RemoveAll(filepath.Join(c.Dir, ".git")))
			write(t, c.Dir, ".git", "gitdir: "+r.Dir+"\n")
		}, "not the folder"},
		".git is a link": {func(t *testing.T, r Repo, c Clone) {
			check(t, os.RemoveAll(filepath.Join(c.Dir, ".git")))
			check(t, os.Symlink(r.Dir, filepath.Join(c.Dir, ".git")))
		}, "not the folder"},
		"objects are a link": {func(t *testing.T, r Repo, c Clone) {
			check(t, os.RemoveAll(filepath.Join(c.Dir, ".git/objects")))
			check(t, os.Symlink(filepath.Join(r.Dir, "objects"), filepath.Join(c.Dir, ".git/objects")))
		}, "not the folder"},
		"a common folder": {func(t *testing.T, r Repo, c Clone) { write(t, c.Dir, ".git/commondir", r.Dir+"\n") }, "not the folder"},
		"an unrelated history": {func(t *testing.T, r Repo, c Clone) {
			shell(t, c.Dir, "checkout", "-q", "--orphan", "x")
			shell(t, c.Dir, "commit", "-qam", "alien")
		}, "does not build on"},
		"no history": {func(t *testing.T, r Repo, c Clone) { shell(t, c.Dir, "checkout", "-q", "--orphan", "x") }, "HEAD names no commit"},
		"back before base": {func(t *testing.T, r Repo, c Clone) {
			shell(t, c.Dir, "reset", "-q", "--hard", "HEAD~1")
			write(t, c.Dir, "f", "x")
		}, "does not build on"},
		"a repository inside": {func(t *testing.T, r Repo, c Clone) {
			write(t, c.Dir, "in side/x", "x")
			shell(t, filepath.Join(c.Dir, "in side"), "init", "-q")
		}, "repositories of their own, remove their .git: in side/"},
		"a committed repository inside": {func(t *testing.T, r Repo, c Clone) {
			write(t, c.Dir, "inside/x", "x")
			shell(t, filepath.Join(c.Dir, "inside"), "init", "-q")
			shell(t, filepath.Join(c.Dir, "inside"), "add", ".")
			shell(t, filepath.Join(c.Dir, "inside"), "commit", "-qm", "x")
			shell(t, c.Dir, "add", "inside")
			shell(t, c.Dir, "commit", "-qm", "x")
		}, "repositories of their own, remove their .git: inside"},
		"an unfinished rebase": {func(t *testing.T, r Repo, c Clone) {
			check(t, os.Mkdir(filepath.Join(c.Dir, ".git/rebase-merge"), 0o755))
		}, "rebase"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, first := started(t, "f", "0\n")
			base := edit(t, r, first, "f", "1\n")
			clone := prepared(t, r, base)
			write(t, clone.Dir, "work", "precious\n")
			c.do(t, r, clone)
			before := listing(t, r.Dir)
			_, _, err := clone.Commit(t.Context(), base, "m\n", noon())
			var layout *LayoutError
			if !errors.As(err, &layout) || !strings.Contains(layout.Reason, c.words) {
				t.Fatalf("error %v, want the reason %q", err, c.words)
			}
			// Whatever it was, the next task begins from a good clone, and nothing is lost.
			if _, err := clone.Prepare(t.Context(), r, base, Fresh); err != nil {
				t.Fatal(err)
			}
			sameTree(t, tree(t, clone.Dir), map[string]string{"f": "1\n"})
			found := false
			for _, k := range rescued(t, clone) {
				found = found || at(t, clone, k, "work") == "precious\n"
			}
			if name != "back before base" && !found { // there "git reset" was the agent's own way to throw it away
				if _, err := os.Stat(filepath.Join(clone.Dir, "work")); err != nil {
					t.Error("unfinished work is lost")
				}
			}
			if listing(t, r.Dir) != before {
				t.Error("our repository was changed through the clone")
			}
			write(t, clone.Dir, "f", "2\n")
			handIn(t, clone, r, base)
		})
	}
}
