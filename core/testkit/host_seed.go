package testkit

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// masked are units that a systemd package starts by itself and that would act on the outer machine's kernel or devices,
// or wait for hardware that is not there.
const masked = `
console-getty.service getty.target getty-static.service dev-hugepages.mount kmod-static-nodes.service
proc-sys-fs-binfmt_misc.automount proc-sys-fs-binfmt_misc.mount sys-fs-fuse-connections.mount sys-kernel-config.mount
sys-kernel-debug.mount sys-kernel-tracing.mount systemd-ask-password-console.path systemd-ask-password-wall.path
systemd-binfmt.service systemd-firstboot.service systemd-hibernate-clear.service systemd-hwdb-update.service
systemd-journald-audit.socket systemd-modules-load.service systemd-networkd.service systemd-networkd.socket
systemd-network-generator.service systemd-oomd.service systemd-oomd.socket systemd-pcrphase.service
systemd-pcrphase-sysinit.service systemd-pstore.service systemd-random-seed.service systemd-remount-fs.service
systemd-repart.service systemd-resolved.service systemd-sysctl.service systemd-timesyncd.service
systemd-tmpfiles-setup-dev.service systemd-tmpfiles-setup-dev-early.service systemd-udevd.service
systemd-udevd-control.socket systemd-udevd-kernel.socket systemd-udev-settle.service systemd-udev-trigger.service
systemd-vconsole-setup.service`

// openProc ends the time in which /proc/sys is read-only: as long as something lies over a part of /proc, the kernel lets
// nobody mount a new one in a user namespace.
const openProc = `[Unit]
Description=Open /proc/sys
DefaultDependencies=no
Before=sysinit.target

[Service]
Type=oneshot
ExecStart=/bin/umount -l /proc/sys
`

// writeSeed writes the tables that host.sh reads, the files that are laid over the copy of /etc and into the empty /run,
// and, on a new disk, what a machine has before its first boot.
func (h *Host) writeSeed() error {
	binds, err := h.bindTable()
	if err != nil {
		return err
	}
	machine := make([]byte, 16)
	_, _ = rand.Read(machine)
	passwd, group, shadow := h.accounts()
	resolv, _ := os.ReadFile("/etc/resolv.conf") // inside, a link to the outer /run would lead nowhere
	seed := func(name string) string { return filepath.Join(h.dir, "seed", name) }
	unit := func(name string) string { return seed("run/systemd/system/" + name) }
	short := "host-" + h.name[len(h.name)-8:]
	files := map[string]string{
		filepath.Join(h.dir, "host.sh"):                    hostScript,
		filepath.Join(h.dir, "binds"):                      binds,
		filepath.Join(h.dir, "drop"):                       notInside,
		seed("etc/passwd"):                                 passwd,
		seed("etc/group"):                                  group,
		seed("etc/shadow"):                                 shadow,
		seed("etc/nsswitch.conf"):                          "passwd: files systemd\ngroup: files systemd\nshadow: files\nhosts: files dns\n",
		seed("etc/hostname"):                               short + "\n",
		seed("etc/hosts"):                                  "127.0.0.1 localhost " + short + "\n::1 localhost\n",
		seed("etc/resolv.conf"):                            string(resolv),
		unit("throwaway-proc.service"):                     openProc,
		seed("etc/environment"):                            "",
		seed("run/systemd/journald.conf.d/throwaway.conf"): "[Journal]\nAudit=no\nReadKMsg=no\nForwardToSyslog=no\nSystemMaxUse=64M\n",
	}
	links := map[string]string{
		seed("etc/tmpfiles.d/tmp.conf"):                     os.DevNull, // else what is bound into /tmp would be tidied away
		unit("default.target"):                              "/usr/lib/systemd/system/multi-user.target",
		unit("sysinit.target.wants/throwaway-proc.service"): "../throwaway-proc.service",
	}
	for _, name := range strings.Fields(masked) {
		links[unit(name)] = os.DevNull
	}
	// A generator makes units out of the outer machine's hardware, kernel command line or old init scripts.
	for _, dir := range []string{"/usr/lib", "/lib", "/usr/local/lib"} {
		have, _ := os.ReadDir(dir + "/systemd/system-generators")
		for _, g := range have {
			links[seed("run/systemd/system-generators/"+g.Name())] = os.DevNull
		}
	}
	for path, text := range files {
		err = errors.Join(err, os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644))
	}
	for path, to := range links {
		err = errors.Join(err, os.MkdirAll(filepath.Dir(path), 0o755), os.Symlink(to, path))
	}
	err = errors.Join(err, os.Mkdir(filepath.Join(h.dir, "root"), 0o755), os.MkdirAll(seed("run/systemd/user"), 0o755),
		h.writeDisk(hex.EncodeToString(machine), seed("etc/machine-id")))
	if err != nil {
		return err
	}
	return filepath.WalkDir(seed(""), func(path string, d fs.DirEntry, err error) error { // whatever the umask was
		switch {
		case err != nil || d.Type()&fs.ModeSymlink != 0:
			return err
		case d.IsDir():
			return os.Chmod(path, 0o755)
		case path == seed("etc/shadow"):
			return os.Chmod(path, 0o600)
		}
		return os.Chmod(path, 0o644)
	})
}

