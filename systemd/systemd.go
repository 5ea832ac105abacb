// Package systemd holds the templates of the units: of one mission, and of the host. docs/units.md explains their lines,
// core/units fills them in.
package systemd

import (
	"embed"
	"io/fs"
)

//go:embed *.service *.timer *.socket *.target *.slice
var files embed.FS

// Files are the templates (text/template): tick.{service,timer,socket} of every agent, stop.{service,socket},
// mission.target, mission.slice and guard.slice of a mission; reconcile.{service,timer}, poller.service and
// bridge.{socket,service} of the host.
func Files() fs.FS { return files }
