package notify

import (
	"errors"
	"io"
	"sync"
)

// Gate is the body of a request that notices when it is about to leave: Before is called once, when there is a connection
// and nothing of the body was given to it. If that fails, nothing leaves.
type Gate struct {
	Body   io.ReadCloser
	Before func() error // nil: nothing to do

	mu     sync.Mutex
	passed bool
	err    error
}

var errShut = errors.New("the request is over")

// Read opens the gate and gives out the body.
func (g *Gate) Read(p []byte) (int, error) {
	g.mu.Lock()
	if !g.passed && g.err == nil {
		if g.Before != nil {
			g.err = g.Before()
		}
		g.passed = g.err == nil
	}
	err := g.err
	g.mu.Unlock()
	if err != nil {
		return 0, err
	}
	return g.Body.Read(p)
}

// Close closes the body.
func (g *Gate) Close() error { return g.Body.Close() }

// Shut ends it: what has not begun to leave stays. It says whether anything can have left. A request that is under way
// goes on: an answer can come before the last of it was read, and belongs to a connection that must not be broken.
func (g *Gate) Shut() (left bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.passed && g.err == nil {
		g.err = errShut
	}
	return g.passed
}
