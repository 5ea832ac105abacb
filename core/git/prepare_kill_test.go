package git

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestPrepareKilled kills the whole script before every git that it starts, each time in a copy of the same clone, and
// wants the next call to come out as if nothing had happened.
func TestPrepareKilled(t *testing.T) {
	t.Parallel()
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
			t.Parallel()
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
