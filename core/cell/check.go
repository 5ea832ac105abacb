package cell

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"example.com/AutoAgentProject/core/usererr"
)

// Report is what Check found on this machine.
type Report struct {
	Bwrap   string   // path of bwrap
	Version string   // what bwrap calls itself
	Walls   Walls    // what held around a program
	Bounds  []string // what bounds a cell, a line each: "processes: 4096 (resource limit)"
}

// Check starts a cell and proves that its walls hold. An error that is a *usererr.Error has the remedy as its hint.
func Check(ctx context.Context) (Report, error) {
	var r Report
	var err error
	if r.Bwrap, err = findBwrap(); err != nil {
		return r, err
	}
	version, err := exec.CommandContext(ctx, r.Bwrap, "--version").Output()
	if err != nil {
		return r, usererr.Wrap(err, usererr.Environment, "reinstall bubblewrap", "%s does not run", r.Bwrap)
	}
	r.Version = strings.TrimSpace(string(version))
	attempts, walls, err := try(ctx, Spec{trials: wallTrials()})
	if err != nil {
		return r, err
	}
	r.Walls = walls
	for _, a := range attempts {
		if !a.Held && !(a.Name == landlockTrial && walls.Landlock == 0) {
			return r, usererr.New(usererr.Environment, "", "a wall of the cell does not hold: %s: %s", a.Name, a.Detail)
		}
	}
	r.Bounds = Bounds(Limits{})
	return r, nil
}

func findBwrap() (string, error) {
	path, err := exec.LookPath("bwrap")
	if err != nil {
		return "", usererr.Wrap(err, usererr.Environment, installHint(), "bwrap is not installed")
	}
	return path, nil
}

func installHint() string {
	for _, i := range []struct{ tool, command string }{
		{"apt-get", "apt-get install bubblewrap"}, {"dnf", "dnf install bubblewrap"}, {"pacman", "pacman -S bubblewrap"},
		{"zypper", "zypper install bubblewrap"}, {"apk", "apk add bubblewrap"},
	} {
		if _, err := exec.LookPath(i.tool); err == nil {
			return i.command
		}
	}
	return "install the package bubblewrap"
}

// explain turns a start that did not come up, and what bwrap printed about it, into an error with a remedy.
func explain(err error, printed string) error {
	if !errors.Is(err, errNoAnswer) {
		return err
	}
	printed = strings.TrimSpace(printed)
	if printed == "" {
		return fmt.Errorf("%w: its shim was not heard (main must call ShimMain first)", err)
	}
	cause := errors.New(printed)
	for _, sign := range []string{"new namespace", "uid map", "gid map", "unshare", "RTM_NEWADDR", "user namespace", "max_user_namespaces"} {
		if strings.Contains(printed, sign) {
			return usererr.Wrap(cause, usererr.Environment, namespaceHint(os.ReadFile), "this machine does not let bwrap make user namespaces")
		}
	}
	if strings.Contains(printed, "mount proc") {
		return usererr.Wrap(cause, usererr.Environment, "in a container, start that with an unmasked /proc (docker: --security-opt systempaths=unconfined)", "bwrap cannot mount /proc here")
	}
	return fmt.Errorf("%w: %s", err, printed)
}

// namespaceHint looks which of the known switches is off.
func namespaceHint(readFile func(string) ([]byte, error)) string {
	for _, s := range []struct{ file, bad, hint string }{
		{"kernel/apparmor_restrict_unprivileged_userns", "1", "give bwrap an AppArmor profile that allows userns, or: sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"},
		{"kernel/unprivileged_userns_clone", "0", "sysctl -w kernel.unprivileged_userns_clone=1"},
		{"user/max_user_namespaces", "0", "sysctl -w user.max_user_namespaces=15000"},
	} {
		if b, err := readFile("/proc/sys/" + s.file); err == nil && strings.TrimSpace(string(b)) == s.bad {
			return s.hint
		}
	}
	return "allow user namespaces: in a unit, no RestrictNamespaces=; in a container, a seccomp profile that lets unshare pass"
}
