package git

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// powerless is an Exec that obeys permissions even when root runs the tests, and that gives up when git waits for ever.
func powerless(t *testing.T) Exec {
	t.Helper()
	setpriv, err := exec.LookPath("setpriv")
	if os.Geteuid() == 0 && err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("the program setpriv is missing, this test cannot run as root")
		}
		t.Skip("SKIPPED: the program setpriv is missing, permissions were not tested as root")
	}
	return func(ctx context.Context, c Command) (Output, error) {
		ctx, done := context.WithTimeout(ctx, 2*time.Minute)
		defer done()
		if os.Geteuid() == 0 {
			c.Argv = append([]string{setpriv, "--inh-caps=-all", "--bounding-set=-all", "--"}, c.Argv...)
		}
		out, err := plainly(ctx, c)
		return out, errors.Join(err, ctx.Err())
	}
}

// chmod sets the mode of files and folders, in that order.
func chmod(t *testing.T, dir string, mode os.FileMode, names ...string) {
	t.Helper()
	for _, name := range names {
		check(t, os.Chmod(filepath.Join(dir, name), mode))
	}
}

// readOnly takes the right to write from everything in dir, as "chmod -R a-w" does.
func readOnly(t *testing.T, dir string) {
	t.Helper()
	var paths []string
	check(t, filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		paths = append(paths, path)
		return err
	}))
	slices.Reverse(paths)
	for _, path := range paths {
		check(t, os.Chmod(path, must(os.Stat(path)).Mode().Perm()&^0o222))
	}
}

// unruly is what an agent can do to its clone, by accident or not, that must cost nobody anything.
func unruly() map[string]func(t *testing.T, dir string) {
	fifo := func(t *testing.T, dir string, names ...string) {
		t.Helper()
		for _, name := range names {
			path := filepath.Join(dir, name)
			check(t, os.MkdirAll(filepath.Dir(path), 0o755))
			check(t, os.RemoveAll(path))
			check(t, unix.Mkfifo(path, 0o644))
		}
	}
	return map[string]func(t *testing.T, dir string){
		"a shut folder": func(t *testing.T, dir string) { chmod(t, dir, 0, "keep") },
		"shut folders and files": func(t *testing.T, dir string) {
			write(t, dir, "keep/deep/x", "x")
			chmod(t, dir, 0, "keep/deep/x", "keep/deep", "keep/file", "keep", "f", "one")
		},
		"all is read-only": func(t *testing.T, dir string) { readOnly(t, dir) },
		"a shut .git": func(t *testing.T, dir string) {
			chmod(t, dir, 0, ".git/refs/heads", ".git/objects", ".git/HEAD", ".git/index", ".git")
		},
		"shut refs": func(t *testing.T, dir string) {
			chmod(t, dir, 0, ".git/refs/heads/main", ".git/refs/heads", ".git/logs/HEAD", ".git/logs")
		},
		"FIFOs git reads": func(t *testing.T, dir string) {
			fifo(t, dir, ".gitignore", ".gitattributes", "keep/.gitignore", "keep/.gitattributes", ".gitmodules")
		},
		"FIFOs in .git": func(t *testing.T, dir string) {
			fifo(t, dir, ".git/packed-refs", ".git/config", ".git/info/exclude", ".git/MERGE_HEAD", ".git/refs/x", ".git/index")
		},
		"a link to a FIFO": func(t *testing.T, dir string) {
			fifo(t, dir, "keep/pipe")
			check(t, os.Symlink("../keep/pipe", filepath.Join(dir, ".git/packed-refs")))
		},
		"an unfinished rebase": func(t *testing.T, dir string) { write(t, dir, ".git/rebase-apply/x", "") },
	}
}

