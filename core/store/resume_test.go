package store

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/mission"
)

// TestLift: a halt is taken back, whichever of its moves died before, its papers are kept, and it can halt again.
func TestLift(t *testing.T) {
	s := working(t)
	for n := 1; n <= 3; n++ {
		stop := mission.Stop{Cause: mission.Budget, Reason: "used up", By: "quota", At: noon.Add(time.Duration(n) * time.Hour)}
		_, err := s.Stop(stop)
		ok(t, err)
		ok(t, s.Save("stopping.json", map[string]bool{"done": true}))
		if n == 2 { // a lift died after its first move, and the stop was carried out again
			ok(t, os.MkdirAll(s.file("stops"), 0o700))
			ok(t, os.Rename(s.file("stopping.json"), s.file("stops/20260301T140000.000000000Z-record.json")))
			if got, err := s.Stopped(); err != nil || got == nil {
				t.Fatalf("half lifted it is live: %v", err)
			}
			ok(t, s.Save("stopping.json", map[string]bool{"done": true}))
		}
		ok(t, s.Lift(stop))
		if got, err := s.Stopped(); err != nil || got != nil {
			t.Errorf("still stopped: %+v, %v", got, err)
		}
		if _, err := os.Stat(s.file("stopping.json")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the record of the stop is there: %v", err)
		}
	}
	if kept, _ := filepath.Glob(s.file("stops/*")); len(kept) != 7 {
		t.Errorf("kept %q", kept)
	}
	for _, c := range []mission.Cause{mission.Completed, mission.Aborted, mission.FailedEnd} {
		stop := mission.Stop{Cause: c, At: noon}
		_, err := s.Stop(stop)
		ok(t, err)
		if s.Lift(stop) == nil {
			t.Errorf("%s was lifted", c)
		}
	}
}
