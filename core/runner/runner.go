// Package runner is the contract between a tick and an agent program: one Job in, one Result out. What runs behind it
// (the claude program, later others) passes the suite in core/testkit.
package runner

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"time"

	"example.com/AutoAgentProject/core/money"
)

// Verdict is how a run ended. The tick decides by it alone.
type Verdict string

const (
	Done      Verdict = "done"       // the program finished and every sign agrees
	Failed    Verdict = "failed"     // it ended with an error, without a result, or at a limit of ours
	Later     Verdict = "later"      // an account or service limit: wait until Result.ResetAt, no attempt is counted
	LoginLost Verdict = "login-lost" // the credential was refused: pause all agents once, do not retry
	Killed    Verdict = "killed"     // we stopped it: the context ended
)

// Credential is what a run authenticates with. It travels by environment, never by argument.
type Credential struct {
	Kind   string // "api-key" or "plan-token"
	Secret string
}

// Job is everything one run needs. Paths are absolute and the same inside and outside of the cell.
type Job struct {
	Run          string            // id of the run, a UUID; also the program's session id
	Dir          string            // working folder: the agent's clone
	Scratch      string            // the run's own folder, exists: the runner makes home, tmp and in below it
	Inputs       []string          // folders or files the agent may read besides Dir
	Fixed        []Fixed           // read-only in the cell, over what lies in Dir
	Settings     json.RawMessage   // further settings of the program, in its own form; nil: none
	Servers      json.RawMessage   // MCP servers that it starts, in its own form; nil: none
	SystemPrompt string            // soul and profession
	Prompt       string            // the first user message, any text
	Model        string            // exact model id
	Tools        []string          // tools offered to the model, in the program's own names
	Schema       json.RawMessage   // JSON schema of a structured answer; nil: plain text
	MaxTurns     int               // model requests at most; 0 is not allowed
	MaxOutput    int               // tokens of one response at most; 0: the runner's default
	Effort       string            // how much the model thinks: low, medium, high; empty: its default
	Cap          money.Nano        // list price at most; 0: not limited in money
	CapTokens    int64             // tokens at most; 0: not limited in tokens
	Wall         time.Duration     // wall-clock limit; 0 is not allowed
	Silence      time.Duration     // no event for so long ends the run; 0 is not allowed
	Credential   Credential        //
	BaseURL      string            // where the program finds the model; empty: its default
	Transcript   io.Writer         // every line of output as it came
	Launched     func() error      // called right before the program is started; an error stops the run unstarted; may be nil
	Event        func(Event)       // called for what a person may watch; may be nil
	Follow       func(Turn) string // called at each good result; a non-empty answer continues the same conversation; may be nil
}

// Fixed is a file or folder that a run sees, and cannot write, at another place than where it lies.
type Fixed struct{ Lies, Seen string }

// Taken is what was taken of a repository for the agent program: by the operator's word, and as it is in one commit. What
// agents do to the same files later changes nothing of it.
type Taken struct {
	Version      int             `json:"version"`
	Commit       string          `json:"commit"`
	Instructions string          `json:"instructions,omitempty"` // for the system prompt
	Settings     json.RawMessage `json:"settings,omitempty"`     // for Job.Settings
	Servers      json.RawMessage `json:"servers,omitempty"`      // for Job.Servers
	Fixed        []string        `json:"fixed,omitempty"`        // folders and files that runs see as they are in the commit
	Found        []string        `json:"found,omitempty"`        // in words
	Left         []string        `json:"left,omitempty"`         // asked for and not taken, in words
}

// Turn is one finished answer inside a run.
type Turn struct {
	N          int             // 1 for the first
	Text       string          // the answer
	Structured json.RawMessage // the structured answer, if a schema was given
}

// Event is a live sign of life of a run.
type Event struct {
	At   time.Time
	Kind string // "start", "tool", "text", "usage", "retry", "limit", "result"; "alive": something came that nobody has to see, told once a second at most
	Text string // one line, at most 200 characters, control characters removed

	Tool  string // of "tool": its name
	Input string // of "tool": a digest of its whole input
}