// TestUnruly: whatever it is, the work is committed if it can be, else it is kept, and the next step begins well.
func TestUnruly(t *testing.T) {
	t.Parallel()
	for name, do := range unruly() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, base := started(t, "f", "1\n", "g", "g\n")
			next := edit(t, r, base, "g", "2\n")
			for _, mode := range []Mode{"", Fresh, Keep, MergeIn} {
				c := newClone(t)
				c.Exec = powerless(t)
				must(c.Prepare(t.Context(), r, base, Fresh))
				write(t, c.Dir, "one", "1\n", "keep/file", "precious\n")
				do(t, c.Dir)
				if mode == "" {
					if name == "an unfinished rebase" {
						continue
					}
					if dirty, _, err := c.Status(t.Context()); err != nil || !dirty {
						t.Errorf("status: dirty %v, error %v", dirty, err)
					}
					commit, changed := handIn(t, c, r, base)
					if got := checkedOut(t, r, commit); !changed || got["keep/file"] != "precious\n" || got["one"] != "1\n" || got["f"] != "1\n" {
						t.Errorf("the commit holds %q", got)
					}
					mode = Fresh
				}
				if _, err := c.Prepare(t.Context(), r, next, mode); err != nil {
					t.Errorf("%s: %v", mode, err)
				}
				if aside, _ := filepath.Glob(filepath.Join(filepath.Dir(c.Dir), ".kept-*")); aside != nil {
					t.Errorf("%s: %q was put aside", mode, aside)
				}
				switch got := tree(t, c.Dir); {
				case mode == Fresh:
					sameTree(t, got, map[string]string{"f": "1\n", "g": "2\n"})
				case got["keep/file"] != "precious\n" || got["one"] != "1\n" || mode == MergeIn && got["g"] != "2\n":
					t.Errorf("%s: the tree is %q", mode, got)
				}
			}
		})
	}
}

// TestSpecialFilesInTheWay: a FIFO in the place of a file of the commit, or where git looks for a repository inside.
func TestSpecialFilesInTheWay(t *testing.T) {
	r, base := started(t, "f", "1\n", "g", "g\n")
	c := prepared(t, r, base)
	c.Exec = powerless(t)
	check(t, os.Remove(filepath.Join(c.Dir, "f")))
	check(t, unix.Mkfifo(filepath.Join(c.Dir, "f"), 0o644))
	write(t, c.Dir, "inside/x", "x")
	shell(t, filepath.Join(c.Dir, "inside"), "init", "-q")
	check(t, os.Remove(filepath.Join(c.Dir, "inside/.git/HEAD")))
	check(t, unix.Mkfifo(filepath.Join(c.Dir, "inside/.git/HEAD"), 0o644))
	commit, _ := handIn(t, c, r, base)
	sameTree(t, checkedOut(t, r, commit), map[string]string{"g": "g\n", "inside/x": "x"})
}

// TestHistoryOfItsOwn: an agent that began a new history is refused once; its files become changes of what they build on.
func TestHistoryOfItsOwn(t *testing.T) {
	r, base := started(t, "f", "1\n", "g", "g\n")
	next := edit(t, r, base, "g", "2\n")
	for _, on := range []string{base, next} {
		c := prepared(t, r, base)
		write(t, c.Dir, "one", "1\n")
		shell(t, c.Dir, "checkout", "-q", "--orphan", "fresh")
		shell(t, c.Dir, "add", "-A")
		shell(t, c.Dir, "commit", "-qm", "alien")
		alien := shell(t, c.Dir, "rev-parse", "HEAD")
		write(t, c.Dir, "two", "2\n")
		var layout *LayoutError
		if _, _, err := c.Commit(t.Context(), base, "m\n", noon()); !errors.As(err, &layout) {
			t.Fatalf("error %v", err)
		}
		for range 2 {
			if conflicts, err := c.Prepare(t.Context(), r, on, MergeIn); err != nil || conflicts != nil {
				t.Fatalf("conflicts %q, error %v", conflicts, err)
			}
		}
		want := map[string]string{"f": "1\n", "g": "g\n", "one": "1\n", "two": "2\n"}
		if on == next {
			want["g"] = "2\n" // what others did meanwhile stays done
		}
		sameTree(t, tree(t, c.Dir), want)
		if kept := shell(t, c.Dir, "for-each-ref", "--contains", alien, "refs/autoagent/rescue"); kept == "" {
			t.Error("the history is not kept")
		}
		commit, changed := handIn(t, c, r, on)
		if !changed {
			t.Error("nothing changed")
		}
		sameTree(t, checkedOut(t, r, commit), want)
	}
}

