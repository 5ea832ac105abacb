package git

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// rescued lists the rescue refs of a clone, oldest first.
func rescued(t *testing.T, c Clone) []string {
	t.Helper()
	var refs []string
	return append(refs, strings.Fields(shell(t, c.Dir, "for-each-ref", "--format=%(objectname)", "refs/autoagent/rescue"))...)
}

// at reads a file of a commit in the clone.
func at(t *testing.T, c Clone, commit, name string) string {
	t.Helper()
	out, err := tryShell(c.Dir, "cat-file", "-p", commit+":"+name)
	if err != nil {
		return ""
	}
	return out
}

func TestPrepareFresh(t *testing.T) {
	r, base := started(t, "f", "1\n", "gone", "g\n", ".gitignore", "*.o\n", "dir/x", "x\n")
	ctx := t.Context()
	c := prepared(t, r, base)
	want := map[string]string{"f": "1\n", "gone": "g\n", ".gitignore": "*.o\n", "dir/x": "x\n"}
	sameTree(t, tree(t, c.Dir), want)
	if got := rescued(t, c); got != nil {
		t.Errorf("a new clone has something to rescue: %s", got)
	}
	if dirty, head, err := c.Status(ctx); dirty || head != base || err != nil {
		t.Errorf("status %v %s %v", dirty, head, err)
	}
	if got := shell(t, c.Dir, "symbolic-ref", "HEAD"); got != Main {
		t.Errorf("HEAD is on %s", got)
	}
	for _, path := range []string{".git/objects/info/alternates", ".git/FETCH_HEAD"} {
		if _, err := os.Stat(filepath.Join(c.Dir, path)); err == nil {
			t.Errorf("there is a %s", path)
		}
	}
	// No object is shared with our repository.
	check(t, filepath.Walk(filepath.Join(c.Dir, ".git/objects"), func(path string, st os.FileInfo, err error) error {
		if err == nil && st.Mode().IsRegular() && st.Sys().(*syscall.Stat_t).Nlink != 1 {
			t.Errorf("%s is a hard link", path)
		}
		return err
	}))

	// Unfinished work, a commit, and drafts.
	write(t, c.Dir, "f", "dirty\n", "new\nname", "n", "-x", "x", "cache.o", "o", ".autoagent/draft.md", "draft", "empty/../dir/y", "y")
	check(t, os.Remove(filepath.Join(c.Dir, "gone")))
	check(t, os.MkdirAll(filepath.Join(c.Dir, "hollow/inner"), 0o755))
	next := edit(t, r, base, "f", "2\n")
	if _, err := c.Prepare(ctx, r, next, Fresh); err != nil {
		t.Fatal(err)
	}
	want["f"], want["cache.o"] = "2\n", "o" // what is ignored stays
	sameTree(t, tree(t, c.Dir), want)
	if _, err := os.Stat(filepath.Join(c.Dir, "hollow")); err == nil {
		t.Error("an empty folder stayed")
	}
	if got := string(must(os.ReadFile(filepath.Join(c.Dir, ".autoagent/draft.md")))); got != "draft" {
		t.Error("the draft is gone")
	}
	kept := rescued(t, c)
	if len(kept) != 1 || at(t, c, kept[0], "f") != "dirty\n" || at(t, c, kept[0], "new\nname") != "n" || at(t, c, kept[0], "-x") != "x" || at(t, c, kept[0], "gone") != "" || at(t, c, kept[0], ".autoagent/draft.md") != "" {
		t.Fatalf("rescued %q", kept)
	}
	for range 2 {
		if _, err := c.Prepare(ctx, r, next, Fresh); err != nil {
			t.Fatal(err)
		}
	}
	if got := rescued(t, c); len(got) != 1 {
		t.Errorf("a clean tree was rescued: %s", got)
	}

	// Work that was taken over needs no rescue, work that was not does.
	write(t, c.Dir, "f", "3\n")
	commit, _ := handIn(t, c, r, next)
	check(t, r.CompareAndSwap(ctx, Main, next, base))
	m := must(r.Merge(ctx, next, commit, builder, "m\n", noon()))
	must(c.Prepare(ctx, r, m.Commit, Fresh))
	if got := rescued(t, c); len(got) != 1 {
		t.Errorf("merged work was rescued: %s", got)
	}
	must(c.Prepare(ctx, r, base, Fresh))
	sameTree(t, tree(t, c.Dir), map[string]string{"f": "1\n", "gone": "g\n", ".gitignore": "*.o\n", "dir/x": "x\n", "cache.o": "o"})
	if got := rescued(t, c); len(got) != 2 || !slices.Contains(got, m.Commit) {
		t.Errorf("rescued %s, want also %s", got, m.Commit)
	}
}

