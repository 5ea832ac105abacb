package testkit

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// Boot starts the host on its disk and returns when everything that starts at boot has started.
func (h *Host) Boot() {
	h.t.Helper()
	if h.pid != 0 {
		h.t.Fatal("host: it is up")
	}
	trees, err := hierarchies(h.o.NoControllers)
	Need(h.t, err == nil, fmt.Sprintf("CGROUPS FOR A HOST OF ITS OWN (%v)", err))
	h.cgroups, err = makeCgroups(trees, h.name)
	Need(h.t, err == nil, fmt.Sprintf("CGROUPS FOR A HOST OF ITS OWN (%v)", err))
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
	err = h.startInit()
	Need(h.t, err == nil, fmt.Sprintf("NAMESPACES FOR A HOST OF ITS OWN (%v)", err))
	h.awaitReady(notify)

	for _, u := range h.o.Linger {
		h.awaitManager(u)
	}
}

// awaitManager waits for the boot of a user's manager, which the host's own boot only asks for.
func (h *Host) awaitManager(user string) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), bootTime)
	defer cancel()
	unit := fmt.Sprintf("user@%d.service", h.UID(user))
	if out, exit := h.Run(ctx, "", "systemctl", "start", unit); exit != 0 {
		for _, e := range h.Journal("", "-u", unit) {
			out += e["MESSAGE"] + "\n"
		}
		h.t.Fatalf("host: exit %d: %s", exit, out)
	}
	if out, exit := h.Run(ctx, user, "systemctl", "--user", "is-system-running", "--wait"); exit != 0 && out != "degraded\n" {
		h.t.Fatalf("host: the manager of %s: exit %d: %s\n%s", user, exit, out, h.Systemctl(user, "list-jobs"))
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
	cmd.Env = []string{"PATH=" + rootPath}
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
	h.pid, h.init, h.done = cmd.Process.Pid, cmd.Process, done
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
		Need(h.t, false, "NAMESPACES AND MOUNTS FOR A HOST OF ITS OWN (its start ended: "+h.bootLog()+")")
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
	if h.pid != 0 {
		if err := h.init.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			h.t.Errorf("host: kill: %v", err)
		}
		<-h.done
	}
	h.down()
}

// Shutdown ends the host in order: everything in it gets its time to stop.
func (h *Host) Shutdown() {
	h.t.Helper()
	h.Systemctl("", "poweroff")
	select {
	case <-h.done:
		h.down()
	case <-time.After(5 * time.Minute):
		h.t.Fatal("host: no end of the shutdown\n" + h.Systemctl("", "list-jobs"))
	}
}

func (h *Host) down() {
	h.t.Helper()
	h.pid = 0
	h.removeCgroups()
}
