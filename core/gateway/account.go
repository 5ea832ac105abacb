package gateway

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"example.com/AutoAgentProject/core/money"
)

// Mark is what the run has used by now, in the unit of its cap. Both together are what it is charged if nobody comes to
// count any more.
type Mark struct {
	Charged  int64 `json:"charged"`  // by requests that ended
	Reserved int64 `json:"reserved"` // worst cases of those in flight
}

// Sum is all of it.
func (m Mark) Sum() int64 { return money.Sum(m.Charged, m.Reserved) }

// account is what the requests of a run share. Charged and reserved together never exceed what the run may use, as long
// as no response costs more than its worst case.
type account struct {
	cap    money.Amount
	budget func() (int64, error)
	told   func(Mark) error

	mu       sync.Mutex // guards what follows
	mark     Mark
	inFlight int
	changed  chan struct{} // closed when something was given back
}

// errUnwritten means that the account could not be written down or read.
var errUnwritten = errors.New("the account of this run cannot be kept")

// spentError means that what is left does not suffice.
type spentError struct {
	limit, left, worst money.Amount
}

func (e spentError) Error() string {
	return fmt.Sprintf("the budget of this run is used up: of %v there are %v left, and this request could cost %v", e.limit, e.left, e.worst)
}

// want is what a request asks for.
type want struct {
	output, floor int64 // tokens of output: as asked, and the fewest it is worth sending for
	worst         func(output int64) int64
	patience      time.Duration // how long it waits for others in flight before it takes less than it asked for
}

// reserve sets aside the worst case of a request. Where it does not fit with its whole output it waits for requests in
// flight, which give back most of what they hold; if there are none, or it waited long, it takes less output.
func (a *account) reserve(ctx context.Context, w want) (output, amount int64, err error) {
	patience := time.NewTimer(w.patience)
	defer patience.Stop()
	impatient := false
	for {
		output, amount, wait, err := a.try(w, impatient)
		if wait == nil {
			return output, amount, err
		}
		select {
		case <-wait:
		case <-patience.C:
			impatient = true
		case <-ctx.Done():
			return 0, 0, context.Cause(ctx)
		}
	}
}

// try reserves, refuses, or says what to wait for.
func (a *account) try(w want, impatient bool) (output, amount int64, wait <-chan struct{}, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	limit := a.cap.N
	if a.budget != nil {
		b, err := a.budget()
		if err != nil {
			return 0, 0, nil, fmt.Errorf("%w: %w", errUnwritten, err)
		}
		limit = min(limit, b)
	}
	output, amount, ok := fit(limit-a.mark.Sum(), w.output, w.floor, w.worst)
	switch {
	case ok && (output == w.output || a.inFlight == 0 || impatient):
	case a.inFlight > 0 && w.worst(min(w.floor, w.output)) <= limit-a.mark.Charged:
		if a.changed == nil {
			a.changed = make(chan struct{})
		}
		return 0, 0, a.changed, nil
	default:
		of := func(n int64) money.Amount { return money.Amount{Unit: a.cap.Unit, N: max(0, n)} }
		return 0, 0, nil, spentError{of(limit), of(limit - a.mark.Sum()), of(amount)}
	}
	next := Mark{a.mark.Charged, a.mark.Reserved + amount}
	if a.told != nil {
		// It is written down before it is spent: whoever finds the run dead charges it.
		if err := a.told(next); err != nil {
			return 0, 0, nil, fmt.Errorf("%w: %w", errUnwritten, err)
		}
	}
	a.mark = next
	a.inFlight++
	return output, amount, nil, nil
}

// settle puts what a request cost in the place of what it reserved.
func (a *account) settle(reserved, amount int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.mark.Charged = money.Sum(a.mark.Charged, amount)
	a.mark.Reserved -= reserved
	a.inFlight--
	if a.changed != nil {
		close(a.changed)
		a.changed = nil
	}
	if a.told != nil {
		_ = a.told(a.mark) // what was written before was more, and errs on the safe side
	}
}

func (a *account) now() Mark {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.mark
}
