package git

import (
	"errors"
	"fmt"

	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"example.com/AutoAgentProject/core/usererr"
)

func TestImportFolder(t *testing.T) {
	r := newRepo(t)
	ctx := t.Context()
	dir := t.TempDir()
	write(t, dir, "a", "a", ".gitignore", "secret\n", "secret", "s", "empty", "", ".git/config", "[x", "sub/.git/HEAD", "x", "sub/f", "f", "lib/.GIT", "gitdir: x", "lib/g", "g")
	check(t, os.MkdirAll(filepath.Join(dir, "nothing/in/it"), 0o755))
	check(t, unix.Mkfifo(filepath.Join(dir, "fifo"), 0o644))
	before := listing(t, filepath.Join(dir, "sub"))
	want := map[string]string{"a": "a", ".gitignore": "secret\n", "secret": "s", "empty": "", "sub/f": "f", "lib/g": "g"}

	write(t, r.Dir, "refs/autoagent-import.lock", "", "refs/heads/main.lock", "") // of a git that was killed
	commit := must(r.ImportFolder(ctx, dir))
	sameTree(t, checkedOut(t, r, commit), want)
	if got := must(r.Resolve(ctx, Main)); got != commit {
		t.Errorf("main is %s", got)
	}
	if again := must(r.ImportFolder(ctx, dir)); again != commit {
		t.Errorf("the second import is %s, the first %s", again, commit)
	}
	if listing(t, filepath.Join(dir, "sub")) != before {
		t.Error("the folder was changed")
	}
	write(t, dir, "a", "changed")
	_, err := r.ImportFolder(ctx, dir)
	wantCode(t, err, usererr.Conflict, "other work")
	if got := must(r.Resolve(ctx, Main)); got != commit {
		t.Errorf("main moved to %s", got)
	}
}

func TestImportFolderRefuses(t *testing.T) {
	r := newRepo(t)
	ctx := t.Context()
	file := filepath.Join(t.TempDir(), "file")
	check(t, os.WriteFile(file, nil, 0o644))
	disguised := t.TempDir()
	write(t, disguised, "x/Git~1", "")
	for path, words := range map[string]string{
		file: "is no folder", file + "-not": "no such file", disguised: `"x/Git~1"`, filepath.Dir(r.Dir): "own data",
	} {
		_, err := r.ImportFolder(ctx, path)
		wantCode(t, err, usererr.Usage, words)
	}
	if os.Getuid() != 0 {
		locked := t.TempDir()
		write(t, locked, "f", "x")
		check(t, os.Chmod(filepath.Join(locked, "f"), 0))
		_, err := r.ImportFolder(ctx, locked)
		wantCode(t, err, usererr.Environment, "permission denied")
	}
	if _, err := r.Resolve(ctx, Main); !errors.Is(err, ErrNoCommit) {
		t.Errorf("a refused import left a main: %v", err)
	}
	empty := must(r.ImportFolder(ctx, t.TempDir()))
	sameTree(t, checkedOut(t, r, empty), map[string]string{})
}

func TestTruncatedImportIsNoCommit(t *testing.T) {
	r := newRepo(t)
	c := r.call("fast-import", "--quiet", "--done", "--force")
	c.stdin = strings.NewReader("commit " + imported + "\ncommitter a <b> 1 +0000\ndata 1\nx\nM 100644 inline \"f\"\ndata 1\nx\n")
	if _, err := c.run(t.Context()); err == nil {
		t.Error("a stream that stops short was accepted")
	}
	if _, err := r.Resolve(t.Context(), imported); !errors.Is(err, ErrNoCommit) {
		t.Errorf("it left a commit: %v", err)
	}
}

// personal repository with two commits and things of its own that must not run.
func theirs(t *testing.T) (dir, head string) {
	t.Helper()
	lonely(t)
	dir = filepath.Join(t.TempDir(), "their repo: x")
	check(t, os.Mkdir(dir, 0o755))
	shell(t, dir, "init", "-q", "-b", "trunk")
	write(t, dir, "f", "1\n")
	shell(t, dir, "add", ".")
	shell(t, dir, "commit", "-qm", "one")
	write(t, dir, "f", "2\n")
	shell(t, dir, "commit", "-qam", "two")
	return dir, shell(t, dir, "rev-parse", "HEAD")
}

