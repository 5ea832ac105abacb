package git

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/files"
	"example.com/AutoAgentProject/core/usererr"
)

func TestCheck(t *testing.T) {
	lonely(t)
	if v, err := Check(t.Context()); err != nil || !strings.HasPrefix(v, "2.") {
		t.Fatalf("version %q, error %v", v, err)
	}
	t.Setenv("PATH", t.TempDir())
	_, err := Check(t.Context())
	wantCode(t, err, usererr.Environment, "no program git")
	old := t.TempDir()
	check(t, os.WriteFile(filepath.Join(old, "git"), []byte("#!/bin/sh\necho git version 2.34.1\n"), 0o755))
	t.Setenv("PATH", old)
	_, err = Check(t.Context())
	wantCode(t, err, usererr.Environment, "2.34.1 is too old")
}

func TestInit(t *testing.T) {
	lonely(t)
	ctx := t.Context()
	top := t.TempDir()
	dir := filepath.Join(top, "repo.git")
	// What a kill in the middle leaves: a half-made folder beside it, and an empty place.
	write(t, top, ".repo.git.new/HEAD", "", ".repo.git.new/config.lock", "")
	check(t, os.Mkdir(dir, 0o755))
	for range 2 {
		r := must(Init(ctx, dir))
		if got := shell(t, top, "--git-dir="+r.Dir, "symbolic-ref", "HEAD"); got != "refs/heads/main" {
			t.Errorf("HEAD is %s", got)
		}
	}
	if got := names(t, top); !slices.Equal(got, []string{"repo.git"}) {
		t.Errorf("left over: %q", got)
	}
	if hooks, err := os.ReadDir(filepath.Join(dir, "hooks")); err == nil {
		t.Errorf("there are hooks: %v", hooks)
	}
	other := t.TempDir()
	write(t, other, "repo.git/mine", "x")
	_, err := Init(ctx, filepath.Join(other, "repo.git"))
	wantCode(t, err, usererr.Unreadable, "no bare git repository")
	if got := tree(t, other); got["repo.git/mine"] != "x" {
		t.Error("somebody's file is gone")
	}
}

func TestStart(t *testing.T) {
	r := newRepo(t)
	if _, err := r.Resolve(t.Context(), Main); !errors.Is(err, ErrNoCommit) {
		t.Fatalf("main of an empty repository: %v", err)
	}
	first := must(r.Start(t.Context()))
	if again := must(r.Start(t.Context())); again != first {
		t.Errorf("the second start made %s beside %s", again, first)
	}
	sameTree(t, checkedOut(t, r, first), map[string]string{})
	if out := shell(t, r.Dir, "fsck", "--strict"); strings.Contains(out, "error") {
		t.Error(out)
	}
}

func TestRevisions(t *testing.T) {
	r, a := started(t, "f", "1")
	ctx := t.Context()
	b := edit(t, r, a, "f", "2")
	check(t, r.CompareAndSwap(ctx, Main, b, a))
	for _, rev := range []string{"main", Main, b, b[:10]} {
		if got := must(r.Resolve(ctx, rev)); got != b {
			t.Errorf("%s resolves to %s", rev, got)
		}
	}
	for _, rev := range []string{"", "nobody", "--all", "-h", "main:f", strings.Repeat("1", 40), "refs/heads/x\ny"} {
		if got, err := r.Resolve(ctx, rev); !errors.Is(err, ErrNoCommit) {
			t.Errorf("%q resolves to %q, %v", rev, got, err)
		}
	}
	if s := must(r.Short(ctx, b)); len(s) < 10 || !strings.HasPrefix(b, s) {
		t.Errorf("short id %q", s)
	}
	for _, c := range []struct {
		a, b string
		want bool
	}{{a, b, true}, {b, a, false}, {a, a, true}} {
		if got := must(r.IsAncestor(ctx, c.a, c.b)); got != c.want {
			t.Errorf("IsAncestor(%s, %s) = %v", c.a, c.b, got)
		}
	}
	if _, err := r.IsAncestor(ctx, "--fork-point", b); !errors.Is(err, ErrNoCommit) {
		t.Errorf("an option passed as commit: %v", err)
	}
	if _, err := r.IsAncestor(ctx, strings.Repeat("1", 40), b); err == nil {
		t.Error("an unknown commit is no ancestor, it is an error")
	}
	if must(r.Tree(ctx, a)) == must(r.Tree(ctx, b)) || must(r.Tree(ctx, edit(t, r, b, "f", "1"))) != must(r.Tree(ctx, a)) {
		t.Error("trees are not compared by their files")
	}
}

