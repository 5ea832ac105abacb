package mission

import (
	"fmt"
	"net"
	"net/url"
	"strconv"
)

// NetworkNone is a network of the cells' own: nothing but the agent program's way to its model leads out of it.
const NetworkNone = "none"

// LoopbackPort takes the address of a model apart that a run without a network can be led to: plain HTTP on this machine,
// since the same port is listened on inside.
func LoopbackPort(model string) (address string, port uint16, err error) {
	u, err := url.Parse(model)
	if err != nil || u.Scheme != "http" {
		return "", 0, fmt.Errorf("%q is no http address on this machine", model)
	}
	if ip := net.ParseIP(u.Hostname()); u.Hostname() != "localhost" && !ip.IsLoopback() {
		return "", 0, fmt.Errorf("%q is not on this machine", model)
	}
	n, err := strconv.ParseUint(u.Port(), 10, 16)
	if err != nil || n < 1024 {
		return "", 0, fmt.Errorf("%q has no port from 1024 on", model)
	}
	return u.Host, uint16(n), nil
}
