package cell

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

const shimMarker = "autoagent-cell-shim"

// The descriptors a shim starts with, besides bwrap's own 0, 1 and 2.
const (
	channelFD = 3 + iota
	shimFD    // the executable itself
	stdinFD
	stdoutFD
	stderrFD
	firstFreeFD // what the view of the file system needs, consumed by bwrap
)

// The exit statuses of a shell for a program that cannot be executed.
const (
	exitNotFound   = 127
	exitNotStarted = 126
)

// ShimMain must be the first call of every main and every TestMain of a program that starts cells. It returns at once
// unless this process is the shim of a cell, and never in one.
func ShimMain() {
	if len(os.Args) != 2 || os.Args[1] != shimMarker {
		return
	}
	runtime.LockOSThread() // the walls are put around this thread, and this thread becomes the program
	os.Exit(shim())
}

func shim() int {
	ch := os.NewFile(channelFD, "channel")
	if _, err := ch.Write([]byte{1}); err != nil {
		fmt.Fprintf(os.Stderr, "%s: only a cell starts this\n", shimMarker)
		return exitNotStarted
	}
	b, err := io.ReadAll(ch)
	if err != nil || len(b) == 0 {
		return exitNotStarted // the starter is gone
	}
	var o order
	if err := json.Unmarshal(b, &o); err != nil {
		return tell(ch, answer{Error: err.Error()})
	}
	listener := -1
	if o.Listen != 0 {
		if listener, err = listenInside(o.Listen); err != nil {
			return tell(ch, answer{Error: err.Error()})
		}
	}
	var a answer
	if a.Walls, err = o.enclose(); err != nil {
		return tell(ch, answer{Error: err.Error()})
	}
	if o.Trials != nil {
		if code := tell(ch, a); code != 0 {
			return code
		}
		return tryAll(o.Trials)
	}
	path, lookErr := look(o.Argv[0], o.Env)
	said, err := json.Marshal(a)
	if err != nil {
		return tell(ch, answer{Error: err.Error()})
	}
	// Last, since the shim itself may need more than what the program is given.
	if err := o.Limits.apply(); err != nil {
		return tell(ch, answer{Error: err.Error()})
	}
	if listener >= 0 {
		if err := handOver(ch, listener); err != nil {
			return exitNotStarted
		}
	}
	if _, err := ch.Write(said); err != nil {
		return exitNotStarted
	}
	if lookErr == nil {
		lookErr = syscall.Exec(path, o.Argv, o.Env)
	}
	fmt.Fprintf(os.Stderr, "autoagent: exec %s: %v\n", o.Argv[0], lookErr)
	if errors.Is(lookErr, os.ErrNotExist) {
		return exitNotFound
	}
	return exitNotStarted
}

// tell sends the answer and returns the shim's exit status.
func tell(ch *os.File, a answer) int {
	if err := json.NewEncoder(ch).Encode(a); err != nil || a.Error != "" {
		return exitNotStarted
	}
	return 0
}

// enclose gives this thread the program's descriptors and folder, and puts the walls up.
func (o order) enclose() (Walls, error) {
	for to, from := range []int{stdinFD, stdoutFD, stderrFD} {
		if err := unix.Dup3(from, to, 0); err != nil {
			return Walls{}, os.NewSyscallError("dup3", err)
		}
	}
	if err := closeOnExec(); err != nil {
		return Walls{}, err
	}
	if err := os.Chdir(o.Dir); err != nil {
		return Walls{}, err
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return Walls{}, os.NewSyscallError("prctl", err)
	}
	var w Walls
	var err error
	if w.Landlock, w.Scoped, err = landlock(o.Write); err != nil {
		return Walls{}, err
	}
	if w.Ports, err = landlockConnect(o.Closed); err != nil {
		return Walls{}, err
	}
	if err := seccomp(); err != nil {
		return Walls{}, err
	}
	w.Seccomp = true
	return w, nil
}

// closeOnExec makes sure that the program gets no descriptor beyond 0, 1 and 2.
func closeOnExec() error {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return err
	}
	for _, e := range entries {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
	return nil
}

// look finds a program as a shell would, in the PATH of env.
func look(name string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}
	path := "/usr/local/bin:/usr/bin:/bin"
	for _, e := range env {
		if v, ok := strings.CutPrefix(e, "PATH="); ok {
			path = v
		}
	}
	result := error(unix.ENOENT)
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) {
			continue // the working folder holds what an agent wrote
		}
		file := filepath.Join(dir, name)
		st, err := os.Stat(file)
		if err != nil || !st.Mode().IsRegular() {
			continue
		}
		if unix.Access(file, unix.X_OK) == nil {
			return file, nil
		}
		result = unix.EACCES
	}
	return "", result
}