// TestNoCommitToMerge: a merge of what is no commit is forgotten.
func TestNoCommitToMerge(t *testing.T) {
	r, base := started(t, "f", "1\n")
	c := prepared(t, r, base)
	write(t, c.Dir, "f", "2\n", ".git/MERGE_HEAD", strings.Repeat("1", 40)+"\n--all\n")
	var layout *LayoutError
	if _, _, err := c.Commit(t.Context(), base, "m\n", noon()); !errors.As(err, &layout) || !strings.Contains(layout.Reason, "names no commit") {
		t.Errorf("error %v", err)
	}
	must(c.Prepare(t.Context(), r, base, MergeIn))
	commit, _ := handIn(t, c, r, base)
	sameTree(t, checkedOut(t, r, commit), map[string]string{"f": "2\n"})
	if kept := rescued(t, c); kept != nil {
		t.Errorf("rescued %q: the work left its place", kept)
	}
}

// TestPutAside: a clone in which git never works gives way to a new one, and stays if that one does not work either.
func TestPutAside(t *testing.T) {
	r, base := started(t, "f", "1\n")
	for _, cause := range []string{"the clone", "the clone, for ever", "the machine", "the disk", "the caller"} {
		c := prepared(t, r, base)
		write(t, c.Dir, "poison", "precious\n")
		ctx, stop := context.WithCancel(t.Context())
		c.Exec = func(ctx context.Context, cmd Command) (Output, error) {
			_, err := os.Stat(filepath.Join(c.Dir, "poison"))
			switch {
			case cause == "the disk":
				return Output{Exit: 128, Text: "fatal: write error: No space left on device\n"}, nil
			case cause == "the caller":
				stop()
				return Output{}, ctx.Err()
			case cause == "the machine" || cause == "the clone" && err == nil:
				return Output{Exit: 128, Text: "fatal: cannot\n"}, nil
			case err == nil:
				return Output{}, context.DeadlineExceeded
			}
			return plainly(ctx, cmd)
		}
		_, err := c.Prepare(ctx, r, base, MergeIn)
		stop()
		good := strings.HasPrefix(cause, "the clone")
		if good != (err == nil) {
			t.Errorf("%s: error %v", cause, err)
		}
		kept, _ := filepath.Glob(filepath.Join(filepath.Dir(c.Dir), ".kept-codebuilder-1-*"))
		if !good {
			if _, err := os.Stat(filepath.Join(c.Dir, "poison")); err != nil || kept != nil {
				t.Errorf("%s: the clone moved to %q", cause, kept)
			}
			continue
		}
		sameTree(t, tree(t, c.Dir), map[string]string{"f": "1\n"})
		if len(kept) != 1 || tree(t, kept[0])["poison"] != "precious\n" {
			t.Errorf("%s: kept %q", cause, kept)
		}
	}
}

// TestModeThatCannotBeHad: when a merge does not work, the clone is made fresh and the work is kept in it.
func TestModeThatCannotBeHad(t *testing.T) {
	r, base := started(t, "f", "1\n")
	c := prepared(t, r, base)
	write(t, c.Dir, "f", "2\n")
	c.Exec = func(ctx context.Context, cmd Command) (Output, error) {
		if cmd.Argv[len(cmd.Argv)-1] == string(MergeIn) {
			return Output{Exit: 1, Text: "error: cannot\n"}, nil
		}
		return plainly(ctx, cmd)
	}
	must(c.Prepare(t.Context(), r, base, MergeIn))
	sameTree(t, tree(t, c.Dir), map[string]string{"f": "1\n"})
	if kept := rescued(t, c); len(kept) != 1 || at(t, c, kept[0], "f") != "2\n" {
		t.Errorf("rescued %q", kept)
	}
}

// TestCommitOfWhatGitRefuses: git's own refusal goes back to the agent, one of the machine does not.
func TestCommitOfWhatGitRefuses(t *testing.T) {
	r, base := started(t, "f", "1\n")
	c := prepared(t, r, base)
	for text, back := range map[string]bool{"fatal: bad object": true, "fatal: write error: No space left on device": false} {
		c.Exec = func(context.Context, Command) (Output, error) { return Output{Exit: 128, Text: text}, nil }
		_, _, err := c.Commit(t.Context(), base, "m\n", noon())
		var layout *LayoutError
		if errors.As(err, &layout) != back || err == nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}
