package git

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"example.com/AutoAgentProject/core/cell"
)

// walled is the Exec that ticks use: every command in a cell of its own.
func walled(ctx context.Context, c Command) (Output, error) {
	out, err := cell.Run(ctx, cell.Spec{
		Argv: c.Argv, Dir: c.Dir, Env: append([]string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + cell.InsideHome, "TMPDIR=/tmp"}, c.Env...),
		Writable: []string{c.Dir}, ReadOnly: c.ReadOnly, Stdin: bytes.NewReader(c.Stdin), Stdout: c.Stdout, NoNetwork: true,
	}, 16<<10)
	return Output{Exit: out.Status.Exit, Text: string(out.Text)}, err
}

func TestCloneBehindWalls(t *testing.T) {
	if _, err := cell.Check(t.Context()); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("cells do not work here, this test cannot run: %v", err)
		}
		t.Skipf("SKIPPED: cells do not work here (%v), no clone was used behind walls", err)
	}
	r, base := started(t, "f", "1\n", "g", "g\n")
	other, secret := started(t, "secret", "not yours\n")
	ctx := t.Context()
	c := newClone(t)
	c.Exec = walled
	before := listing(t, r.Dir)
	must(c.Prepare(ctx, r, base, Fresh))
	sameTree(t, tree(t, c.Dir), map[string]string{"f": "1\n", "g": "g\n"})
	write(t, c.Dir, "f", "mine\n", "new\nname", "n")
	if dirty, head, err := c.Status(ctx); !dirty || head != base || err != nil {
		t.Errorf("status %v %s %v", dirty, head, err)
	}
	if listing(t, r.Dir) != before {
		t.Error("preparing wrote to our repository")
	}
	commit, changed := handIn(t, c, r, base)
	if !changed {
		t.Error("nothing changed")
	}
	sameTree(t, checkedOut(t, r, commit), map[string]string{"f": "mine\n", "g": "g\n", "new\nname": "n"})
	next := edit(t, r, base, "f", "main\n")
	if got := must(c.Prepare(ctx, r, next, MergeIn)); !slices.Equal(got, []string{"f"}) {
		t.Errorf("conflicts %q", got)
	}
	write(t, c.Dir, "f", "both\n")
	commit, _ = handIn(t, c, r, next)
	sameTree(t, checkedOut(t, r, commit), map[string]string{"f": "both\n", "g": "g\n", "new\nname": "n"})

	// The objects of another repository do not exist in here, even where the clone leads to them.
	check(t, os.RemoveAll(filepath.Join(c.Dir, ".git/objects")))
	check(t, os.Symlink(filepath.Join(other.Dir, "objects"), filepath.Join(c.Dir, ".git/objects")))
	write(t, c.Dir, ".git/refs/heads/main", secret+"\n")
	var layout *LayoutError
	if _, _, err := c.Commit(ctx, next, "m\n", noon()); !errors.As(err, &layout) {
		t.Errorf("error %v", err)
	}
	must(c.Prepare(ctx, r, next, Fresh))
	sameTree(t, tree(t, c.Dir), map[string]string{"f": "main\n", "g": "g\n"})
	if kept := rescued(t, c); len(kept) != 1 || !strings.HasPrefix(at(t, c, kept[0], "f"), "both") {
		t.Errorf("rescued %s", kept)
	}
}