// bindTable checks the binds and writes them down, one a line.
func (h *Host) bindTable() (string, error) {
	var table strings.Builder
	for _, b := range h.o.Binds {
		host, err := filepath.EvalSymlinks(b.Host)
		inside := filepath.Clean(cmp.Or(b.Inside, b.Host))
		switch {
		case err != nil:
			return "", fmt.Errorf("bind: %w", err)
		case !filepath.IsAbs(host) || !filepath.IsAbs(inside) || strings.ContainsAny(host+inside, "\t\n\\"):
			return "", fmt.Errorf("bind %q to %q: both must be plain absolute paths", host, inside)
		}
		mode := "ro"
		if b.Write {
			mode = "rw"
		}
		fmt.Fprintf(&table, "%s\t%s\t%s\n", mode, host, inside)
	}
	return table.String(), nil
}

// accounts returns passwd, group and shadow: the outer machine's system accounts without a password, and the host's users.
func (h *Host) accounts() (passwd, group, shadow string) {
	var p, g, s strings.Builder
	system := func(file string, each func(line, name string)) {
		b, _ := os.ReadFile(file)
		for line := range strings.Lines(string(b)) {
			f := strings.Split(strings.TrimSpace(line), ":")
			if len(f) < 4 {
				continue
			}
			if id, err := strconv.Atoi(f[2]); err == nil && (id < 1000 || id >= 65534) {
				each(strings.TrimSpace(line)+"\n", f[0])
			}
		}
	}
	system("/etc/passwd", func(line, name string) {
		p.WriteString(line)
		s.WriteString(name + ":*:19000:0:99999:7:::\n")
	})
	system("/etc/group", func(line, name string) {
		g.WriteString(line[:strings.LastIndexByte(line, ':')+1] + "\n") // nobody of the outer machine is a member
	})
	for _, u := range h.o.Users {
		fmt.Fprintf(&p, "%s:x:%d:%d::/home/%s:/bin/sh\n", u, h.users[u], h.users[u], u)
		fmt.Fprintf(&g, "%s:x:%d:\n", u, h.users[u])
		fmt.Fprintf(&s, "%s:*:19000:0:99999:7:::\n", u)
	}
	return p.String(), g.String(), s.String()
}

// writeDisk makes what is not yet on the disk, and copies its machine id, newID on a new one, to copyID.
func (h *Host) writeDisk(newID, copyID string) error {
	var err error
	disk := func(name string) string { return filepath.Join(h.disk, name) }
	dir := func(name string, mode fs.FileMode) {
		switch e := os.Mkdir(disk(name), 0o700); {
		case e == nil:
			err = errors.Join(err, os.Chmod(disk(name), mode))
		case !errors.Is(e, fs.ErrExist):
			err = errors.Join(err, e)
		}
	}
	dir("", 0o700)
	for _, name := range []string{"etc", "etc/systemd", "etc/systemd/system", "etc/systemd/user", "home", "var", "var/cache", "var/lib",
		"var/lib/systemd", "var/lib/systemd/linger", "var/log", "var/log/journal", "var/spool"} {
		dir(name, 0o755)
	}
	dir("root", 0o700)
	dir("var/tmp", 0o777|fs.ModeSticky)
	for name, to := range map[string]string{"var/run": "/run", "var/lock": "/run/lock"} {
		if e := os.Symlink(to, disk(name)); e != nil && !errors.Is(e, fs.ErrExist) {
			err = errors.Join(err, e)
		}
	}
	for u, uid := range h.users {
		dir("home/"+u, 0o700)
		err = errors.Join(err, os.Chown(disk("home/"+u), uid, uid))
	}
	for _, u := range h.o.Linger {
		if _, ok := h.users[u]; !ok {
			return fmt.Errorf("there is no user %q to linger", u)
		}
		err = errors.Join(err, os.WriteFile(disk("var/lib/systemd/linger/"+u), nil, 0o644))
	}
	id, e := os.ReadFile(disk("machine-id"))
	if errors.Is(e, fs.ErrNotExist) {
		id = []byte(newID + "\n")
		e = os.WriteFile(disk("machine-id"), id, 0o444)
	}
	return errors.Join(err, e, os.WriteFile(copyID, id, 0o444))
}
