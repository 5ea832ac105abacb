package systemdengine

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"example.com/AutoAgentProject/core/files"
	"example.com/AutoAgentProject/core/store"
)

// holding is the file that keeps which missions looked dead while nothing was done about it. It is gone after a boot.
func (e *Engine) holding() string {
	return filepath.Join(e.runtime(), "forge-autoagent", "looked-dead")
}

// held are the missions that looked dead the last time.
func (e *Engine) held() map[key]bool {
	b, err := files.Read(e.holding(), 1<<20)
	if err != nil {
		return nil
	}
	out := map[key]bool{}
	for line := range strings.Lines(string(b)) {
		id, root, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		out[key{store.Root(root), id}] = true
	}
	return out
}

func (e *Engine) remember(acts []act) {
	var b strings.Builder
	for _, a := range acts {
		if a.do == hold {
			fmt.Fprintf(&b, "%s %s\n", a.id, a.root)
		}
	}
	err := os.MkdirAll(filepath.Dir(e.holding()), 0o755)
	switch {
	case b.Len() == 0:
		err = files.Remove(e.holding())
	case err == nil:
		err = files.Replace(e.holding(), []byte(b.String()), 0o600)
	}
	if err != nil {
		e.log().Warn("note of what looks dead", "err", err)
	}
}
