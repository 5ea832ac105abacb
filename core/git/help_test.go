package git

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/usererr"
)

var builder = Who{Name: "AutoAgent-CodeBuilder-1", Email: "codebuilder-1@autoagent.example"}

// noon is the time of commits in tests, given in a zone that is not UTC.
func noon() time.Time { return time.Date(2026, 3, 4, 12, 0, 0, 0, time.FixedZone("X", 2*3600)) }

// oddNames are file names that break careless code.
func oddNames() []string {
	return []string{"-rf", "new\nline", "tab\there", `quo"te`, `back\slash`, "grüße/日本.txt", " lead", "trail ", ":(top)x", "a*b", "\xff\xfe-not-utf8", "-dir/-f", "#c", "~t"}
}

// lonely is for tests that run git, without the configuration of whoever runs them: TestMain keeps it out.
func lonely(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("the program git is missing, this test cannot run")
		}
		t.Skip("SKIPPED: the program git is missing, nothing of git was tested")
	}
}

// shell runs git as a person would, in dir, and returns its output.
func shell(t *testing.T, dir string, args ...string) string {
	t.Helper()
	out, err := tryShell(dir, args...)
	if err != nil {
		t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return strings.TrimSuffix(out, "\n")
}

func tryShell(dir string, args ...string) (string, error) {
	cmd := exec.Command("git", append([]string{"-c", "user.name=Pat Example", "-c", "user.email=pat@example.com", "-c", "protocol.file.allow=always", "-c", "init.defaultBranch=main"}, args...)...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func newRepo(t *testing.T) Repo {
	t.Helper()
	lonely(t)
	r, err := Init(t.Context(), filepath.Join(t.TempDir(), "repo.git"))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// started is a repository whose main has files.
func started(t *testing.T, kv ...string) (Repo, string) {
	t.Helper()
	r := newRepo(t)
	dir := t.TempDir()
	write(t, dir, kv...)
	return r, must(r.ImportFolder(t.Context(), dir))
}

// must is for calls whose failure is not what is tested.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// write makes files: name, content, name, content…
func write(t *testing.T, dir string, kv ...string) {
	t.Helper()
	for i := 0; i < len(kv); i += 2 {
		path := filepath.Join(dir, kv[i])
		check(t, os.MkdirAll(filepath.Dir(path), 0o755))
		check(t, os.WriteFile(path, []byte(kv[i+1]), 0o644))
	}
}

// edit makes a commit on top of another, in our repository, with the files changed. An empty content removes a file.
func edit(t *testing.T, r Repo, on string, kv ...string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "tree")
	check(t, r.Checkout(t.Context(), on, dir))
	for i := 0; i < len(kv); i += 2 {
		if kv[i+1] == "" {
			check(t, os.RemoveAll(filepath.Join(dir, kv[i])))
			continue
		}
		write(t, dir, kv[i], kv[i+1])
	}
	index := filepath.Join(t.TempDir(), "index")
	run := func(args ...string) string {
		cmd := exec.Command("git", append([]string{"--git-dir=" + r.Dir, "-c", "core.bare=false", "--work-tree=" + dir}, args...)...)
		cmd.Env = append(os.Environ(), "GIT_INDEX_FILE="+index)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	run("add", "-A", "-f")
	return must(r.commit(t.Context(), run("write-tree"), []string{on}, builder, "edit\n", noon()))
}

// tree reads a folder: name to content; links as "-> target", executables with a leading "*". Anything below .git and
// .autoagent of the top is left out.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	m := map[string]string{}
	check(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, path)
		if rel == ".git" || rel == ".autoagent" {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		switch {
		case d.IsDir():
		case d.Type() == fs.ModeSymlink:
			m[rel] = "-> " + must(os.Readlink(path))
		default:
			m[rel] = string(must(os.ReadFile(path)))
			if must(d.Info()).Mode()&0o100 != 0 {
				m[rel] = "*" + m[rel]
			}
		}
		return nil
	}))
	return m
}

func sameTree(t *testing.T, got, want map[string]string) {
	t.Helper()
	for name := range got {
		if _, ok := want[name]; !ok {
			t.Errorf("file %q should not be there", name)
		}
	}
	for name, content := range want {
		if g, ok := got[name]; !ok {
			t.Errorf("file %q is missing", name)
		} else if g != content {
			t.Errorf("file %q holds %q, want %q", name, g, content)
		}
	}
}

// checkedOut is the content of a commit, as Checkout writes it.
func checkedOut(t *testing.T, r Repo, commit string) map[string]string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "tree")
	check(t, r.Checkout(t.Context(), commit, dir))
	return tree(t, dir)
}

// listing is every file of a folder with content and time, to prove that nothing was touched.
func listing(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	check(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		st := must(d.Info())
		b.WriteString(path + " " + st.Mode().String())
		if st.Mode().IsRegular() {
			b.WriteString(" " + st.ModTime().String() + " " + string(must(os.ReadFile(path))))
		}
		b.WriteString("\n")
		return nil
	}))
	return b.String()
}

func wantCode(t *testing.T, err error, code usererr.Code, words string) {
	t.Helper()
	if usererr.CodeOf(err) != code || err == nil || !strings.Contains(err.Error(), words) {
		t.Errorf("got error %v with code %d, want code %d and %q", err, usererr.CodeOf(err), code, words)
	}
}

// plainly is an Exec without walls.
func plainly(ctx context.Context, c Command) (Output, error) {
	var text bytes.Buffer
	cmd := exec.CommandContext(ctx, c.Argv[0], c.Argv[1:]...)
	cmd.Dir, cmd.Env, cmd.Stdin = c.Dir, append([]string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent"}, c.Env...), bytes.NewReader(c.Stdin)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.Stdout, cmd.Stderr = &text, &text
	if c.Stdout != nil {
		cmd.Stdout = c.Stdout
	}
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return Output{Exit: exit.ExitCode(), Text: text.String()}, nil
	}
	return Output{Text: text.String()}, err
}

func newClone(t *testing.T) Clone {
	t.Helper()
	return Clone{Dir: filepath.Join(t.TempDir(), "codebuilder-1"), Exec: plainly, Who: builder}
}

// prepared is a clone at base.
func prepared(t *testing.T, r Repo, base string) Clone {
	t.Helper()
	c := newClone(t)
	if _, err := c.Prepare(t.Context(), r, base, Fresh); err != nil {
		t.Fatal(err)
	}
	return c
}

// handIn commits, bundles and takes over, as a tick does.
func handIn(t *testing.T, c Clone, r Repo, base string) (commit string, changed bool) {
	t.Helper()
	commit, changed, err := c.Commit(t.Context(), base, "work\n\nBy codebuilder-1.\n", noon())
	check(t, err)
	if commit == base {
		return commit, changed
	}
	bundle := filepath.Join(t.TempDir(), "b")
	f := must(os.Create(bundle))
	check(t, c.Bundle(t.Context(), base, commit, f))
	check(t, f.Close())
	got, err := r.FetchBundle(t.Context(), bundle, "refs/autoagent/m/steps/a/1")
	check(t, err)
	if got != commit {
		t.Fatalf("took over %s, want %s", got, commit)
	}
	return commit, changed
}

func sorted(s []string) []string { return slices.Sorted(slices.Values(s)) }
