package git

import (
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// scratchPrefix begins the name of every scratch folder.
const scratchPrefix = "autoagent-index-"

// scratch is a folder for a temporary index. It is locked as long as it is in use, by us or by a git that inherited the
// lock, so that one that a killed call left can be told from one in use.
type scratch struct {
	dir  string
	held *os.File
}

// newScratch makes a scratch folder in parent and removes those that nobody uses any more.
func newScratch(parent string) (scratch, error) {
	sweepScratch(parent)
	for {
		dir, err := os.MkdirTemp(parent, scratchPrefix)
		if err != nil {
			return scratch{}, err
		}
		held, err := tryLock(dir)
		if err != nil || held != nil {
			return scratch{dir: dir, held: held}, err
		}
		// Another call swept it before we had the lock.
	}
}

func (s scratch) remove() {
	os.RemoveAll(s.dir)
	s.held.Close()
}

// sweepScratch removes the unused scratch folders of this user. What cannot be removed now is tried again by the next call.
func sweepScratch(parent string) {
	found, _ := filepath.Glob(filepath.Join(parent, scratchPrefix+"*"))
	for _, dir := range found {
		if held, err := tryLock(dir); err == nil && held != nil {
			scratch{dir: dir, held: held}.remove()
		}
	}
}

// tryLock locks a folder; nil if somebody else has it, or it is gone.
func tryLock(dir string) (*os.File, error) {
	d, err := os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if unix.Flock(int(d.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		d.Close()
		return nil, nil
	}
	mine, err := d.Stat()
	if err == nil {
		if now, gone := os.Lstat(dir); gone != nil || !os.SameFile(mine, now) {
			d.Close()
			return nil, nil
		}
		return d, nil
	}
	d.Close()
	return nil, err
}
