// Package mission holds the words of a mission: its id, its roster, what was fixed at its start, why it stopped. It
// reads no file and no clock.
package mission

import (
	"time"

	"example.com/AutoAgentProject/core/money"
)

// Version is the version of every file format of a mission.
const Version = 1

// Duration is a time.Duration that files show as Go text: "4h0m0s".
type Duration time.Duration

func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

func (d *Duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	*d = Duration(v)
	return err
}

// Mission is mission.json: what was fixed at the start. It never changes afterwards.
type Mission struct {
	Version    int               `json:"version"`
	ID         string            `json:"id"`
	CreatedAt  time.Time         `json:"created_at"`
	Engine     string            `json:"engine"`            // "embedded", "systemd"
	Manager    string            `json:"manager,omitempty"` // engine systemd: whose manager ticks it, "system" or "user"
	Roster     []Agent           `json:"roster"`
	Model      string            `json:"model"`
	CheapModel string            `json:"cheap_model,omitempty"` // for runs from 85 % of the budget on; empty: no other
	Tiers      map[string]string `json:"tiers,omitempty"`       // of a flow: the model of each tier
	Verify     string            `json:"verify,omitempty"`      // command that must pass on the integrated tree at the end
	Flow       string            `json:"flow,omitempty"`        // the flow it follows instead of a planned list
	Mode       string            `json:"mode,omitempty"`        // of the flow: gsd or check
	From       *Source           `json:"from,omitempty"`        // what the work starts from; nil: an empty tree
	Base       string            `json:"base"`                  // first commit of the mission's repository: what the work is compared with

	BudgetAsked    string       `json:"budget_asked"`    // as typed: "10%"
	BudgetSentence string       `json:"budget_sentence"` // how it became an amount
	Budget         money.Amount `json:"budget"`
	StepLimit      int64        `json:"step_limit"` // most that one step may use, in the budget's unit
	MinRun         int64        `json:"min_run"`    // least that a run is started with, in the budget's unit

	Bounds   Bounds   `json:"bounds,omitzero"`
	Read     []string `json:"read,omitempty"`            // files and folders that agents may read besides their clones
	Caches   Caches   `json:"caches,omitzero"`           // of tools, that agents may read
	Network  string   `json:"network,omitempty"`         // of the cells: empty, open, NetworkHost or NetworkNone
	FromRepo []string `json:"allow_from_repo,omitempty"` // what of From is loaded into the agent program, see FromRepoWords
	KeepDocs bool     `json:"keep_docs,omitempty"`       // the documents of the steps are part of the product, below docs/handoffs/

	VerifyLimit Duration `json:"verify_limit,omitempty"` // wall clock of a verify command; 0: the default

	MaxRun Duration  `json:"max_run,omitempty"` // time in which the mission can run; 0: not limited
	Until  time.Time `json:"until,omitzero"`    // absolute end; zero: not limited

	Reachable bool `json:"reachable,omitempty"`  // a person is told of questions: agents may ask
	Summaries bool `json:"summaries,omitempty"`  // a message of milestones begins with a sentence of the cheapest model
	AskErrors bool `json:"ask_errors,omitempty"` // when all tries are used up a person is asked, else the mission fails

	QuietHours string   `json:"quiet_hours,omitempty"` // when milestones wait: "22:00-07:00 Europe/Berlin"
	TellEvery  Duration `json:"tell_every,omitempty"`  // milestones are told no more often; 0: the default

	Payer    string `json:"payer"`              // who pays, in words
	Upstream string `json:"upstream,omitempty"` // where the model is; empty: the program's default
	Gateway  string `json:"gateway,omitempty"`  // "off": runs reach the model directly, with the login
	Scripted bool   `json:"scripted,omitempty"` // the model's part is played from a script: nobody pays

	Program     string `json:"program"`          // the agent program; its version at the start stands in Agents
	Path        string `json:"path"`             // PATH inside the cells
	Credentials string `json:"credentials"`      // file that holds the login; never its content
	Config      string `json:"config,omitempty"` // the configuration file, in which the caps of all missions stand
	Tool        string `json:"tool"`             // version of this program
	Agents      string `json:"agents"`           // name and version of the agent program
}

// Caches are folders of package managers' caches; empty: not shared.
type Caches struct {
	Go  string `json:"go,omitempty"`  // cache/download of a module cache
	NPM string `json:"npm,omitempty"` // _cacache of a cache of npm
}

// Source is what a mission started from.
type Source struct {
	Kind   string `json:"kind"` // "git" or "folder"
	Path   string `json:"path"`
	Commit string `json:"commit,omitempty"` // HEAD of a git repository
	Branch string `json:"branch,omitempty"`
}

// Agent finds a member of the roster.
func (m Mission) Agent(name string) (Agent, bool) {
	for _, a := range m.Roster {
		if a.Name == name {
			return a, true
		}
	}
	return Agent{}, false
}

// Cause is why a mission stopped.
type Cause string

const (
	Completed Cause = "completed" // all steps done, the final verify passed
	FailedEnd Cause = "failed"    // it cannot go on
	Aborted   Cause = "aborted"   // a person stopped it
	Budget    Cause = "budget"    // halted: the money is used up
	Time      Cause = "time"      // halted: the time is used up
	Damage    Cause = "damage"    // halted: a file of the mission cannot be read
	Walls     Cause = "walls"     // halted: something outside of the walls changed during a run
)

// Final says whether a mission that stopped for this cause can never go on.
func (c Cause) Final() bool { return c != Budget && c != Time && c != Damage && c != Walls }

// Phase is the word for a mission that ended with this cause.
func (c Cause) Phase() string {
	switch c {
	case Budget, Time, Damage, Walls:
		return "halted: " + string(c)
	case Completed, FailedEnd, Aborted:
		return string(c)
	}
	return "stopped"
}

// Stop is stop.json, the tombstone: once it exists no tick starts a run.
type Stop struct {
	Version int       `json:"version"`
	Cause   Cause     `json:"cause"`
	Reason  string    `json:"reason"`
	By      string    `json:"by"` // manager, quota, person, supervisor
	At      time.Time `json:"at"`
}

// Pause is one cause why a live mission does not work. The causes are a set: lifting one lifts one.
type Pause struct {
	Cause  string    `json:"cause"`           // human, limit, cap, login, stall, approval, blocked; of an agent: human, breaker
	Agent  string    `json:"agent,omitempty"` // that does not work; empty: nobody of the mission
	Reason string    `json:"reason"`
	Until  time.Time `json:"until,omitzero"` // zero: until somebody lifts it
	Since  time.Time `json:"since"`
	Need   int64     `json:"need,omitempty"` // of cap: what the caps must have free before it is lifted, in nano-USD
}

// GatewayOff is a mission's Gateway if its runs reach the model directly.
const GatewayOff = "off"

// WithoutGateway is what a person has to know of such a mission.
const WithoutGateway = "without the gateway: the answer in flight can pass the budget, and the login is visible inside a run"
