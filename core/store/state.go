package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"

	"example.com/AutoAgentProject/core/files"
	"example.com/AutoAgentProject/core/journal"
	"example.com/AutoAgentProject/core/mission"
)

// State is state.json, the hub: one status line per agent and the mission's phase. It is a projection: whatever it says
// can be said again from the other files, so a bad one is set aside and rebuilt.
type State struct {
	Version    int             `json:"version"`
	Generation int64           `json:"generation"` // grows with every change
	UpdatedAt  time.Time       `json:"updated_at"`
	Phase      string          `json:"phase"` // planning, working, verifying, stopping, completed, failed, aborted, halted: …
	Agents     map[string]Line `json:"agents"`
}

// Line is what one agent says of itself.
type Line struct {
	Text  string    `json:"text"`  // one line
	Doing string    `json:"doing"` // idle, working, waiting, blocked
	Step  string    `json:"step,omitempty"`
	Run   string    `json:"run,omitempty"`
	Since time.Time `json:"since"`
}

// State reads state.json. Missing is an empty state.
func (s *Store) State() (State, error) {
	st := State{Version: mission.Version, Agents: map[string]Line{}}
	err := s.load("state.json", &st)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if st.Agents == nil {
		st.Agents = map[string]Line{}
	}
	return st, err
}

// LastGoodState is the copy of the state before the last change, for when state.json cannot be read.
func (s *Store) LastGoodState() (State, error) {
	var st State
	err := s.load("state.good.json", &st)
	return st, err
}

// ChangeState changes state.json under the mission's lock. A bad one is set aside, rebuilt from the agents' own
// details, and told in the journal; so is one that is gone, since a tick may have died while it did that.
func (s *Store) ChangeState(ctx context.Context, now time.Time, change func(*State)) error {
	unlock, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	path := s.file("state.json")
	st, err := s.State()
	tell := ""
	switch {
	case files.Passing(err):
		return err
	case err != nil:
		aside, aerr := files.SetAside(path, now)
		if aerr != nil {
			return errors.Join(err, aerr)
		}
		st = s.rebuild()
		tell = fmt.Sprintf("state.json could not be read; it was kept as %s and rebuilt", filepath.Base(aside))
	case !exists(path):
		if st = s.rebuild(); st.Generation > 0 {
			tell = "state.json was gone; it was rebuilt"
		}
	default:
		_ = os.Remove(s.file(".state.good"))
		if os.Link(path, s.file(".state.good")) == nil {
			_ = os.Rename(s.file(".state.good"), s.file("state.good.json"))
		}
	}
	if tell != "" {
		if err := s.Journal().Add(journal.Event{At: now, Kind: journal.StateSetAside, Level: journal.Milestone, Text: tell}); err != nil {
			return err
		}
	}
	change(&st)
	st.Version = mission.Version
	st.Generation++
	st.UpdatedAt = now.UTC()
	b, err := encode(st)
	if err != nil {
		return err
	}
	return files.Replace(path, b, 0o600)
}

// SetLine sets an agent's status line in the hub and its detail in its own file; nothing is written if it says the
// same already.
func (s *Store) SetLine(ctx context.Context, agent string, l Line, detail string, now time.Time) error {
	l.Text = oneLine(l.Text)
	if st, err := s.State(); err == nil {
		if old, ok := st.Agents[agent]; ok && old.Text == l.Text && old.Doing == l.Doing && old.Step == l.Step && old.Run == l.Run {
			return nil
		}
	}
	l.Since = now.UTC()
	if err := files.Replace(filepath.Join(s.Agent(agent), "detail.md"), []byte(l.Text+"\n\n"+detail), 0o600); err != nil {
		return err
	}
	return s.ChangeState(ctx, now, func(st *State) { st.Agents[agent] = l })
}

