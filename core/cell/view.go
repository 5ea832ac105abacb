package cell

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"example.com/AutoAgentProject/core/usererr"
)

// insideID is the user and group of a program whose starter is root; any other starter keeps its own.
const insideID = 1000

// mount is one thing that is seen inside.
type mount struct {
	how    string // the option of bwrap
	from   string // its first argument; empty: it has none
	inside string
}

// view is what a cell sees, as bwrap is told.
type view struct {
	args  []string
	files []*os.File // passed to bwrap as firstFreeFD and up
	write []string   // paths inside that the program may write below
}

// newView turns a Spec into the options of bwrap: an allow-list on an empty, read-only root.
func newView(s Spec, own *fileSet) (*view, error) {
	uid, gid := os.Geteuid(), os.Getegid()
	if uid == 0 {
		uid, gid = insideID, insideID
	}
	v := &view{args: []string{
		"--unshare-user", "--uid", fmt.Sprint(uid), "--gid", fmt.Sprint(gid),
		"--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try", "--hostname", "cell",
		"--die-with-parent", "--new-session", "--cap-drop", "ALL",
	}}
	if s.Forward != nil && (!s.NoNetwork || s.Forward.Port == 0 || s.Forward.Dial == nil) {
		return nil, errors.New("a way out of a cell needs a port, somebody who connects, and no network")
	}
	if s.NoNetwork {
		v.args = append(v.args, "--unshare-net")
	}
	mounts := append(systemMounts(), v.etcMounts(own)...)
	for name, content := range accountFiles(uid, gid) {
		f, err := own.memory(filepath.Base(name), content)
		if err != nil {
			return nil, err
		}
		mounts = append(mounts, v.copied(f, name))
	}
	named, err := namedMounts(s)
	if err != nil {
		return nil, err
	}
	mounts = append(mounts, named...)
	// Folders before what is mounted in them.
	slices.SortStableFunc(mounts, func(a, b mount) int { return cmp.Compare(a.inside, b.inside) })
	for _, m := range mounts {
		v.args = append(v.args, m.how)
		if m.from != "" {
			v.args = append(v.args, m.from)
		}
		v.args = append(v.args, m.inside)
		if m.how == "--bind" || m.how == "--tmpfs" {
			v.write = append(v.write, m.inside)
		}
	}
	// As uid 0 outside, much of /proc would be writable by its owner bits.
	v.args = append(v.args, "--remount-ro", "/proc", "--remount-ro", "/dev", "--remount-ro", "/")
	if s.trials != nil {
		v.write = slices.DeleteFunc(v.write, func(p string) bool { return p == landlockedFolder })
	}
	return v, nil
}

// systemMounts are the programs of the host and the usual empty places.
func systemMounts() []mount {
	m := []mount{
		{"--proc", "", "/proc"}, {"--dev", "", "/dev"}, {"--tmpfs", "", "/dev/shm"},
		{"--tmpfs", "", "/var/tmp"}, {"--dir", "", "/etc"}, {"--dir", "", "/run"}, {"--dir", "", "/root"},
	}
	for _, dir := range []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix"} {
		st, err := os.Lstat(dir)
		switch {
		case err != nil:
		case st.Mode()&os.ModeSymlink != 0:
			if target, err := os.Readlink(dir); err == nil {
				m = append(m, mount{"--symlink", target, dir})
			}
		case st.IsDir():
			m = append(m, mount{"--ro-bind", dir, dir})
		}
	}
	return m
}

// etcPatterns are the entries of /etc that builds and tools need. The whole folder is not shown: for a starter that is
// root, owner bits would make every secret in it readable.
func etcPatterns() []string {
	return []string{
		"alternatives", "bash.bashrc", "ca-certificates*", "crypto-policies", "debian_version", "fonts", "gai.conf",
		"gnutls", "host.conf", "java*", "ld.so.*", "localtime", "locale*", "login.defs", "mime.types", "nsswitch.conf",
		"os-release", "perl", "php*", "profile*", "protocols", "python3*", "redhat-release", "resolv.conf", "services",
		"shells", "terminfo", "timezone", "xdg",
		"ssl/certs", "ssl/openssl.cnf", "ssl/cert.pem", "ssl/ca-bundle.pem",
		"pki/ca-trust/extracted", "pki/java", "pki/tls/certs", "pki/tls/cert.pem", "pki/tls/openssl.cnf",
	}
}

