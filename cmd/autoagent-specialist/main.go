// Command autoagent-specialist is one tick of one specialist of a mission.
package main

import (
	"os"

	"example.com/AutoAgentProject/cmd/internal/app"
	"example.com/AutoAgentProject/core/cell"
	"example.com/AutoAgentProject/core/mission"
)

func main() {
	cell.ShimMain()
	os.Exit(app.TickMain(mission.Specialist, app.OSEnv()))
}
