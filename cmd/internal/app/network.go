package app

import (
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/usererr"
)

// network reads --network. Without one, a run must be led to its model by a port of this machine: its gateway's, or that of
// an upstream here.
func network(said string, m mission.Mission) (string, error) {
	switch said {
	case "", "open":
		return "", nil
	case mission.NetworkNone, "proxy-only":
		if _, _, err := mission.LoopbackPort(m.Upstream); err != nil && m.Gateway == mission.GatewayOff {
			return "", usererr.Wrap(err, usererr.Usage, "leave --gateway off out", "--network %s needs a gateway on this machine", said)
		}
		return mission.NetworkNone, nil
	}
	return "", usererr.New(usererr.Usage, "write --network open or --network none", "there is no network %q", said)
}

func networkText(network string) string {
	if network == mission.NetworkNone {
		return "none: agents reach their model and nothing else, verify commands reach nothing"
	}
	return "open: agents and verify commands reach what this machine reaches, its own services included"
}
