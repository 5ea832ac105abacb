// Package store is a mission's folder: where its files lie, and how mission, plan, state and tombstone are read and
// written. Other packages use it by operations, not by paths.
package store

import (
	"os"
	"path/filepath"
	"slices"

	"example.com/AutoAgentProject/core/journal"
	"example.com/AutoAgentProject/core/ledger"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/queue"
)

// Handed is the file in a mission's folder that start writes last: an engine has it. A mission of the systemd engine that
// has neither this file nor units is what a start that was cut off left behind.
const Handed = "handed.json"

// Root is the folder that holds everything: data/, logs/ and autoagent-missions/.
type Root string

// Home is where the missions' data lie; no cell sees it.
func (r Root) Home() string { return filepath.Join(string(r), "data", "autoagent") }

// Host is where things lie that belong to no mission, such as the state of a bot's poller; no cell sees it.
func (r Root) Host() string { return filepath.Join(string(r), "data", "host") }

// Missions is where the missions' work lies.
func (r Root) Missions() string { return filepath.Join(string(r), "autoagent-missions") }

// Caps is where the ledgers of what all missions may spend together lie. No id begins with a dot.
func (r Root) Caps() string { return filepath.Join(r.Home(), ".caps") }

// OfNotify takes the folder of a mission's messages apart.
func OfNotify(dir string) (root Root, id string, ok bool) {
	id = filepath.Base(filepath.Dir(dir))
	root = Root(filepath.Dir(filepath.Dir(filepath.Dir(filepath.Dir(dir)))))
	return root, id, mission.CheckID(id) == nil && root.Mission(id).Notify() == dir
}

// Mission returns the store of one mission; it need not exist.
func (r Root) Mission(id string) *Store { return &Store{root: r, id: id} }

// IDs returns the ids that have a data folder, sorted. Folders with other names are ignored.
func (r Root) IDs() ([]string, error) {
	entries, err := os.ReadDir(r.Home())
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, e := range entries {
		if e.IsDir() && mission.CheckID(e.Name()) == nil {
			ids = append(ids, e.Name())
		}
	}
	slices.Sort(ids)
	return ids, nil
}

// Store is one mission's files.
type Store struct {
	root Root
	id   string
}

func (s *Store) Root() Root   { return s.root }
func (s *Store) ID() string   { return s.id }
func (s *Store) Dir() string  { return filepath.Join(s.root.Home(), s.id) }
func (s *Store) Work() string { return filepath.Join(s.root.Missions(), s.id) }
func (s *Store) Logs() string { return filepath.Join(string(s.root), "logs", "autoagent", s.id) }

func (s *Store) file(name string) string { return filepath.Join(s.Dir(), name) }

// Goal is the file with the goal, byte for byte.
func (s *Store) Goal() string { return s.file("goal.md") }

// FromRepo is the folder with what start took of a repository for the agent program; FromRepoDocument says what it took.
func (s *Store) FromRepo() string { return s.file("from-repo") }

// FromRepoDocument is the name of that document.
const FromRepoDocument = "from-repo.json"

// Repo is the mission's bare repository; Result is the link to a checkout of it.
func (s *Store) Repo() string   { return filepath.Join(s.Work(), "repo.git") }
func (s *Store) Result() string { return filepath.Join(s.Work(), "result") }

// Clone is an agent's clone, the only lasting place its cell can write.
func (s *Store) Clone(agent string) string { return filepath.Join(s.Work(), agent) }

// Cells holds an agent's per-run homes; Scratch is one run's.
func (s *Store) Cells(agent string) string { return filepath.Join(s.Work(), ".cells", agent) }
func (s *Store) Scratch(agent, run string) string {
	return filepath.Join(s.Cells(agent), run)
}

// Agent is an agent's data folder; Run is one run's record in it.
func (s *Store) Agent(agent string) string    { return filepath.Join(s.Dir(), "agents", agent) }
func (s *Store) Run(agent, run string) string { return filepath.Join(s.Agent(agent), "runs", run) }

// Socket is the agent's datagram socket for wake-ups where the embedded engine ticks it. units.Wakes knows of all engines.
func (s *Store) Socket(agent string) string { return filepath.Join(s.Agent(agent), "wake") }

// AgentLock is held by an agent's tick for as long as it runs.
func (s *Store) AgentLock(agent string) string { return filepath.Join(s.Agent(agent), "tick.lock") }

// AgentLog is where an agent's ticks write their log.
func (s *Store) AgentLog(agent string) string { return filepath.Join(s.Logs(), agent+".log") }

// Queue, Ledger and Journal are the mission's mailboxes, money and events.
func (s *Store) Queue() queue.Queue       { return queue.Queue{Agents: filepath.Join(s.Dir(), "agents")} }
func (s *Store) Ledger() *ledger.Ledger   { return ledger.Open(s.file("ledger.jsonl")) }
func (s *Store) Journal() journal.Journal { return journal.Journal{Path: s.file("events.jsonl")} }

// Notify is the durable outbox of messages to the person.
func (s *Store) Notify() string { return s.file("notify") }
