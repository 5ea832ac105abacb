package tick

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"

	"example.com/AutoAgentProject/core/files"
	"example.com/AutoAgentProject/core/handoff"
	"example.com/AutoAgentProject/core/mission"
)

// Note is what another agent wrote to this one.
type Note struct {
	ID      string `json:"id"`
	From    string `json:"from"`
	Message string `json:"message"`
	Step    string `json:"step,omitempty"` // for which it was shown; empty: not yet
}

// notesFile is the agent's notes.json: notes that it was not shown yet, or is being shown.
type notesFile struct {
	Version int    `json:"version"`
	Notes   []Note `json:"notes"`
}

// maxNotes is how many notes wait for an agent at most; the oldest go first. All of them stand in the events.
const maxNotes = 20

func (t *Tick) notesName() string { return filepath.Join("agents", t.Agent.Name, "notes.json") }

func (t *Tick) notes() (notesFile, error) {
	f := notesFile{Version: mission.Version}
	err := t.Store.Load(t.notesName(), &f)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return f, nil
	case err != nil: // worth no halt: they stand in the events
		t.Log.Warn("notes.json cannot be read and is set aside", "err", err)
		_, err = files.SetAside(filepath.Join(t.Store.Dir(), t.notesName()), t.Now())
		return notesFile{Version: mission.Version}, err
	}
	return f, nil
}

// FileNote keeps a note until the agent's next run is told. The same one (by its id) is kept once.
func (t *Tick) FileNote(e handoff.Envelope) error {
	f, err := t.notes()
	if err != nil {
		return err
	}
	n := Note{ID: e.Get("id"), From: e.Get("from"), Message: e.Get("message")}
	if slices.ContainsFunc(f.Notes, func(o Note) bool { return o.ID == n.ID }) {
		return nil
	}
	f.Notes = append(f.Notes, n)
	f.Notes = f.Notes[max(0, len(f.Notes)-maxNotes):]
	return t.Store.Save(t.notesName(), f)
}

// NotesFor returns the notes for a run of a step, or of a round of planning: those that came since the last one, and in a repeated
// run of the same the same ones again.
func (t *Tick) NotesFor(step string) ([]Note, error) {
	f, err := t.notes()
	if err != nil || len(f.Notes) == 0 {
		return nil, err
	}
	f.Notes = slices.DeleteFunc(f.Notes, func(n Note) bool { return n.Step != "" && n.Step != step })
	for i := range f.Notes {
		f.Notes[i].Step = step
	}
	return f.Notes, t.Store.Save(t.notesName(), f)
}
