package systemdengine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/coreos/go-systemd/v22/dbus"
	godbus "github.com/godbus/dbus/v5"

	"example.com/AutoAgentProject/core/units"
)

const (
	callTime    = 30 * time.Second // one call, a reload of many units among them
	connectTime = 5 * time.Second
	patience    = 2 * time.Minute // for a manager or a bus that restarts; a manager whose bus was killed may hang for 90 s
	glance      = 3 * time.Second // for who only looks
	pollTime    = 15 * time.Millisecond
)

// bus speaks with the manager. When the connection breaks, it connects again.
type bus struct {
	e        *Engine
	patience time.Duration
	conn     *dbus.Conn
	hangUp   func()
}

func (b *bus) close() {
	if b.conn != nil {
		b.conn.Close()
		b.hangUp()
		b.conn, b.hangUp = nil, nil
	}
}

// connect goes to the manager itself where this process may: that works while the message bus is down.
func (e *Engine) connect(ctx context.Context) (*dbus.Conn, error) {
	if e.Connect != nil {
		return e.Connect(ctx)
	}
	private := "/run/systemd/private"
	over := dbus.NewSystemConnectionContext
	if e.Settings.Manager == units.User {
		private = filepath.Join(units.Runtime(units.User), "systemd/private")
		over = dbus.NewUserConnectionContext
	}
	conn, err := dbus.NewConnection(func() (*godbus.Conn, error) {
		c, err := godbus.Dial("unix:path="+godbus.EscapeBusAddressValue(private), godbus.WithContext(ctx))
		if err != nil {
			return nil, err
		}
		if err := c.Auth([]godbus.Auth{godbus.AuthExternal(strconv.Itoa(os.Getuid()))}); err != nil {
			c.Close()
			return nil, err
		}
		return c, nil
	})
	if err != nil {
		return over(ctx)
	}
	return conn, nil
}

// do calls the manager, again on a new connection if there was no answer.
func (b *bus) do(ctx context.Context, what string, call func(context.Context, *dbus.Conn) error) error {
	for end := time.Now().Add(b.patience); ; {
		err := b.once(ctx, call)
		if err == nil {
			return nil
		}
		if answered(err) || ctx.Err() != nil || time.Now().After(end) {
			return fmt.Errorf("systemd: %s: %w", what, err)
		}
		b.close()
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// once connects if need be and calls. Neither may hang: a bus that is being started takes connections that nobody serves.
func (b *bus) once(ctx context.Context, call func(context.Context, *dbus.Conn) error) error {
	if b.conn != nil && !b.conn.Connected() {
		b.close()
	}
	if b.conn == nil {
		life, hangUp := context.WithCancel(context.WithoutCancel(ctx))
		late, cancel := context.WithTimeout(ctx, min(connectTime, 2*b.patience))
		defer cancel()
		inTime := context.AfterFunc(late, hangUp)
		conn, err := b.e.connect(life)
		if err != nil {
			hangUp()
			return err
		}
		b.conn, b.hangUp = conn, hangUp
		inTime()
	}
	ctx, cancel := context.WithTimeout(ctx, min(callTime, 2*b.patience))
	defer cancel()
	defer context.AfterFunc(ctx, b.hangUp)()
	return call(ctx, b.conn)
}

// answered says whether an error is the manager's answer, and not the lack of one.
func answered(err error) bool {
	switch errorName(err) {
	case "", "org.freedesktop.DBus.Error.NoReply", "org.freedesktop.DBus.Error.Disconnected", "org.freedesktop.DBus.Error.ServiceUnknown",
		"org.freedesktop.DBus.Error.NameHasNoOwner", "org.freedesktop.DBus.Error.Timeout", "org.freedesktop.DBus.Error.NoServer":
		return false
	}
	return true
}

func errorName(err error) string {
	var e godbus.Error
	var p *godbus.Error
	switch {
	case errors.As(err, &e):
		return e.Name
	case errors.As(err, &p):
		return p.Name
	}
	return ""
}

// unloaded says that the manager knows no such unit.
func unloaded(err error) bool {
	return errorName(err) == "org.freedesktop.systemd1.NoSuchUnit"
}

// loaded returns those of the mission's units that the manager knows, inactive ones too. It loads none.
func (b *bus) loaded(ctx context.Context, s set) (map[string]dbus.UnitStatus, error) {
	found := map[string]dbus.UnitStatus{}
	err := b.do(ctx, "list the units", func(ctx context.Context, c *dbus.Conn) error {
		clear(found)
		all, err := c.ListUnitsContext(ctx)
		for _, u := range all {
			if s.has(u.Name) {
				found[u.Name] = u
			}
		}
		return err
	})
	return found, err
}

// settled says that nothing of a unit runs and nothing is about to.
func settled(u dbus.UnitStatus) bool {
	return u.JobId == 0 && (u.ActiveState == "inactive" || u.ActiveState == "failed" || u.ActiveState == "")
}

// unsettled are those of the names that are not settled.
func (b *bus) unsettled(ctx context.Context, s set, names []string) ([]string, error) {
	found, err := b.loaded(ctx, s)
	var out []string
	for _, name := range names {
		if u, ok := found[name]; ok && !settled(u) {
			out = append(out, name)
		}
	}
	return out, err
}

// stop stops units and waits until they are down, at most for limit. It returns those that are not.
func (b *bus) stop(ctx context.Context, s set, names []string, limit time.Duration) ([]string, error) {
	left, err := b.unsettled(ctx, s, names)
	if err != nil {
		return left, err
	}
	for _, name := range left {
		err := b.do(ctx, "stop "+name, func(ctx context.Context, c *dbus.Conn) error {
			_, err := c.StopUnitContext(ctx, name, "replace", nil)
			return err
		})
		if err != nil && !unloaded(err) {
			return left, err
		}
	}
	return b.await(ctx, s, left, limit)
}

func (b *bus) await(ctx context.Context, s set, names []string, limit time.Duration) ([]string, error) {
	for end := time.Now().Add(limit); ; time.Sleep(pollTime) {
		left, err := b.unsettled(ctx, s, names)
		if err != nil || len(left) == 0 || time.Now().After(end) {
			return left, err
		}
		if ctx.Err() != nil {
			return left, ctx.Err()
		}
	}
}

// must is stop for what has no reason to take its time.
func (b *bus) must(ctx context.Context, s set, names ...string) error {
	left, err := b.stop(ctx, s, names, 20*time.Second)
	if err == nil && len(left) > 0 {
		err = fmt.Errorf("systemd does not stop %v", left)
	}
	return err
}

func (b *bus) reload(ctx context.Context) error {
	return b.do(ctx, "read the units again", func(ctx context.Context, c *dbus.Conn) error { return c.ReloadContext(ctx) })
}

func (b *bus) start(ctx context.Context, name string) error {
	return b.do(ctx, "start "+name, func(ctx context.Context, c *dbus.Conn) error {
		_, err := c.StartUnitContext(ctx, name, "replace", nil)
		return err
	})
}
