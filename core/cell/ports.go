package cell

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// landlockPorts is the first version that can refuse connections by their port, landlockNetPort the kind of its rules.
const (
	landlockPorts   = 4
	landlockNetPort = 2 // LANDLOCK_RULE_NET_PORT
)

// ClosesPorts says whether this kernel can keep a cell from connecting to ports.
func ClosesPorts() bool { return landlockVersion() >= landlockPorts }

// Listening are the TCP ports from 1 on that somebody listens at on this machine, on whatever address, each once.
func Listening() ([]uint16, error) {
	var ports []uint16
	for _, name := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		b, err := os.ReadFile(name)
		if errors.Is(err, os.ErrNotExist) { // a machine without IPv6
			continue
		}
		if err != nil {
			return nil, err
		}
		ports = append(ports, listening(string(b))...)
	}
	slices.Sort(ports)
	return slices.Compact(ports), nil
}

// listening reads a table of the kernel's: a heading, then in each line number, local address:port and remote one in hex, state.
func listening(table string) (ports []uint16) {
	const listen = "0A"
	for line := range strings.Lines(table) {
		f := strings.Fields(line)
		if len(f) < 4 || f[3] != listen {
			continue
		}
		_, hex, _ := strings.Cut(f[1], ":")
		if n, err := strconv.ParseUint(hex, 16, 16); err == nil && n > 0 {
			ports = append(ports, uint16(n))
		}
	}
	return ports
}

// landlockConnect lets this thread connect by TCP to every port but the closed ones. Landlock knows only what is allowed, so
// there is a rule for each of the others: some 50 ms. It is a ruleset of its own, on top of the other one.
func landlockConnect(closed []uint16) (bool, error) {
	if len(closed) == 0 || !ClosesPorts() {
		return false, nil
	}
	attr := unix.LandlockRulesetAttr{Handled_access_net: unix.LANDLOCK_ACCESS_NET_CONNECT_TCP}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if errno != 0 {
		return false, os.NewSyscallError("landlock_create_ruleset", errno)
	}
	defer unix.Close(int(fd))
	rule := struct{ access, port uint64 }{access: unix.LANDLOCK_ACCESS_NET_CONNECT_TCP}
	for ; rule.port < 1<<16; rule.port++ {
		if slices.Contains(closed, uint16(rule.port)) {
			continue
		}
		if _, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, fd, landlockNetPort, uintptr(unsafe.Pointer(&rule)), 0, 0, 0); errno != 0 {
			return false, fmt.Errorf("landlock port %d: %w", rule.port, os.NewSyscallError("landlock_add_rule", errno))
		}
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0); errno != 0 {
		return false, os.NewSyscallError("landlock_restrict_self", errno)
	}
	return true, nil
}
