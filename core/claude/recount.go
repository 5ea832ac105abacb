package claude

import (
	"fmt"
	"io"
	"time"

	"example.com/AutoAgentProject/core/runner"
)

// Recount reads a transcript, of which the last line may be torn, and says what its run spent. started is false if it
// shows no request: then nothing is known to have been spent, which is not the same as nothing was.
func (c *Claude) Recount(transcript io.Reader) (s runner.Spend, started bool, err error) {
	if err := c.complete(); err != nil {
		return runner.Spend{}, false, err
	}
	m, at := newMeter(c.cfg.Price, 0), time.Now()
	err = readLines(transcript, func(line []byte) bool {
		if e, ok := decode(line); ok {
			at = e.at(at) // prices change: what tells no time is as old as what came before it
			m.add(&e, at)
		}
		return true
	})
	if err != nil {
		return runner.Spend{}, false, fmt.Errorf("recount: %w", err)
	}
	return m.spend(), m.started(), nil
}
