package cell

import (
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestForbiddenCalls(t *testing.T) {
	got := values(mustRun(t, ourselves(t, "syscalls")))
	for name, want := range map[string]unix.Errno{
		"ptrace": unix.EPERM, "mount": unix.EPERM, "setns": unix.EPERM, "add_key": unix.EPERM, "bpf": unix.EPERM,
		"io_uring_setup": unix.EPERM, "userfaultfd": unix.EPERM, "unshare-user": unix.EPERM, "unshare-mounts": unix.EPERM,
		"clone-user": unix.EPERM, "vsock": unix.EAFNOSUPPORT, "tiocsti": unix.EPERM, "tiocsti-high": unix.EPERM,
		"ioctl": unix.ENOTTY, "unshare-files": 0, "clone3": unix.ENOSYS,
	} {
		if g := got[name]; g != strconv.Itoa(int(want)) && !(name == "ioctl" && g == strconv.Itoa(int(unix.EACCES))) {
			t.Errorf("%s answered %q, want %d (%v)", name, g, int(want), want)
		}
	}
}

// What no test program can do from here: other architectures and their numbers.
func TestFilterProgram(t *testing.T) {
	const amd64, arm64, i386 = unix.AUDIT_ARCH_X86_64, unix.AUDIT_ARCH_AARCH64, unix.AUDIT_ARCH_I386
	for _, c := range []struct {
		name            string
		program, caller uint32
		call            uint32
		arg             uint64
		want            uint32
	}{
		{"plain call", amd64, amd64, unix.SYS_GETPID, 0, retAllow},
		{"plain call", arm64, arm64, unix.SYS_GETPID, 0, retAllow},
		{"forbidden call", amd64, amd64, unix.SYS_MOUNT, 0, retEPERM},
		{"32-bit call on a 64-bit kernel", amd64, i386, unix.SYS_GETPID, 0, unix.SECCOMP_RET_KILL_PROCESS},
		{"x32 call", amd64, amd64, unix.SYS_MOUNT | x32Bit, 0, retENOSYS},
		{"thread", amd64, amd64, unix.SYS_CLONE, unix.CLONE_VM | unix.CLONE_THREAD, retAllow},
		{"fork", amd64, amd64, unix.SYS_CLONE, uint64(unix.SIGCHLD), retAllow},
		{"user namespace", amd64, amd64, unix.SYS_CLONE, uint64(unix.SIGCHLD) | unix.CLONE_NEWUSER, retEPERM},
		{"PID namespace", arm64, arm64, unix.SYS_CLONE, unix.CLONE_NEWPID, retEPERM},
		{"time namespace", amd64, amd64, unix.SYS_UNSHARE, unix.CLONE_NEWTIME, retEPERM},
		{"files of its own", amd64, amd64, unix.SYS_UNSHARE, unix.CLONE_FILES, retAllow},
		{"clone3", amd64, amd64, unix.SYS_CLONE3, 0, retENOSYS},
		{"inet socket", amd64, amd64, unix.SYS_SOCKET, unix.AF_INET6, retAllow},
		{"crypto socket", amd64, amd64, unix.SYS_SOCKET, unix.AF_ALG, retFamily},
		{"pair of another family", amd64, amd64, unix.SYS_SOCKETPAIR, unix.AF_TIPC, retFamily},
		{"ioctl", amd64, amd64, unix.SYS_IOCTL, unix.TCGETS, retAllow},
		{"typing into a terminal", amd64, amd64, unix.SYS_IOCTL, unix.TIOCSTI, retEPERM},
		{"ask for the personality", amd64, amd64, unix.SYS_PERSONALITY, 0xffffffff, retAllow},
		{"readable is executable", amd64, amd64, unix.SYS_PERSONALITY, 0x400000, retEPERM},
		{"a call of the future", amd64, amd64, 900, 0, retENOSYS},
		{"the largest number", arm64, arm64, 0xffffffff, 0, retENOSYS},
	} {
		if got := interpret(t, filterProgram(c.program), c.caller, c.call, c.arg); got != c.want {
			t.Errorf("%s: got %#x, want %#x", c.name, got, c.want)
		}
	}
}

// Every call has one answer: it is allowed, refused, or unknown.
func TestEveryCall(t *testing.T) {
	allow, refuse := map[uint32]bool{}, map[uint32]bool{}
	for _, n := range allowed() {
		allow[n] = true
	}
	for _, n := range refused() {
		refuse[n] = true
		if allow[n] {
			t.Errorf("call %d is allowed and refused", n)
		}
	}
	byArgument := []uint32{unix.SYS_CLONE, unix.SYS_UNSHARE, unix.SYS_IOCTL, unix.SYS_PERSONALITY, unix.SYS_SOCKET, unix.SYS_SOCKETPAIR}
	p := filterProgram(unix.AUDIT_ARCH_X86_64)
	if len(p) > unix.BPF_MAXINSNS {
		t.Fatalf("the filter has %d instructions", len(p))
	}
	for n := range uint32(1000) {
		want := retENOSYS
		switch {
		case slices.Contains(byArgument, n):
			continue
		case allow[n]:
			want = retAllow
		case refuse[n]:
			want = retEPERM
		}
		if got := interpret(t, p, unix.AUDIT_ARCH_X86_64, n, 0); got != uint32(want) {
			t.Errorf("call %d: %#x, want %#x", n, got, want)
		}
	}
}

// interpret runs a filter as the kernel would, with all arguments equal.
func interpret(t *testing.T, p []unix.SockFilter, arch, call uint32, arg uint64) uint32 {
	t.Helper()
	data := binary.LittleEndian.AppendUint32(nil, call)
	data = binary.LittleEndian.AppendUint32(data, arch)
	data = binary.LittleEndian.AppendUint64(data, 0)
	for range 6 {
		data = binary.LittleEndian.AppendUint64(data, arg)
	}
	var acc uint32
	for pc := 0; pc < len(p); pc++ {
		holds := false
		switch i := p[pc]; i.Code {
		case unix.BPF_RET | unix.BPF_K:
			return i.K
		case unix.BPF_LD | unix.BPF_W | unix.BPF_ABS:
			acc = binary.LittleEndian.Uint32(data[i.K:])
			continue
		case unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K:
			holds = acc == i.K
		case unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K:
			holds = acc >= i.K
		case unix.BPF_JMP | unix.BPF_JGT | unix.BPF_K:
			holds = acc > i.K
		case unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K:
			holds = acc&i.K != 0
		default:
			t.Fatalf("instruction %d: %+v", pc, i)
		}
		if holds {
			pc += int(p[pc].Jt)
		} else {
			pc += int(p[pc].Jf)
		}
	}
	t.Fatal("the filter runs over its end")
	return 0
}

func TestLimits(t *testing.T) {
	clone := t.TempDir()
	s := shell("head -c 3000000 /dev/zero >big; echo $?; stat -c %s big", clone)
	s.Limits = Limits{FileBytes: 1 << 20}
	text := mustRun(t, s)
	if !strings.HasSuffix(text, "\n1048576\n") || strings.HasPrefix(text, "0\n") {
		t.Errorf("a file of 3 MB under a limit of 1 MiB: %q", text)
	}

	s = shell("ulimit -c; ulimit -n; ulimit -Hn", clone)
	s.Limits = Limits{OpenFiles: 200}
	if text := mustRun(t, s); text != "0\n200\n200\n" {
		t.Errorf("core size, open files: %q", text)
	}

	s = shell("dd if=/dev/zero of=/dev/null bs=300M count=1", clone)
	s.Limits = Limits{DataBytes: 100 << 20}
	if text, status := inside(t, s); status == (Status{}) {
		t.Errorf("300 MB of memory under a limit of 100: %q", text)
	}
	s.Limits = Limits{DataBytes: NoLimit}
	mustRun(t, s)

	s = shell("ulimit -Sf; ulimit -Hf; ulimit -Hd", clone)
	s.Limits = Limits{}
	if text := mustRun(t, s); text != fmt.Sprintf("%d\n%d\n%d\n", DefaultFileBytes/512, DefaultFileBytes/512, DefaultDataBytes/1024) {
		t.Errorf("defaults: %q", text)
	}
}

func TestManyProcessesAndFiles(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Log("as root the number of processes is NOT bounded by the kernel, and not tried")
		return
	}
	s := ourselves(t, "many")
	s.Limits = Limits{Processes: 60, OpenFiles: 500}
	got := values(mustRun(t, s))
	files, _ := strconv.Atoi(got["files"])
	processes, _ := strconv.Atoi(got["processes"])
	if files < 400 || files >= 500 || processes < 10 || processes > 60 {
		t.Errorf("under limits of 60 processes and 500 files it had %v", got)
	}

	// A fork bomb: it grows no further than the limit, and dies with its cell.
	m := mark(4)
	clone := t.TempDir()
	s = shell(fmt.Sprintf("touch up; b() { sleep %s & b | b & }; b; wait; sleep 1000", m), clone)
	s.Limits = Limits{Processes: 40}
	c, err := Start(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the bomb is lit", exists(filepath.Join(clone, "up")))
	most := 0
	for range 20 {
		most = max(most, living(m))
		time.Sleep(5 * time.Millisecond)
	}
	c.Kill()
	if most > 40 {
		t.Errorf("%d processes under a limit of 40", most)
	}
	if n := living(m); n != 0 {
		t.Errorf("%d survived", n)
	}
}

func TestNoSignalGetsOut(t *testing.T) {
	needBwrap(t)
	victim := exec.Command("sleep", "1000")
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = victim.Process.Kill()
		_ = victim.Wait()
	}()
	pid := victim.Process.Pid
	text := mustRun(t, shell(fmt.Sprintf("kill -9 %d 2>&1; kill -9 -1 2>/dev/null; kill -9 1; cat /proc/%d/cmdline 2>&1; true", pid, pid), ""))
	if !strings.Contains(text, "No such process") || !strings.Contains(text, "No such file") {
		t.Errorf("got %q", text)
	}
	if alive, err := pidAlive(pid); !alive || err != nil {
		t.Errorf("the process outside: alive %v, error %v", alive, err)
	}
}

