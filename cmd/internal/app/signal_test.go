package app_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/store"
	"example.com/AutoAgentProject/core/testkit"
)

// TestSignals: Ctrl-C aborts a mission that is ticked in the foreground; a closed terminal and SIGTERM leave it standing.
// Under nohup a closed terminal does nothing, and neither does a pipe that nobody reads any more.
func TestSignals(t *testing.T) {
	testkit.Need(t, testkit.OnPath("git"), "git")
	for _, c := range []struct {
		name   string
		before []string       // in front of the program
		pipe   bool           // the output goes into a pipe that is closed
		first  syscall.Signal // does nothing; 0: none
		last   syscall.Signal // ends it
	}{
		{"Ctrl-C", nil, false, 0, syscall.SIGINT},
		{"terminated", nil, false, 0, syscall.SIGTERM},
		{"closed terminal", nil, false, 0, syscall.SIGHUP},
		{"closed terminal under nohup", []string{"nohup"}, false, syscall.SIGHUP, syscall.SIGTERM},
		{"closed pipe", nil, true, 0, syscall.SIGTERM},
	} {
		t.Run(c.name, func(t *testing.T) {
			testkit.Need(t, c.before == nil || testkit.OnPath(c.before[0]), "nohup")
			dir := t.TempDir()
			if err := newMission(store.Root(dir), filepath.Join(dir, "login.json"), "my-site"); err != nil {
				t.Fatal(err)
			}
			st := store.Root(dir).Mission("my-site")
			argv := append(c.before, filepath.Join(bin, "AutoAgentProject"), "run", "my-site", "--root", dir)
			cmd := exec.Command(argv[0], argv[1:]...)
			cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir}
			if c.pipe {
				r, w, err := os.Pipe()
				if err != nil {
					t.Fatal(err)
				}
				cmd.Stdout = w
				r.Close()
				defer w.Close()
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer cmd.Process.Kill()
			waitFor(t, "a tick that ended badly, which is an event to print", func() bool {
				events, _, _, err := st.Journal().Read(0)
				return err == nil && len(events) > 1
			})
			// It prints five times a second and looks at its signals as often.
			err := cmd.Process.Signal(c.first)
			time.Sleep(600 * time.Millisecond)
			if stop, serr := st.Stopped(); err != nil || serr != nil || stop != nil {
				t.Fatalf("it does not go on: %+v, %v, %v", stop, err, serr)
			}
			if err := cmd.Process.Signal(c.last); err != nil {
				t.Fatal(err)
			}
			err = cmd.Wait()
			exit, _ := errors.AsType[*exec.ExitError](err)
			stop, serr := st.Stopped()
			if serr != nil {
				t.Fatal(serr)
			}
			if c.last == syscall.SIGINT {
				if exit == nil || exit.ExitCode() != 8 || stop == nil || stop.Cause != mission.Aborted {
					t.Errorf("it ended with %v, want exit status 8; the tombstone is %+v", err, stop)
				}
			} else if exit == nil || exit.ExitCode() != 75 || stop != nil {
				t.Errorf("it ended with %v, want exit status 75; the tombstone is %+v", err, stop)
			}
		})
	}
}

// waitFor waits for something that another process does.
func waitFor(t *testing.T, what string, done func() bool) {
	t.Helper()
	for range 2000 {
		if done() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("it did not come: " + what)
}
