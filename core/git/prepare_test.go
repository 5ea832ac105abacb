package git

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
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