// Halt is the cause of a context that ends a run for a reason of the run itself: its verdict is Failed, of that class.
type Halt struct{ Class, Reason string }

func (h *Halt) Error() string { return h.Reason }

// Result is what a run came to.
type Result struct {
	Verdict    Verdict         `json:"verdict"`
	Reason     string          `json:"reason"`               // one line why, empty for done
	Class      string          `json:"class,omitempty"`      // finer: "max-turns", "budget", "wall", "silence", "refusal", "auth", "usage-limit", "overage", "credit", "server", "no-result", "init-mismatch", "bad-output", "empty", "exit", "oom"; or of a Halt
	ResetAt    time.Time       `json:"reset_at,omitzero"`    // for later: when the limit ends; zero: not told, back off
	Text       string          `json:"text"`                 // last answer
	Structured json.RawMessage `json:"structured,omitempty"` // last structured answer
	Spend      Spend           `json:"spend"`
	Turns      int             `json:"turns"`   // answers
	Denials    []string        `json:"denials"` // tools refused by permission
	Session    string          `json:"session"`
	Exit       int             `json:"exit"` // exit status of the program, -1 when killed by a signal
	Started    time.Time       `json:"started"`
	Ended      time.Time       `json:"ended"`
}

// Spend is what a run cost at list price.
type Spend struct {
	Nano     money.Nano             `json:"nano_usd"`
	Tokens   int64                  `json:"tokens"`
	Requests int64                  `json:"requests,omitempty"` // responses of the model that were seen; 0: not known
	ByModel  map[string]money.Usage `json:"by_model"`
	Source   string                 `json:"source"`             // "result", "stream" or "none": which meter was largest
	Unpriced []string               `json:"unpriced,omitempty"` // models without a known price, charged at the dearest row
	Open     bool                   `json:"open,omitempty"`     // a request was in flight when it ended: a begun answer counts with its upper bound, one that had not begun not at all
}

// Runner starts an agent program once.
type Runner interface {
	// Name is the short name of the implementation, for example "claude".
	Name() string
	// Check says whether the program is there and usable, with its version.
	Check(ctx context.Context) (version string, err error)
	// Run runs one job to its end. An error means that it could not be started at all; everything after the start,
	// good or bad, is told by the Result. When ctx ends the run is interrupted, then ended for certain.
	Run(ctx context.Context, j Job) (Result, error)
	// Recount reads a transcript that a killed tick left behind and says what was spent.
	// started is false if it shows no request at all.
	Recount(transcript io.Reader) (s Spend, started bool, err error)
	// Describe reads a transcript and tells what happened, in order: the kinds of Event and "output", what a tool
	// answered; texts in full length.
	Describe(transcript io.Reader, each func(Event)) error
}

// Command is a program to be started behind the walls.
type Command struct {
	Argv     []string
	Env      []string // the whole environment
	Dir      string
	Writable []string  // folders bound read-write at the same path
	ReadOnly []string  // files or folders bound read-only at the same path
	Fixed    []Fixed   // and at another one
	Home     string    // folder that becomes the home inside
	Tmp      string    // folder that becomes /tmp inside
	Stdin    io.Reader // nil: empty. An *os.File is handed over as it is
	Stdout   *os.File  // handed over as it is; nil: /dev/null
	Stderr   *os.File
}

// Process is a running Command.
type Process interface {
	// Terminate sends SIGTERM to the program.
	Terminate() error
	// Kill ends the program and everything it ever started, and returns when all of it is gone.
	Kill()
	// Wait waits for the program's own end; exit is -1 when a signal ended it. What it left behind is killed before it returns.
	Wait() (exit int, err error)
}

// Launcher starts programs behind the walls; core/cell is the real one.
type Launcher interface {
	Launch(ctx context.Context, c Command) (Process, error)
}
