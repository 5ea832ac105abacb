package engine

import (
	"encoding/json"
	"testing"
	"time"
)

func TestRecord(t *testing.T) {
	all := []string{SocketsClosed, TicksEnded, Killed, Proven, Counted, Told}
	var r Record
	for i, name := range all {
		for j, other := range all {
			if r.Has(other) != (j < i) {
				t.Errorf("before %s: %s is done: %v", name, other, r.Has(other))
			}
		}
		r.Steps = append(r.Steps, Step{Name: name, At: time.Date(2026, 3, 1, 12, 0, i, 0, time.UTC)})
		b, err := json.Marshal(r) // another process goes on
		r = Record{}
		if err != nil || json.Unmarshal(b, &r) != nil {
			t.Fatal(err)
		}
	}
	if !r.Has(Told) || r.Has("") || r.Has("sockets") {
		t.Errorf("%+v", r)
	}
}
