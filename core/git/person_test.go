package git

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"example.com/AutoAgentProject/core/usererr"
)

func TestLook(t *testing.T) {
	dir, _ := theirs(t)
	ctx := t.Context()
	sub := filepath.Join(t.TempDir(), "library")
	check(t, os.Mkdir(sub, 0o755))
	shell(t, sub, "init", "-q")
	write(t, sub, "x", "x")
	shell(t, sub, "add", ".")
	shell(t, sub, "commit", "-qm", "x")
	shell(t, dir, "submodule", "--quiet", "add", sub, "lib")
	write(t, dir, ".gitattributes", "*.bin filter=lfs diff=lfs\n", "big.bin", "pointer", ".gitignore", "*.o\nbuild/\n", "new\nname", "1")
	shell(t, dir, "add", ".")
	shell(t, dir, "commit", "-qm", "three")
	head := shell(t, dir, "rev-parse", "HEAD")

	clean := Survey{IsRepo: true, Head: head, Branch: "trunk", Submodules: List{1, []string{"lib"}}, LFS: List{1, []string{"big.bin"}}}
	if got := must(Look(ctx, dir)); !same(got, clean) {
		t.Errorf("a clean tree: %+v", got)
	}
	write(t, dir, "f", "3\n", "new\nname", "2", "staged", "s", "-untracked", "u", "folder/a", "a", "folder/b", "b", "x.o", "o", "build/1", "1", "build/2", "2")
	shell(t, dir, "add", "staged")
	shell(t, dir, "config", "status.showUntrackedFiles", "no")
	before := listing(t, dir)
	got := must(Look(ctx, dir))
	dirty := clean
	dirty.Modified = List{3, []string{"f", "new\nname", "staged"}}
	dirty.Untracked = List{2, []string{"-untracked", "folder/"}}
	dirty.Ignored = List{2, []string{"build/", "x.o"}}
	if !same(got, dirty) {
		t.Errorf("a dirty tree: %+v, want %+v", got, dirty)
	}
	if listing(t, dir) != before {
		t.Error("looking changed the repository")
	}
	for i := range 50 {
		write(t, dir, fmt.Sprintf("u%02d", i), "u")
	}
	if got := must(Look(ctx, dir)).Untracked; got.Count != 52 || len(got.Names) != maxNames {
		t.Errorf("a long list: %+v", got)
	}

	shell(t, dir, "checkout", "-q", "--detach")
	if got := must(Look(ctx, dir)); got.Branch != "" || got.Head != head {
		t.Errorf("detached: %+v", got)
	}
	if got := must(Look(ctx, filepath.Join(dir, "folder"))); got.IsRepo || got.Inside != dir || got.Modified.Count != 0 {
		t.Errorf("a folder inside: %+v", got)
	}
	if got := must(Look(ctx, t.TempDir())); !same(got, Survey{}) {
		t.Errorf("a plain folder: %+v", got)
	}
	bare := filepath.Join(t.TempDir(), "bare.git")
	shell(t, dir, "clone", "-q", "--bare", dir, bare)
	if got := must(Look(ctx, bare)); !got.Bare || !got.IsRepo || got.Head != head || got.LFS.Count != 1 || got.Submodules.Count != 1 {
		t.Errorf("a bare repository: %+v", got)
	}
	empty := t.TempDir()
	shell(t, empty, "init", "-q")
	write(t, empty, "f", "x")
	if got := must(Look(ctx, empty)); !same(got, Survey{IsRepo: true, Branch: "main", Untracked: List{1, []string{"f"}}}) {
		t.Errorf("a repository without a commit: %+v", got)
	}
	// What a hook sets must not lead us elsewhere.
	t.Setenv("GIT_DIR", filepath.Join(dir, ".git"))
	if got := must(Look(ctx, empty)); got.Head != "" {
		t.Errorf("GIT_DIR was followed: %+v", got)
	}
}

func same(a, b Survey) bool {
	sort := func(s *Survey) {
		for _, l := range []*List{&s.Modified, &s.Untracked, &s.Ignored, &s.Submodules, &s.LFS} {
			l.Names = sorted(l.Names)
		}
	}
	sort(&a)
	sort(&b)
	return fmt.Sprintf("%#v", a) == fmt.Sprintf("%#v", b)
}

