package supervisor

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"example.com/AutoAgentProject/core/cgroup"
	"example.com/AutoAgentProject/core/proc"
)

// process is one running tick.
type process struct{ id proc.ID }

// startTick starts a tick in the cgroup, unless that is nil, and in a process group of its own, so that a Ctrl-C at the
// terminal does not reach it. It dies with this process: the death signal belongs to the thread that forked, so that
// thread stays until the tick ended.
func startTick(group *cgroup.Group, argv, env []string, ended func(exit int, tail string)) (*process, error) {
	started := make(chan error)
	p := &process{}
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.Env = env
		var out lastBytes
		cmd.Stdout, cmd.Stderr = &out, &out
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
		cmd.WaitDelay = 1e9 // a grandchild that holds the pipe open must not hold us
		err := startInside(group, cmd)
		if cmd.Process == nil {
			started <- err
			return
		}
		if err == nil {
			p.id, err = proc.Of(cmd.Process.Pid)
		}
		if err != nil {
			_ = cmd.Process.Kill()
		}
		started <- err
		werr := cmd.Wait()
		if err != nil {
			return
		}
		exit := cmd.ProcessState.ExitCode()
		if werr != nil && exit == 0 {
			var ee *exec.ExitError
			if !errors.As(werr, &ee) && !errors.Is(werr, exec.ErrWaitDelay) {
				exit = -1
			}
		}
		ended(exit, out.String())
	}()
	return p, <-started
}

func startInside(group *cgroup.Group, cmd *exec.Cmd) error {
	if group == nil {
		return cmd.Start()
	}
	return group.Start(cmd.SysProcAttr, func() (int, error) {
		if err := cmd.Start(); err != nil {
			return 0, err
		}
		return cmd.Process.Pid, nil
	})
}

// lastBytes keeps the end of what is written to it.
type lastBytes struct{ b []byte }

func (l *lastBytes) Write(p []byte) (int, error) {
	l.b = append(l.b, p...)
	if n := len(l.b) - 2000; n > 0 {
		l.b = slices.Clone(l.b[n:])
	}
	return len(p), nil
}

func (l *lastBytes) String() string {
	return strings.TrimSpace(strings.ToValidUTF8(string(l.b), "\uFFFD"))
}

// becomeSubreaper makes orphans of the ticks children of this process instead of init's, so that none is lost.
func becomeSubreaper() error { return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// children returns the living descendants of this process, zombies left out, and so is spare with all that it started.
func children(spare proc.ID) ([]proc.ID, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	parent := map[int]int{}
	dead := map[int]bool{}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		b, err := os.ReadFile(filepath.Join("/proc", e.Name(), "stat"))
		if err != nil {
			continue // gone meanwhile
		}
		s := string(b)
		f := strings.Fields(s[strings.LastIndexByte(s, ')')+1:])
		if len(f) < 2 {
			continue
		}
		parent[pid], _ = strconv.Atoi(f[1])
		dead[pid] = f[0] == "Z" || f[0] == "X"
	}
	self := os.Getpid()
	spared := 0
	if same, err := spare.Alive(); err == nil && same { // its number may be another's by now
		spared = spare.PID
	}
	var out []proc.ID
	for pid := range parent {
		if pid == spared {
			continue
		}
		for up, hops := parent[pid], 0; up > 1 && up != spared && hops < 1000; up, hops = parent[up], hops+1 {
			if up != self {
				continue
			}
			if !dead[pid] {
				if id, err := proc.Of(pid); err == nil {
					out = append(out, id)
				}
			}
			break
		}
	}
	return out, nil
}

// reapOrphans collects zombies that were handed to this process and are none of its own ticks.
func reapOrphans(known map[int]bool) {
	lists, _ := filepath.Glob("/proc/self/task/*/children")
	for _, list := range lists {
		b, _ := os.ReadFile(list) // a thread that ended has no children any more
		for f := range strings.FieldsSeq(string(b)) {
			pid, err := strconv.Atoi(f)
			if err != nil || known[pid] {
				continue
			}
			if st, err := os.ReadFile("/proc/" + f + "/stat"); err == nil && strings.Contains(string(st), ") Z ") {
				_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
			}
		}
	}
}
