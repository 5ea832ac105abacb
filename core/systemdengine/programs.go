package systemdengine

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"example.com/AutoAgentProject/core/units"
)

// lost are the programs of the mission's installed services that are not where these say: nothing of it can start.
func (e *Engine) lost(s set) []string {
	var out []string
	for _, name := range s.names() {
		if filepath.Ext(name) != ".service" {
			continue
		}
		text, err := e.unit(name)
		if err != nil {
			continue
		}
		program := units.Program(string(text))
		_, err = os.Stat(program)
		if program != "" && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR)) && !slices.Contains(out, program) {
			out = append(out, program)
		}
	}
	return out
}
