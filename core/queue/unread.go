package queue

import "time"

// OldMail is how long something may lie unread in the inbox of an agent that has nothing else in hand, while the mission works.
const OldMail = 30 * time.Minute

// UnreadName is where the manager notes what it saw lie unread, by agent, in the mission's store.
const UnreadName = "agents/manager/unread.json"

// UnreadFile is that note.
type UnreadFile struct {
	Version int               `json:"version"`
	Agents  map[string]Unread `json:"agents"`
}

// Unread is what was seen of one inbox: that the same thing lies there since a time, and whether a person was told.
type Unread struct {
	Oldest time.Time `json:"oldest"` // when the oldest one came: another one is another incident
	Since  time.Time `json:"since"`  // first seen like this; time in which the mission was paused does not count
	Told   bool      `json:"told,omitempty"`
}

// Next is what is seen now; tell means that it has become old, once for an incident.
func (u Unread) Next(d Depth, paused bool, now time.Time) (next Unread, tell bool) {
	switch {
	case d.New == 0 || d.InProcess > 0 || paused:
		return Unread{}, false
	case !u.Oldest.Equal(d.Oldest):
		return Unread{Oldest: d.Oldest, Since: now.UTC()}, false
	case !u.Told && now.Sub(u.Since) >= OldMail:
		u.Told = true
		return u, true
	}
	return u, false
}
