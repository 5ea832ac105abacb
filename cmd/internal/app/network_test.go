package app

import (
	"testing"

	"example.com/AutoAgentProject/core/mission"
)

func TestNetwork(t *testing.T) {
	here, away := mission.Mission{Upstream: "http://127.0.0.1:4000"}, mission.Mission{Upstream: "https://gateway.example"}
	direct := away
	direct.Gateway = mission.GatewayOff
	for _, c := range []struct {
		said string
		m    mission.Mission
		want string
		bad  bool
	}{
		{"", away, "", false}, {"open", away, "", false}, {"host", away, "host", false}, {"none", away, "none", false}, {"proxy-only", here, "none", false},
		{"proxy-only", direct, "", true}, {"None", away, "", true}, {"all", away, "", true},
	} {
		if got, err := network(c.said, c.m); got != c.want || (err != nil) != c.bad {
			t.Errorf("network(%q) = %q, %v", c.said, got, err)
		}
	}
}