func TestImportRepo(t *testing.T) {
	dir, head := theirs(t)
	r := newRepo(t)
	ctx := t.Context()
	shell(t, dir, "tag", "v1")
	write(t, dir, "f", "dirty\n", "untracked", "u")
	// An old flaw that a real history may hold: a zero-padded mode.
	blob := shell(t, dir, "rev-parse", "HEAD:f")
	cmd := exec.Command("git", "hash-object", "-t", "tree", "-w", "--stdin", "--literally")
	cmd.Dir = dir
	var raw [20]byte
	for i := range raw {
		_, err := fmt.Sscanf(blob[2*i:2*i+2], "%02x", &raw[i])
		check(t, err)
	}
	cmd.Stdin = strings.NewReader("0100644 f\x00" + string(raw[:]))
	flawed := strings.TrimSpace(string(must(cmd.Output())))
	head = shell(t, dir, "commit-tree", flawed, "-p", head, "-m", "flawed")
	shell(t, dir, "update-ref", "HEAD", head)
	before := listing(t, dir)

	got := must(r.ImportRepo(ctx, dir))
	if got != head || must(r.Resolve(ctx, Main)) != head {
		t.Errorf("main is %s, want %s", got, head)
	}
	if again := must(r.ImportRepo(ctx, dir)); again != head {
		t.Errorf("the second import is %s", again)
	}
	if n := len(must(r.Log(ctx, "", head))); n != 3 {
		t.Errorf("%d commits of history came along, want 3", n)
	}
	sameTree(t, checkedOut(t, r, head), map[string]string{"f": "2\n"})
	if listing(t, dir) != before {
		t.Error("the repository was changed")
	}
	if refs := shell(t, r.Dir, "for-each-ref", "--format=%(refname)"); refs != Main {
		t.Errorf("refs: %s", refs)
	}
	// An agent's clone can be made of such a history.
	prepared(t, r, head)

	// A linked work tree, a bare repository and a detached HEAD are as good.
	linked := filepath.Join(t.TempDir(), "linked")
	shell(t, dir, "worktree", "add", "-q", "--detach", linked, "HEAD~1")
	bare := filepath.Join(t.TempDir(), "bare.git")
	shell(t, dir, "clone", "-q", "--bare", "--no-hardlinks", dir, bare)
	for _, from := range []string{linked, bare} {
		r := newRepo(t)
		want := shell(t, from, "rev-parse", "HEAD")
		if got := must(r.ImportRepo(ctx, from)); got != want {
			t.Errorf("from %s: main is %s, want %s", from, got, want)
		}
	}
}

func TestImportRepoRefuses(t *testing.T) {
	dir, _ := theirs(t)
	ctx := t.Context()
	check(t, os.Mkdir(filepath.Join(dir, "part"), 0o755))
	empty := t.TempDir()
	shell(t, empty, "init", "-q")
	shallow := filepath.Join(t.TempDir(), "shallow")
	shell(t, dir, "clone", "-q", "--depth=1", "file://"+dir, shallow)
	sha256 := t.TempDir()
	shell(t, sha256, "init", "-q", "--object-format=sha256")
	write(t, sha256, "f", "x")
	shell(t, sha256, "add", ".")
	shell(t, sha256, "commit", "-qm", "x")
	partial := filepath.Join(t.TempDir(), "partial")
	shell(t, dir, "config", "uploadpack.allowFilter", "true")
	shell(t, dir, "clone", "-q", "--no-checkout", "--filter=blob:none", "file://"+dir, partial)
	broken := t.TempDir()
	shell(t, broken, "init", "-q")
	write(t, broken, ".git/config", "[core\n")
	for path, want := range map[string]struct {
		code  usererr.Code
		words string
	}{
		filepath.Join(dir, "part"): {usererr.Usage, "only a part"},
		empty:                      {usererr.Usage, "no commit yet"},
		shallow:                    {usererr.Usage, "shallow"},
		partial:                    {usererr.Usage, "partial"},
		sha256:                     {usererr.Usage, "sha256"},
		t.TempDir():                {usererr.Usage, "no git repository"},
		"/nonexistent/x":           {usererr.Usage, "no such file"},
		broken:                     {usererr.Unreadable, "bad config"},
	} {
		r := newRepo(t)
		_, err := r.ImportRepo(ctx, path)
		wantCode(t, err, want.code, want.words)
	}
	r, _ := started(t, "other", "x")
	_, err := r.ImportRepo(ctx, dir)
	wantCode(t, err, usererr.Conflict, "other work")
}

