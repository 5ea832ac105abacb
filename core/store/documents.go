package store

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"example.com/AutoAgentProject/core/files"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/plan"
	"example.com/AutoAgentProject/core/usererr"
)

const (
	maxDocument = 16 << 20
	lockWait    = 20 * time.Second
)

// ErrNoMission means that there is no mission of this id.
var ErrNoMission = errors.New("no such mission")

// Exists says whether the mission's data folder is there.
func (s *Store) Exists() bool {
	_, err := os.Lstat(s.Dir())
	return err == nil
}

// Mission reads mission.json. Unreadable is an error of its own: it is kept as it is and never replaced by a default.
func (s *Store) Mission() (mission.Mission, error) {
	var m mission.Mission
	err := s.load("mission.json", &m)
	if errors.Is(err, fs.ErrNotExist) {
		if !s.Exists() {
			return m, usererr.Wrap(ErrNoMission, usererr.NotFound, "AutoAgentProject list --all shows the missions", "%s", s.id)
		}
		return m, usererr.New(usererr.Unreadable, "its folder is "+s.Dir(), "mission %s has no mission.json", s.id)
	}
	if err == nil && m.ID != s.id {
		return m, usererr.New(usererr.Unreadable, "its folder is "+s.Dir(), "mission.json of %s names the mission %q", s.id, m.ID)
	}
	return m, err
}

// CreateMission writes mission.json; it never changes again.
func (s *Store) CreateMission(m mission.Mission) error {
	b, err := encode(m)
	if err != nil {
		return err
	}
	return files.Publish(s.file("mission.json"), b, 0o600)
}

// Plan reads plan.json; without one it is an empty plan.
func (s *Store) Plan() (*plan.Plan, error) {
	p := &plan.Plan{Version: mission.Version}
	if err := s.load("plan.json", p); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return p, nil
}

// ChangePlan reads the plan, lets change work on it and writes it, under the mission's lock. change returns false to
// leave the file as it is.
func (s *Store) ChangePlan(ctx context.Context, change func(*plan.Plan) (bool, error)) error {
	unlock, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	p, err := s.Plan()
	if err != nil {
		return err
	}
	changed, err := change(p)
	if err != nil || !changed {
		return err
	}
	b, err := encode(p)
	if err != nil {
		return err
	}
	return files.Replace(s.file("plan.json"), b, 0o600)
}

// Clock reads and, if count is set, advances the mission's clock of the time in which it could run.
func (s *Store) Clock(ctx context.Context, advance func(mission.Clock) mission.Clock) (mission.Clock, error) {
	var c mission.Clock
	if advance == nil {
		err := s.load("clock.json", &c)
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return c, err
	}
	unlock, err := s.lock(ctx)
	if err != nil {
		return c, err
	}
	defer unlock()
	if err := s.load("clock.json", &c); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return c, err
	}
	c = advance(c)
	b, err := encode(c)
	if err != nil {
		return c, err
	}
	return c, files.Replace(s.file("clock.json"), b, 0o600)
}

// lock is the mission's lock for reading, changing and writing one document. The stop path never takes it.
func (s *Store) lock(ctx context.Context) (func(), error) {
	ctx, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	return files.Lock(ctx, s.file("lock"))
}

// Load reads a JSON document beside the others; Save replaces it. Small notes of one agent use these.
func (s *Store) Load(name string, v any) error { return s.load(name, v) }

// Save replaces a JSON document.
func (s *Store) Save(name string, v any) error {
	b, err := encode(v)
	if err != nil {
		return err
	}
	return files.Replace(s.file(name), b, 0o600)
}

func (s *Store) load(name string, v any) error {
	b, err := files.Read(s.file(name), maxDocument)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) || files.Passing(err) {
			return err
		}
		return unreadable(s.file(name), err)
	}
	var head struct {
		Version *int `json:"version"`
	}
	if err := json.Unmarshal(b, &head); err != nil {
		return unreadable(s.file(name), err)
	}
	if head.Version == nil || *head.Version != mission.Version {
		return unreadable(s.file(name), fmt.Errorf("it has no version %d", mission.Version))
	}
	if err := json.Unmarshal(b, v); err != nil {
		return unreadable(s.file(name), err)
	}
	return nil
}

func unreadable(path string, err error) error {
	return usererr.Wrap(err, usererr.Unreadable, "it was kept as it is; put a good copy in its place or abort the mission", "%s cannot be read", path)
}

func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
