package git

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/cell"
	"example.com/AutoAgentProject/core/usererr"
)

func TestMain(m *testing.M) {
	cell.ShimMain()
	if args := strings.Split(os.Getenv("AUTOAGENT_TEST_PUBLISH"), "\n"); len(args) == 4 {
		if err := (Repo{Dir: args[0]}).Publish(context.Background(), args[1], args[2], args[3]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	home, err := os.MkdirTemp("", "autoagent-git-")
	if err = errors.Join(err, os.Setenv("HOME", home), os.Setenv("XDG_CONFIG_HOME", filepath.Join(home, ".config")), os.Setenv("GIT_CONFIG_NOSYSTEM", "1")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(home)
	os.Exit(code)
}

// publisher is this test program as a process that publishes, behind the words of another program if given.
func publisher(r Repo, commit, folder, link string, before ...string) *exec.Cmd {
	argv := append(before, must(os.Executable()))
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), "AUTOAGENT_TEST_PUBLISH="+strings.Join([]string{r.Dir, commit, folder, link}, "\n"))
	return cmd
}

// generation is a state whose files all hold the same number, so that a mixture shows.
func generation(n int) []string {
	var kv []string
	for i := range 12 {
		kv = append(kv, fmt.Sprintf("d%d/f%d", i%3, i), fmt.Sprintf("generation %d\n", n))
	}
	return kv
}

// whole fails unless the link shows exactly one generation, and returns its number.
func whole(t *testing.T, link string) int {
	t.Helper()
	dir, err := filepath.EvalSymlinks(link)
	check(t, err)
	got := tree(t, dir)
	n := -1
	if _, err := fmt.Sscanf(got["d0/f0"], "generation %d\n", &n); err != nil {
		t.Fatalf("the link shows %q", got)
	}
	want := map[string]string{}
	for kv := generation(n); len(kv) > 0; kv = kv[2:] {
		want[kv[0]] = kv[1]
	}
	sameTree(t, got, want)
	return n
}

func TestPublish(t *testing.T) {
	r, a := started(t, generation(1)...)
	ctx := t.Context()
	b := edit(t, r, a, generation(2)...)
	folder := t.TempDir()
	link := filepath.Join(folder, "result")
	write(t, folder, "goal.md", "keep me", ".result-0123456789.part/tree/half", "x", ".result-aaaaaaaaaa/stale", "x")
	check(t, os.Symlink("x", filepath.Join(folder, ".result-link")))
	for _, c := range []struct {
		commit string
		want   int
	}{{a, 1}, {a, 1}, {b, 2}, {a, 2}, {b, 2}} { // an ancestor of what is published changes nothing
		check(t, r.Publish(ctx, c.commit, folder, link))
		if n := whole(t, link); n != c.want {
			t.Errorf("generation %d is published, want %d", n, c.want)
		}
	}
	if got := names(t, folder); !slices.Equal(got, []string{".result-" + b[:10], "goal.md", "result"}) {
		t.Errorf("the folder holds %q", got)
	}
	if to := must(os.Readlink(link)); filepath.IsAbs(to) {
		t.Errorf("the link is absolute: %s", to)
	}
	// Somebody removed what the link shows.
	check(t, os.RemoveAll(filepath.Join(folder, ".result-"+b[:10])))
	check(t, r.Publish(ctx, b, folder, link))
	whole(t, link)
	// Another line of work is no ancestor.
	check(t, r.Publish(ctx, edit(t, r, a, generation(3)...), folder, link))
	if n := whole(t, link); n != 3 {
		t.Errorf("generation %d is published, want 3", n)
	}
	// The link may be elsewhere.
	other := filepath.Join(t.TempDir(), "shown")
	check(t, r.Publish(ctx, b, t.TempDir(), other))
	if n := whole(t, other); n != 2 {
		t.Errorf("generation %d is published, want 2", n)
	}
}

func TestPublishNeverReplacesWhatIsNotOurs(t *testing.T) {
	r, a := started(t, "f", "1")
	for name, put := range map[string]func(link string) error{
		"file":   func(link string) error { return os.WriteFile(link, []byte("mine"), 0o644) },
		"folder": func(link string) error { return os.Mkdir(link, 0o755) },
		"link":   func(link string) error { return os.Symlink("/etc", link) },
	} {
		folder := t.TempDir()
		link := filepath.Join(folder, "result")
		check(t, put(link))
		before := listing(t, folder)
		wantCode(t, r.Publish(t.Context(), a, folder, link), usererr.Conflict, "in the way")
		if listing(t, folder) != before {
			t.Errorf("%s: the folder was changed", name)
		}
	}
}

// TestPublishKilled kills a publishing process at every call that changes a name, one after the other.
func TestPublishKilled(t *testing.T) {
	t.Parallel()
	strace, err := exec.LookPath("strace")
	if err == nil {
		err = exec.Command(strace, "-f", "-o", os.DevNull, "true").Run()
	}
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("strace cannot be used, the kills cannot be tested: %v", err)
		}
		t.Skipf("SKIPPED: strace cannot be used (%v), Publish was not killed between its steps", err)
	}
	r, a := started(t, generation(1)...)
	b := edit(t, r, a, generation(2)...)
	folder := t.TempDir()
	link := filepath.Join(folder, "result")
	killed := 0
	for _, call := range []string{"mkdirat", "renameat,renameat2,rename", "symlinkat,symlink", "unlinkat,unlink", "syncfs"} {
		for n := 1; ; n++ {
			check(t, os.RemoveAll(folder))
			check(t, os.Mkdir(folder, 0o755))
			check(t, r.Publish(t.Context(), a, folder, link))
			// -f would count git's own calls too; only our process matters, and it makes these calls in any of its threads.
			cmd := publisher(r, b, folder, link, strace, "-f", "-qq", "-o", os.DevNull, "-e", "trace="+call, "-e", fmt.Sprintf("inject=%s:signal=KILL:when=%d", call, n))
			err := cmd.Run()
			got := whole(t, link)
			if err == nil {
				if got != 2 {
					t.Errorf("%s %d: not killed, but generation %d is published", call, n, got)
				}
				break
			}
			killed++
			check(t, r.Publish(t.Context(), b, folder, link))
			if got := whole(t, link); got != 2 {
				t.Errorf("%s %d: after the restart generation %d is published", call, n, got)
			}
			if got := names(t, folder); len(got) != 2 {
				t.Errorf("%s %d: left over: %q", call, n, got)
			}
			if n > 40 {
				break
			}
		}
	}
	t.Logf("%d kills", killed)
	if killed < 12 {
		t.Errorf("only %d kills: the test does not test", killed)
	}
}

