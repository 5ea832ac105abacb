package testkit

import (
	"context"
	"testing"
	"time"
)

func TestHostTry(t *testing.T) {
	start := time.Now()
	h := NewHost(t, HostOptions{Users: []string{"ann", "bob"}, Linger: []string{"ann"}})
	t.Log("up", time.Since(start))
	t.Log(h.Systemctl("", "is-system-running"))
	t.Log(h.Systemctl("", "--failed"))
	t.Log(h.Systemctl("ann", "is-system-running"))
	t.Log(h.Systemctl("", "list-units"))
	for _, p := range h.Processes() {
		t.Log(p)
	}
	t.Log(h.CgroupRoot(), h.Bounds("memory"))
	for _, c := range []string{"id; env; cat /proc/self/cgroup; mount; ls -la / /dev /run; cat /etc/passwd; df -h"} {
		out, exit := h.Run(context.Background(), "ann", "sh", "-c", c)
		t.Log(exit, out)
	}
	out, exit := h.Run(context.Background(), "", "systemd-analyze", "blame")
	t.Log(exit, out)
	out, exit = h.Run(context.Background(), "", "journalctl","-p5", "--no-pager")
	t.Log(exit, out)
}
