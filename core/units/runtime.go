package units

import (
	"os"
	"path/filepath"
	"strconv"

	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/store"
)

// Engine is what mission.json calls the engine whose missions have units.
const Engine = "systemd"

// StopSocket is the datagram socket that starts a mission's stop. runtime is /run for the system manager and
// $XDG_RUNTIME_DIR for a user's.
func StopSocket(runtime, id string) string {
	return filepath.Join(runtime, "forge-autoagent", id+".stop")
}

// WakeSocket is the datagram socket that starts a tick of an agent. It lies beside the stop's: in the system manager systemd
// makes and removes it as root, which it must not do in a folder whose owner can put links there. Neither ids nor names of
// agents hold a dot.
func WakeSocket(runtime, id, agent string) string {
	return filepath.Join(runtime, "forge-autoagent", id+"."+agent+".wake")
}

// ManagerOf is the manager that a mission's record names.
func ManagerOf(m mission.Mission) Manager {
	if m.Manager == "" {
		return User
	}
	return Manager(m.Manager)
}

// Runtime is the folder in which a manager keeps its sockets: of whoever runs this where it is a user's.
func Runtime(manager Manager) string {
	if manager == System {
		return "/run"
	}
	if dir := os.Getenv("XDG_RUNTIME_DIR"); dir != "" {
		return dir
	}
	return "/run/user/" + strconv.Itoa(os.Getuid())
}

// Wakes is the socket that wakes an agent of a mission, whichever engine ticks it.
func Wakes(st *store.Store, m mission.Mission, agent string) string {
	if m.Engine == Engine {
		return WakeSocket(Runtime(ManagerOf(m)), st.ID(), agent)
	}
	return st.Socket(agent)
}
