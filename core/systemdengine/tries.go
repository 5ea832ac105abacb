package systemdengine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"example.com/AutoAgentProject/core/files"
)

// maxTries is how often the end of a mission may fail to be written down. A disk that is full gets emptied meanwhile; what the
// owner of the root has put in the way does not hold up a stop for ever.
const maxTries = 20

// triesFile counts. It lies where only who stops can write, and is gone after a boot.
func (e *Engine) triesFile(id string) string {
	return filepath.Join(e.runtime(), "forge-autoagent", id+".tries")
}

// tries is how often the end of a mission could not be written down.
func (e *Engine) tries(id string) int {
	b, err := files.Read(e.triesFile(id), 1<<16)
	if err != nil {
		return 0
	}
	var n int
	first, root, _ := strings.Cut(string(b), " ")
	if _, err := fmt.Sscan(first, &n); err != nil || strings.TrimSuffix(root, "\n") != string(e.Root) {
		return 0
	}
	return n
}

// unwritten is whether its end was left out of the record for good: nothing of it is to be done any more.
func (e *Engine) unwritten(id string) bool { return e.tries(id) >= maxTries }

// failedTry counts one more, and says how many there were.
func (e *Engine) failedTry(id string) int {
	n := e.tries(id) + 1
	err := errors.Join(os.MkdirAll(filepath.Dir(e.triesFile(id)), 0o755), files.Replace(e.triesFile(id), fmt.Appendf(nil, "%d %s\n", n, e.Root), 0o644))
	if err != nil {
		e.log().Warn("the tries to write down the end could not be counted", "err", err)
	}
	return n
}

// forgetTries is for a mission whose end stands in its record, and for one that starts.
func (e *Engine) forgetTries(id string) {
	if err := files.Remove(e.triesFile(id)); err != nil {
		e.log().Warn("count of tries", "err", err)
	}
}
