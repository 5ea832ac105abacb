// Package engine is the contract of whoever ticks a mission, and the record of a stop that all of them write. The suite
// in core/testkit holds every implementation to it.
package engine

import (
	"context"
	"time"

	"example.com/AutoAgentProject/core/mission"
)

// Engine ticks missions.
type Engine interface {
	// Name is what mission.json holds.
	Name() string
	// Start makes the mission tick. The embedded engine ticks it in the foreground and returns when the mission was
	// stopped and the stop was proven; when ctx ends it aborts the mission. Others return once it is set going.
	Start(ctx context.Context, id string) (mission.Stop, error)
	// Stop carries out the stop of a mission that has its tombstone, to the proof that nothing of it lives. It may be
	// called by several at once and again after any death.
	Stop(ctx context.Context, id string) (Record, error)
	// Live says whether somebody ticks the mission now. An error means unknown, never dead.
	Live(ctx context.Context, id string) (Live, error)
}

// Live is who ticks a mission.
type Live struct {
	Ticking bool                 `json:"ticking"`
	By      string               `json:"by,omitempty"`        // in words: "embedded, process 4711"
	Next    map[string]time.Time `json:"next_tick,omitempty"` // by agent; an agent without one is not ticked by time
	// Trouble says in sentences what keeps it from ticking as it should.
	Trouble []string `json:"trouble,omitempty"`
}

// Record is stopping.json: how far a stop is. Each step is written when it is done; whoever continues the stop does the
// rest.
type Record struct {
	Version int    `json:"version"`
	Steps   []Step `json:"steps"`
	Proof   string `json:"proof,omitempty"` // what was looked at to say that nothing lives
	Done    bool   `json:"done"`
}

// Step is one finished step of a stop.
type Step struct {
	Name string    `json:"name"`
	At   time.Time `json:"at"`
	Note string    `json:"note,omitempty"`
}

// The steps of a stop, in order. The tombstone comes before all of them.
const (
	SocketsClosed = "sockets closed"
	TicksEnded    = "ticks ended"
	Killed        = "rest killed"
	Proven        = "proven empty"
	Counted       = "spend counted"
	Told          = "end told"
)

// Has says whether a step is done.
func (r Record) Has(name string) bool {
	for _, s := range r.Steps {
		if s.Name == name {
			return true
		}
	}
	return false
}
