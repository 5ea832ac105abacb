//go:build testonly

package files

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

// In a build with the tag testonly every durable operation is a numbered step of the process. AUTOAGENT_TESTONLY_KILL=N
// kills the process with SIGKILL at its N-th step; AUTOAGENT_TESTONLY_FAIL=name:text:errno lets the step of that
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
	if k, err := strconv.ParseInt(os.Getenv("AUTOAGENT_TESTONLY_KILL"), 10, 64); err == nil && n == k {
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
	if spec := strings.Split(os.Getenv("AUTOAGENT_TESTONLY_FAIL"), ":"); len(spec) == 3 && spec[0] == name && strings.Contains(path, spec[1]) {
		e, _ := strconv.Atoi(spec[2])
		return &os.PathError{Op: name, Path: path, Err: syscall.Errno(e)}
	}
	return nil
}
