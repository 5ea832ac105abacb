// Package ledger keeps the money of one mission: a file of JSON lines, only ever appended to, each line on the disk
// before the call returns. A run reserves before it starts and is settled after it ended; whether another may start is
// decided from this file alone. A file that cannot be read in full is an error, never a fresh start.
package ledger

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"example.com/AutoAgentProject/core/files"
	"example.com/AutoAgentProject/core/money"
	"example.com/AutoAgentProject/core/usererr"
)

// Ledger is the ledger of one mission. It remembers how far it has read, so that reading again costs only what is new.
// Any number of processes and goroutines may use the same file.
type Ledger struct {
	path  string
	every int64 // bytes of new records, see sumEvery
	mu    sync.Mutex
	past  *past
}

// Open names a ledger. It touches nothing; a file that is not there is found out by the first call that reads it.
func Open(path string) *Ledger { return &Ledger{path: path, every: sumEvery} }

// Create makes the file with the budget as its first record. A ledger that exists is never replaced: usererr Conflict.
func (l *Ledger) Create(ctx context.Context, budget money.Amount, at time.Time) error {
	if !budget.Valid() {
		return fmt.Errorf("ledger %s: %d %q is no budget", l.path, budget.N, budget.Unit)
	}
	unlock, err := l.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	line, err := encode(Record{Kind: Budget, Cap: budget.N, Unit: budget.Unit}, 1, at)
	if err != nil {
		return fmt.Errorf("ledger %s: %w", l.path, err)
	}
	err = files.Publish(l.path, append(line, '\n'), 0o600)
	if errors.Is(err, files.ErrExists) {
		return usererr.Wrap(err, usererr.Conflict, "", "the mission has a ledger already")
	}
	return err
}

// Read returns the state of the ledger. It takes no lock, and a last line that is only half there, because it is being
// written or its writer died, does not count. The error has the code Unreadable; then no run may start.
func (l *Ledger) Read() (Book, error) { return l.read(l.refresh, func(*past) {}) }

// read brings the state up to date and shows it look.
func (l *Ledger) read(update func() error, look func(*past)) (Book, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	// While a writer cuts off a half line and goes on behind it, a reader can see a mixture of both. That does not last.
	for try := 1; ; try++ {
		err := update()
		if err == nil {
			look(l.past)
			return l.past.book(), nil
		}
		if try == 3 || !errors.Is(err, errBadLine) {
			return Book{}, err
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// lock takes the lock of all writers.
func (l *Ledger) lock(ctx context.Context) (unlock func(), err error) {
	unlock, err = files.Lock(ctx, l.path+".lock")
	switch {
	case errors.Is(err, files.ErrLocked):
		return nil, usererr.Wrap(err, usererr.Later, "", "the ledger is busy")
	case errors.Is(err, fs.ErrNotExist):
		return nil, l.unreadable(err)
	}
	return unlock, err
}

// change lets f decide, on the newest state and under the lock, which record to add. nil adds nothing.
func (l *Ledger) change(ctx context.Context, at time.Time, f func(*past) (*Record, error)) error {
	unlock, err := l.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.refresh(); err != nil {
		return err
	}
	r, err := f(l.past)
	if errors.Is(err, errWhole) {
		if err := l.whole(); err != nil {
			return err
		}
		r, err = f(l.past)
	}
	if err != nil || r == nil {
		return err
	}
	return l.add(*r, at)
}

// add appends a record. The lock is held and the state is fresh.
func (l *Ledger) add(r Record, at time.Time) error {
	line, err := encode(r, l.past.seq+1, at)
	if err != nil {
		return fmt.Errorf("ledger %s: %w", l.path, err)
	}
	// What could not be read back must not be written.
	if again, err := parse(line); err != nil {
		return fmt.Errorf("ledger %s: %w", l.path, err)
	} else if err := l.past.fits(again); err != nil {
		return fmt.Errorf("ledger %s: %w", l.path, err)
	}
	if len(l.past.torn) > 0 {
		if err := l.cutTorn(at); err != nil {
			return err
		}
	}
	if l.past.unended {
		line = append([]byte{'\n'}, line...)
	}
	if err := files.Append(l.path, line); err != nil {
		return fmt.Errorf("ledger: %w", err)
	}
	if err := l.refresh(); err != nil {
		return err
	}
	l.writeSums()
	return nil
}

// cutTorn removes the half line at the end that a crash or a full disk left, after it has been kept in a file of its own.
func (l *Ledger) cutTorn(at time.Time) error {
	to := l.path + ".torn-" + at.UTC().Format("20060102T150405.000Z")
	err := files.Publish(to, l.past.torn, 0o600)
	for n := 2; errors.Is(err, files.ErrExists); n++ {
		err = files.Publish(fmt.Sprintf("%s-%d", to, n), l.past.torn, 0o600)
	}
	if err != nil {
		return fmt.Errorf("ledger: keep its half last line: %w", err)
	}
	// In place, so that owner and mode stay, whoever does this.
	f, err := os.OpenFile(l.path, os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("ledger: cut its half last line: %w", err)
	}
	defer f.Close()
	if err := f.Truncate(l.past.offset); err != nil {
		return fmt.Errorf("ledger: cut its half last line: %w", err)
	}
	if err := f.Sync(); err != nil {
		return fmt.Errorf("ledger: cut its half last line: %w", err)
	}
	return nil
}

func (l *Ledger) unreadable(cause error) error {
	if files.Passing(cause) { // it says nothing about the file
		return usererr.Wrap(cause, usererr.Later, "", "the ledger cannot be read just now")
	}
	return usererr.Wrap(cause, usererr.Unreadable, "nothing was overwritten; no run starts until it can be read",
		"the ledger %s cannot be read", l.path)
}
