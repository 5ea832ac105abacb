//go:build testonly

package files

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

// In a build with the tag testonly every durable operation is a numbered step of the process. AUTOAGENT_TESTONLY_KILL=N
// kills the process with SIGKILL at its N-th step, with AUTOAGENT_TESTONLY_ONCE=file only the first one that makes that
// file, with AUTOAGENT_TESTONLY_PROGRAM=name only processes of that name; AUTOAGENT_TESTONLY_FAIL=name:text:errno lets the step of that
// name fail on paths that contain the text. AUTOAGENT_TESTONLY_STEPS names a file that collects the steps.
var steps atomic.Int64

func step(name, path string) error {
	n := steps.Add(1)
	if f := os.Getenv("AUTOAGENT_TESTONLY_STEPS"); f != "" {
		if h, err := os.OpenFile(f, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err == nil {
			fmt.Fprintf(h, "%d %s %s\n", n, name, path)
			h.Close()
		}
	}
	if k, err := strconv.ParseInt(os.Getenv("AUTOAGENT_TESTONLY_KILL"), 10, 64); err == nil && n == k && mine() && first() {
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
	if spec := strings.Split(os.Getenv("AUTOAGENT_TESTONLY_FAIL"), ":"); len(spec) == 3 && spec[0] == name && strings.Contains(path, spec[1]) {
		e, _ := strconv.Atoi(spec[2])
		return &os.PathError{Op: name, Path: path, Err: syscall.Errno(e)}
	}
	return nil
}

func mine() bool {
	p := os.Getenv("AUTOAGENT_TESTONLY_PROGRAM")
	return p == "" || filepath.Base(os.Args[0]) == p
}

func first() bool {
	f := os.Getenv("AUTOAGENT_TESTONLY_ONCE")
	if f == "" {
		return true
	}
	h, err := os.OpenFile(f, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err == nil {
		h.Close()
	}
	return err == nil
}
