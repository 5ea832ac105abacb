package testkit

import (
	"crypto/rand"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
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
// As the kernel is the outer one, so are its settings (net.unix.max_dgram_qlen, which systemd raises on a real machine, among
// them), the boot id and the clocks go on over a Boot, and /sys is read-only.
type Host struct {
	t       testing.TB
	o       HostOptions
	name    string
	dir     string // tables, log, mount point
	disk    string
	users   map[string]int
	cgroups []hostCgroup

	pid  int           // of its PID 1, seen from outside; 0: it is down
	init *os.Process   // the same
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
	bootTime = 3 * time.Minute
	rootPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

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
	for name, places := range map[string][]string{ // Debian's names
		"util-linux":        {"/usr/bin/setpriv", "/bin/setpriv"},
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
