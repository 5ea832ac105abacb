package supervisor

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"example.com/AutoAgentProject/core/cgroup"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/proc"
	"example.com/AutoAgentProject/core/store"
)

// Bound says in words what will bound a mission as a whole that this process starts.
func (s *Supervisor) Bound(b mission.Bounds) string {
	bounds, lacks := cgroup.Probe(s.limits(b))
	switch {
	case len(bounds) == 0:
		return "limits are per process, no cgroup bounds the whole (" + lacks + ")"
	case lacks != "":
		return "the whole is bounded by " + strings.Join(bounds, " and ") + " (cgroup), the rest per process (" + lacks + ")"
	}
	return "the whole is bounded by " + strings.Join(bounds, " and ") + " (cgroup)"
}

// limits are what the mission says, where it says something.
func (s *Supervisor) limits(b mission.Bounds) cgroup.Limits {
	l := s.Limits
	if l == (cgroup.Limits{}) {
		l = cgroup.Default()
	}
	if b.Memory > 0 {
		l.Memory = b.Memory
	}
	if b.Tasks > 0 {
		l.Tasks = int64(b.Tasks)
	}
	return l
}

// groupName is the same for whoever looks at the mission, and no other mission's of this machine.
func groupName(st *store.Store) string {
	dir, err := filepath.Abs(st.Dir())
	if err == nil {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			dir = real
		}
	}
	sum := sha256.Sum256([]byte(dir))
	return fmt.Sprintf("autoagent-%s-%x", st.ID(), sum[:6])
}

// takeGroup makes the mission's cgroup, where there can be one, and writes down who ticks it and where to find the rest.
func (l *loop) takeGroup() error {
	self, err := proc.Self()
	if err != nil {
		return err
	}
	owner := Owner{Version: mission.Version, Process: self, Since: time.Now().UTC()}
	if l.group, err = cgroup.Open(groupName(l.st), l.s.limits(l.m.Bounds)); err != nil {
		l.s.Log.Info("no cgroup for the mission", "why", err)
		l.group = nil
	} else {
		r := l.group.Record()
		owner.Group = &r
		l.s.Log.Info("the mission's cgroup", "bounds", l.group.Bounds(), "lacks", l.group.Lacks())
	}
	return l.st.Save("supervisor.json", owner)
}

// dropGroup removes the mission's cgroup. What is still in it will be found by whoever goes on with the stop.
func (l *loop) dropGroup() {
	if l.group == nil {
		return
	}
	if err := l.group.Close(); err != nil {
		l.s.Log.Warn("the mission's cgroup", "err", err)
	}
	l.group = nil
}

// leftGroup returns the cgroup of the mission's last supervisor, nil if it had none.
func (s *Supervisor) leftGroup(st *store.Store) (*cgroup.Group, error) {
	boot, err := proc.Boot()
	if err != nil {
		return nil, err
	}
	var o Owner
	if err := st.Load("supervisor.json", &o); err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.Log.Warn("the record of the last supervisor", "err", err)
	}
	if o.Process.Boot != boot {
		o.Group = nil
	}
	return cgroup.Find(groupName(st), o.Group)
}

// endLeft ends what the last supervisor left in its cgroup.
func (s *Supervisor) endLeft(st *store.Store) error {
	g, err := s.leftGroup(st)
	if g == nil || err != nil {
		return err
	}
	if err := g.Kill(); err != nil {
		return err
	}
	return g.Close()
}
