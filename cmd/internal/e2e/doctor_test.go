package e2e

import (
	"encoding/json"
	"strings"
	"testing"

	"example.com/AutoAgentProject/core/preflight"
)

// TestSystemdDoctor: a person of a machine with systemd hears of its manager, and without linger of that; and start says
// the same of a disk that is full.
func TestSystemdDoctor(t *testing.T) {
	t.Parallel()
	p := newPerson(t, works("none"))
	doctor := func(want int, args ...string) map[string]preflight.Finding {
		t.Helper()
		code, out := p.do(append([]string{"doctor", "--json"}, args...)...)
		if code != want {
			t.Errorf("doctor: %d, want %d\n%s", code, want, out)
		}
		var list []preflight.Finding
		if err := json.Unmarshal([]byte(out), &list); err != nil {
			t.Fatalf("doctor --json: %v\n%s", err, out)
		}
		by := map[string]preflight.Finding{}
		for _, f := range list {
			by[f.Name] = f
		}
		return by
	}
	got := doctor(0)
	if f := got["systemd"]; f.State != preflight.OK || !strings.Contains(f.Text, "your user manager can tick missions, version 2") {
		t.Errorf("systemd: %+v", f)
	}
	if f := got["linger"]; f.State != preflight.OK {
		t.Errorf("linger: %+v", f)
	}
	if f := got["login"]; f.State != preflight.OK || strings.Contains(f.Text, "example-key") {
		t.Errorf("login: %+v", f)
	}

	p.root("rm", "/var/lib/systemd/linger/alice")
	if f := doctor(0)["linger"]; f.State != preflight.Warn || !strings.Contains(f.Remedy, "loginctl enable-linger alice") {
		t.Errorf("without linger: %+v", f)
	}
	p.root("touch", "/var/lib/systemd/linger/alice")

	// Disks that are nearly full, of bytes and of files.
	for size, want := range map[string]string{"size=100m": "100 MiB are free for the root, that is too little", "size=4g,nr_inodes=50": "more files can be made for the root"} {
		p.root("mkdir", "-p", "/small")
		p.root("mount", "-t", "tmpfs", "-o", size+",mode=1777", "none", "/small")
		f := doctor(4, "--root", "/small/root")["disk"]
		if f.State != preflight.Fail || !strings.Contains(f.Text, want) {
			t.Errorf("%s: %+v", size, f)
		}
		code, out := p.do("start", "my-site", "Work", "--budget", "5usd", "--root", "/small/root")
		if code != 4 || !strings.Contains(out, "autoagent: error: "+f.Text+"\nautoagent: hint: "+f.Remedy+"\n") {
			t.Errorf("%s: start: %d\n%s", size, code, out)
		}
		if left := p.root("find", "/small", "-mindepth", "1"); left != "" {
			t.Errorf("%s: left behind: %s", size, left)
		}
		p.root("umount", "/small")
	}
	p.root("mount", "-t", "tmpfs", "-o", "size=1g,mode=1777", "none", "/small")
	if code, out := p.do("start", "my-site", "Work", "--budget", "5usd", "--root", "/small/root", "--dry-run"); code != 0 || !strings.Contains(out, "  warning  only 1024 MiB are free for the root; free some space") {
		t.Errorf("a disk that is low: %d\n%s", code, out)
	}
	p.root("umount", "/small")

	// A root that is another's, also where it could be written.
	p.root("mkdir", "-m", "777", "/srv/roots")
	if f := doctor(4, "--root", "/srv/roots")["root"]; f.State != preflight.Fail || f.Text != "/srv/roots belongs to user 0" {
		t.Errorf("another's root: %+v", f)
	}
}

// root runs a program as the host's root, which must succeed.
func (p *person) root(argv ...string) string {
	p.t.Helper()
	out, exit := p.host.Run(p.t.Context(), "", argv...)
	if exit != 0 {
		p.t.Fatalf("%v: %d %s", argv, exit, out)
	}
	return strings.TrimSpace(out)
}