func TestDeliver(t *testing.T) {
	dir, head := theirs(t)
	ctx := t.Context()
	r := newRepo(t)
	base := must(r.ImportRepo(ctx, dir))
	one := edit(t, r, base, "f", "3\n", "-new\nfile", "n")
	two := edit(t, r, one, "f", "4\n")
	// A dirty tree, a staged change and a FETCH_HEAD of theirs stay as they are.
	write(t, dir, "f", "dirty\n", "staged", "s", "untracked", "u", ".git/FETCH_HEAD", "theirs\n")
	shell(t, dir, "add", "staged")
	state := func() string {
		index := must(os.ReadFile(filepath.Join(dir, ".git/index")))
		return fmt.Sprint(tree(t, dir), string(index), shell(t, dir, "rev-parse", "HEAD", "trunk"), string(must(os.ReadFile(filepath.Join(dir, ".git/FETCH_HEAD")))))
	}
	before := state()

	for _, c := range []struct{ commit, before string }{{one, ""}, {one, one}, {two, one}} {
		d := must(Deliver(ctx, r, c.commit, dir, "autoagent/m-1"))
		if d != (Delivered{Repo: dir, Branch: "autoagent/m-1", Commit: c.commit, Before: c.before}) {
			t.Errorf("delivered %+v", d)
		}
		if got := shell(t, dir, "rev-parse", "refs/heads/autoagent/m-1"); got != c.commit {
			t.Errorf("the branch is %s, want %s", got, c.commit)
		}
	}
	if out := shell(t, dir, "fsck", "--connectivity-only"); strings.Contains(out, "missing") {
		t.Error(out)
	}
	if got := shell(t, dir, "for-each-ref", "--format=%(refname)"); got != "refs/heads/autoagent/m-1\nrefs/heads/trunk" {
		t.Errorf("refs: %s", got)
	}
	if state() != before {
		t.Error("the delivery changed more than the branch")
	}
	if got := shell(t, dir, "rev-parse", "HEAD"); got != head {
		t.Errorf("HEAD is %s", got)
	}

	shell(t, dir, "branch", "own", head)
	shell(t, dir, "commit", "-q", "--allow-empty", "-m", "own")
	shell(t, dir, "branch", "-f", "own", "HEAD")
	linked := filepath.Join(t.TempDir(), "linked")
	shell(t, dir, "worktree", "add", "-q", "-b", "elsewhere", linked, head)
	before = state()
	for branch, want := range map[string]struct {
		code  usererr.Code
		words string
	}{
		"trunk":       {usererr.Conflict, "checked out in " + dir},
		"elsewhere":   {usererr.Conflict, "checked out in " + linked},
		"own":         {usererr.Conflict, "work of its own"},
		"own/below":   {usererr.Conflict, "cannot be written"},
		"-f":          {usererr.Usage, "no name of a branch"},
		"a..b":        {usererr.Usage, "no name of a branch"},
		"HEAD":        {usererr.Usage, "no name of a branch"},
		"":            {usererr.Usage, "no name of a branch"},
		"x:y":         {usererr.Usage, "no name of a branch"},
		"@{-1}":       {usererr.Usage, "no name of a branch"},
		"with space":  {usererr.Usage, "no name of a branch"},
		"new\nline":   {usererr.Usage, "no name of a branch"},
		"a/../../etc": {usererr.Usage, "no name of a branch"},
	} {
		_, err := Deliver(ctx, r, two, dir, branch)
		wantCode(t, err, want.code, want.words)
		var e *usererr.Error
		if !errors.As(err, &e) || !strings.Contains(e.Hint, "--branch") {
			t.Errorf("branch %q: the hint is %q", branch, e.Hint)
		}
	}
	if state() != before {
		t.Error("a refused delivery changed something")
	}
	if refs := strings.Fields(shell(t, dir, "for-each-ref", "--format=%(refname:short)")); !slices.Equal(refs, []string{"autoagent/m-1", "elsewhere", "own", "trunk"}) {
		t.Errorf("refs: %s", refs)
	}
	if _, err := Deliver(ctx, r, "main", dir, "x"); !errors.Is(err, ErrNoCommit) {
		t.Errorf("a name passed as commit: %v", err)
	}
}

func TestDeliverElsewhere(t *testing.T) {
	r, base := started(t, "f", "1\n")
	ctx := t.Context()
	bare := filepath.Join(t.TempDir(), "bare.git")
	shell(t, r.Dir, "init", "-q", "--bare", "-b", "main", bare)
	empty := t.TempDir()
	shell(t, empty, "init", "-q", "-b", "main")
	sha256 := t.TempDir()
	shell(t, sha256, "init", "-q", "--object-format=sha256")
	for _, branch := range []string{"main", "other"} { // in a bare one nothing is checked out
		must(Deliver(ctx, r, base, bare, branch))
		if got := shell(t, bare, "rev-parse", branch); got != base {
			t.Errorf("%s is %s", branch, got)
		}
	}
	must(Deliver(ctx, r, base, empty, "work"))
	_, err := Deliver(ctx, r, base, empty, "main") // its current branch, though it has no commit yet
	wantCode(t, err, usererr.Conflict, "main")
	_, err = Deliver(ctx, r, base, sha256, "work")
	wantCode(t, err, usererr.Usage, "sha256")
	_, err = Deliver(ctx, r, base, t.TempDir(), "work")
	wantCode(t, err, usererr.Usage, "no git repository")
}
