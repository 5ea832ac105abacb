package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"example.com/AutoAgentProject/core/files"
	"example.com/AutoAgentProject/core/mission"
)

// Lift takes a proven halt back, so that the mission can be ticked again: its tombstone and the record of its stop move to
// stops/, where they stay. The tombstone goes last: whatever dies in between leaves a mission that is stopped.
func (s *Store) Lift(stop mission.Stop) error {
	if stop.Cause.Final() {
		return fmt.Errorf("a mission that is %s is never ticked again", stop.Cause.Phase())
	}
	if err := s.PrepareTombstone(); err != nil {
		return err
	}
	if err := os.MkdirAll(s.file("stops"), 0o700); err != nil {
		return err
	}
	base := s.file("stops/" + stop.At.UTC().Format("20060102T150405.000000000Z"))
	for _, m := range []struct{ from, to string }{{"stopping.json", base + "-record.json"}, {"stop.json", base + ".json"}} {
		err := files.Move(s.file(m.from), m.to)
		for n := 2; errors.Is(err, files.ErrExists); n++ { // of a lift that died, and the stop was carried out again
			err = files.Move(s.file(m.from), fmt.Sprintf("%s-%d", m.to, n))
		}
		if err != nil && !(m.from == "stopping.json" && errors.Is(err, fs.ErrNotExist)) {
			return err
		}
	}
	return nil
}
