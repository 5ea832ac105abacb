// Package git is the project's use of the git program, in two halves. Repo is our own bare repository, which only our
// code writes; git runs on it directly, with a closed environment. Clone is an agent's clone, whose configuration is the
// agent's; git runs in it only through an Exec, which puts every call behind the walls.
package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"example.com/AutoAgentProject/core/usererr"
)

var (
	// ErrMoved is returned by CompareAndSwap when the ref does not hold the old value any more.
	ErrMoved = errors.New("somebody else moved the ref")
	// ErrNoCommit is returned by Resolve when there is no such commit.
	ErrNoCommit = errors.New("no such commit")
)

// Who is the author and committer of a commit.
type Who struct{ Name, Email string }

// ourselves signs what no agent made: the first commit, an import.
func ourselves() Who { return Who{Name: "AutoAgent", Email: "autoagent@autoagent.example"} }

// env is the identity as git wants it. Times are written in UTC.
func (w Who) env(at time.Time) []string {
	date := "@" + strconv.FormatInt(at.Unix(), 10) + " +0000"
	return []string{
		"GIT_AUTHOR_NAME=" + w.Name, "GIT_AUTHOR_EMAIL=" + w.Email, "GIT_AUTHOR_DATE=" + date,
		"GIT_COMMITTER_NAME=" + w.Name, "GIT_COMMITTER_EMAIL=" + w.Email, "GIT_COMMITTER_DATE=" + date,
	}
}

// minimum is the oldest git that has merge-tree --write-tree.
const minimum = "2.38"

// Check says which git is installed, or what to do about it.
func Check(ctx context.Context) (version string, err error) {
	out, err := call{env: closed(), args: []string{"version"}}.run(ctx)
	if err != nil {
		return "", err
	}
	version = strings.TrimPrefix(strings.TrimSpace(out), "git version ")
	var major, minor int
	if _, err := fmt.Sscanf(version, "%d.%d", &major, &minor); err != nil {
		return "", fmt.Errorf("read the version of git, %q: %w", clean(out), err)
	}
	if major < 2 || major == 2 && minor < 38 {
		return version, usererr.New(usererr.Environment, "install git "+minimum+" or newer", "git %s is too old", version)
	}
	return version, nil
}

// protected are the settings of every call: nothing that a configuration, an attribute or a hook names is run, nothing is
// fetched from anywhere but a local folder, and what counts is on the disk when git returns.
func protected() []string {
	return []string{
		"core.hooksPath=/dev/null", "core.fsmonitor=false", "core.untrackedCache=false", "core.commitGraph=false",
		"core.attributesFile=/dev/null", "core.excludesFile=/dev/null", "core.autocrlf=false", "core.safecrlf=false",
		"core.fileMode=true", "core.symlinks=true", "core.ignoreCase=false", "core.quotePath=true",
		"core.sparseCheckout=false", "core.splitIndex=false", "core.logAllRefUpdates=false",
		"core.fsync=committed,pack-metadata,index,reference", "core.fsyncMethod=fsync",
		"core.pager=cat", "core.editor=false", "core.askPass=false", "core.sshCommand=false", "credential.helper=",
		"protocol.allow=never", "protocol.file.allow=always", "protocol.version=2", "transfer.fsckObjects=true",
		"gc.auto=0", "maintenance.auto=false", "commit.gpgSign=false", "submodule.recurse=false", "rerere.enabled=false",
	}
}

// options turns settings into arguments.
func options(settings []string) []string {
	var args []string
	for _, s := range settings {
		args = append(args, "-c", s)
	}
	return args
}

// uploadPack is the server side of a fetch from a folder that was already judged: its owner may be another than ours.
const uploadPack = `git -c safe.directory="*" -c protocol.allow=never -c uploadpack.allowAnySHA1InWant=true upload-pack`

// settled is the part of the environment that is the same in and out of a cell: no configuration but the repository's.
func settled() []string {
	return []string{
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_ATTR_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0",
		"GIT_NO_REPLACE_OBJECTS=1", "GIT_ADVICE=0", "LC_ALL=C", "TZ=UTC",
	}
}

