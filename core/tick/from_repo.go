package tick

import (
	"fmt"
	"path/filepath"

	"example.com/AutoAgentProject/core/runner"
	"example.com/AutoAgentProject/core/store"
)

// taken is what start took of the repository for the agent program.
func (t *Tick) taken() (taken runner.Taken, err error) {
	if len(t.Mission.FromRepo) == 0 {
		return taken, nil
	}
	if err := t.Store.Load(store.FromRepoDocument, &taken); err != nil {
		return taken, fmt.Errorf("what was taken of the repository: %w", err)
	}
	return taken, nil
}

// fixed are the files of it that a run in dir sees in place of what lies there.
func (t *Tick) fixed(taken runner.Taken, dir string) []runner.Fixed {
	var out []runner.Fixed
	for _, name := range taken.Fixed {
		out = append(out, runner.Fixed{Lies: filepath.Join(t.Store.FromRepo(), name), Seen: filepath.Join(dir, name)})
	}
	return out
}
