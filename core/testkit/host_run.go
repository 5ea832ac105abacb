package testkit

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const commandTime = 3 * time.Minute // for what should take milliseconds

// enter goes into the cgroups that are named first, which systemd may have tidied away, and becomes the rest. The kernel may
// refuse the move with EIO while systemd is at it in another hierarchy.
const enter = `umask 022; for d; do shift; [ "$d" = -- ] && break; mkdir -p "$d" && { echo $$ >"$d/cgroup.procs" || { sleep 1; echo $$ >"$d/cgroup.procs"; }; } || exit 125; done; exec "$@"`

// Command prepares a program as a user of the host, root if user is empty, with the environment of a login; nothing of
// the environment outside comes along. It runs in the host's namespaces and in a cgroup of no unit.
func (h *Host) Command(ctx context.Context, user string, argv ...string) *exec.Cmd {
	h.t.Helper()
	if h.pid == 0 {
		h.t.Fatal("host: it is down")
	}
	uid := h.UID(user)
	user = cmp.Or(user, "root")
	args := []string{"-c", enter, "enter"}
	for _, c := range h.cgroups {
		args = append(args, filepath.Join(c.path, outsiders))
	}
	args = append(args, "--", "nsenter", "--target", strconv.Itoa(h.pid), "--mount", "--uts", "--ipc", "--pid", "--cgroup",
		"setpriv", "--bounding-set", notInside)
	env := []string{"USER=" + user, "LOGNAME=" + user, "SHELL=/bin/sh", "LANG=C.UTF-8"}
	home, path := "/root", rootPath
	if uid != 0 {
		home, path = "/home/"+user, "/usr/local/bin:/usr/bin:/bin"
		run := fmt.Sprintf("/run/user/%d", uid)
		args = append(args, "--reuid", user, "--regid", user, "--init-groups")
		env = append(env, "XDG_RUNTIME_DIR="+run, "DBUS_SESSION_BUS_ADDRESS=unix:path="+run+"/bus")
	}
	args = append(args, "env", "-i", "-C", home, "HOME="+home, "PATH="+path)
	args = append(append(args, env...), argv...)
	cmd := exec.CommandContext(ctx, "/bin/sh", args...)
	cmd.Env = []string{"PATH=" + rootPath}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) } // also what runs inside
	cmd.WaitDelay = time.Second
	return cmd
}

// Run runs a program inside as a user, root if user is empty, and returns what it wrote and its exit status: 128 and the
// signal's number if it died of one. With the end of ctx, its process group is killed.
func (h *Host) Run(ctx context.Context, user string, argv ...string) (out string, exit int) {
	h.t.Helper()
	cmd := h.Command(ctx, user, argv...)
	b, err := cmd.CombinedOutput()
	return string(b), h.exit(cmd, err)
}

// exit is the exit status of a command that ended.
func (h *Host) exit(cmd *exec.Cmd, err error) int {
	h.t.Helper()
	var status *exec.ExitError
	if err != nil && !errors.As(err, &status) && !errors.Is(err, exec.ErrWaitDelay) && cmd.ProcessState == nil {
		h.t.Fatalf("host: run: %v", err)
	}
	if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return cmd.ProcessState.ExitCode()
}

// Started is a program that runs in a host. Its end is awaited with Wait; it ends with the host at the latest.
type Started struct {
	*exec.Cmd
	In       io.WriteCloser
	Out, Err io.ReadCloser
}

// Start starts a program inside as a user, root if user is empty.
func (h *Host) Start(user string, argv ...string) *Started {
	h.t.Helper()
	cmd := h.Command(context.Background(), user, argv...)
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	errs, err3 := cmd.StderrPipe()
	if err := errors.Join(err1, err2, err3, cmd.Start()); err != nil {
		h.t.Fatalf("host: start: %v", err)
	}
	return &Started{cmd, in, out, errs}
}

// Systemctl asks the system manager, or a user's own, and returns the answer, whatever the exit status is.
func (h *Host) Systemctl(user string, args ...string) string {
	h.t.Helper()
	argv := []string{"systemctl", "--no-pager"}
	if h.UID(user) != 0 {
		argv = append(argv, "--user")
	}
	ctx, cancel := context.WithTimeout(context.Background(), commandTime)
	defer cancel()
	out, _ := h.Run(ctx, user, append(argv, args...)...)
	return strings.TrimSpace(out)
}

// Journal returns the entries of the system's journal, or of a user's own as that user sees it, of all boots. match are
// arguments of journalctl: FIELD=value, -u unit. Several values of one field are joined by line ends.
func (h *Host) Journal(user string, match ...string) []map[string]string {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), commandTime)
	defer cancel()
	if out, exit := h.Run(ctx, "", "journalctl", "--sync"); exit != 0 {
		h.t.Fatalf("host: journalctl --sync: %s", out)
	}
	argv := []string{"journalctl", "--no-pager", "--quiet", "--all", "--output=json"}
	if h.UID(user) != 0 {
		argv = append(argv, "--user")
	}
	cmd := h.Command(ctx, user, append(argv, match...)...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil && (errs.Len() > 0 || len(out) > 0) { // with no entry at all it just exits with 1
		h.t.Fatalf("host: journalctl: %v: %s", err, errs.String())
	}
	var entries []map[string]string
	for line := range bytes.Lines(out) {
		var raw map[string]any
		if err := json.Unmarshal(line, &raw); err != nil {
			h.t.Fatalf("host: journalctl: %v: %s", err, line)
		}
		entry := map[string]string{}
		for key, value := range raw {
			entry[key] = journalText(value)
		}
		entries = append(entries, entry)
	}
	return entries
}

// journalText is a value in journalctl's JSON as text: bytes that are no text come as numbers, several values as a list.
func journalText(value any) string {
	list, ok := value.([]any)
	if !ok {
		s, _ := value.(string)
		return s
	}
	var text []byte
	var several []string
	for _, v := range list {
		if n, ok := v.(float64); ok {
			text = append(text, byte(n))
		} else {
			several = append(several, journalText(v))
		}
	}
	return string(text) + strings.Join(several, "\n")
}