func TestCompareAndSwap(t *testing.T) {
	r, a := started(t, "f", "1")
	ctx := t.Context()
	b, c := edit(t, r, a, "f", "2"), edit(t, r, a, "f", "3")
	check(t, r.CompareAndSwap(ctx, Main, b, a))
	if err := r.CompareAndSwap(ctx, Main, c, a); !errors.Is(err, ErrMoved) {
		t.Errorf("a stale value was accepted: %v", err)
	}
	if err := r.CompareAndSwap(ctx, Main, c, ""); !errors.Is(err, ErrMoved) {
		t.Errorf("an existing ref was made: %v", err)
	}
	if got := must(r.Resolve(ctx, Main)); got != b {
		t.Errorf("main is %s, want %s", got, b)
	}
	check(t, r.CompareAndSwap(ctx, Main, b, a)) // the same call again, after a crash
	check(t, r.CompareAndSwap(ctx, "refs/autoagent/x", a, ""))
	for _, ref := range []string{"main", "HEAD", "refs/heads/a..b", "refs/heads/x.lock", "refs/../../etc", "--stdin", ""} {
		if err := r.CompareAndSwap(ctx, ref, c, b); err == nil {
			t.Errorf("ref %q was accepted", ref)
		}
	}
	if err := r.CompareAndSwap(ctx, Main, strings.Repeat("1", 40), b); err == nil {
		t.Error("main moved to a commit that does not exist")
	}
	// Locks that a killed git left.
	write(t, r.Dir, "refs/heads/main.lock", "", "HEAD.lock", "", "packed-refs.lock", "")
	check(t, r.CompareAndSwap(ctx, Main, c, b))
}

