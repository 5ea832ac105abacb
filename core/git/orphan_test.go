package git

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestGitDiesWithUs: a git on our repository ends when whoever started it is killed, and has moved nothing.
func TestGitDiesWithUs(t *testing.T) {
	if dir := os.Getenv("AUTOAGENT_TEST_REPO"); dir != "" { // the one to be killed
		_, err := Repo{Dir: dir}.Resolve(t.Context(), Main)
		t.Fatal("git came back:", err)
	}
	r := newRepo(t)
	bin := t.TempDir()
	write(t, bin, "git", "#!/bin/sh\necho $$ >'"+bin+"/part'; mv '"+bin+"/part' '"+bin+"/pid'\nexec sleep 900\n")
	chmod(t, bin, 0o755, "git")
	cmd := exec.Command(must(os.Executable()), "-test.run=^TestGitDiesWithUs$")
	cmd.Env = append(os.Environ(), "AUTOAGENT_TEST_REPO="+r.Dir, "PATH="+bin+":"+os.Getenv("PATH"))
	check(t, cmd.Start())
	var pid string
	for end := time.Now().Add(2 * time.Minute); pid == "" && time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		b, _ := os.ReadFile(filepath.Join(bin, "pid"))
		pid = strings.TrimSpace(string(b))
	}
	check(t, cmd.Process.Kill())
	_ = cmd.Wait()
	if pid == "" {
		t.Fatal("git was not started")
	}
	alive := true
	for end := time.Now().Add(2 * time.Minute); alive && time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		b, err := os.ReadFile("/proc/" + pid + "/stat")
		alive = err == nil && !strings.Contains(string(b), ") Z ")
	}
	if alive {
		t.Errorf("git %s lives on", pid)
		_ = exec.Command("kill", "-9", pid).Run()
	}
}

// TestGitKeepsItsThread: git is not killed because threads of ours end meanwhile.
func TestGitKeepsItsThread(t *testing.T) {
	lonely(t)
	stop := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-stop:
				return
			case <-time.After(50 * time.Microsecond):
				go runtime.LockOSThread() // a goroutine that ends so takes its thread along
			}
		}
	}()
	errs := make(chan error)
	for range 4 {
		go func() {
			var all []error
			for range 15 {
				_, err := Check(t.Context())
				all = append(all, err)
			}
			errs <- errors.Join(all...)
		}()
	}
	for range 4 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	close(stop)
	<-ended
}

func TestScratchIsSwept(t *testing.T) {
	parent := t.TempDir()
	write(t, parent, scratchPrefix+"left/index.lock", "x", "other/x", "x")
	check(t, os.Symlink("other", filepath.Join(parent, scratchPrefix+"link")))
	one := must(newScratch(parent))
	two := must(newScratch(parent))
	want := sorted([]string{"other", scratchPrefix + "link", filepath.Base(one.dir), filepath.Base(two.dir)})
	if got := names(t, parent); !slices.Equal(got, want) {
		t.Errorf("there are %q, want %q", got, want)
	}
	check(t, one.held.Close()) // as a kill does
	two.remove()
	must(newScratch(parent)).remove()
	if got := names(t, parent); !slices.Equal(got, []string{scratchPrefix + "link", "other"}) {
		t.Errorf("there are %q", got)
	}
}

// TestTemporaryIndexes: none is left, wherever a former call was killed.
func TestTemporaryIndexes(t *testing.T) {
	r, base := started(t, "f", "1\n")
	tmp, dir := t.TempDir(), t.TempDir()
	t.Setenv("TMPDIR", tmp)
	write(t, tmp, scratchPrefix+"1/index", "x")
	write(t, dir, ".tree.index/index.lock", "x")
	check(t, r.Checkout(t.Context(), base, filepath.Join(dir, "tree")))
	if got := names(t, dir); !slices.Equal(got, []string{"tree"}) {
		t.Errorf("beside the checkout are %q", got)
	}
	person := t.TempDir()
	shell(t, person, "init", "-q")
	write(t, person, "f", "1")
	shell(t, person, "add", ".")
	shell(t, person, "commit", "-qm", "x")
	must(Look(t.Context(), person))
	if got := names(t, tmp); got != nil {
		t.Errorf("left are %q", got)
	}
	// A git that runs holds the lock of its scratch folder: it is seen as being in use.
	s := must(newScratch(tmp))
	if held, err := tryLock(s.dir); held != nil || err != nil {
		t.Errorf("locked twice: %v", err)
	}
	check(t, unix.Flock(int(s.held.Fd()), unix.LOCK_UN))
	s.remove()
}
