package testkit

import (
	"context"
	"crypto/rand"
	_ "embed"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

//go:embed host.sh
var hostScript string

// Host is a throwaway machine for tests: the real systemd as PID 1, with its journal, message buses and user managers,
// in namespaces of its own. Of the outer machine it has the kernel, the programs (read-only), a copy of /etc and the
// network, so that 127.0.0.1 is the same on both sides; its /run, /tmp, /var, /home, /root, /dev and /etc/systemd are its own
// and no service of the outer machine is started in it. Its root cannot change the network or the clock.
//
// As the kernel is the outer one, the boot id and the clocks go on over a Boot, and /sys is read-only.
type Host struct {
	t       testing.TB
	o       HostOptions
	name    string
	dir     string // tables, log, mount point
	disk    string
	users   map[string]int
	cgroups []hostCgroup

	pid  int           // of its PID 1, seen from outside; 0: it is down
	done chan struct{} // closed when the last process of this boot is gone
}

// HostOptions say what a Host has. The zero value is a machine with nobody but root.
type HostOptions struct {
	Users  []string // made inside, with a home; each has a uid of 1000 or more
	Linger []string // those of Users whose manager runs from boot on
	Binds  []Bind

	// KeepVar is the folder of the outer machine that is the host's disk: var, home, root and etc/systemd. Empty: one of the
	// host's own, which also survives a Crash and ends with the test.
	KeepVar string

	// NoControllers leaves out all cgroup controllers, so that nothing bounds memory or tasks.
	NoControllers bool
}

// Bind shows a file or folder of the outer machine inside.
type Bind struct {
	Host   string
	Inside string // empty: the same path
	Write  bool
}

const (
	firstUID = 4001 // limits of the kernel count by uid, so these are none of the outer machine's people
	bootTime = time.Minute

	// notInside are the capabilities with which root inside would change the outer machine.
	notInside = "-net_admin,-sys_time,-sys_module,-sys_rawio,-syslog,-mac_admin,-mac_override"
)

// NewHost boots a host, which ends with the test. Where there can be none, the test is skipped, or failed if CI=true.
func NewHost(t testing.TB, o HostOptions) *Host {
	t.Helper()
	needHost(t)
	h := &Host{
		t: t, o: o,
		name:  fmt.Sprintf("%s%d-%s", cgroupPrefix, os.Getpid(), strings.ToLower(rand.Text()[:8])),
		dir:   realPath(t, t.TempDir()),
		users: map[string]int{},
	}
	for i, u := range o.Users {
		h.users[u] = firstUID + i
	}
	if h.disk = filepath.Join(h.dir, "disk"); o.KeepVar != "" {
		h.disk = realPath(t, o.KeepVar)
	}
	if err := h.writeSeed(); err != nil {
		t.Fatalf("host: %v", err)
	}
	t.Cleanup(h.Crash)
	h.Boot()
	return h
}

// needHost ends a test on a machine that cannot have a host.
func needHost(t testing.TB) {
	t.Helper()
	ids, _ := os.ReadFile("/proc/self/uid_map")
	Need(t, os.Geteuid() == 0 && strings.Contains(string(ids), " 4294967295"), "root OF THE MACHINE, FOR A HOST OF ITS OWN")
	for _, p := range []string{"unshare", "nsenter", "setpriv", "mount", "pivot_root", "systemctl", "journalctl"} {
		Need(t, OnPath(p), p+", FOR A HOST OF ITS OWN")
	}
	for name, places := range map[string][]string{ // Debian's names
		"systemd":           {"/usr/lib/systemd/systemd", "/lib/systemd/systemd"},
		"dbus":              {"/usr/lib/systemd/system/dbus.socket", "/lib/systemd/system/dbus.socket"},
		"dbus-user-session": {"/usr/lib/systemd/user/dbus.socket"},
		"libpam-systemd":    {"/usr/lib*/security/pam_systemd.so", "/usr/lib/*/security/pam_systemd.so", "/lib/*/security/pam_systemd.so"},
	} {
		there := slices.ContainsFunc(places, func(p string) bool { found, _ := filepath.Glob(p); return len(found) > 0 })
		Need(t, there, "THE PACKAGE "+name+", FOR A HOST OF ITS OWN")
	}
}

func realPath(t testing.TB, path string) string {
	t.Helper()
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		t.Fatalf("host: %v", err)
	}
	return real
}

