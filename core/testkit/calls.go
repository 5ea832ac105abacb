package testkit

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// changing are the system calls by which the disk changes or something leaves, by kind.
var changing = []string{"openat", "write,pwrite64", "fsync,fdatasync", "rename,renameat,renameat2", "link,linkat", "unlink,unlinkat", "mkdir,mkdirat",
	"fchmod,fchmodat,ftruncate", "flock", "socket", "connect", "read,pread64", "close"}

// KillAtCalls calls try for point after point between two system calls of a process, until nothing is killed any more. under
// lets a command run so that strace kills it there. strace counts the calls of each kind and of each thread by itself, so
// each kind is a series when it is to be full. Else every step-th point of all kinds together is tried.
func KillAtCalls(t *testing.T, full bool, step int, try func(t *testing.T, point string, under func(*exec.Cmd)) (killed bool)) {
	t.Helper()
	strace, err := exec.LookPath("strace")
	if err == nil {
		err = exec.Command(strace, "-f", "-o", os.DevNull, "true").Run()
	}
	Need(t, err == nil, "strace that may trace")
	sets := []string{strings.Join(changing, ",")}
	if full {
		sets, step = append(sets, changing...), 1
	}
	for _, calls := range sets {
		n := 1
		for ; ; n += step {
			point := fmt.Sprintf("call %d of %s", n, calls)
			if !try(t, point, func(c *exec.Cmd) {
				c.Args = append([]string{strace, "-f", "-qqq", "-o", os.DevNull, "-e", "trace=" + calls, "-e", fmt.Sprintf("inject=%s:signal=KILL:when=%d", calls, n), c.Path}, c.Args[1:]...)
				c.Path = strace
			}) {
				break
			}
			if n > 5000 {
				t.Fatal("it never ends")
			}
		}
		t.Logf("%d points of %s", n, calls)
		if n == 1 && len(sets) == 1 {
			t.Error("nothing was killed")
		}
	}
}
