package tick

import (
	"crypto/rand"
	"encoding/hex"
	"time"
)

// NewID returns a name for one tick, under which its log lines are found: its time, so that names sort, and a random
// part, since ticks of several agents begin in one second.
func NewID(now time.Time) string {
	b := make([]byte, 3)
	_, _ = rand.Read(b) // never fails
	return now.UTC().Format("20060102T150405Z-") + hex.EncodeToString(b)
}
