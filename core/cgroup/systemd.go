package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

func systemdRules() bool {
	_, err := os.Stat("/run/systemd/system")
	return err == nil
}

// delegated says whether groups may be made below dir where systemd rules: it takes back what it did not give away. The
// system's manager marks what it gave away; a user's manager does so only in new versions, so there Hold has to do.
func delegated(dir, mount string) error {
	unit := ""
	for ; dir != mount && dir != "/"; dir = filepath.Dir(dir) {
		name := filepath.Base(dir)
		switch filepath.Ext(name) {
		case ".service", ".scope", ".slice":
		default:
			continue
		}
		if unit != "" {
			if strings.HasPrefix(name, "user@") {
				return nil
			}
			continue
		}
		unit = name
		for _, attr := range []string{"user.delegate", "trusted.delegate"} {
			value := make([]byte, 8)
			if n, err := unix.Getxattr(dir, attr, value); err == nil && string(value[:n]) == "1" {
				return nil
			}
		}
	}
	if unit == "" {
		return errors.New("systemd lets nobody make cgroups where this process is")
	}
	return fmt.Errorf("systemd lets nobody make cgroups in %s; %s starts a program where it may", unit, delegatingCommand())
}

func delegatingCommand() string {
	if os.Geteuid() == 0 {
		return "systemd-run --scope -p Delegate=yes"
	}
	return "systemd-run --user --scope -p Delegate=yes"
}
