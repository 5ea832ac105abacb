package manager

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"time"

	"example.com/AutoAgentProject/core/journal"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/queue"
)

// watchMail looks whether something lies unread in an inbox whose agent ought to take it, and tells a person once. It is a
// record only: what goes wrong here holds nothing up.
func (m Manager) watchMail(ctx context.Context) {
	var noted queue.UnreadFile
	next := map[string]queue.Unread{}
	if err := m.Store.Load(queue.UnreadName, &noted); err != nil && !errors.Is(err, fs.ErrNotExist) {
		m.Log.Warn("what lay unread cannot be read and is seen anew", "err", err)
	}
	pauses, err := m.Paused(ctx)
	if err != nil {
		return
	}
	for _, a := range mission.Specialists(m.Mission.Roster) {
		d, err := m.Store.Queue().Depth(a.Name)
		if err != nil {
			m.Log.Warn("an inbox cannot be read", "which", a.Name, "err", err)
			continue
		}
		u, tell := noted.Agents[a.Name].Next(d, len(pauses) > 0, m.Now())
		if u != (queue.Unread{}) {
			next[a.Name] = u
		}
		if tell {
			m.Event(journal.Event{Kind: journal.MailOld, Level: journal.Blocker, Incident: fmt.Sprintf("unread-%s-%d", a.Name, u.Oldest.UnixNano()),
				Text: fmt.Sprintf("%d unread in the inbox of %s since %s, and nobody takes it: see AutoAgentProject logs %s %s", d.New, a.Name, u.Oldest.Format(time.RFC3339), m.Mission.ID, a.Name)})
			m.Wake(a.Name)
		}
	}
	if maps.Equal(noted.Agents, next) {
		return
	}
	if err := m.Store.Save(queue.UnreadName, queue.UnreadFile{Version: mission.Version, Agents: next}); err != nil {
		m.Log.Warn("what lies unread could not be noted", "err", err)
	}
}
