package supervisor_test

import (
	"log/slog"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/engine"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/store"
	"example.com/AutoAgentProject/core/supervisor"
	"example.com/AutoAgentProject/core/testkit"
)

func embedded(t *testing.T, root store.Root, command func(mission.Mission, mission.Agent) []string, every time.Duration) engine.Engine {
	s := &supervisor.Supervisor{Root: root, Command: command, Grace: 500 * time.Millisecond, Every: map[mission.Role]time.Duration{}, Log: slog.New(slog.DiscardHandler)}
	for _, r := range []mission.Role{mission.Manager, mission.Specialist, mission.Reporter, mission.Quota} {
		s.Every[r] = every
	}
	return s
}

func TestEngine(t *testing.T)     { testkit.EngineSuite(t, embedded) }
func TestForeground(t *testing.T) { testkit.ForegroundSuite(t, embedded) }
