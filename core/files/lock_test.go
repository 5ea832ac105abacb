package files

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// The test binary, started again with these variables, is another process.
const (
	childDoes = "FILES_TEST_CHILD"
	childPath = "FILES_TEST_PATH"
)

func TestMain(m *testing.M) {
	does, path := os.Getenv(childDoes), os.Getenv(childPath)
	if does == "" {
		os.Exit(m.Run())
	}
	if err := childMain(does, path); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func childMain(does, path string) error {
	switch does {
	case "hold": // until it is killed
		if _, err := TryLock(path); err != nil {
			return err
		}
		fmt.Println("held")
		select {}
	case "count":
		for range 20 {
			if err := count(context.Background(), path); err != nil {
				return err
			}
		}
		return nil
	}
	return childOperation(does, path)
}

func child(ctx context.Context, does, path string, env ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, os.Args[0])
	c.Env = append(append(os.Environ(), childDoes+"="+does, childPath+"="+path), env...)
	return c
}

// count adds one to a number in a file, under a lock beside it.
func count(ctx context.Context, path string) error {
	unlock, err := Lock(ctx, path+".lock")
	if err != nil {
		return err
	}
	defer unlock()
	b, err := Read(path, 100)
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(string(b))
	if err != nil {
		return err
	}
	return os.WriteFile(path, []byte(strconv.Itoa(n+1)), 0o600)
}

func TestLockInOneProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := TryLock(path)
	ok(t, err)
	if _, err := TryLock(path); !errors.Is(err, ErrLocked) {
		t.Error(err)
	}
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o600 {
		t.Error(st.Mode(), err)
	}
	unlock()
	unlock() // twice does no harm
	unlock, err = TryLock(path)
	ok(t, err)
	unlock()
}

func TestLockWaits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := TryLock(path)
	ok(t, err)
	ctx, done := context.WithTimeoutCause(t.Context(), 20*time.Millisecond, errors.New("told to stop"))
	defer done()
	if _, err := Lock(ctx, path); !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), "told to stop") {
		t.Error(err)
	}
	time.AfterFunc(20*time.Millisecond, unlock)
	unlock, err = Lock(t.Context(), path)
	ok(t, err)
	unlock()
}

func TestLockRefuses(t *testing.T) {
	dir := t.TempDir()
	ok(t, os.Symlink(filepath.Join(dir, "target"), filepath.Join(dir, "link")))
	for _, path := range []string{filepath.Join(dir, "link"), filepath.Join(dir, "none", "lock"), dir} {
		if _, err := Lock(t.Context(), path); err == nil || errors.Is(err, ErrLocked) {
			t.Errorf("%s: %v", path, err)
		}
	}
	only(t, dir, "link")
}

func TestKilledHolderLetsGo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	c := child(t.Context(), "hold", path)
	out, err := c.StdoutPipe()
	ok(t, err)
	ok(t, c.Start())
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "held\n" {
		t.Fatal(line, err)
	}
	if _, err := TryLock(path); !errors.Is(err, ErrLocked) {
		t.Fatalf("the lock does not count between processes: %v", err)
	}
	ok(t, c.Process.Kill()) // SIGKILL
	_ = c.Wait()
	unlock, err := TryLock(path)
	ok(t, err)
	unlock()
}

func TestLockBetweenProcesses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "n")
	ok(t, os.WriteFile(path, []byte("0"), 0o600))
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			if out, err := child(t.Context(), "count", path).CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
		wait.Go(func() {
			for range 20 {
				if err := count(t.Context(), path); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wait.Wait()
	content(t, path, "160")
}
