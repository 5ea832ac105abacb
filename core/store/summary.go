package store

import (
	"errors"
	"io/fs"
	"time"

	"example.com/AutoAgentProject/core/files"
	"example.com/AutoAgentProject/core/mission"
)

// Summary is notify/summary.json: a message for which the reporter wants one sentence of a model, and the sentence, by the
// manager, who has a login and cells. It is an extra: what cannot be read is wanted anew or done without.
type Summary struct {
	Version  int       `json:"version"`
	Key      string    `json:"key"`  // names the message
	Text     string    `json:"text"` // what it says
	At       time.Time `json:"at"`
	Done     bool      `json:"done"`
	Sentence string    `json:"sentence,omitempty"` // empty: there is none
}

const summaryName = "notify/summary.json"

// SummaryWait is how long a message waits for its sentence.
const SummaryWait = 2 * time.Minute

// Summary returns the latest one; empty if there is none.
func (s *Store) Summary() (Summary, error) {
	var x Summary
	err := s.load(summaryName, &x)
	if errors.Is(err, fs.ErrNotExist) || err != nil && !files.Passing(err) {
		return Summary{}, nil
	}
	return x, err
}

// SetSummary keeps it.
func (s *Store) SetSummary(x Summary) error {
	x.Version = mission.Version
	if err := files.MakeDir(s.Notify(), 0o700); err != nil {
		return err
	}
	return s.Save(summaryName, x)
}