// closed is the whole environment of a call on our own repository. Nothing of ours but the search path is handed on.
func closed() []string {
	var path []string
	for _, p := range filepath.SplitList(os.Getenv("PATH")) {
		if filepath.IsAbs(p) {
			path = append(path, p)
		}
	}
	if path == nil {
		path = []string{"/usr/local/bin", "/usr/bin", "/bin"}
	}
	return append(settled(), "PATH="+strings.Join(path, ":"), "HOME=/nonexistent", "XDG_CONFIG_HOME=/nonexistent")
}

// call is one start of git.
type call struct {
	dir    string
	env    []string // the whole environment
	args   []string
	stdin  io.Reader
	stdout io.Writer // nil: run returns it
	held   *os.File  // a lock that git keeps as long as it lives, even when we are killed
}

// run runs git and returns its standard output. A status other than 0 is a *failure. git does not outlive us: the death
// signal belongs to the thread that forked, so this goroutine keeps its thread until git ended. What git starts itself
// (upload-pack, index-pack) gets no signal; it ends when its pipe to git breaks, moves no ref and keeps the lock till then.
func (c call) run(ctx context.Context) (string, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var out bytes.Buffer
	stderr := &head{left: 8 << 10}
	cmd := exec.CommandContext(ctx, "git", c.args...)
	cmd.Dir, cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = c.dir, c.env, c.stdin, c.stdout, stderr
	if c.stdout == nil {
		cmd.Stdout = &out
	}
	if c.held != nil {
		cmd.ExtraFiles = []*os.File{c.held}
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return out.String(), nil
	case ctx.Err() != nil:
		return "", fmt.Errorf("git %s: %w", verb(c.args), context.Cause(ctx))
	case errors.Is(err, exec.ErrNotFound):
		return "", usererr.New(usererr.Environment, "install git "+minimum+" or newer", "there is no program git on this machine")
	case errors.As(err, &exit):
		return out.String(), &failure{what: verb(c.args), exit: exit.ExitCode(), text: stderr.buf.String()}
	}
	return "", fmt.Errorf("git %s: %w", verb(c.args), err)
}

// verb is the first argument that is no option.
func verb(args []string) string {
	for i := 0; i < len(args); i++ {
		switch {
		case args[i] == "-c" || args[i] == "-C":
			i++
		case !strings.HasPrefix(args[i], "-"):
			return args[i]
		}
	}
	return ""
}

// failure is git's own refusal.
type failure struct {
	what string
	exit int
	text string // as it was printed
}

func (e *failure) Error() string {
	return fmt.Sprintf("git %s: exit status %d: %s", e.what, e.exit, clean(e.text))
}

// Is makes a full disk, which git tells in words only, recognisable.
func (e *failure) Is(target error) bool {
	return target == syscall.ENOSPC && strings.Contains(e.text, "No space left on device") ||
		target == syscall.EDQUOT && strings.Contains(e.text, "Disk quota exceeded")
}

// exited says whether err is git's own refusal with that status.
func exited(err error, status int) bool {
	var f *failure
	return errors.As(err, &f) && f.exit == status
}

// said says whether err is git's own refusal with those words.
func said(err error, words string) bool {
	var f *failure
	return errors.As(err, &f) && strings.Contains(f.text, words)
}

// clean makes one printable line of at most 500 bytes of what a program printed.
func clean(s string) string {
	s = strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "?"))), " ")
	if len(s) > 500 {
		s = strings.ToValidUTF8(s[:500], "") + "…"
	}
	return s
}

// head keeps the beginning of what is written to it.
type head struct {
	buf  bytes.Buffer
	left int
}

func (h *head) Write(p []byte) (int, error) {
	n := min(len(p), h.left)
	h.buf.Write(p[:n])
	h.left -= n
	return len(p), nil
}

// fields splits NUL-terminated output.
func fields(s string) []string {
	s = strings.TrimSuffix(s, "\x00")
	if s == "" {
		return nil
	}
	return strings.Split(s, "\x00")
}
