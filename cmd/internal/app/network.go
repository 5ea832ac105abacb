package app

import (
	"example.com/AutoAgentProject/core/cell"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/usererr"
)

// network reads --network. Without one, a run must be led to its model by a port of this machine: its gateway's, or that of
// an upstream here.
func network(said string, m mission.Mission) (string, error) {
	switch said {
	case "", "open":
		return "", nil
	case mission.NetworkHost:
		return mission.NetworkHost, nil
	case mission.NetworkNone, "proxy-only":
		if _, _, err := mission.LoopbackPort(m.Upstream); err != nil && m.Gateway == mission.GatewayOff {
			return "", usererr.Wrap(err, usererr.Usage, "leave --gateway off out", "--network %s needs a gateway on this machine", said)
		}
		return mission.NetworkNone, nil
	}
	return "", usererr.New(usererr.Usage, "write --network open, host or none", "there is no network %q", said)
}

func networkText(network string) string {
	switch {
	case network == mission.NetworkNone:
		return "none: agents reach their model and nothing else, verify commands reach nothing"
	case network == mission.NetworkHost:
		return "host: agents and verify commands reach what this machine reaches, its own services included"
	case !cell.ClosesPorts():
		return "open: agents and verify commands reach what this machine reaches, its own services too, because its kernel is older than 6.7"
	}
	return "open: agents and verify commands reach what this machine reaches, but for its own services"
}