func TestDubiousOwnership(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("SKIPPED: only root can give a repository to another user")
	}
	dir, head := theirs(t)
	check(t, filepath.Walk(filepath.Dir(dir), func(path string, _ os.FileInfo, err error) error {
		return errors.Join(err, os.Lchown(path, 65534, 65534))
	}))
	r := newRepo(t)
	_, err := r.ImportRepo(t.Context(), dir)
	wantCode(t, err, usererr.Environment, "dubious ownership")
	var e *usererr.Error
	if !errors.As(err, &e) || !strings.Contains(e.Hint, "safe.directory "+dir) {
		t.Errorf("hint %q", e.Hint)
	}
	shell(t, t.TempDir(), "config", "--global", "--add", "safe.directory", dir) // what the hint says
	if got := must(r.ImportRepo(t.Context(), dir)); got != head {
		t.Errorf("main is %s", got)
	}
}

func TestNothingPlantedRunsOnImport(t *testing.T) {
	dir, head := theirs(t)
	trap := filepath.Join(t.TempDir(), "sprung")
	spring := "touch '" + trap + "'; cat"
	for _, kv := range [][2]string{
		{"core.fsmonitor", spring}, {"core.sshCommand", spring}, {"uploadpack.packObjectsHook", spring}, {"core.alternateRefsCommand", spring},
		{"core.pager", spring}, {"core.hooksPath", filepath.Join(dir, "hooks")},
	} {
		shell(t, dir, "config", kv[0], kv[1])
	}
	for _, h := range []string{"post-checkout", "reference-transaction", "pre-auto-gc", "post-index-change"} {
		write(t, dir, "hooks/"+h, "#!/bin/sh\n"+spring+"\n")
		check(t, os.Chmod(filepath.Join(dir, "hooks", h), 0o755))
	}
	r := newRepo(t)
	if got := must(r.ImportRepo(t.Context(), dir)); got != head {
		t.Errorf("main is %s", got)
	}
	if _, err := Look(t.Context(), dir); err != nil {
		t.Error(err)
	}
	if _, err := Deliver(t.Context(), r, edit(t, r, head, "f", "3\n"), dir, "ours"); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(trap); err == nil {
		t.Error("something that the repository names was run")
	}
}

// bundleOf writes a bundle with the real git.
func bundleOf(t *testing.T, dir string, args ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "work.bundle")
	shell(t, dir, append([]string{"bundle", "create", "-q", "--version=2", file}, args...)...)
	return file
}

func TestFetchBundle(t *testing.T) {
	r, base := started(t, "f", "1\n2\n3\n4\n5\n")
	ctx := t.Context()
	dir := filepath.Join(t.TempDir(), "clone")
	shell(t, r.Dir, "clone", "-q", "--no-hardlinks", r.Dir, dir)
	write(t, dir, "f", "1\n2\n3\n4\n5\n6\n", "-new\nline", "x")
	shell(t, dir, "add", "-A")
	shell(t, dir, "commit", "-qm", "work")
	work := shell(t, dir, "rev-parse", "HEAD")
	shell(t, dir, "update-ref", Out, work)
	const kept = "refs/autoagent/m-1/steps/s-1/1"
	file := bundleOf(t, dir, Out, "^"+base)
	for range 2 { // the second time after a crash
		if got := must(r.FetchBundle(ctx, file, kept)); got != work || must(r.Resolve(ctx, kept)) != work {
			t.Errorf("took %s, want %s", got, work)
		}
	}
	if got := shell(t, r.Dir, "for-each-ref", "--format=%(refname)", "refs/heads", "refs/tags", "refs/autoagent/out"); got != Main {
		t.Errorf("the bundle wrote other refs: %s", got)
	}
	if got := must(r.Resolve(ctx, Main)); got != base {
		t.Errorf("main moved to %s", got)
	}
	// Another try of the step replaces what the ref held.
	shell(t, dir, "commit", "-q", "--amend", "-m", "work, again")
	shell(t, dir, "update-ref", Out, "HEAD")
	if got := must(r.FetchBundle(ctx, bundleOf(t, dir, Out, "^"+base), kept)); got == work {
		t.Error("the old work was taken")
	}
}

