package tick

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"

	"example.com/AutoAgentProject/core/cell"
	"example.com/AutoAgentProject/core/files"
	"example.com/AutoAgentProject/core/handoff"
	"example.com/AutoAgentProject/core/mission"
)

// Mailboxes are the agents of a mission that can get a handoff.
func Mailboxes(m mission.Mission) (names []string) {
	for _, a := range m.Roster {
		if a.Role == mission.Manager || a.Role == mission.Specialist {
			names = append(names, a.Name)
		}
	}
	return names
}

// Gate is what the gate knows of this agent besides a draft and its tree: who can get a handoff, what its profession may do, and
// what it has in process.
func (t *Tick) Gate() (handoff.Facts, error) {
	f := handoff.Facts{Sender: t.Agent.Name, Roles: Mailboxes(t.Mission), Policy: handoff.MissionPolicy()}
	if p, ok := t.Professions.Get(t.Agent.Profession); ok {
		if p.Notes {
			f.Policy.Notes = append(f.Policy.Notes, t.Agent.Name)
		}
		if p.HandoffTo != nil {
			f.Policy.To = []string{}
			for _, a := range t.Mission.Roster {
				if slices.Contains(f.Roles, a.Name) && slices.Contains(p.HandoffTo, a.Profession) {
					f.Policy.To = append(f.Policy.To, a.Name)
				}
			}
		}
	}
	held, err := t.Store.Queue().Current(t.Agent.Name)
	f.Held = handoff.HeldOf(held)
	return f, err
}

// Where an agent finds the gate in its cell: this program, which judges drafts and the document and changes nothing, and all
// that it knows of the mission.
const (
	CheckProgram = "/run/autoagent/handoff"
	CheckFacts   = "/run/autoagent/handoff.json"
)

// layOutGate puts what the gate knows beside the run's folders that its cell sees.
func (t *Tick) layOutGate(run string, f *handoff.Facts) error {
	t.gate = ""
	if f == nil {
		return nil
	}
	b, err := json.Marshal(f)
	if err != nil {
		return err
	}
	path := filepath.Join(t.Store.Scratch(t.Agent.Name, run), "handoff.json")
	if err := files.Replace(path, b, 0o600); err != nil {
		return err
	}
	t.gate = path
	return nil
}

// gateBinds show the gate in a run's cell. A program that was replaced since this tick began is not shown: the run goes on without.
func (t *Tick) gateBinds() []cell.Bind {
	self, err := os.Executable()
	if err == nil {
		_, err = os.Stat(self)
	}
	if t.gate == "" || err != nil {
		return nil
	}
	return []cell.Bind{{Host: self, Inside: CheckProgram}, {Host: t.gate, Inside: CheckFacts}}
}
