// Command autoagent-manager is one tick of a mission's manager.
package main

import (
	"os"

	"example.com/AutoAgentProject/cmd/internal/app"
	"example.com/AutoAgentProject/core/cell"
	"example.com/AutoAgentProject/core/mission"
)

func main() {
	cell.ShimMain()
	os.Exit(app.TickMain(mission.Manager, app.OSEnv()))
}
