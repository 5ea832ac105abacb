package git

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

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