func TestPrepareRescuesWhatWasIgnored(t *testing.T) {
	r, base := started(t, ".gitignore", "notes\n")
	c := prepared(t, r, base)
	write(t, c.Dir, "notes", "precious\n")
	next := edit(t, r, base, ".gitignore", "other\n")
	must(c.Prepare(t.Context(), r, next, Fresh))
	sameTree(t, tree(t, c.Dir), map[string]string{".gitignore": "other\n"})
	if kept := rescued(t, c); len(kept) != 1 || at(t, c, kept[0], "notes") != "precious\n" {
		t.Errorf("rescued %s", kept)
	}
}

func TestPrepareKeep(t *testing.T) {
	r, base := started(t, "f", "1\n")
	ctx := t.Context()
	c := newClone(t)
	must(c.Prepare(ctx, r, base, Keep)) // nothing to keep yet
	sameTree(t, tree(t, c.Dir), map[string]string{"f": "1\n"})
	shell(t, c.Dir, "checkout", "-q", "--detach")
	write(t, c.Dir, "f", "half\n", "g", "g", ".git/index.lock", "", ".git/refs/heads/main.lock", "", ".git/HEAD.lock", "")
	before := tree(t, c.Dir)
	must(c.Prepare(ctx, r, base, Keep))
	sameTree(t, tree(t, c.Dir), before)
	if got := rescued(t, c); got != nil {
		t.Errorf("rescued %s", got)
	}
	commit, changed := handIn(t, c, r, base)
	if !changed || must(r.Short(ctx, commit)) == "" {
		t.Error("the work was not taken")
	}
}

func TestPrepareRefuses(t *testing.T) {
	r, base := started(t, "f", "1\n")
	c := newClone(t)
	for _, bad := range []string{"", "main", strings.Repeat("1", 40), "--all"} {
		if _, err := c.Prepare(t.Context(), r, bad, Fresh); !errors.Is(err, ErrNoCommit) {
			t.Errorf("base %q: %v", bad, err)
		}
	}
	if _, err := c.Prepare(t.Context(), r, base, "other"); err == nil {
		t.Error("an unknown mode was accepted")
	}
}