func TestPublishConcurrently(t *testing.T) {
	t.Parallel()
	r, commit := started(t, generation(0)...)
	commits := []string{commit}
	for i := 1; i < 8; i++ {
		commits = append(commits, edit(t, r, commits[i-1], generation(i)...))
	}
	folder := t.TempDir()
	link := filepath.Join(folder, "result")
	check(t, r.Publish(t.Context(), commits[0], folder, link))

	stop := make(chan struct{})
	var readers, writers sync.WaitGroup
	readers.Go(func() { // never half a state, never backwards
		last := 0
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
			}
			dir, err := filepath.EvalSymlinks(link)
			if err != nil {
				if to, lerr := os.Readlink(link); lerr != nil {
					t.Errorf("the link is gone: %q %v", to, lerr)
				}
				continue // removed between reading the link and following it
			}
			n := -1
			b, err := os.ReadFile(filepath.Join(dir, "d2/f11"))
			if err != nil {
				continue
			}
			fmt.Sscanf(string(b), "generation %d\n", &n)
			if n < last {
				t.Errorf("generation %d after %d", n, last)
			}
			last = n
		}
	})
	for _, i := range []int{3, 1, 7, 5, 2, 6, 4} {
		cmd := publisher(r, commits[i], folder, link)
		writers.Go(func() {
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	writers.Wait()
	close(stop)
	readers.Wait()
	if n := whole(t, link); n != 7 {
		t.Errorf("generation %d is published, want 7", n)
	}
	if got := names(t, folder); len(got) != 2 {
		t.Errorf("left over: %q", got)
	}
}
