package claude

import (
	"testing"

	"example.com/AutoAgentProject/core/runner"
	"example.com/AutoAgentProject/core/testkit"
)

// TestRealProgram runs the suite with the real program and no walls.
func TestRealProgram(t *testing.T) {
	program := realProgram(t)
	testkit.RunnerSuite(t, func(t *testing.T, _ string) runner.Runner {
		return New(Config{Program: program, Launcher: plain{}, Price: price})
	})
}