func TestFetchBundleRefuses(t *testing.T) {
	r, base := started(t, "f", "1\n")
	ctx := t.Context()
	dir := filepath.Join(t.TempDir(), "clone")
	shell(t, r.Dir, "clone", "-q", "--no-hardlinks", r.Dir, dir)
	write(t, dir, "f", "2\n")
	shell(t, dir, "commit", "-qam", "work")
	good := string(must(os.ReadFile(bundleOf(t, dir, "main", "^"+base))))
	shell(t, dir, "branch", "second")
	two := bundleOf(t, dir, "main", "second", "^"+base)
	shell(t, dir, "tag", "-am", "x", "v1")
	tag := bundleOf(t, dir, "v1", "^"+base)
	// A tree that git's check refuses: it holds a ".git".
	shell(t, dir, "config", "core.protectNTFS", "false")
	blob := shell(t, dir, "rev-parse", "HEAD:f")
	cmd := exec.Command("git", "mktree")
	cmd.Dir, cmd.Stdin = dir, strings.NewReader("100644 blob "+blob+"\t.git\n")
	evil := shell(t, dir, "commit-tree", strings.TrimSpace(string(must(cmd.Output()))), "-p", base, "-m", "evil")
	shell(t, dir, "update-ref", "refs/heads/evil", evil)
	evilBundle := bundleOf(t, dir, "refs/heads/evil", "^"+base)
	// Objects are missing: the pack says less than the commit needs.
	write(t, dir, "g", "only in the middle\n")
	shell(t, dir, "add", ".")
	shell(t, dir, "commit", "-qm", "middle")
	shell(t, dir, "commit", "-q", "--allow-empty", "-m", "end")
	unknown := bundleOf(t, dir, "main", "^main~1")
	lied := strings.Replace(string(must(os.ReadFile(unknown))), "-"+shell(t, dir, "rev-parse", "main~1"), "-"+base, 1)

	file := func(content string) string {
		name := filepath.Join(t.TempDir(), "b")
		check(t, os.WriteFile(name, []byte(content), 0o644))
		return name
	}
	for name, c := range map[string]struct{ file, words string }{
		"two refs":        {two, "more than one ref"},
		"a tag":           {tag, "no commit"},
		"a bad tree":      {evilBundle, "hasDotgit"},
		"unknown base":    {unknown, "no such commit"},
		"a lie":           {file(lied), ""},
		"cut":             {file(good[:len(good)-30]), "index-pack"},
		"a flipped bit":   {file(good[:len(good)-40] + string(good[len(good)-40]^1) + good[len(good)-39:]), "index-pack"},
		"empty":           {file(""), "ends too soon"},
		"no bundle":       {file("hello\n"), "no bundle"},
		"no ref":          {file("# v2 git bundle\n\n"), "brings nothing"},
		"endless header":  {file("# v2 git bundle\n" + strings.Repeat("x", maxHeader+1)), "ends too soon"},
		"an option as id": {file("# v2 git bundle\n--all x\n\n"), "no full commit id"},
	} {
		got, err := r.FetchBundle(ctx, c.file, "refs/autoagent/x")
		if err == nil || !strings.Contains(err.Error(), c.words) {
			t.Errorf("%s: took %q, error %v, want %q", name, got, err, c.words)
		}
	}
	if _, err := r.Resolve(ctx, "refs/autoagent/x"); !errors.Is(err, ErrNoCommit) {
		t.Errorf("a refused bundle left a ref: %v", err)
	}
	if _, err := r.FetchBundle(ctx, file(good), "x"); err == nil {
		t.Error("a short name is no ref")
	}
	if got := must(r.FetchBundle(ctx, file(good), "refs/autoagent/x")); got == base {
		t.Error("the good bundle brought nothing")
	}
}

func FuzzBundleHeader(f *testing.F) {
	id := strings.Repeat("a", 40)
	f.Add("# v2 git bundle\n-" + id + " x\n" + id + " refs/heads/main\n\nPACK")
	f.Add("# v2 git bundle\n\n")
	f.Fuzz(func(t *testing.T, s string) {
		commit, needs, n, err := readHeader(strings.NewReader(s))
		if err != nil {
			return
		}
		if n > int64(len(s)) || !strings.HasSuffix(s[:n], "\n\n") {
			t.Errorf("the pack begins at %d of %q", n, s)
		}
		if err := valid(append(needs, commit)...); err != nil {
			t.Error(err)
		}
	})
}
