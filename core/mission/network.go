package mission

import (
	"fmt"
	"net"
	"net/url"
	"strconv"
)

// NetworkNone is a network of the cells' own: nothing but the agent program's way to its model leads out of it.
const NetworkNone = "none"

// NetworkHost is the machine's network with its own services in it. Without it cells reach what is elsewhere only, as far as the
// kernel can tell them apart.
const NetworkHost = "host"

// PortHere is the port of an address on this machine.
func PortHere(address string) (port uint16, here bool) {
	u, err := url.Parse(address)
	if err != nil {
		return 0, false
	}
	if ip := net.ParseIP(u.Hostname()); u.Hostname() != "localhost" && !ip.IsLoopback() {
		return 0, false
	}
	n, err := strconv.ParseUint(u.Port(), 10, 16)
	return uint16(n), err == nil
}

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
