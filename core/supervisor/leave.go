package supervisor

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"example.com/AutoAgentProject/core/files"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/store"
	"example.com/AutoAgentProject/core/usererr"
)

// ErrLeave is the cause of a context that ends because this process has to go (a closed terminal, a shutdown), and not
// because a person gives the mission up.
var ErrLeave = errors.New("this process has to end")

func leaving(ctx context.Context) bool {
	return ctx.Err() != nil && errors.Is(context.Cause(ctx), ErrLeave)
}

// leave ends everything that runs and leaves the mission as it is: whoever ticks it next goes on from the files.
func (s *Supervisor) leave(st *store.Store, m mission.Mission, l *loop) error {
	ticks := s.ticks(st, m, l)
	s.endTicks(ticks, l)
	group, err := s.leftGroup(st)
	if err == nil {
		_, err = s.killAndProve(st, m, ticks, group, l)
	}
	if err != nil {
		return fmt.Errorf("leave %s: %w", m.ID, err)
	}
	_ = files.Remove(filepath.Join(st.Dir(), "supervisor.json"))
	return usererr.New(usererr.Later, "AutoAgentProject run "+m.ID+" goes on, AutoAgentProject abort "+m.ID+" ends it", "mission %s was left standing because %s", m.ID, ErrLeave)
}