func pidAlive(pid int) (bool, error) {
	id, err := identify(pid)
	if err != nil {
		return false, err
	}
	return id.Alive()
}

func TestSocketsOfTheHost(t *testing.T) {
	name := "@cell-test-" + mark(5)
	l, err := net.Listen("unix", name)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	clone := t.TempDir()
	s := Spec{Env: testEnv(), Dir: clone, Writable: []string{clone}, Argv: []string{python(t), "-c",
		`import socket, sys; socket.socket(socket.AF_UNIX).connect("\0" + sys.argv[1])`, name[1:]}}
	needBwrap(t)
	c, err := Start(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	status, err := c.Wait()
	if err != nil {
		t.Fatal(err)
	}
	if !c.Walls().Scoped {
		t.Log("this kernel's Landlock does NOT cut off abstract sockets")
		return
	}
	if status == (Status{}) {
		t.Error("it reached an abstract socket of the host")
	}
}

func TestNetwork(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	s := Spec{Env: testEnv(), Argv: []string{python(t), "-c",
		`import socket, sys; socket.create_connection(("127.0.0.1", int(sys.argv[1])))`, port}}
	mustRun(t, s)
	s.NoNetwork = true
	if text, status := inside(t, s); status == (Status{}) {
		t.Errorf("without a network it reached the host: %q", text)
	}
}

func TestLandlockVersions(t *testing.T) {
	if v := landlockVersion(); v == 0 {
		missing(t, "this kernel has no Landlock of use: it is NOT tested")
	}
	needBwrap(t)
	c, err := Start(t.Context(), Spec{Argv: []string{"true"}, Env: testEnv()})
	if err != nil {
		t.Fatal(err)
	}
	if status, err := c.Wait(); err != nil || status != (Status{}) {
		t.Error(status, err)
	}
	if w := c.Walls(); w.Landlock != landlockVersion() || w.Scoped != (w.Landlock >= 6) || !w.Seccomp {
		t.Errorf("walls %+v", w)
	}
}
