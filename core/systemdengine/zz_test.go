package systemdengine_test

import (
	"testing"
	"time"

	"example.com/AutoAgentProject/core/units"
)

func TestZZ(t *testing.T) {
	h := host(t)
	for range 5 {
		at := time.Now()
		inside(t, h, units.User, "TestBus")
		if time.Since(at) > 20*time.Second {
			for _, e := range h.Journal("", "--lines=90", "--output-fields=MESSAGE,_SYSTEMD_UNIT,_PID") {
				t.Log(e["__REALTIME_TIMESTAMP"], e["_SYSTEMD_UNIT"], e["MESSAGE"])
			}
			break
		}
	}
}
