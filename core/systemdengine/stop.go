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
	askAgain = time.Second     // a byte that comes while the stop ends is thrown away
	letEnd   = 5 * time.Second // for the manager to forget units whose files are gone
)

// Stop asks the stop's service to carry out the stop and waits until it has and the units are gone. Where nobody listens
// to its socket, it does the work itself, if this process may.
func (e *Engine) Stop(ctx context.Context, id string) (engine.Record, error) {
	s, _, why := e.unitsOf(id)
	if _, err := e.mayStop(s, why); err != nil {
		return engine.Record{}, err
	}
	b := &bus{e: e, patience: patience}
	defer b.close()
	var asked time.Time
	for ; ; time.Sleep(pollTime) {
		rec := e.record(id)
		gone, err := e.gone(ctx, b, s)
		if err != nil {
			return rec, fmt.Errorf("stop of %s: %w", id, err)
		}
		if gone && (rec.Done || why != nil) {
			return rec, nil
		}
		if ctx.Err() != nil {
			return rec, fmt.Errorf("the stop of %s is not finished: %w", id, ctx.Err())
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
			return rec, err
		}
		if rec, err := e.carry(ctx, b, id); err != nil {
			return rec, err
		}
	}
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
