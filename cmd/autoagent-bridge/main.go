// Command autoagent-bridge is the read-only dashboard.
package main

import (
	"os"

	"example.com/AutoAgentProject/cmd/internal/app"
)

func main() { os.Exit(app.BridgeMain(app.OSEnv())) }
