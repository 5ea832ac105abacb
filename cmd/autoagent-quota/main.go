// Command autoagent-quota is one tick of a mission's quota.
package main

import (
	"os"

	"example.com/AutoAgentProject/cmd/internal/app"
	"example.com/AutoAgentProject/core/cell"
	"example.com/AutoAgentProject/core/mission"
)

func main() {
	cell.ShimMain()
	os.Exit(app.TickMain(mission.Quota, app.OSEnv()))
}