func TestPrepareMergeIn(t *testing.T) {
	r, base := started(t, "f", "1\n2\n3\n", "g", "g\n", "new\nname", "1\n")
	ctx := t.Context()
	c := prepared(t, r, base)
	write(t, c.Dir, "g", "work\n")
	work, _ := handIn(t, c, r, base)
	write(t, c.Dir, "h", "unfinished\n")

	one := edit(t, r, base, "f", "1 main\n2\n3\n")
	if conflicts := must(c.Prepare(ctx, r, one, MergeIn)); conflicts != nil {
		t.Errorf("conflicts %q", conflicts)
	}
	sameTree(t, tree(t, c.Dir), map[string]string{"f": "1 main\n2\n3\n", "g": "work\n", "h": "unfinished\n", "new\nname": "1\n"})
	merged, changed := handIn(t, c, r, one)
	if !changed || !must(r.IsAncestor(ctx, work, merged)) || !must(r.IsAncestor(ctx, one, merged)) {
		t.Error("the merge does not hold both")
	}

	// Now one that conflicts, in a file with an odd name too.
	two := edit(t, r, one, "g", "main\n", "new\nname", "main\n", "k", "k\n")
	write(t, c.Dir, "new\nname", "work\n")
	want := []string{"g", "new\nname"}
	for range 2 { // again, after a run that was cut off: the agent is at it
		if got := must(c.Prepare(ctx, r, two, MergeIn)); !slices.Equal(got, want) {
			t.Errorf("conflicts %q, want %q", got, want)
		}
		if got := tree(t, c.Dir); !strings.Contains(got["g"], "<<<<<<< ") || !strings.Contains(got["g"], "work\n=======\nmain\n") || got["k"] != "k\n" {
			t.Errorf("the tree is %q", got)
		}
	}
	var layout *LayoutError
	if _, _, err := c.Commit(ctx, two, "m\n", noon()); !errors.As(err, &layout) || !strings.Contains(layout.Reason, "conflict markers are left in: g") {
		t.Errorf("markers were committed: %v", err)
	}
	shell(t, c.Dir, "add", "-A") // git believes that they are solved now; they are not
	if got := must(c.Prepare(ctx, r, two, MergeIn)); !slices.Equal(got, want) {
		t.Errorf("conflicts %q, want %q", got, want)
	}
	if _, _, err := c.Commit(ctx, two, "m\n", noon()); !errors.As(err, &layout) {
		t.Errorf("markers were committed: %v", err)
	}
	write(t, c.Dir, "g", "work and main\n", "new\nname", "both\n")
	solved, _ := handIn(t, c, r, two)
	if log := must(r.Log(ctx, two, solved)); len(log[0].Parents) != 2 || log[0].Parents[1] != two {
		t.Errorf("the solved merge is %+v", log[0])
	}
	if dirty, _, err := c.Status(ctx); dirty || err != nil {
		t.Errorf("status after a merge: %v %v", dirty, err)
	}
	if m := must(r.Merge(ctx, two, solved, builder, "m\n", noon())); m.Commit != solved {
		t.Errorf("merging it: %+v", m)
	}

	// An older conflict that was never solved gives way to a newer one; nothing of it is lost.
	write(t, c.Dir, "g", "mine\n")
	three := edit(t, r, two, "g", "third\n")
	must(c.Prepare(ctx, r, three, MergeIn))
	write(t, c.Dir, "notes", "half solved\n")
	four := edit(t, r, three, "g", "fourth\n")
	if got := must(c.Prepare(ctx, r, four, MergeIn)); !slices.Equal(got, []string{"g"}) {
		t.Errorf("conflicts %q", got)
	}
	if got := tree(t, c.Dir)["g"]; !strings.Contains(got, "mine\n=======\nfourth\n") {
		t.Errorf("g holds %q", got)
	}
	if kept := rescued(t, c); len(kept) != 1 || at(t, c, kept[0], "notes") != "half solved\n" {
		t.Errorf("rescued %s", kept)
	}
}

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