func (v *view) etcMounts(own *fileSet) []mount {
	var m []mount
	for _, pattern := range etcPatterns() {
		names, _ := filepath.Glob("/etc/" + pattern) // the patterns are well formed
		for _, name := range names {
			target, err := filepath.EvalSymlinks(name)
			switch {
			case err != nil: // a link to nowhere
			case target != name && strings.HasPrefix(target, "/usr/"):
				m = append(m, mount{"--symlink", target, name}) // the name of a time zone is read from the link
			case name == "/etc/resolv.conf" || isDir(target):
				m = append(m, mount{"--ro-bind", target, name})
			default:
				if f, err := own.open(target, os.O_RDONLY); err == nil {
					m = append(m, v.copied(f, name)) // cheaper than a mount for each
				}
			}
		}
	}
	return m
}

// copied puts the content of f into the file inside.
func (v *view) copied(f *os.File, inside string) mount {
	v.files = append(v.files, f)
	return mount{"--file", fmt.Sprint(firstFreeFD + len(v.files) - 1), inside}
}

func isDir(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.IsDir()
}

// accountFiles are written for the cell: the program finds its own user and host, and not those of the machine.
func accountFiles(uid, gid int) map[string][]byte {
	hosts, _ := os.ReadFile("/etc/hosts") // none: localhost below is enough
	return map[string][]byte{
		"/etc/passwd": fmt.Appendf(nil, "root:x:0:0:root:/root:/bin/sh\nagent:x:%d:%d:agent:%s:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n", uid, gid, InsideHome),
		"/etc/group":  fmt.Appendf(nil, "root:x:0:\nagent:x:%d:\nnogroup:x:65534:\n", gid),
		"/etc/hosts":  fmt.Appendf(hosts, "\n127.0.0.1 localhost cell\n::1 localhost cell\n"),
	}
}

// namedMounts are home, tmp and what the Spec names, checked.
func namedMounts(s Spec) ([]mount, error) {
	m := []mount{{"--tmpfs", "", InsideHome}, {"--tmpfs", "", InsideTmp}}
	for i, host := range []string{s.Home, s.Tmp} {
		if host != "" {
			if err := checkHost(host); err != nil {
				return nil, err
			}
			m[i] = mount{"--bind", host, m[i].inside}
		}
	}
	var binds []Bind
	for _, p := range s.Writable {
		binds = append(binds, Bind{Host: p, Inside: p, Write: true})
	}
	for _, p := range s.ReadOnly {
		binds = append(binds, Bind{Host: p, Inside: p})
	}
	binds = append(binds, s.Binds...)
	seen := map[string]Bind{}
	for _, b := range binds {
		if err := checkHost(b.Host); err != nil {
			return nil, err
		}
		if err := checkInside(b.Inside); err != nil {
			return nil, err
		}
		if before, ok := seen[b.Inside]; ok {
			if before == b {
				continue
			}
			return nil, usererr.New(usererr.Usage, "", "%s is named twice, in different ways, for one cell", b.Inside)
		}
		seen[b.Inside] = b
		how := "--ro-bind"
		if b.Write {
			how = "--bind"
		}
		m = append(m, mount{how, b.Host, b.Inside})
	}
	return m, checkLinks(binds)
}

func checkHost(path string) error {
	if !filepath.IsAbs(path) || filepath.Clean(path) != path {
		return usererr.New(usererr.Usage, "", "%q is no absolute, clean path for a cell", path)
	}
	_, err := os.Stat(path)
	return err
}

func checkInside(path string) error {
	if !filepath.IsAbs(path) || filepath.Clean(path) != path {
		return usererr.New(usererr.Usage, "", "%q is no absolute, clean path for a cell", path)
	}
	for _, p := range []string{"/proc", "/dev", "/sys"} {
		if path == "/" || path == p || below(path, p) {
			return usererr.New(usererr.Usage, "", "%s cannot be shown in a cell", path)
		}
	}
	return nil
}

// checkLinks refuses a path that lies in a writable folder but leads out of it through a link: whoever wrote the folder
// would choose what is seen.
func checkLinks(binds []Bind) error {
	for _, w := range binds {
		if !w.Write {
			continue
		}
		root, err := filepath.EvalSymlinks(w.Host)
		if err != nil {
			return err
		}
		for _, b := range binds {
			for _, in := range []struct{ path, folder string }{{b.Host, w.Host}, {b.Inside, w.Inside}} {
				if !below(in.path, in.folder) {
					continue
				}
				if err := noLinks(root, strings.TrimPrefix(in.path, in.folder+"/")); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// noLinks refuses a path below root with a link on it. What is not there yet will be a folder or file of ours.
func noLinks(root, path string) error {
	at := root
	for part := range strings.SplitSeq(path, "/") {
		at = filepath.Join(at, part)
		st, err := os.Lstat(at)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if st.Mode()&fs.ModeSymlink != 0 {
			return usererr.New(usererr.Usage, "remove the link", "%s is a symbolic link in a folder that an agent writes", at)
		}
	}
	return nil
}

func below(path, folder string) bool { return strings.HasPrefix(path, folder+"/") }