// Boot starts the host on its disk and returns when everything that starts at boot has started.
func (h *Host) Boot() {
	h.t.Helper()
	if h.pid != 0 {
		h.t.Fatal("host: it is up")
	}
	trees, err := hierarchies(h.o.NoControllers)
	Need(h.t, err == nil, fmt.Sprintf("CGROUPS FOR A HOST OF ITS OWN (%v)", err))
	if h.cgroups, err = makeCgroups(trees, h.name); err != nil {
		h.removeCgroups()
		Need(h.t, false, fmt.Sprintf("CGROUPS FOR A HOST OF ITS OWN (%v)", err))
	}
	var table strings.Builder
	for _, c := range h.cgroups {
		fmt.Fprintf(&table, "%s\t%s\t%s\n", c.dir, c.options, c.path)
	}
	if err := os.WriteFile(filepath.Join(h.dir, "cgroups"), []byte(table.String()), 0o600); err != nil {
		h.t.Fatalf("host: %v", err)
	}
	notify, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: "@" + h.name, Net: "unixgram"})
	if err != nil {
		h.t.Fatalf("host: %v", err)
	}
	defer notify.Close()
	if err := h.startInit(); err != nil {
		h.removeCgroups()
		Need(h.t, false, fmt.Sprintf("NAMESPACES FOR A HOST OF ITS OWN (%v)", err))
	}
	h.awaitReady(notify)

	for _, u := range h.o.Linger { // systemd only asks for these as it boots; a start waits
		ctx, cancel := context.WithTimeout(context.Background(), bootTime)
		out, exit := h.Run(ctx, "", "systemctl", "start", fmt.Sprintf("user@%d.service", h.users[u]))
		cancel()
		if exit != 0 {
			h.t.Fatalf("host: the manager of %s: exit %d\n%s", u, exit, out)
		}
	}
}

// startInit makes the process that becomes PID 1. It dies with this process, however that ends.
func (h *Host) startInit() error {
	log, err := os.Create(filepath.Join(h.dir, "log"))
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command("/bin/sh", filepath.Join(h.dir, "host.sh"), "join", h.dir, h.disk, "@"+h.name)
	cmd.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Setsid:     true,
		Pdeathsig:  syscall.SIGKILL,
		Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS,
	}
	started, done := make(chan error, 1), make(chan struct{})
	go func() {
		runtime.LockOSThread() // Pdeathsig is about the thread that started the process
		defer close(done)
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // returns when all processes of the PID namespace are gone
		}
	}()
	if err := <-started; err != nil {
		return err
	}
	h.pid, h.done = cmd.Process.Pid, done
	return nil
}

// awaitReady waits until systemd says that it has booted.
func (h *Host) awaitReady(notify *net.UnixConn) {
	h.t.Helper()
	ready := make(chan error, 1)
	go func() {
		_ = notify.SetReadDeadline(time.Now().Add(bootTime))
		buf := make([]byte, 4096)
		for {
			n, err := notify.Read(buf)
			if err != nil || strings.Contains("\n"+string(buf[:n]), "\nREADY=1") {
				ready <- err
				return
			}
		}
	}()
	select {
	case err := <-ready:
		if err == nil {
			return
		}
		jobs := h.Systemctl("", "list-jobs") + "\n" + h.Systemctl("", "--failed", "--no-legend")
		h.t.Fatalf("host: not up after %s: %v\n%s\n%s", bootTime, err, jobs, h.bootLog())
	case <-h.done:
		log := h.bootLog()
		h.pid = 0
		h.removeCgroups()
		Need(h.t, false, "NAMESPACES AND MOUNTS FOR A HOST OF ITS OWN (its start ended: "+log+")")
	}
}

func (h *Host) bootLog() string {
	b, _ := os.ReadFile(filepath.Join(h.dir, "log"))
	return strings.TrimSpace(string(b))
}

// Crash kills all processes of the host at once, as a power cut would; what was written to the disk stays, synced or not.
// A host that is down stays so.
func (h *Host) Crash() {
	h.t.Helper()
	if h.pid == 0 {
		return
	}
	if err := syscall.Kill(h.pid, syscall.SIGKILL); err != nil && err != syscall.ESRCH {
		h.t.Errorf("host: kill: %v", err)
	}
	<-h.done
	h.pid = 0
	h.removeCgroups()
}

// Shutdown ends the host in order: everything in it gets its time to stop.
func (h *Host) Shutdown() {
	h.t.Helper()
	h.Systemctl("", "poweroff")
	select {
	case <-h.done:
		h.pid = 0
		h.removeCgroups()
	case <-time.After(3 * time.Minute):
		h.t.Fatal("host: no end of the shutdown\n" + h.Systemctl("", "list-jobs"))
	}
}

// UID returns the uid of a user of the host, 0 if user is empty.
func (h *Host) UID(user string) int {
	h.t.Helper()
	uid, ok := h.users[user]
	if !ok && user != "" && user != "root" {
		h.t.Fatalf("host: there is no user %q", user)
	}
	return uid
}

// Path returns where the outer machine sees a file of the running host. No absolute link may be on the way to it.
func (h *Host) Path(inside string) string { return fmt.Sprintf("/proc/%d/root%s", h.pid, inside) }