// TestPlantedThings: what a configuration, a hook or an attribute names is not run by our git, walls or not.
func TestPlantedThings(t *testing.T) {
	r, base := started(t, "f", "1\n", "g", "1\n")
	ctx := t.Context()
	other, secret := started(t, "secret", "not yours\n")
	c := prepared(t, r, base)
	trap := filepath.Join(t.TempDir(), "sprung")
	plant := func() {
		spring := "touch '" + trap + "'; cat"
		write(t, c.Dir, "planted", trap, ".git/config", "[core]\nrepositoryformatversion = 0\nhooksPath = .git/traps\nfsmonitor = \"touch "+trap+"\"\nsshCommand = \"touch "+trap+"\"\neditor = \"touch "+trap+"\"\n"+
			"alternateRefsCommand = \"touch "+trap+"\"\n[filter \"evil\"]\nclean = \""+spring+"\"\nsmudge = \""+spring+"\"\nrequired = true\n[merge \"evil\"]\ndriver = \""+spring+"\"\n"+
			"[diff \"evil\"]\ntextconv = \""+spring+"\"\ncommand = \""+spring+"\"\n[uploadpack]\npackObjectsHook = \""+spring+"\"\n[user]\nname = Mallory\nemail = m@example.com\n[include]\npath = /tmp/nowhere\n",
			".gitattributes", "* filter=evil merge=evil diff=evil\n", ".git/info/attributes", "* filter=evil merge=evil\n", ".git/info/grafts", base+"\n",
			".git/objects/info/alternates", other.Dir+"/objects\n")
		for _, dir := range []string{".git/traps", ".git/hooks"} {
			for _, h := range []string{"pre-commit", "post-commit", "post-checkout", "post-merge", "pre-merge-commit", "reference-transaction", "post-index-change", "prepare-commit-msg", "commit-msg", "pre-auto-gc", "post-rewrite"} {
				write(t, c.Dir, dir+"/"+h, "#!/bin/sh\ntouch '"+trap+"'\n")
				check(t, os.Chmod(filepath.Join(c.Dir, dir, h), 0o755))
			}
		}
	}
	plant()
	write(t, c.Dir, ".git/refs/heads/stolen", secret+"\n", "f", "2\n")
	commit, _ := handIn(t, c, r, base)
	if l := must(r.Log(ctx, base, commit)); len(l) != 1 || l[0].Author != builder {
		t.Errorf("the commit is %+v", l)
	}
	if _, err := r.Resolve(ctx, secret); !errors.Is(err, ErrNoCommit) {
		t.Error("an object of another repository came along")
	}
	write(t, c.Dir, "g", "mine\n")
	next := edit(t, r, base, "g", "2\n", "f", "3\n")
	for _, mode := range []Mode{MergeIn, Keep, Fresh} {
		plant()
		if _, err := c.Prepare(ctx, r, next, mode); err != nil {
			t.Errorf("%s: %v", mode, err)
		}
		if _, _, err := c.Status(ctx); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(trap); err == nil {
		t.Error("something planted was run")
	}
	if got := shell(t, c.Dir, "config", "--get-regexp", "."); strings.Contains(got, "evil") || !strings.Contains(got, "user.name "+builder.Name) {
		t.Errorf("the configuration is\n%s", got)
	}
}

// TestStolenHistory: a commit that needs objects of another repository is no commit of ours.
func TestStolenHistory(t *testing.T) {
	r, base := started(t, "f", "1\n")
	other, secret := started(t, "secret", "not yours\n")
	c := prepared(t, r, base)
	write(t, c.Dir, ".git/objects/info/alternates", other.Dir+"/objects\n")
	stolen := shell(t, c.Dir, "commit-tree", secret+"^{tree}", "-p", base, "-m", "stolen")
	shell(t, c.Dir, "update-ref", "refs/heads/main", stolen)
	_, _, err := c.Commit(t.Context(), base, "m\n", noon())
	var layout *LayoutError
	if !errors.As(err, &layout) {
		t.Fatalf("error %v", err)
	}
	if _, err := r.Resolve(t.Context(), secret); !errors.Is(err, ErrNoCommit) {
		t.Error("it came along")
	}
}

// TestPrepareKilled kills the whole script before every git that it starts, each time in a copy of the same clone, and
// wants the next call to come out as if nothing had happened.
func TestPrepareKilled(t *testing.T) {
	r, base := started(t, "f", "1\n", "g", "g\n")
	next := edit(t, r, base, "f", "2\n", "new", "n\n")
	clash := edit(t, r, base, "f", "clash\n", "g", "", "new", "n\n")
	worked := prepared(t, r, base)
	write(t, worked.Dir, "h", "h\n", "f", "mine\n")
	shell(t, worked.Dir, "add", ".")
	shell(t, worked.Dir, "commit", "-qm", "work")
	write(t, worked.Dir, "i", "unfinished\n")
	easy := prepared(t, r, base)
	write(t, easy.Dir, "g", "mine\n", "i", "unfinished\n")

	for name, c := range map[string]struct {
		from   *Clone
		commit string
		mode   Mode
		want   map[string]string
		clash  []string
	}{
		"new":         {nil, base, Fresh, map[string]string{"f": "1\n", "g": "g\n"}, nil},
		"fresh":       {&worked, next, Fresh, map[string]string{"f": "2\n", "g": "g\n", "new": "n\n"}, nil},
		"merge":       {&easy, next, MergeIn, map[string]string{"f": "2\n", "g": "mine\n", "i": "unfinished\n", "new": "n\n"}, nil},
		"conflicting": {&worked, clash, MergeIn, map[string]string{"f": "<<<<<<< HEAD\nmine\n=======\nclash\n>>>>>>> " + clash + "\n", "h": "h\n", "i": "unfinished\n", "new": "n\n"}, []string{"f"}},
	} {
		t.Run(name, func(t *testing.T) {
			for n := 1; ; n++ {
				clone := newClone(t)
				if c.from != nil {
					check(t, os.CopyFS(clone.Dir, os.DirFS(c.from.Dir)))
				}
				killed := false
				clone.Exec = killing(t, n, &killed)
				_, err := clone.Prepare(t.Context(), r, c.commit, c.mode)
				if killed == (err == nil) {
					t.Errorf("killed at %d: %v, error %v", n, killed, err)
				}
				clone.Exec = plainly
				conflicts, err := clone.Prepare(t.Context(), r, c.commit, c.mode)
				if err != nil || !slices.Equal(conflicts, c.clash) {
					t.Fatalf("killed at %d: conflicts %q, error %v", n, conflicts, err)
				}
				sameTree(t, tree(t, clone.Dir), c.want)
				kept := rescued(t, clone)
				if c.mode == Fresh && c.from != nil {
					if len(kept) == 0 || at(t, clone, kept[0], "f") != "mine\n" || at(t, clone, kept[0], "i") != "unfinished\n" {
						t.Errorf("killed at %d: rescued %s", n, kept)
					}
				} else if kept != nil {
					t.Errorf("killed at %d: rescued %s", n, kept)
				}
				if aside, _ := filepath.Glob(filepath.Join(clone.Dir, ".autoagent/git*")); aside != nil {
					t.Errorf("killed at %d: %s was put aside", n, aside)
				}
				if !killed {
					if n < 8 {
						t.Errorf("only %d kills", n)
					}
					break
				}
			}
		})
	}
}

// TestPrepareKilledInsideGit begins from what a git leaves that was killed while it wrote the tree.
func TestPrepareKilledInsideGit(t *testing.T) {
	r, base := started(t, "f", "1\n", "g", "g\n")
	ctx := t.Context()
	next := edit(t, r, base, "f", "2\n", "new", "new\n")
	c := prepared(t, r, base)
	write(t, c.Dir, "h", "work\n")
	work, _, err := c.Commit(ctx, base, "m\n", noon())
	check(t, err)
	half := []string{"f", "2", "new", "ne", ".git/index.lock", "x", ".git/ORIG_HEAD.lock", "", ".git/objects/tmp_objdir-x/y", ""}

	write(t, c.Dir, append(half, ".git/autoagent-merging", "")...)
	check(t, os.Remove(filepath.Join(c.Dir, "g")))
	must(c.Prepare(ctx, r, next, Keep)) // a merge of ours is finished, whatever is asked for
	sameTree(t, tree(t, c.Dir), map[string]string{"f": "2\n", "g": "g\n", "h": "work\n", "new": "new\n"})
	merged, _, err := c.Commit(ctx, next, "m\n", noon())
	check(t, err)
	if got := strings.Fields(shell(t, c.Dir, "rev-parse", merged+"^1", merged+"^2")); !slices.Equal(got, []string{work, next}) {
		t.Errorf("the merge has the parents %s", got)
	}

	write(t, c.Dir, append(half, ".git/autoagent-preparing", "")...)
	check(t, os.Remove(filepath.Join(c.Dir, "g")))
	must(c.Prepare(ctx, r, next, Keep))
	sameTree(t, tree(t, c.Dir), map[string]string{"f": "2\n", "g": "g\n", "new": "new\n"})
	if got := rescued(t, c); got != nil {
		t.Errorf("half a tree of ours was rescued: %s", got)
	}
}

// killing runs a command with a git before whose n-th start the whole script dies.
func killing(t *testing.T, n int, killed *bool) Exec {
	t.Helper()
	bin := t.TempDir()
	real := must(exec.LookPath("git"))
	wrapper := "#!/bin/sh\necho >>'" + bin + "/n'\n" +
		"if [ $(wc -l <'" + bin + "/n') = " + strconv.Itoa(n) + " ]; then kill -9 0; fi\nexec '" + real + "' \"$@\"\n"
	check(t, os.WriteFile(filepath.Join(bin, "git"), []byte(wrapper), 0o755))
	return func(ctx context.Context, c Command) (Output, error) {
		c.Env = append(c.Env, "PATH="+bin+":"+os.Getenv("PATH"))
		out, err := plainly(ctx, c)
		*killed = out.Exit == -1
		return out, err
	}
}

func TestBundle(t *testing.T) {
	r, base := started(t, "f", "1\n")
	ctx := t.Context()
	c := prepared(t, r, base)
	if err := c.Bundle(ctx, base, base, io.Discard); err == nil {
		t.Error("an empty bundle was made")
	}
	for _, bad := range []string{"main", "--all", ""} {
		if err := c.Bundle(ctx, base, bad, io.Discard); !errors.Is(err, ErrNoCommit) {
			t.Errorf("commit %q: %v", bad, err)
		}
	}
	write(t, c.Dir, "f", "2\n")
	commit, _, err := c.Commit(ctx, base, "m\n", noon())
	check(t, err)
	full := errors.New("too big")
	if err := c.Bundle(ctx, base, commit, writerFunc(func([]byte) (int, error) { return 0, full })); err == nil {
		t.Error("a full disk was not noticed")
	}
	var b bytes.Buffer
	check(t, c.Bundle(ctx, base, commit, &b))
	if !strings.HasPrefix(b.String(), "# v2 git bundle\n-"+base) || !strings.Contains(b.String(), commit+" "+Out+"\n\nPACK") {
		t.Errorf("the bundle begins %q", b.String()[:min(b.Len(), 200)])
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestCloneFailures(t *testing.T) {
	r, base := started(t, "f", "1\n")
	ctx := t.Context()
	c := newClone(t)
	var layout *LayoutError
	if _, _, err := c.Status(ctx); !errors.As(err, &layout) {
		t.Errorf("status of no clone: %v", err)
	}
	must(c.Prepare(ctx, r, base, Fresh))
	broken := errors.New("no cell")
	c.Exec = func(context.Context, Command) (Output, error) { return Output{}, broken }
	if _, err := c.Prepare(ctx, r, base, Fresh); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
	c.Exec = func(context.Context, Command) (Output, error) {
		return Output{Exit: 128, Text: "fatal: write error: No space left on device\n"}, nil
	}
	if _, err := c.Prepare(ctx, r, base, Fresh); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("error %v", err)
	}
	for _, answer := range []string{"", "HEAD 1", "--all 0\n"} { // nothing that comes out of a clone is believed
		c.Exec = func(_ context.Context, cmd Command) (Output, error) {
			_, err := io.WriteString(cmd.Stdout, answer)
			return Output{}, err
		}
		if _, _, err := c.Commit(ctx, base, "m\n", noon()); !errors.Is(err, ErrNoCommit) {
			t.Errorf("answer %q: %v", answer, err)
		}
	}
	c.Exec = func(_ context.Context, cmd Command) (Output, error) {
		_, err := cmd.Stdout.Write(make([]byte, maxAnswer+1))
		return Output{}, err
	}
	if _, err := c.Prepare(ctx, r, base, Fresh); err == nil {
		t.Error("an endless answer was read")
	}
}

func TestCommandsCarryNoText(t *testing.T) {
	r, base := started(t, "f", "1\n")
	c := newClone(t)
	c.Who.Name = "O'Neil \"x\" \\ $(id)"
	var seen []Command
	c.Exec = func(ctx context.Context, cmd Command) (Output, error) {
		seen = append(seen, cmd)
		return plainly(ctx, cmd)
	}
	must(c.Prepare(t.Context(), r, base, Fresh))
	write(t, c.Dir, "f", "2\n")
	_, _, err := c.Commit(t.Context(), base, "the message\n", noon())
	check(t, err)
	if len(seen) != 2 || !slices.Equal(seen[0].ReadOnly, []string{r.Dir}) || seen[1].ReadOnly != nil {
		t.Fatalf("commands %d", len(seen))
	}
	for _, cmd := range seen {
		if strings.Contains(strings.Join(cmd.Argv, "\n"), "the message") || strings.Contains(cmd.Argv[2], c.Who.Name) || cmd.Dir != c.Dir {
			t.Error("text of others is part of the script or an argument")
		}
	}
	if got := shell(t, c.Dir, "config", "--local", "user.name"); got != c.Who.Name {
		t.Errorf("user.name is %q", got)
	}
}
