// Command AutoAgentProject runs bounded missions of coding agents that stop for certain.
package main

import (
	"os"

	"example.com/AutoAgentProject/cmd/internal/app"
	"example.com/AutoAgentProject/core/cell"
)

func main() {
	cell.ShimMain()
	os.Exit(app.Main(app.OSEnv()))
}