func TestCompareAndSwapUnderConcurrency(t *testing.T) {
	r, base := started(t, "f", "1")
	var won, lost int
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i := range 6 {
		commit := edit(t, r, base, "f", strings.Repeat("x", i+2))
		wg.Go(func() {
			err := r.CompareAndSwap(context.Background(), Main, commit, base)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				won++
			case errors.Is(err, ErrMoved):
				lost++
			default:
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if won != 1 || lost != 5 {
		t.Errorf("%d won and %d lost", won, lost)
	}
}

func TestLockEndsWithContext(t *testing.T) {
	r, a := started(t, "f", "1")
	held := must(hold(t.Context(), r.Dir))
	defer held.Close()
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer stop()
	err := r.CompareAndSwap(ctx, "refs/autoagent/x", a, "")
	if !errors.Is(err, files.ErrLocked) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
}

func TestMerge(t *testing.T) {
	r, base := started(t, "a", "1\n2\n3\n", "b", "b\n", "new\nline", "x\n", "gone", "g\n")
	ctx := t.Context()
	ours := edit(t, r, base, "a", "1 ours\n2\n3\n", "new\nline", "ours\n", "gone", "")
	clean := edit(t, r, base, "a", "1\n2\n3 theirs\n", "c", "c\n")
	clash := edit(t, r, base, "a", "1 theirs\n2\n3\n", "new\nline", "theirs\n", "gone", "changed\n")

	for _, c := range []struct{ ours, theirs, want string }{{base, clean, clean}, {clean, base, clean}, {base, base, base}} {
		if m := must(r.Merge(ctx, c.ours, c.theirs, builder, "m\n", noon())); m.Commit != c.want || m.Conflicts != nil {
			t.Errorf("merge without two sides: %+v", m)
		}
	}
	m := must(r.Merge(ctx, ours, clean, builder, "Merge step s-1.\n\nBy codebuilder-1.\n", noon()))
	sameTree(t, checkedOut(t, r, m.Commit), map[string]string{"a": "1 ours\n2\n3 theirs\n", "b": "b\n", "c": "c\n", "new\nline": "ours\n"})
	if again := must(r.Merge(ctx, ours, clean, builder, "Merge step s-1.\n\nBy codebuilder-1.\n", noon())); again.Commit != m.Commit {
		t.Error("the same merge has another id")
	}
	l := must(r.Log(ctx, base, m.Commit))[0]
	if l.Author != builder || !l.At.Equal(noon()) || l.Subject != "Merge step s-1." || l.Body != "By codebuilder-1." || !slices.Equal(l.Parents, []string{ours, clean}) {
		t.Errorf("the merge commit is %+v", l)
	}
	if raw := shell(t, r.Dir, "cat-file", "-p", m.Commit); strings.Count(raw, " +0000\n") != 2 {
		t.Errorf("times are not in UTC:\n%s", raw)
	}
	m = must(r.Merge(ctx, ours, clash, builder, "m\n", noon()))
	if m.Commit != "" || !slices.Equal(m.Conflicts, []string{"a", "gone", "new\nline"}) {
		t.Errorf("conflicting merge: %+v", m)
	}
	if got := must(r.Resolve(ctx, Main)); got != base {
		t.Errorf("merging moved main to %s", got)
	}
	alien := must(r.commit(ctx, must(r.Tree(ctx, base)), nil, builder, "alien\n", noon()))
	if m, err := r.Merge(ctx, ours, alien, builder, "m\n", noon()); err == nil {
		t.Errorf("unrelated histories were merged: %+v", m)
	}
}

func TestLogAndDiffStat(t *testing.T) {
	r, a := started(t, "f", "1\n")
	ctx := t.Context()
	b := edit(t, r, a, "f", "1\n2\n", "-x", "new\n")
	c := edit(t, r, b, "bin", "\x00\x01", "new\nline", "1\n", "f", "")
	log := must(r.Log(ctx, "", c))
	if len(log) != 3 || log[0].ID != c || log[2].ID != a || len(log[2].Parents) != 0 || log[2].Author != ourselves() {
		t.Errorf("log %+v", log)
	}
	if log := must(r.Log(ctx, b, c)); len(log) != 1 {
		t.Errorf("log of one commit: %+v", log)
	}
	if log := must(r.Log(ctx, c, c)); log != nil {
		t.Errorf("log of nothing: %+v", log)
	}
	want := []FileStat{{"-x", 1, 0}, {"bin", -1, -1}, {"f", 0, 1}, {"new\nline", 1, 0}}
	if got := must(r.DiffStat(ctx, a, c)); !slices.Equal(got, want) {
		t.Errorf("difference %+v", got)
	}
	if got := must(r.DiffStat(ctx, "", a)); !slices.Equal(got, []FileStat{{"f", 1, 0}}) {
		t.Errorf("difference to nothing %+v", got)
	}
}

func TestCheckoutIsByteForByte(t *testing.T) {
	want := map[string]string{
		".gitattributes": "* text=auto eol=crlf ident\n*.h export-ignore filter=evil working-tree-encoding=UTF-16\nsub export-subst\n",
		"a.txt":          "$Id$\nline\n", "crlf.txt": "a\r\nb\n", "x.h": "not left out\n", "sub/f": "$Format:%H$\n", ".gitignore": "*.o\n", "x.o": "ignored\n",
	}
	for _, n := range oddNames() {
		want[n] = "odd " + n
	}
	dir := t.TempDir()
	for n, c := range want {
		write(t, dir, n, c)
	}
	check(t, os.Symlink("/etc/passwd", filepath.Join(dir, "link")))
	check(t, os.Symlink("nowhere", filepath.Join(dir, "dangling")))
	write(t, dir, "run.sh", "#!/bin/sh\n")
	check(t, os.Chmod(filepath.Join(dir, "run.sh"), 0o755))
	maps.Copy(want, map[string]string{"link": "-> /etc/passwd", "dangling": "-> nowhere", "run.sh": "*#!/bin/sh\n"})

	r := newRepo(t)
	shell(t, r.Dir, "config", "filter.evil.smudge", "touch "+filepath.Join(dir, "smudged"))
	write(t, r.Dir, "hooks/post-checkout", "#!/bin/sh\ntouch "+filepath.Join(dir, "hooked")+"\n")
	check(t, os.Chmod(filepath.Join(r.Dir, "hooks/post-checkout"), 0o755))
	commit := must(r.ImportFolder(t.Context(), dir))
	sameTree(t, checkedOut(t, r, commit), want)
	sameTree(t, tree(t, dir), want)
	if _, err := os.Stat(filepath.Join(r.Dir, "index")); err == nil {
		t.Error("an index was left in the repository")
	}
	if err := r.Checkout(t.Context(), commit, dir); err == nil {
		t.Error("checked out over files")
	}
	if err := r.Checkout(t.Context(), "main", filepath.Join(t.TempDir(), "x")); err == nil {
		t.Error("a name is no commit")
	}
}

func TestFailureIsRecognised(t *testing.T) {
	for text, want := range map[string]error{
		"error: unable to write file x: No space left on device": syscall.ENOSPC,
		"fatal: write error: Disk quota exceeded":                syscall.EDQUOT,
	} {
		if err := error(&failure{text: text}); !errors.Is(err, want) || errors.Is(err, syscall.EPERM) {
			t.Errorf("%q is not recognised", text)
		}
	}
	if got := clean("a\x1b[31m\nb\x00" + strings.Repeat("ü", 400)); len(got) > 510 || strings.ContainsAny(got, "\x1b\n\x00") {
		t.Errorf("not clean: %q", got)
	}
}

func TestGitEndsWithContext(t *testing.T) {
	lonely(t)
	bin := t.TempDir()
	check(t, os.WriteFile(filepath.Join(bin, "git"), []byte("#!/bin/sh\nsleep 600 &\nwait\n"), 0o755))
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	ctx, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer stop()
	began := time.Now()
	_, err := call{env: closed(), args: []string{"version"}}.run(ctx)
	if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > 5*time.Minute {
		t.Errorf("error %v after %s", err, time.Since(began))
	}
}

// names are the entries of a folder.
func names(t *testing.T, dir string) []string {
	t.Helper()
	var n []string
	for _, e := range must(os.ReadDir(dir)) {
		n = append(n, e.Name())
	}
	return n
}
