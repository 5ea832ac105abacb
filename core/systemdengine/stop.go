package systemdengine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"example.com/AutoAgentProject/core/engine"
	"example.com/AutoAgentProject/core/units"
	"example.com/AutoAgentProject/core/usererr"
)

const (
	takeOver = 2               // times that it was seen failing before this process does the work itself, if it may
	giveUp   = 12              // times that the stop was asked for and seen failed: three tries of it
	askAgain = time.Second     // a byte that comes while the stop ends is thrown away
	letEnd   = 5 * time.Second // for the manager to forget units whose files are gone
)

// Stop asks the stop's service to carry out the stop and waits until it has and the units are gone. Where nobody listens
// to its socket, or the service fails (its program may be gone), it does the work itself, if this process may.
func (e *Engine) Stop(ctx context.Context, id string) (engine.Record, error) {
	s, _, why := e.unitsOf(id)
	if _, err := e.mayStop(s, why); err != nil {
		return engine.Record{}, err
	}
	heard, _ := ask(units.StopSocket(e.runtime(), id)) // whatever this process can see
	b := &bus{e: e, patience: glance}
	if heard { // there is a manager, and much to do for it
		b.patience = patience
	}
	defer b.close()
	if _, err := b.loaded(ctx, s); err != nil {
		return e.record(id), fmt.Errorf("stop of %s: whether it has ended cannot be seen: %w", id, err)
	}
	b.patience = patience
	var asked time.Time
	var last error
	bad := 0
	for ; ; time.Sleep(50 * time.Millisecond) {
		rec := e.record(id)
		gone, err := e.gone(ctx, b, s)
		if err != nil {
			return rec, fmt.Errorf("stop of %s: %w", id, err)
		}
		if gone && (rec.Done || why != nil || e.unwritten(id)) {
			return rec, nil
		}
		if ctx.Err() != nil {
			return rec, usererr.Wrap(ctx.Err(), usererr.Later, e.journal(s), "the stop of mission %s is not finished yet; it goes on", id)
		}
		if time.Since(asked) < askAgain {
			continue
		}
		asked = time.Now()
		heard, err := ask(units.StopSocket(e.runtime(), id))
		if err != nil {
			return rec, fmt.Errorf("stop of %s: %w", id, err)
		}
		if heard {
			failing, err := b.failing(ctx, s)
			if err != nil {
				return rec, fmt.Errorf("stop of %s: %w", id, err)
			}
			if bad++; !failing {
				bad = 0
			}
			may := e.mayAct(id)
			if bad == takeOver && may == nil {
				if last = e.instead(ctx, b, s, func() error { _, err := e.carry(ctx, b, id); return err }); last == nil {
					asked = time.Time{}
					continue
				}
			}
			if bad >= giveUp {
				hint := e.journal(s)
				if may != nil {
					hint += "; sudo AutoAgentProject abort " + id + " does it itself"
				}
				return e.record(id), usererr.Wrap(last, usererr.Failed, hint, "the stop of mission %s fails again and again; it goes on trying", id)
			}
			continue
		}
		busy, err := b.unsettled(ctx, s, []string{s.stopService()})
		if err != nil {
			return rec, fmt.Errorf("stop of %s: %w", id, err)
		}
		if len(busy) > 0 {
			continue // it has closed its socket, or it will be started again
		}
		if err := e.mayAct(id); err != nil {
			if gone, gerr := e.gone(ctx, b, s); gerr == nil && gone && e.record(id).Done {
				continue // it ended while this looked
			}
			return rec, err
		}
		rec, err = e.carry(ctx, b, id)
		if err != nil || rec.Done && !e.record(id).Done { // that cannot be written down
			return rec, err
		}
	}
}

// instead does the work of a stop's service that fails. Meanwhile that is not started again; if the work does not succeed
// it is.
func (e *Engine) instead(ctx context.Context, b *bus, s set, work func() error) error {
	if err := b.must(ctx, s, s.stopService()); err != nil {
		return err
	}
	err := work()
	if err != nil {
		_, _ = ask(units.StopSocket(e.runtime(), s.id))
	}
	return err
}

// failing says whether the stop's service failed, and maybe waits to be started again.
func (b *bus) failing(ctx context.Context, s set) (bool, error) {
	found, err := b.loaded(ctx, s)
	u := found[s.stopService()]
	return u.ActiveState == "failed" || u.SubState == "auto-restart", err
}

// journal is the hint where the stop's service says what it does.
func (e *Engine) journal(s set) string {
	if e.Settings.Manager == units.User {
		return "journalctl --user -u " + s.stopService() + " says why"
	}
	return "journalctl -u " + s.stopService() + " says why"
}

// ask writes a byte to the stop's socket. heard is false if nobody listens.
func ask(path string) (heard bool, err error) {
	c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"})
	if err == nil {
		defer c.Close()
		_ = c.SetWriteDeadline(time.Now().Add(time.Second))
		_, err = c.Write([]byte{'s'})
	}
	switch {
	case err == nil, errors.Is(err, unix.EAGAIN), errors.Is(err, unix.ENOBUFS), errors.Is(err, os.ErrDeadlineExceeded): // bytes wait there already
		return true, nil
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ECONNREFUSED), errors.Is(err, unix.ENOTCONN), errors.Is(err, unix.ECONNRESET):
		return false, nil
	}
	return false, err
}

// mayAct says whether this process may tell the manager what to do.
func (e *Engine) mayAct(id string) error {
	if e.Settings.Manager == units.User || os.Geteuid() == 0 {
		return nil
	}
	return usererr.New(usererr.Environment, "sudo AutoAgentProject abort "+id+" does it", "the stop of mission %s is not listening, and only root can stop units of the system's manager", id)
}

// Gone says whether no unit of the mission is installed or known to the manager. Anybody may ask.
func (e *Engine) Gone(ctx context.Context, id string) (bool, error) {
	s, _, err := e.unitsOf(id)
	if err != nil {
		return false, err
	}
	b := &bus{e: e, patience: patience}
	defer b.close()
	return e.gone(ctx, b, s)
}

// gone says whether the mission has no unit left: no file, and none that the manager knows.
func (e *Engine) gone(ctx context.Context, b *bus, s set) (bool, error) {
	here, err := e.here(s.names())
	if err != nil || len(here) > 0 {
		return false, err
	}
	for end := time.Now().Add(letEnd); ; time.Sleep(pollTime) {
		found, err := b.loaded(ctx, s)
		if err != nil || len(found) == 0 {
			return err == nil, err
		}
		busy := slices.ContainsFunc(s.ending(), func(name string) bool { u, ok := found[name]; return ok && !settled(u) })
		if busy || ctx.Err() != nil || time.Now().After(end) {
			return false, ctx.Err()
		}
	}
}
