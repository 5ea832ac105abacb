package tick

import (
	"errors"
	"io/fs"
	"path/filepath"
	"time"

	"example.com/AutoAgentProject/core/files"
	"example.com/AutoAgentProject/core/mission"
)

// Hold is what an agent has in hand and how far it is: written before each step that must not happen twice, so that
// the next tick after a death goes on behind it.
type Hold struct {
	Version  int    `json:"version"`
	Key      string `json:"key"`                // what it is: a handoff's file name, or plan-<round>
	Base     string `json:"base,omitempty"`     // commit the clone was prepared with
	Prepared bool   `json:"prepared,omitempty"` // the clone is ready
	Run      string `json:"run,omitempty"`      // the latest run; its result, once there, is in runs/<run>/result.json
	Commit   string `json:"commit,omitempty"`   // the agent's commit, in the mission's repository
	Runs     int    `json:"runs,omitempty"`     // runs that were tried for it
	Why      string `json:"why,omitempty"`      // what was wrong with the last one
	Waits    int    `json:"waits,omitempty"`    // waits in a row without a time given
	Deaths   int    `json:"deaths,omitempty"`   // ticks that died in the middle of a run
	Alone    bool   `json:"alone,omitempty"`    // its share of the money did not cover a request: it gets all that is free

	Since time.Time `json:"since,omitzero"`  // the clone was ready: what changed in it later is the agent's work
	After string    `json:"after,omitempty"` // the run that failed before the next one, which is told of it
	Fault string    `json:"fault,omitempty"` // what was wrong with that
}

func (t *Tick) holdName() string { return filepath.Join("agents", t.Agent.Name, "hold.json") }

// Hold returns the hold of key: the one on disk if it is of this key, else a new one.
func (t *Tick) Hold(key string) (Hold, error) {
	h := Hold{Version: mission.Version, Key: key}
	var old Hold
	err := t.Store.Load(t.holdName(), &old)
	if errors.Is(err, fs.ErrNotExist) {
		return h, nil
	}
	if err != nil { // worth no halt: at worst a finished run is done again, and its spend is counted
		t.Log.Warn("hold.json cannot be read and is set aside", "err", err)
		_, err := files.SetAside(filepath.Join(t.Store.Dir(), t.holdName()), t.Now())
		return h, err
	}
	if old.Key == key {
		return old, nil
	}
	return h, nil
}

// Died notes that the tick of the hold's last run died before there was a result. That is no attempt at the work.
func (h *Hold) Died() {
	if h.Run != "" {
		h.Run, h.Runs, h.Deaths = "", max(h.Runs-1, 0), h.Deaths+1
	}
}

// Keep writes the hold.
func (t *Tick) Keep(h Hold) error { return t.Store.Save(t.holdName(), h) }

// Drop forgets the hold.
func (t *Tick) Drop() error { return files.Remove(filepath.Join(t.Store.Dir(), t.holdName())) }