// SetPhase sets the mission's phase.
func (s *Store) SetPhase(ctx context.Context, phase string, now time.Time) error {
	if st, err := s.State(); err == nil && st.Phase == phase {
		return nil
	}
	return s.ChangeState(ctx, now, func(st *State) { st.Phase = phase })
}

func (s *Store) rebuild() State {
	st := State{Version: mission.Version, Agents: map[string]Line{}}
	if good, err := s.LastGoodState(); err == nil {
		st.Generation = good.Generation + 1000
		st.Phase = good.Phase
	}
	m, err := s.Mission()
	if err != nil {
		return st
	}
	for _, a := range m.Roster {
		path := filepath.Join(s.Agent(a.Name), "detail.md")
		b, err := files.Read(path, 1<<20)
		if err != nil {
			continue
		}
		first, _, _ := strings.Cut(string(b), "\n")
		l := Line{Text: first}
		if fi, err := os.Lstat(path); err == nil {
			l.Since = fi.ModTime().UTC()
		}
		st.Agents[a.Name] = l
	}
	return st
}

func oneLine(s string) string {
	s = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(s, "\uFFFD"), unicode.IsControl), " ")
	if r := []rune(s); len(r) > 200 {
		s = string(r[:199]) + "…"
	}
	return s
}

// Pauses are the causes why a live mission does not work now. They are a set, each lifted by itself.
type Pauses struct {
	Version int             `json:"version"`
	Causes  []mission.Pause `json:"causes"`
}

// Pauses reads the pauses of the whole mission that are in force at now; those whose time has come do not count.
func (s *Store) Pauses(now time.Time) ([]mission.Pause, error) {
	return s.PausesOf("", now)
}

// PausesOf reads the pauses of the whole mission and of one agent that are in force at now.
func (s *Store) PausesOf(agent string, now time.Time) ([]mission.Pause, error) {
	all, err := s.AllPauses(now)
	return slices.DeleteFunc(all, func(c mission.Pause) bool { return c.Agent != "" && c.Agent != agent }), err
}

// AllPauses reads the pauses in force at now, those of single agents among them.
func (s *Store) AllPauses(now time.Time) ([]mission.Pause, error) {
	var p Pauses
	if err := s.load("pauses.json", &p); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return slices.DeleteFunc(p.Causes, func(c mission.Pause) bool { return !c.Until.IsZero() && !now.Before(c.Until) }), nil
}

// Pause sets or extends one cause; fresh is true if the mission was not paused for it before.
func (s *Store) Pause(ctx context.Context, c mission.Pause, now time.Time) (fresh bool, err error) {
	err = s.changePauses(ctx, now, func(p []mission.Pause) []mission.Pause {
		i := slices.IndexFunc(p, func(x mission.Pause) bool { return x.Cause == c.Cause && x.Agent == c.Agent })
		c.Since = now.UTC()
		if fresh = i < 0; fresh {
			return append(p, c)
		}
		c.Since = p[i].Since
		if p[i].Until.IsZero() || (!c.Until.IsZero() && c.Until.Before(p[i].Until)) {
			c.Until = p[i].Until
		}
		p[i] = c
		return p
	})
	return fresh, err
}

// Unpause lifts one cause of the whole mission, and only that one.
func (s *Store) Unpause(ctx context.Context, cause string, now time.Time) error {
	return s.UnpauseAgent(ctx, "", cause, now)
}

// UnpauseAgent lifts one cause of one agent, and only that one.
func (s *Store) UnpauseAgent(ctx context.Context, agent, cause string, now time.Time) error {
	return s.changePauses(ctx, now, func(p []mission.Pause) []mission.Pause {
		return slices.DeleteFunc(p, func(x mission.Pause) bool { return x.Cause == cause && x.Agent == agent })
	})
}

func (s *Store) changePauses(ctx context.Context, now time.Time, change func([]mission.Pause) []mission.Pause) error {
	unlock, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	in, err := s.AllPauses(now)
	if err != nil {
		return err
	}
	return s.Save("pauses.json", Pauses{mission.Version, change(in)})
}
